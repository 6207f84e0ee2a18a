# SPDX-License-Identifier: Apache-2.0
"""What makes a process stand still: a control group that freezes it, of either version, or a signal.

No test is left out for want of a control group: a signal is always there.
"""
import contextlib
import os
import pathlib
import signal

from wait import until


class Group:
    """A control group of its own, below that of this process, with one process in it."""

    halt = "is frozen (its container is paused)"

    def __init__(self, pid):
        self.folder = self.find_parent() / f"openvgpu-test-{os.getpid()}-{pid}"
        self.folder.mkdir()
        try:
            (self.folder / "cgroup.procs").write_text(str(pid))
        except OSError:
            self.folder.rmdir()
            raise

    @classmethod
    def find_parent(cls):
        """The folder of our group; None: this machine has none of this version."""
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            if cls.LINE in line:
                path = pathlib.Path(cls.find_mount() + line.split(":", 2)[2])
                if path.is_dir() and os.access(path, os.W_OK):
                    return path
        return None

    @classmethod
    def is_there(cls):
        """Is it there, and may we make groups of it and freeze them?"""
        parent = os.geteuid() == 0 and cls.find_parent()
        if not parent:
            return False
        folder = parent / f"openvgpu-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            return False
        try:
            return (folder / cls.CONTROL).exists()
        finally:
            folder.rmdir()

    def freeze(self):
        (self.folder / self.CONTROL).write_text(self.FREEZE)
        until(self.is_frozen, "the control group to be frozen")

    def thaw(self):
        (self.folder / self.CONTROL).write_text(self.THAW)

    def close(self):
        """The group goes with its process."""
        self.thaw()
        parent = self.folder.parent / "cgroup.procs"
        for pid in (self.folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):  # it has ended
                parent.write_text(pid)

        def remove():
            with contextlib.suppress(OSError):  # its last process is on its way out
                self.folder.rmdir()
            return not self.folder.exists()
        until(remove, "the control group to be empty")


class FirstVersion(Group):
    LINE, CONTROL, FREEZE, THAW = ":freezer:", "freezer.state", "FROZEN", "THAWED"

    @staticmethod
    def find_mount():
        return "/sys/fs/cgroup/freezer"

    def is_frozen(self):
        return (self.folder / self.CONTROL).read_text() == "FROZEN\n"


class SecondVersion(Group):
    LINE, CONTROL, FREEZE, THAW = "0::", "cgroup.freeze", "1", "0"

    @staticmethod
    def find_mount():
        beside = "/sys/fs/cgroup/unified"
        return beside if os.path.isdir(beside) else "/sys/fs/cgroup"

    def is_frozen(self):
        return "frozen 1" in (self.folder / "cgroup.events").read_text()


class Signal:
    halt = "is stopped"

    def __init__(self, pid):
        self.pid = pid

    @staticmethod
    def is_there():
        return True

    def states(self):
        for path in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(OSError):  # it has ended
                yield (path / "stat").read_text().rsplit(")", 1)[1].split()[0]

    def freeze(self):
        os.kill(self.pid, signal.SIGSTOP)
        until(lambda: all(state in "Tt" for state in self.states()), "all threads to stop")

    def thaw(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)

    close = thaw


def find_kinds():
    """All that this machine lets us do; at least signals."""
    return [kind for kind in (FirstVersion, SecondVersion, Signal) if kind.is_there()]
