#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An overcommitted device may promise what pool and disk hold: then the room is held, and all can leave at any time."""
import os
import re
import signal
import subprocess
import time
import unittest
import unittest.mock

from harness import MIB, Host, expect_error
from wait import until

# One is on the device, one in the pool, and the others are on the disk.
SIZE = ("--size", "150M", "--piece", "15M")
QUOTA = 200 * MIB
POOL = 240 * MIB  # room for one of them


def can_hold(folder):
    """Is there a file system that gives room away before it is written to?"""
    path = folder / "room"
    with open(path, "wb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, MIB)
        except OSError:
            return False
        finally:
            path.unlink()
    return True


class Held(unittest.TestCase):
    def setUp(self):
        self.host = self.enterContext(Host(options=("--simulate", "1xH200:256M", "--overcommit", "all", "--swap-time",
                                                    "50", "--pool-limit", str(POOL))))
        if not can_hold(self.host.root):
            self.skipTest("the file system here cannot hold room")
        self.directory = self.host.root / "spill"
        self.host.options += ["--spill", str(self.directory)]

    def mount(self, size):
        """A disk that is as large as that."""
        if os.geteuid() != 0:
            self.skipTest("only root mounts")
        self.directory.mkdir(exist_ok=True)
        options = f"size={size},mode=0700"
        if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", self.directory], check=False).returncode:
            self.skipTest("mounting is not permitted here")
        self.addCleanup(subprocess.run, ["umount", "-l", self.directory], check=True)

    def create(self, *names, size=QUOTA, **parameters):
        for name in names:
            self.host.call("CreateVgpu", name=name, frame_buffer=size, **parameters)

    def guest(self, name, *options, size=SIZE):
        return self.host.guest(name, *size, "--seed", 1000 * len(self.host.guests), *options)

    def device(self):
        return self.host.call("ListDevices")["devices"][0]

    def free(self):
        status = os.statvfs(self.directory)
        return status.f_bavail * status.f_frsize

    def count_logged(self, text):
        return (self.host.root / "log").read_text(errors="replace").count(text)

    def has_logged(self, text):
        return self.count_logged(text) > 0

    def finish(self, *guests):
        for guest in guests:
            guest.signal(signal.SIGTERM)
            guest.process.stdin.close()
        for guest in guests:
            self.assertEqual(guest.join(), 0, guest.context())
            self.assertTrue(guest.lines[-1].endswith("ok"), guest.lines)


class Promises(Held):
    def test_as_much_as_the_disk_holds(self):
        """It is taken from the disk when the vGPU is created, and given back when it is removed."""
        self.mount("700M")
        self.host.start()
        self.create("a")
        self.assertGreater(self.free(), 690 * MIB)  # what fits on the device needs nothing
        self.create("b", "c")
        self.assertLess(self.free(), 100 * MIB)  # the pool has a window for one, so all three are there
        refused = expect_error("NoRoom", self.create, "d").parameters
        self.assertIn(str(self.directory), refused["message"])
        self.assertIn("--spill-limit", refused["hint"])
        left = self.device()["memory_left"]
        self.assertLess(left, QUOTA)
        self.create("small", size=left)
        expect_error("NoRoom", self.create, "d", size=left + 8 * MIB)
        for name in ("small", "b", "c"):
            self.host.call("RemoveVgpu", name=name)
        self.create("d", size=16 * MIB)  # what is held without need is found when somebody comes
        self.assertGreater(self.free(), 690 * MIB)

    def test_what_others_write_to_the_disk_takes_nothing_of_it(self):
        """The disk is full to the last byte, and each of them comes and goes."""
        self.mount("1G")
        self.host.start()
        names = [f"v{i}" for i in range(4)]
        self.create(*names)
        with open(self.directory / "filler", "wb") as filler:
            os.posix_fallocate(filler.fileno(), 0, self.free() - 65536)
        refused = expect_error("NoRoom", self.create, "v4").parameters
        self.assertIn("room for", refused["message"])
        guests = [self.guest(name, "--on-demand") for name in names]
        for guest in (*guests, *guests):
            guest.step()
        self.assertTrue(self.has_logged("went to the spill"))
        self.finish(*guests)

    def test_a_user_gets_a_share_and_the_disk_stays_usable(self):
        """No program runs: vGPUs alone fill no disk, and keep no other user from having one."""
        self.mount("1G")
        self.host.start()
        self.create("a", "b", owner=65534)
        refused = expect_error("NoRoom", self.create, "c", owner=65534).parameters
        self.assertRegex(refused["message"], f"the disk of {self.directory} has room for .* more, beside "
                                             "102.4 MiB that it keeps free; .* more of it can be held for user 65534")
        expect_error("NoRoom", self.host.call, "ResizeVgpu", name="b", frame_buffer=QUOTA + 20 * MIB + 40 * MIB)
        self.create("other", owner=65533, size=100 * MIB)
        self.create("c", "d")  # of root's
        expect_error("NoRoom", self.create, "e")
        self.assertGreaterEqual(self.free(), 102 * MIB)

    def test_a_user_whose_first_memory_is_on_its_way_to_the_disk_gets_more(self):
        """The pool is full, and nobody has anything on the disk yet."""
        self.mount("1G")
        self.host.options += ["--pool-limit", "160M", "--slab-size", "2M"]
        self.host.start()
        self.create("a", owner=65534, size=80 * MIB)
        self.create("b", size=150 * MIB)
        guests = [self.guest("a", "--on-demand", size=("--size", "60M")),
                  self.guest("b", "--on-demand", size=("--size", "130M"))]
        self.host.call("SuspendVgpu", name="a")
        (self.host.faults / "spill.writing=pause").touch()
        with self.host.client() as client:
            client.send("SuspendVgpu", name="b")
            self.host.wait_paused("spill.writing")
            try:
                self.create("c", owner=65534, size=100 * MIB)
            finally:
                self.host.go_on("spill.writing")
            client.answer()
        for name, guest in zip("ab", guests):
            self.host.call("ResumeVgpu", name=name)
            guest.step()
            self.finish(guest)

    def test_the_limit_counts_what_is_held(self):
        self.host.options += ["--spill-limit", "420M"]
        self.host.start()
        self.create("a", "b")
        refused = expect_error("NoRoom", self.create, "c").parameters
        self.assertIn("--spill-limit", refused["hint"])

    def test_a_window_that_is_too_small(self):
        """Whoever has to leave does so through the pool: it must have room for the largest."""
        self.host.start()
        self.create("a")
        expect_error("NoRoom", self.create, "b", size=250 * MIB)
        self.create("b")

    def test_the_next_vgpud_holds_the_same(self):
        self.mount("700M")
        self.host.start()
        self.create("a", "b", "c")
        guests = [self.guest(name, "--on-demand") for name in "abc"]
        for guest in guests:
            guest.step()
        before = self.free()
        for _ in range(2):
            self.host.kill_manager()
            self.assertEqual(self.free(), before)  # the keeper has it
            self.host.start()
            self.assertEqual(self.free(), before)
            expect_error("NoRoom", self.create, "d")
        for guest in guests:
            guest.step()
        self.finish(*guests)
        self.host.stop_manager()
        self.assertGreater(self.free(), 690 * MIB)
        self.host.start()
        self.assertEqual(self.free(), before)

    def test_a_larger_quota_holds_more(self):
        self.mount("900M")
        self.host.start()
        self.create("a", "b", "c")
        before = self.free()
        self.host.call("ResizeVgpu", name="c", frame_buffer=QUOTA + 30 * MIB)
        self.assertLessEqual(self.free(), before - 30 * MIB)
        with open(self.directory / "filler", "wb") as filler:
            os.posix_fallocate(filler.fileno(), 0, self.free() - 65536)
        refused = expect_error("NoRoom", self.host.call, "ResizeVgpu", name="c", frame_buffer=QUOTA + 40 * MIB)
        self.assertIn(str(self.directory), refused.parameters["message"])
        self.assertEqual(self.host.vgpu("c")["frame_buffer"], QUOTA + 30 * MIB)


class Ahead(Held):
    def test_who_leaves_does_not_wait_for_the_disk(self):
        """What is cold goes to the disk before somebody needs the room, and only to its own place."""
        self.host.start()
        self.create("a", "b", "c")
        guests = {name: self.guest(name, "--on-demand") for name in "abc"}
        for name in "cab":
            guests[name].step()

        def away():
            return [vgpu for vgpu in self.host.call("ListVgpus")["vgpus"] if vgpu["state"] == "suspended"]
        until(lambda: len(away()) == 2 and all(vgpu["spilled_memory"] for vgpu in away()), "both to be on the disk")
        self.host.kill_manager()
        self.host.start()
        until(lambda: self.has_logged("memory was read ahead from the spill"),
              "one of them to be read ahead: the new vgpud has nothing in the pool")
        for guest in guests.values():
            guest.step()
        self.finish(*guests.values())

    def test_a_disk_that_failed_is_tried_by_the_next_operation(self):
        """Not each second, and also when it works again."""
        self.host.start()
        self.create("a", "c")
        self.create("small", size=16 * MIB)
        fault = self.host.faults / "image.write=fail"
        fault.write_text("1+")
        small = self.guest("small", "--on-demand", size=("--size", "8M", "--piece", "4M"))
        guests = [self.guest(name, "--on-demand") for name in "ca"]  # the first leaves for the other

        def failures():
            return self.count_logged("memory stays in the pool: it could not go to the spill")

        def operate():
            self.host.call("SuspendVgpu", name="small")
            self.host.call("ResumeVgpu", name="small")
        until(lambda: failures() == 1, "the write to fail")
        time.sleep(2.5)  # two looks; nothing tells of what is not done
        self.assertEqual(failures(), 1)
        operate()
        until(lambda: failures() == 2, "the next try")
        fault.unlink()
        operate()
        until(lambda: self.host.vgpu("c")["spilled_memory"], "what is cold to be on the disk")
        self.assertEqual(failures(), 2)
        self.assertEqual(self.host.call("GetInfo")["pool"]["spill_failure"], "")
        for guest in (small, *guests):
            guest.step()
        self.finish(small, *guests)


class Turns(Held):
    def test_who_waits_for_a_turn_holds_none_of_the_pool(self):
        """What is on the disk comes to the pool for who has room on the device; those that leave need the pool."""
        self.host.start()
        self.create("a", "b", "c")
        guests = [self.guest("a", "--on-demand")]
        guests[0].step()
        self.host.call("SuspendVgpu", name="a")
        with unittest.mock.patch.dict(os.environ, OPENVGPU_FAULT_DIR=str(self.host.faults)):  # for their gates
            guests += [self.guest(name, "--on-demand") for name in "bc"]
        for guest in guests[1:]:
            guest.step()
        until(lambda: self.host.vgpu("a")["spilled_memory"], "what is cold to be on the disk")
        (self.host.faults / "gate-export=pause").touch()
        client = self.host.client()
        client.send("ResumeVgpu", name="a", timeout=100)
        self.host.wait_paused("gate-export")
        self.assertEqual(self.host.vgpu("a")["state"], "resuming")
        self.assertTrue(self.host.vgpu("a")["spilled_memory"])
        self.assertEqual(self.host.vgpu("a")["host_memory"], 0)
        self.host.go_on("gate-export")
        client.answer()
        for guest in guests:
            guest.step()
        self.finish(*guests)

    def test_many_take_turns_through_a_small_pool(self):
        """Nobody waits for room that those have who wait for him."""
        self.host.start(options=("--pool-limit", "400M"))
        names = [f"v{i}" for i in range(9)]
        self.create(*names, size=100 * MIB)
        guests = [self.guest(name, size=("--size", "48M", "--piece", "6M")) for name in names]
        wanted = [guest.steps() + 1 for guest in guests]
        until(lambda: all(guest.steps() >= n for guest, n in zip(guests, wanted)), "a turn of each")
        self.finish(*guests)
        took = [float(found) for found in re.findall(r" (?:suspended|resumed) vgpu=.* seconds=([\d.]+)",
                                                     (self.host.root / "log").read_text(errors="replace"))]
        self.assertGreater(len(took), 9)
        self.assertLess(max(took), 9, "some waited until they gave up, after ten seconds")


class Faults(Held):
    def crowd(self):
        self.create("v0", "v1", "v2")
        guests = [self.guest(f"v{i}", "--on-demand") for i in range(3)]
        for guest in guests:
            guest.step()
        return guests

    @staticmethod
    def ask_all(guests):
        wanted = [guest.steps() + 1 for guest in guests]
        for guest in guests:
            guest.write("")
        return lambda: all(guest.steps() >= n for guest, n in zip(guests, wanted))

    def test_vgpud_is_killed_while_it_writes_and_reads(self):
        self.host.start()
        guests = self.crowd()
        for fault in ("spill.writing=kill", "spill.written=kill", "spill.kept=kill", "spill.recorded=kill",
                      "spill.reading=kill", "spill.read=kill"):
            with self.subTest(fault=fault):
                self.host.kill_manager()
                self.host.start(fault=fault)
                have_all = self.ask_all(guests)
                self.host.wait_killed()
                self.host.start()
                until(have_all, "a step of each")
        self.finish(*guests)

    def test_the_disk_fails(self):
        """Nothing more is promised on it, and it is said why; those that are there are whole, and come when it works."""
        self.host.start()
        guests = self.crowd()
        fault = self.host.faults / "image.write=fail"
        fault.write_text("1+")
        have_all = self.ask_all(guests)
        until(lambda: self.host.call("GetInfo")["pool"]["spill_failure"], "the failure")
        refused = expect_error("NoRoom", self.create, "more").parameters["message"]
        self.assertIn("Input/output error", refused)
        until(lambda: any("Input/output error" in vgpu["demand_reason"]
                          for vgpu in self.host.call("ListVgpus")["vgpus"]), "the reason")
        self.assertFalse(have_all())
        fault.unlink()
        until(have_all, "a step of each")
        self.assertEqual(self.host.call("GetInfo")["pool"]["spill_failure"], "")
        self.create("more")
        self.finish(*guests)


if __name__ == "__main__":
    unittest.main()
