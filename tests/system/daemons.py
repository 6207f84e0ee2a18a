# SPDX-License-Identifier: Apache-2.0
"""The daemons under test: those of the build, or those of another build (TEST_DAEMONS, its folder).

So they can be made with a sanitizer, and all else not: a sanitizer wants to be the first thing in a
program, which in a guest is the gate.
"""
import os
import pathlib
import shutil

import reach

BUILD = os.environ.get("TEST_DAEMONS")
PROGRAMS = {
    "TEST_VGPUD": "src/manager/vgpud",
    "TEST_KEEPER": "src/keeper/vgpu-keeper",
    "TEST_MOVER": "src/mover/vgpu-mover",
    "TEST_SAMPLER": "src/sampler/vgpu-sampler",
    "TEST_CHECKPOINTER": "src/checkpoint/vgpu-checkpointer",
}


def set_environment():
    """For tests that start the programs where they were built."""
    for variable, path in PROGRAMS.items():
        if BUILD and variable in os.environ:
            os.environ[variable] = os.path.join(BUILD, path)
    if "TEST_GATE" in os.environ:
        reach.of(pathlib.Path(os.environ["TEST_GATE"]).with_name("libcuda.so"))
    reach.set_environment("TEST_GATE", "TEST_SIM", "TEST_GUESTS")


def replace(root):
    """In an installed tree."""
    for path in PROGRAMS.values() if BUILD else ():
        [installed] = pathlib.Path(root).rglob(os.path.basename(path))
        shutil.copy2(os.path.join(BUILD, path), installed)
