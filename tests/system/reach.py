# SPDX-License-Identifier: Apache-2.0
"""What other users run in a test, where they can reach it.

The tree may lie below a folder that others cannot enter, as root's home is. A test that becomes another user then runs
copies, which lie in a folder of its process, among their like as they do where they come from.

    reach.py VARIABLE... -- COMMAND    for tests in C: what the variables name is put in reach, and the command run
"""
import atexit
import functools
import os
import pathlib
import shutil
import stat
import subprocess
import sys

import scratch


def _is_open(path):
    """Can any user read it, and enter all folders above it?"""
    folders = [path, *path.parents] if path.is_dir() else path.parents
    return bool(path.stat().st_mode & stat.S_IROTH) and \
        all(folder.stat().st_mode & stat.S_IXOTH for folder in folders)


@functools.cache
def _folder():
    made = pathlib.Path(scratch.make("vg-reach-"))
    made.chmod(0o755)
    owner = os.getpid()

    def remove():
        if os.getpid() == owner:
            shutil.rmtree(made, ignore_errors=True)

    atexit.register(remove)
    return made


def _open(copy):
    """For a umask that gives others nothing."""
    for path in [copy, *copy.rglob("*")]:
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | 0o444 | (0o111 if path.is_dir() or mode & 0o100 else 0))


@functools.cache
def place(path):
    """Where @path is for any user; of() has to put it there. Who is not root cannot become another user, and needs nothing."""
    path = pathlib.Path(path).resolve()
    nearest = next(folder for folder in (path, *path.parents) if folder.exists())
    if os.geteuid() != 0 or _is_open(nearest):
        return path
    return _folder() / str(path).lstrip("/")


@functools.cache
def of(path):
    """@path, a file or a folder, where any user can reach it."""
    path, copy = pathlib.Path(path).resolve(), place(path)
    if copy == path:
        return path
    old = os.umask(0o022)
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, copy, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.p", "__pycache__"))
        else:
            shutil.copy2(path, copy)
    finally:
        os.umask(old)
    _open(copy)
    return copy


def scripts():
    """The folder of this file."""
    return str(of(pathlib.Path(__file__).parent))


def set_environment(*variables):
    """What the variables name, where they are set, is in reach."""
    for variable in variables:
        if variable in os.environ:
            os.environ[variable] = str(of(os.environ[variable]))


if __name__ == "__main__":
    at = sys.argv.index("--")
    set_environment(*sys.argv[1:at])
    sys.exit(subprocess.run(sys.argv[at + 1:], check=False).returncode)
