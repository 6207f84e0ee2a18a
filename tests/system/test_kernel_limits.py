#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpud --kernel-limits: the driver holds a vGPU to its quota, also programs that go around the gate.

A plain folder is in the place of the control groups, but in Kernel, which has the kernel's own.
"""
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from guest import Guest
from harness import MIB, Host
from wait import until

# Loads the driver itself, takes memory until there is no more, and says how many MiB, and why no more.
TAKE = """
import ctypes, sys
driver = ctypes.CDLL(sys.argv[1])
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
assert driver.cuInit(0) == 0
code = driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
n = 0
driver.cuCtxSetCurrent(context)
while not code and (code := driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(16 << 20))) == 0:
    n += 16
print(n, code, flush=True)
sys.stdin.readline()
"""
OUT_OF_MEMORY = 2
CONTEXT = 64 * MIB  # what vgpud assumes of one on a device of 1 GiB
NO_LIMIT = 2**64 - 1


def limit(quota, processes):
    return quota + (processes + 1) * CONTEXT


class Case(unittest.TestCase):
    def setUp(self):
        self.host = self.enterContext(Host(options=["--simulate", "2xH200:1G", *self.where()]))
        self.host.start()
        self.programs = []
        self.addCleanup(self.end_programs)

    def where(self):
        self.parent = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.parent / "cgroup.procs").touch()
        return "--kernel-limits", str(self.parent)

    def end_programs(self):
        for program in self.programs:
            program.kill()
            program.communicate()
        self.programs.clear()

    def create(self, name="train", size=128 * MIB):
        return self.host.call("CreateVgpu", name=name, frame_buffer=size, device="0")["vgpu"]

    def take(self, name="train", shell=()):
        """MiB that a program around the gate gets, and the driver's last word."""
        environment = dict(os.environ, OPENVGPU_RUN=str(self.host.run), OPENVGPU_LIB=str(self.host.lib))
        program = subprocess.Popen(
            [os.environ["TEST_VGPU"], "run", "--vgpu", name, "--", "env", "-u", "LD_PRELOAD", *shell,
             sys.executable, "-c", TAKE, os.environ["TEST_SIM"]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.programs.append(program)
        return tuple(map(int, program.stdout.readline().split()))

    def end(self, program):
        program.communicate("\n")
        until(lambda: not self.host.vgpu("train")["processes"], "vgpud to see its end")

    def check_held(self, taken, quota, processes=1):
        """Its quota, and not much more; its own context counts."""
        mib, code = taken
        self.assertEqual(code, OUT_OF_MEMORY)
        self.assertLessEqual(mib * MIB, limit(quota, processes))
        self.assertGreaterEqual(mib * MIB, quota)

    def groups(self):
        return sorted(path.name for path in self.parent.glob("openvgpu*/*") if path.is_dir())


class Simulated(Case):

    def test_who_goes_around_the_gate_gets_the_quota(self):
        self.create()
        self.assertEqual(self.host.call("GetInfo")["kernel_limits"], "in force")
        self.check_held(self.take(), 128 * MIB)
        self.assertEqual(self.host.vgpu("train")["kernel_limit"], limit(128 * MIB, 1))

    def test_two_of_one_vgpu_have_it_together(self):
        self.create()
        first, _ = self.take()
        second, code = self.take()
        self.assertEqual(code, OUT_OF_MEMORY)
        self.assertLessEqual((first + second) * MIB, limit(128 * MIB, 2))
        self.create("other")
        self.check_held(self.take("other"), 128 * MIB)

    def test_another_quota_is_another_limit(self):
        self.create()
        self.check_held(self.take(), 128 * MIB)
        self.end(self.programs[0])
        self.host.call("ResizeVgpu", name="train", frame_buffer=512 * MIB)
        self.check_held(self.take(), 512 * MIB)

    def test_a_group_goes_with_its_vgpu(self):
        uuid = self.create()["uuid"]
        self.assertEqual(self.groups(), [uuid])
        self.host.call("RemoveVgpu", name="train")
        self.assertEqual(self.groups(), [])

    def test_the_next_manager_keeps_the_limits_and_sweeps(self):
        uuid = self.create()["uuid"]
        self.assertEqual(self.take()[1], OUT_OF_MEMORY)
        self.host.kill_manager()
        [folder] = self.parent.glob("openvgpu*")
        (folder / "00000000-0000-0000-0000-000000000000").mkdir()
        self.host.start()
        self.assertEqual(self.groups(), [uuid])
        until(lambda: self.host.vgpu("train")["kernel_limit"] > 0, "the limit to be known again")
        self.assertLessEqual(self.take()[0] * MIB, CONTEXT)  # the first one has the rest

    def test_a_program_behind_the_gate_has_all_of_its_quota_and_may_move(self):
        self.create()
        guest = self.host.guest("train", "--size", "120M")
        for device in ("1", "0"):
            self.host.call("SuspendVgpu", name="train")
            self.host.call("ResumeVgpu", name="train", device=device)
            guest.wait_steps()
        self.host.call("MigrateVgpu", name="train", device="1")
        guest.finish()

    def test_a_folder_that_is_no_group_is_refused(self):
        with Host(options=["--simulate", "2xH200:1G", "--kernel-limits", "/tmp"]) as host:
            host.start_only()
            self.assertEqual(host.manager.wait(30), 1)
            self.assertIn("/tmp is no control group", (host.root / "log").read_text())


class Off(Case):

    def where(self):
        return ()

    def test_without_the_option_only_the_gate_holds_it(self):
        self.create()
        self.assertEqual(self.host.call("GetInfo")["kernel_limits"], "off")
        self.assertEqual(self.host.vgpu("train")["kernel_limit"], 0)
        self.assertGreater(self.take()[0], 512)


class Kernel(Case):

    def where(self):
        own = next((line[3:] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()
                    if line.startswith("0::")), None)
        mount = pathlib.Path("/sys/fs/cgroup/unified")
        self.parent = (mount if mount.is_dir() else mount.parent) / (own or "/").lstrip("/")
        if own is None or not os.access(self.parent / "cgroup.procs", os.W_OK):
            self.skipTest(f"no control group of the second version may be written: {self.parent}")
        try:
            trial = self.parent / f"openvgpu-trial-{os.getpid()}"
            trial.mkdir()
            trial.rmdir()
        except OSError as error:
            self.skipTest(f"no control group can be made: {error}")
        return "--kernel-limits", "on"

    def remove_vgpu(self):
        self.end_programs()
        until(lambda: not self.host.vgpu("train")["processes"], "vgpud to see its end")
        self.host.call("RemoveVgpu", name="train")

    def test_children_are_held_too_and_nothing_is_left(self):
        uuid = self.create()["uuid"]
        [folder] = [path for path in self.parent.glob("openvgpu*") if (path / uuid).is_dir()]
        self.check_held(self.take(shell=("setsid", "-w")), 128 * MIB)
        self.assertTrue((folder / uuid / "cgroup.procs").read_text().split())
        self.remove_vgpu()
        self.assertFalse((folder / uuid).exists())
        self.host.stop_manager()
        self.assertFalse(folder.exists())

    @staticmethod
    def remove(group):
        def is_gone():
            with contextlib.suppress(OSError):  # its processes have not quite ended
                group.rmdir()
            return not group.exists()
        until(is_gone, "the group to be empty")

    def container(self):
        """The control groups of one, as an engine makes them: what is in the second one is limited through the first."""
        group = self.parent / f"libpod-{os.getpid():064x}.scope"
        below = group / "container"
        for folder in (group, below):
            folder.mkdir()
            self.addCleanup(self.remove, folder)
        return group, below

    @staticmethod
    def inside(folder):
        return "sh", "-c", f'echo $$ >{folder}/cgroup.procs && exec "$@"', "sh"

    def contained(self, folder, name):
        environment = dict(os.environ, **self.host.call("PrepareRun", name=name)["environment"])
        guest = Guest([*self.inside(folder), os.environ["TEST_GUESTS"] + "/guest-train", "--log",
                       self.host.root / name, "--size", "16M"], environment, self.host.root / name)
        self.host.guests.append(guest)
        guest.wait_ready()
        until(lambda: self.host.vgpu(name)["processes"], "it to join")
        return guest

    def take_inside(self, folder):
        other = subprocess.Popen(
            [*self.inside(folder), sys.executable, "-c", TAKE, os.environ["TEST_SIM"]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, OPENVGPU_SIM=str(self.host.run / "sim")))
        self.programs.append(other)
        return tuple(map(int, other.stdout.readline().split()))

    def test_a_container_stays_in_its_group_which_is_limited(self):
        self.create()
        group, below = self.container()
        guest = self.contained(below, "train")
        self.assertIn(group.name, pathlib.Path(f"/proc/{guest.pid}/cgroup").read_text())
        mib, code = self.take_inside(group)
        self.assertEqual(code, OUT_OF_MEMORY)
        self.assertLessEqual(mib * MIB, limit(128 * MIB, 1))
        guest.kill()
        self.remove_vgpu()
        self.host.stop_manager()

    def test_a_container_with_two_vgpus_has_the_limits_of_both(self):
        for name in ("train", "other"):
            self.create(name)
        group, below = self.container()
        guests = [self.contained(below, name) for name in ("train", "other")]
        mib, code = self.take_inside(group)
        self.assertEqual(code, OUT_OF_MEMORY)
        together = 2 * limit(128 * MIB, 1) - 2 * (16 * MIB + CONTEXT)  # less what the two have
        self.assertLessEqual(mib * MIB, together)
        self.assertGreaterEqual(mib * MIB, together - CONTEXT - 16 * MIB)
        self.end_programs()
        guests[1].kill()
        until(lambda: not self.host.vgpu("other")["processes"], "vgpud to see its end")
        self.host.call("RemoveVgpu", name="other")
        mib, code = self.take_inside(group)
        self.assertEqual(code, OUT_OF_MEMORY)
        self.assertLessEqual(mib * MIB, limit(128 * MIB, 1) - 16 * MIB - CONTEXT)
        guests[0].kill()
        self.remove_vgpu()
        self.host.stop_manager()

    def test_what_a_container_had_ends_with_its_last_program(self):
        """The group is there still: what enters it later counts anew."""
        for name in ("train", "other"):
            self.create(name)
        group, below = self.container()
        for guest in [self.contained(below, name) for name in ("train", "other")]:
            guest.kill()
        both = 2 * limit(128 * MIB, 0)

        def is_free():
            mib, _ = self.take_inside(below)
            self.end_programs()
            return mib * MIB > both

        until(is_free, "the limit of the container to end")
        guest = self.contained(below, "train")
        mib, code = self.take_inside(group)
        self.assertEqual(code, OUT_OF_MEMORY)
        self.assertLessEqual(mib * MIB, limit(128 * MIB, 1) - 16 * MIB - CONTEXT)
        guest.kill()
        self.remove_vgpu()


class Driver(unittest.TestCase):
    """A real device: NVIDIA's NVML is asked, here one that notes what it is asked."""

    def start(self, library, **variables):
        host = self.enterContext(Host(fake=True))
        parent = host.root / "groups"
        parent.mkdir()
        (parent / "cgroup.procs").touch()
        directory = host.root / "nvidia"
        directory.mkdir()
        (directory / "libnvidia-ml.so.1").symlink_to(os.environ[library])
        self.asked = host.root / "limits"
        self.asked.touch()
        host.variables = {"LD_LIBRARY_PATH": str(directory), "FAKE_NVML_LIMITS": str(self.asked), **variables}
        host.start(options=["--kernel-limits", str(parent)])
        return host

    def last(self):
        lines = self.asked.read_text().splitlines()
        return [line.split() for line in lines[-len(self.uuids):]]

    def test_its_library_is_asked_for_each_device(self):
        host = self.start("TEST_FAKE_NVML")
        self.uuids = [device["uuid"] for device in host.call("ListDevices")["devices"]]
        host.call("CreateVgpu", name="train", frame_buffer=64 * MIB, device="0")
        bytes_ = until(lambda: host.vgpu("train")["kernel_limit"], "the limit")
        self.assertEqual(host.call("GetInfo")["kernel_limits"], "in force")
        self.assertEqual([line[0] for line in self.last()], self.uuids)
        for _, group, soft, hard in self.last():
            self.assertTrue(group.endswith(host.vgpu("train")["uuid"]), group)
            self.assertEqual((int(soft), int(hard)), (0, bytes_))
        guest = host.fake_guest("train", MIB)
        until(lambda: host.vgpu("train")["kernel_limit"] > bytes_, "room for one more context")
        host.call("ResizeVgpu", name="train", frame_buffer=128 * MIB)
        until(lambda: host.vgpu("train")["kernel_limit"] > bytes_ + 64 * MIB, "the larger limit")
        guest.kill()

    def test_a_driver_without_limits_is_said_once_and_is_no_error(self):
        host = self.start("TEST_OLD_NVML")
        host.call("CreateVgpu", name="train", frame_buffer=64 * MIB, device="0")
        said = until(lambda: host.call("GetInfo")["kernel_limits"].startswith("off: this driver") and
                     host.call("GetInfo")["kernel_limits"], "vgpud to know")
        self.assertIn("R615", said)
        self.assertEqual(host.vgpu("train")["kernel_limit"], 0)
        self.assertEqual((host.root / "log").read_text().count("the kernel limits no memory"), 1)

    @staticmethod
    def asks(manager):
        """Does a child of vgpud ask the driver?"""
        children = pathlib.Path(f"/proc/{manager}/task/{manager}/children").read_text().split()
        with contextlib.suppress(FileNotFoundError):  # it has just ended
            return any(b"--limit" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes() for child in children)
        return True

    def test_a_driver_that_hangs_is_given_up(self):
        """As one whose call comes to no end: what its answers are written to is never read."""
        host = self.start("TEST_FAKE_NVML", OPENVGPU_FAULT="fence.silence=fail")
        self.asked.unlink()
        os.mkfifo(self.asked)
        host.call("CreateVgpu", name="train", frame_buffer=64 * MIB, device="0")
        said = until(lambda: host.call("GetInfo")["kernel_limits"].startswith("off: the driver did not answer") and
                     host.call("GetInfo")["kernel_limits"], "vgpud to give it up")
        self.assertIn("restart of vgpud", said)
        until(lambda: not self.asks(host.manager.pid), "its child to end")
        host.call("ResizeVgpu", name="train", frame_buffer=128 * MIB)
        host.call("RemoveVgpu", name="train")


if __name__ == "__main__":
    unittest.main(verbosity=2)
