# SPDX-License-Identifier: Apache-2.0
"""The installed tree under test: made once for a build, shared by all tests of it.

The tests run what a user installs, not what lies about in the build folder: programs find each
other relative to themselves, and a file that is not installed is missed here first.
"""
import fcntl
import functools
import importlib
import json
import os
import pathlib
import subprocess
import sys

import daemons
import reach

BUILD = pathlib.Path(os.environ["TEST_BUILD"])
PREFIX = os.environ.get("TEST_PREFIX", "/usr/local")

INSTALL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "stage-install.sh"
NAME = "stage-daemons" if daemons.BUILD else "stage"
MADE = BUILD / NAME
DESTDIR = reach.place(MADE)
ROOT = DESTDIR / PREFIX.lstrip("/")
PRIVATE = ROOT / "lib" / "openvgpu"
GUESTS = reach.of(BUILD / "tests" / "guests")

VGPU = ROOT / "bin" / "vgpu"
VGPUD = ROOT / "bin" / "vgpud"
SYSTEM_PYTHON = pathlib.Path("/usr/bin/python3")
GATE = PRIVATE / "gate" / "libcuda.so.1"
DRIVER = PRIVATE / "sim" / "libcuda.so.1"
RUNTIME = PRIVATE / "sim" / "libcudart.so.13"


# An installed tree that is taken instead of one of the build.
_is_given = False


def take(prefix):
    """Run what is installed in @prefix; for who asks for these names afterwards."""
    global _is_given, ROOT, PRIVATE, VGPU, VGPUD, GATE, DRIVER, RUNTIME  # pylint: disable=global-statement
    _is_given, ROOT = True, pathlib.Path(prefix).resolve()
    PRIVATE = ROOT / "lib" / "openvgpu"
    VGPU, VGPUD = ROOT / "bin" / "vgpu", ROOT / "bin" / "vgpud"
    GATE, DRIVER = PRIVATE / "gate" / GATE.name, PRIVATE / "sim" / DRIVER.name
    RUNTIME = PRIVATE / "sim" / RUNTIME.name
    _check()


def _check():
    missing = [path.name for path in (VGPU, VGPUD, GATE, DRIVER, RUNTIME) if not path.exists()]
    assert not missing, f"{ROOT} lacks {', '.join(missing)}"


def _is_current(stamp):
    """Nothing that would be installed is newer than the last installation."""
    if not stamp.exists():
        return False
    installed = json.loads((BUILD / "meson-info" / "intro-installed.json").read_text())
    made = stamp.stat().st_mtime
    # Links are listed by the name that they point to, and are made anew with what they are beside.
    return all(os.path.exists(source) and os.stat(source).st_mtime <= made
               for source in installed if os.path.isabs(source))


def make():
    """Install into the stage, unless another test has just done it; fails if something is missing."""
    if _is_given:
        return
    stamp = BUILD / f"{NAME}.stamp"
    with open(BUILD / f"{NAME}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_current(stamp):
            subprocess.run([INSTALL, str(BUILD), str(MADE)], check=True)
            daemons.replace(MADE / PREFIX.lstrip("/"))
            stamp.touch()
        reach.of(MADE)
        _check()


@functools.cache
def package():
    """The Python package openvgpu, as it is installed."""
    make()
    sys.path.insert(0, str(next(ROOT.glob("lib/python3*/*-packages"))))
    return importlib.import_module("openvgpu")
