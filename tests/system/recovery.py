# SPDX-License-Identifier: Apache-2.0
"""Several vGPUs in one vgpud, whose guests all prove their memory after every fault."""
import contextlib
import mmap
import os
import pathlib
import struct
import subprocess

from harness import MIB, Host
from scene import METHODS
from wait import until
from wire import Refused

NAMES = ("one", "two", "three")


class Crowd:
    """The first has two processes, the others one each; no two guests have the same contents."""

    def __init__(self, test, disk=None, pool="32M"):
        """@disk: bytes of one of its own for the state directory. All of them fit into 32M of the pool."""
        self.test = test
        self.host = test.enterContext(Host(options=["--pool-limit", pool]))
        if disk:
            self.mount(disk)
        self.host.start()
        self.guests = {}
        for at, name in enumerate(NAMES):
            self.host.call("CreateVgpu", name=name, frame_buffer=64 * MIB, device="0")
            self.guests[name] = [
                self.host.guest(name, "--size", "5M", "--piece", "2M", "--small", "5", "--seed",
                                (10 * at + i + 1) << 24)
                for i in range(2 if at == 0 else 1)]

    def mount(self, size):
        self.host.state.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none",
                                  self.host.state], capture_output=True, text=True)
        if mounted.returncode:
            self.test.skipTest(f"cannot mount: {mounted.stderr.strip()}")
        self.test.addCleanup(subprocess.run, ["umount", "--lazy", self.host.state], check=True)

    def all_guests(self):
        return [guest for name in NAMES for guest in self.guests[name]]

    # faults

    def arm(self, point, action, text=""):
        (self.host.faults / f"{point}={action}").write_text(text)

    def disarm(self):
        """What is left of the number in the file of each point that was armed and not passed."""
        left = {}
        for path in self.host.faults.glob("*=*"):
            left[path.name] = path.read_text()
            path.unlink()
        return left

    def fill_disk(self, write=1):
        """The write with that number from now on and all that follow fail."""
        self.arm("store.write", "fail", f"{write}+")

    # the manager

    def restart(self, times=1):
        """Each manager has met all guests before it dies."""
        for _ in range(times):
            self.host.kill_manager()
            self.start()

    def start(self):
        before = self.log_size()
        self.host.start()
        for guest in self.all_guests():
            until(lambda pid=guest.pid: self.has_logged(before, "process is back", f"pid={pid} "),
                  f"process {guest.pid} to be back", context=guest.context)

    def log_size(self):
        return (self.host.root / "log").stat().st_size

    def has_logged(self, since, *words):
        """A line of the manager's log with all of the words."""
        with open(self.host.root / "log", "rb") as file:
            file.seek(since)
            lines = file.read().decode(errors="replace").split("\n")
        return any(all(word in line for word in words) for line in lines)

    def is_dead(self):
        """Ask for it after the end of an operation, which tidies up when it has answered."""
        if self.host.manager.poll() is None:
            with contextlib.suppress(ConnectionError, OSError):
                self.host.call("GetInfo")
                return False
        self.host.wait_killed()
        return True

    # operations

    def states(self):
        return {name: self.host.vgpu(name)["state"] for name in NAMES}

    def operate(self, kind, name="one", full_from=None):
        """True: it was done. None: the manager died. With @full_from the disk fills at that step."""
        method, parameters = METHODS[kind]
        before = self.log_size()
        client = self.host.client()
        client.send(method, name=name, **parameters)
        if full_from:
            point = f"{kind}.{full_from}"
            self.host.wait_paused(point)
            self.fill_disk()
            self.host.go_on(point)
        try:
            client.answer()
        except Refused:
            return None if self.is_dead() else False
        except (ConnectionError, OSError):
            self.host.wait_killed()
            return None
        until(lambda: self.host.manager.poll() is not None or
              self.has_logged(before, f"dropped vgpu={name} "), "the operation to tidy up")
        return None if self.is_dead() else True

    def settle(self):
        """Wait until nothing is under way, nor waits for room on the disk."""
        until(lambda: set(self.states().values()) <= {"running", "suspended"},
              "all vGPUs to be usable", context=lambda: str(self.states()))

    def bring_home(self):
        """Everything on device 0, as at the beginning."""
        for name in NAMES:
            vgpu = self.host.vgpu(name)
            if vgpu["state"] == "suspended":
                self.host.call("ResumeVgpu", name=name, device="0")
            elif vgpu["device"] != 0:
                self.host.call("MigrateVgpu", name=name, device="0")

    # what must hold

    def check(self, *names):
        """They run, and what they have is right."""
        for name in names or NAMES:
            for guest in self.guests[name]:
                guest.wait_steps(2)

    def check_nothing_left(self):
        until(lambda: self.host.call("GetInfo")["pool"]["used"] == 0, "the pool to be empty")

    def finish(self):
        """Every word of every guest."""
        for guest in self.all_guests():
            guest.finish()
        for name in NAMES:
            self.host.wait_state(name, "idle")
        self.host.kill_manager()
        self.test.assertEqual([label for label in self.host.labels()
                               if not label.startswith("page/")], [])


class Fault:
    """A point that is armed, and what becomes of the manager afterwards."""

    def __init__(self, point, action, text="", restarts=1, *, is_crash=False, full_from=None,
                 next_point=None, also=()):
        self.point, self.action, self.text, self.restarts = point, action, text, restarts
        self.is_crash = is_crash      # it is killed before there is room again
        self.full_from = full_from    # the step at which the disk fills
        self.next_point = next_point  # where the next manager dies, while it recovers
        self.also = also              # points that fail as well

    def __str__(self):
        return " ".join(f"{name}={value}" for name, value in vars(self).items() if value)


def play(crowd, kind, fault):
    """The operation @kind on the first vGPU with @fault; the second is suspended, the third gets to be."""
    host = crowd.host
    host.call("SuspendVgpu", name="two")
    if kind == "resume":
        host.call("SuspendVgpu", name="one")
    for point in fault.also:
        crowd.arm(point, "fail")
    if fault.full_from:
        crowd.arm(f"{kind}.{fault.full_from}", "pause")
    crowd.arm(fault.point, fault.action, fault.text)
    done = crowd.operate(kind, full_from=fault.full_from)
    if fault.is_crash and done is not None:
        host.kill_manager()
        done = None
    if done is not None:
        crowd.check("three")
    crowd.disarm()
    if fault.next_point:
        crowd.arm(fault.next_point, "kill")
        host.start_only()
        host.wait_killed()
    if done is None:
        crowd.start()
    crowd.settle()
    host.call("SuspendVgpu", name="three")
    with contextlib.suppress(Refused):  # whatever it is by now: it must be as true as before
        host.call("MigrateVgpu", name="one", device="1")
    crowd.restart(fault.restarts)
    crowd.bring_home()
    crowd.check()
    crowd.check_nothing_left()


# struct slab_stamps and struct stamp of src/pool/slab-stamp.c
STAMPS = struct.Struct("=16sQII")
STAMP = struct.Struct("=QQ64sQQq")
TAIL = 2 * MIB


def change_stamps(manager, owner, change):
    """The generation in all stamps of that vGPU, in the slabs that the manager has open."""
    n_changed = 0
    for path in pathlib.Path(f"/proc/{manager}/fd").iterdir():
        try:
            if "memfd:openvgpu-slab" not in os.readlink(path):
                continue
        except FileNotFoundError:  # another one, closed meanwhile
            continue
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as slab:
            start = len(slab) - TAIL
            magic, _, n, _ = STAMPS.unpack_from(slab, start)
            assert magic == b"OpenVGPU stamps\0"
            for at in range(start + STAMPS.size, start + STAMPS.size + n * STAMP.size, STAMP.size):
                stamp = list(STAMP.unpack_from(slab, at))
                if stamp[1] and stamp[2].rstrip(b"\0").decode() == owner:
                    stamp[3] += change
                    STAMP.pack_into(slab, at, *stamp)
                    n_changed += 1
    assert n_changed


def count_writes(crowd, kind):
    host = crowd.host
    if kind == "resume":
        host.call("SuspendVgpu", name="one")
    crowd.arm("store.write", "fail", "1000")
    crowd.test.assertTrue(crowd.operate(kind))
    left = crowd.disarm()["store.write=fail"]
    crowd.bring_home()
    return 1000 - int(left)
