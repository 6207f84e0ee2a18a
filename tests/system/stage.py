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

BUILD = pathlib.Path(os.environ["TEST_BUILD"])
PREFIX = os.environ.get("TEST_PREFIX", "/usr/local")

INSTALL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "stage-install.sh"
NAME = "stage-daemons" if daemons.BUILD else "stage"
DESTDIR = BUILD / NAME
ROOT = DESTDIR / PREFIX.lstrip("/")
PRIVATE = ROOT / "lib" / "openvgpu"
GUESTS = BUILD / "tests" / "guests"

VGPU = ROOT / "bin" / "vgpu"
VGPUD = ROOT / "bin" / "vgpud"
SYSTEM_PYTHON = pathlib.Path("/usr/bin/python3")
GATE = PRIVATE / "gate" / "libcuda.so.1"
DRIVER = PRIVATE / "sim" / "libcuda.so.1"
RUNTIME = PRIVATE / "sim" / "libcudart.so.13"


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
    stamp = BUILD / f"{NAME}.stamp"
    with open(BUILD / f"{NAME}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_current(stamp):
            return
        subprocess.run([INSTALL, str(BUILD), str(DESTDIR)], check=True)
        daemons.replace(ROOT)
        missing = [path.name for path in (VGPU, VGPUD, GATE, DRIVER, RUNTIME) if not path.exists()]
        assert not missing, f"the installed tree lacks {', '.join(missing)}"
        stamp.touch()


@functools.cache
def package():
    """The Python package openvgpu, as it is installed."""
    make()
    sys.path.insert(0, str(next(ROOT.glob("lib/python3*/*-packages"))))
    return importlib.import_module("openvgpu")


def can_be_used_by(user):
    """Can we become that user, and may it then run the programs?"""
    if os.geteuid() != 0:
        return False
    make()
    done = subprocess.run(["test", "-x", str(VGPU), "-a", "-x", str(SYSTEM_PYTHON), "-a",
                           "-r", __file__], user=user, check=False)
    return done.returncode == 0
