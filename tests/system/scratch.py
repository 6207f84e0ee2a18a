# SPDX-License-Identifier: Apache-2.0
"""Where the directories of a test's host are: in memory, where that has room for them.

There vgpud's run directory is on a real machine, too; and no test shall wait for a disk at each commit of the database.
What concerns a disk makes its folder in DISK.
"""
import os
import tempfile

DISK = "/tmp"
MEMORY = "/dev/shm"
ROOM = 4 << 30


def _is_good(folder):
    """Programs are started there, as other users also."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize >= ROOM and \
        os.access(folder, os.W_OK | os.X_OK)


def make(prefix):
    """A directory of our own; the name is short, since sockets' names are."""
    return tempfile.mkdtemp(prefix=prefix, dir=MEMORY if _is_good(MEMORY) else DISK)
