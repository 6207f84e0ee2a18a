#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""When the pool is full, memory of suspended vGPUs goes to a disk; it comes back, or stays where it is."""
import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import unittest

from harness import MIB, Host, expect_error
from wait import until
from wire import Refused

SIZE = 40 * MIB
POOL = 100 * MIB  # room for two

EXT4_IOC_SHUTDOWN, EXT4_SHUTDOWN_NO_FLUSH = 0x8004587D, 2  # linux/ext4.h


class Spill(unittest.TestCase):
    """Guests that check their memory at each step, each in a vGPU of its own."""

    def setUp(self):
        self.host = self.enterContext(Host(options=["--pool-limit", str(POOL)]))
        self.directory = self.host.root / "spill"
        self.host.options += ["--spill", str(self.directory), "--spill-limit", "4G"]
        self.host.start()
        self.guests = {}

    def add(self, *names, **parameters):
        for name in names:
            self.host.call("CreateVgpu", name=name, frame_buffer=128 * MIB, device="0", **parameters)
            self.guests[name] = self.host.guest(name, "--size", str(SIZE), "--piece", "10M", "--seed",
                                                str(1000 * len(self.guests)), "--on-demand")

    def suspend(self, *names):
        return [self.host.call("SuspendVgpu", name=name) for name in names]

    def resume(self, *names):
        return [self.host.call("ResumeVgpu", name=name) for name in names]

    def restart(self, *options):
        self.host.start(options=options)

    def kill_manager(self):
        self.host.kill_manager()
        self.restart()

    def arm(self, fault, n=""):
        (self.host.faults / fault).write_text(n)

    def spilled(self):
        return {vgpu["name"] for vgpu in self.host.call("ListVgpus")["vgpus"] if vgpu["spilled_memory"]}

    def pool(self):
        return self.host.call("GetInfo")["pool"]

    def finish(self, *names):
        """All of their memory is right, and nothing is left."""
        for name in names or self.guests:
            if self.host.vgpu(name)["state"] != "running":
                self.resume(name)
            self.guests[name].step()
        for name in names or tuple(self.guests):
            self.guests.pop(name).finish()
        until(lambda: self.pool()["spilled"] == sum(SIZE for name in self.guests if name in self.spilled()),
              "the files to be given back")
        self.assertEqual(os.listdir(self.directory), [])


class Ways(Spill):
    def test_more_are_suspended_than_the_pool_holds(self):
        """The one that was suspended first goes to the disk, and comes back when it is resumed."""
        self.add("a", "b", "c", "d")
        self.suspend("a", "b")
        self.assertEqual(self.spilled(), set())
        self.suspend("c")
        self.assertEqual(self.spilled(), {"a"})
        self.suspend("d")
        self.assertEqual(self.spilled(), {"a", "b"})
        self.assertEqual(self.pool()["spilled"], 2 * SIZE)
        self.assertEqual(self.host.vgpu("a")["spilled_memory"], SIZE)
        self.assertEqual(self.host.vgpu("a")["host_memory"], 0)
        self.assertEqual(self.host.call("ListDevices")["devices"][0]["memory_swapped"], 4 * SIZE)
        report, = self.resume("a")
        self.assertGreater(report["fetch_seconds"], 0)
        self.guests["a"].step()
        report, = self.resume("d")
        self.assertEqual(report["fetch_seconds"], 0)
        self.guests["d"].step()
        self.finish()

    def test_round_and_round(self):
        """Each in turn is on the device, three others are off it, and one of them at least is on disk."""
        names = ("a", "b", "c", "d")
        self.add(*names)
        self.suspend(*names[1:])
        for i in range(8):
            self.suspend(names[i % 4])
            self.resume(names[(i + 1) % 4])
            self.guests[names[(i + 1) % 4]].step()
            self.assertTrue(self.spilled())
        self.finish()

    def test_several_processes_and_kept_contexts(self):
        self.host.call("CreateVgpu", name="two", frame_buffer=256 * MIB, device="0")
        guests = [self.host.guest("two", "--size", str(SIZE), "--seed", str(7000 + i), "--on-demand") for i in range(2)]
        self.host.call("SuspendVgpu", name="two", keep_context=True)
        self.add("a")
        self.suspend("a")
        self.assertEqual(self.spilled(), {"two"})
        self.assertEqual(self.host.vgpu("two")["spilled_memory"], 2 * SIZE)
        guests.pop().kill()
        until(lambda: self.host.vgpu("two")["spilled_memory"] == SIZE, "the file of the dead one to go")
        self.resume("two")
        guests[0].step()
        guests[0].finish()
        self.finish()

    def test_who_ends_or_is_removed_leaves_nothing(self):
        self.add("a", "b", "c", "d")
        self.suspend("a", "b", "c", "d")
        self.assertEqual(self.spilled(), {"a", "b"})
        self.guests.pop("a").kill()
        until(lambda: self.pool()["spilled"] == SIZE, "its file to be given back")
        self.host.call("RemoveVgpu", name="a")
        self.host.kill_manager()
        self.assertEqual(sum(label.startswith("spilled/") for label in self.host.labels()), 1)
        self.guests.pop("b").kill()
        self.restart()
        until(lambda: self.pool()["spilled"] == 0, "the other one to be given back")
        self.finish()

    def suspend_while_the_disk_hangs(self):
        """Of three the last, for which the pool has no room: who waits for the answer."""
        self.add("a", "b", "c")
        self.suspend("a", "b")
        self.arm("spill.writing=pause")
        client = self.host.client()
        client.send("SuspendVgpu", name="c")
        self.host.wait_paused("spill.writing")
        return client

    def test_a_vgpu_that_comes_back_does_not_wait_for_its_file(self):
        client = self.suspend_while_the_disk_hangs()
        self.resume("a")
        self.guests["a"].step()
        client.answer()  # with the room that it has given back; before that, "b" might go instead
        self.host.go_on("spill.writing")
        self.assertEqual(self.spilled(), set())
        self.finish()

    def test_room_that_comes_by_itself_is_not_waited_for(self):
        """The disk hangs; another vGPU comes back meanwhile, and what it had in the pool is enough."""
        client = self.suspend_while_the_disk_hangs()
        self.resume("b")
        self.guests.pop("b").finish()
        client.answer()
        self.assertEqual(self.host.vgpu("c")["state"], "suspended")
        self.host.go_on("spill.writing")
        self.finish()

    @unittest.skipIf(os.geteuid() != 0, "only root makes vGPUs for others")
    def test_whose_memory_goes(self):
        """That of the user who has most in the pool, and not what was suspended before by one who has less."""
        self.host.kill_manager()
        self.host.start(options=["--pool-limit", "164M"])
        self.add("first", owner=1000)
        self.add("a", "b", "c", "d")
        self.suspend("first", "a", "b", "c")
        self.assertEqual(self.spilled(), set())
        self.suspend("d")
        self.assertEqual(self.spilled(), {"a"})
        self.finish()

    @unittest.skipIf(os.geteuid() != 0, "only root makes vGPUs for others")
    def test_who_has_most_sends_nobody_away_who_has_less(self):
        """Not even if nothing of his own may go to the spill."""
        self.host.kill_manager()
        self.host.start(options=["--pool-limit", "200M", "--spill-limit", "64M"])
        self.add("less", owner=1000)
        self.host.call("CreateVgpu", name="most", frame_buffer=256 * MIB, device="0")
        self.guests["most"] = self.host.guest("most", "--size", "140M", "--seed", "5000", "--on-demand")
        self.add("more")
        self.suspend("less", "most")
        expect_error("PoolTooSmall", self.host.call, "SuspendVgpu", name="more")
        self.assertEqual(self.spilled(), set())
        for name in ("less", "most"):
            self.resume(name)
            self.guests.pop(name).kill()
        self.guests.pop("more").kill()

    @unittest.skipIf(os.geteuid() != 0, "only root makes vGPUs for others")
    def test_who_may_have_no_more_of_the_pool_makes_room_among_his_own(self):
        """There is room, but one user gets only half."""
        self.add("first", "second", owner=1000)
        self.suspend("first", "second")
        self.assertEqual(self.spilled(), {"first"})
        self.finish()

    def test_what_is_promised_to_an_overcommitted_device_is_no_room_for_others(self):
        """Of the pool 400 MiB are kept for its vGPUs, and 112 MiB are for others."""
        self.host.kill_manager()
        self.host.options += ["--simulate", "2xH200:256M", "--overcommit", "1", "--pool-limit", "512M"]
        self.host.start()
        guests = {}
        vgpus = (("kept", "1", 200), ("other", "1", 200), ("a", "0", 100), ("b", "0", 100))
        for i, (name, device, quota) in enumerate(vgpus):
            self.host.call("CreateVgpu", name=name, frame_buffer=quota * MIB, device=device)
            if name == "other":
                continue
            guests[name] = self.host.guest(name, "--size", "80M", "--seed", str(1000 * i), "--on-demand")
            if name != "b":
                self.suspend(name)
        self.assertEqual(self.spilled(), set())
        self.suspend("b")
        self.assertEqual(self.spilled(), {"a"})
        self.resume("b")
        for name, guest in guests.items():
            if self.host.vgpu(name)["state"] == "suspended":
                self.resume(name)
            guest.step()
            guest.finish()

    def test_it_is_not_to_be_read_by_others(self):
        self.add("a", "b", "c")
        self.suspend("a", "b", "c")
        self.assertEqual(self.directory.stat().st_mode & 0o777, 0o700)
        self.assertEqual(os.listdir(self.directory), [])
        self.host.kill_manager()
        for mode in (0o701, 0o750, 0o777):
            self.directory.chmod(mode)
            other = self.host.root / "other"
            ended = subprocess.run([os.environ["TEST_VGPUD"], "--simulate", "1xH200", "--run-dir", other,
                                    "--state-dir", other, "--spill", self.directory],
                                   stderr=subprocess.PIPE, timeout=60, check=False, env=self.host.environment(""))
            self.assertNotEqual(ended.returncode, 0)
            self.assertIn(b"other users", ended.stderr)
        self.directory.chmod(0o700)
        self.restart()
        self.finish()

    def test_an_image_of_one_on_disk_is_refused(self):
        self.add("a", "b", "c")
        self.suspend("a", "b", "c")
        refused = expect_error("WrongState", self.host.call, "OpenMemory", name="a")
        self.assertIn("on disk", refused.parameters["message"])
        expect_error("WrongState", self.host.call, "ReplaceMemory", name="a")
        self.finish()

    def test_what_has_not_changed_is_still_known(self):
        """Its hashes come back with it: the next suspend copies nothing."""
        self.add("a", "b", "c")
        self.suspend("a", "b", "c")
        self.resume("a")
        report, = self.suspend("a")
        self.assertEqual(report["bytes_unchanged"], SIZE)
        self.finish()


class ReadAhead(Spill):
    """What is on the disk alone comes back to the pool before its vGPU does, where the pool has room that nobody needs."""

    def logged(self):
        return (self.host.root / "log").read_text(errors="replace").count("memory was read ahead from the spill")

    def line(self, text):
        return next(line for line in (self.host.root / "log").read_text(errors="replace").splitlines() if text in line)

    def wait_read(self, n=1):
        until(lambda: self.logged() >= n, "what is on the disk to be read ahead")

    def make_free(self):
        """One of four is on the disk alone, one in the pool and one on the device; the pool gets room for two more."""
        self.add("a", "b", "c", "d")
        self.suspend("a", "b", "c")
        self.assertEqual(self.spilled(), {"a"})
        self.guests.pop("b").kill()

    def test_room_that_nobody_needs(self):
        self.make_free()
        self.wait_read()
        self.assertEqual(self.spilled(), {"a"})  # and it has that still
        self.assertEqual(self.pool()["used"], SIZE)  # of the other one
        report, = self.resume("a")
        self.assertEqual(report["fetch_seconds"], 0)
        self.guests["a"].step()
        self.assertEqual(self.spilled(), set())
        self.finish()

    def test_others_take_the_room(self):
        """Nothing has to be written for that: it is on the disk already."""
        self.make_free()
        self.wait_read()
        self.suspend("d")
        self.assertEqual(self.spilled(), {"a"})
        report, = self.resume("a")
        self.assertGreater(report["fetch_seconds"], 0)
        self.guests["a"].step()
        self.finish()

    def read_while_the_disk_hangs(self):
        self.arm("spill.reading=pause")
        self.make_free()
        self.host.wait_paused("spill.reading")

    def test_others_need_the_room_while_it_is_read(self):
        self.read_while_the_disk_hangs()
        client = self.host.client()
        client.send("SuspendVgpu", name="d")
        self.host.go_on("spill.reading")
        client.answer()
        self.assertEqual(self.spilled(), {"a"})
        self.assertEqual(self.logged(), 0)
        self.finish()

    def test_an_image_is_loaded_into_the_room_while_it_is_read(self):
        """It waits until the room is given up: nobody has been promised it."""
        self.read_while_the_disk_hangs()
        with self.host.client() as client:
            client.send("ReplaceMemory", name="c")
            until(lambda: "an image is loaded" in (self.host.root / "log").read_text(errors="replace"), "it to begin")
            self.assertEqual(self.pool()["used"], 2 * SIZE)  # c, and where a is read to
            self.host.go_on("spill.reading")
            client.answer()
            self.assertEqual(self.pool()["used"], 2 * SIZE)  # what c has, and what it shall have
            self.assertEqual(self.logged(), 0)
        self.wait_read()  # the client has hung up: nothing was loaded
        self.finish()

    def test_who_left_last_comes_first(self):
        self.add("a", "b", "c", "d")
        self.suspend("a", "b", "c", "d")
        self.assertEqual(self.spilled(), {"a", "b"})
        self.guests.pop("d").kill()  # the pool had room for the last two alone
        self.wait_read()
        self.assertIn("vgpu=b ", self.line("memory was read ahead from the spill"))
        report, = self.resume("b")
        self.assertEqual(report["fetch_seconds"], 0)
        self.finish()

    def test_it_comes_back_while_it_is_read(self):
        self.read_while_the_disk_hangs()
        client = self.host.client()
        client.send("ResumeVgpu", name="a")
        until(lambda: self.host.vgpu("a")["state"] == "resuming", "it to wait")
        self.host.go_on("spill.reading")
        self.assertEqual(client.answer()["fetch_seconds"], 0)
        self.assertEqual(self.logged(), 1)
        self.guests["a"].step()
        self.finish()

    def test_it_ends_while_its_vgpu_waits_for_what_is_read(self):
        self.read_while_the_disk_hangs()
        client = self.host.client()
        client.send("ResumeVgpu", name="a")
        until(lambda: self.host.vgpu("a")["state"] == "resuming", "it to wait")
        self.guests.pop("a").kill()
        until(lambda: not self.host.vgpu("a")["processes"], "its end to be noticed")
        self.host.go_on("spill.reading")
        with contextlib.suppress(Refused):  # there is nothing left to resume, or it has come without it
            client.answer()
        self.host.call("RemoveVgpu", name="a")
        until(lambda: self.pool()["spilled"] == 0, "its file to be given back")
        self.finish()

    def test_it_ends_while_it_is_read(self):
        self.read_while_the_disk_hangs()
        self.guests.pop("a").kill()
        until(lambda: self.pool()["spilled"] == 0, "its file to be given back")
        self.host.go_on("spill.reading")
        self.host.call("RemoveVgpu", name="a")
        self.suspend("d")
        self.assertEqual(self.spilled(), set())
        self.finish()

    def test_vgpud_ends_while_it_is_read(self):
        """It does not wait for the disk that hangs longer than for one that answers, and the next one reads again."""
        self.read_while_the_disk_hangs()
        self.host.go_on("spill.reading")
        self.host.stop_manager()
        self.restart()
        self.wait_read()
        self.finish()

    def test_vgpud_is_killed_while_it_reads(self):
        self.arm("spill.read=kill")
        self.make_free()
        self.host.wait_killed()
        self.restart()
        self.assertEqual(self.spilled(), {"a"})
        self.wait_read()  # by this one
        self.finish()

    def test_the_disk_fails(self):
        """Once is enough to say so; whoever needs the memory tries again."""
        self.arm("image.read=fail", "1+")
        self.make_free()

        def failures():
            return (self.host.root / "log").read_text(errors="replace").count("memory cannot be read ahead")
        until(failures, "the failure")
        self.resume("c")
        self.suspend("c")
        message = expect_error("Failed", self.resume, "a").parameters["message"]
        self.assertIn("cannot be read from the spill", message)
        (self.host.faults / "image.read=fail").unlink()
        self.assertEqual(failures(), 1)
        report, = self.resume("a")
        self.assertGreater(report["fetch_seconds"], 0)
        self.finish()


class Deaths(Spill):
    def wait_settled(self):
        until(lambda: all(vgpu["state"] in ("running", "suspended") for vgpu in self.host.call("ListVgpus")["vgpus"]),
              "what was under way to be finished or undone")

    def die(self, fault, call, n=""):
        self.arm(fault, n)
        with contextlib.suppress(ConnectionError):
            call()
        self.host.wait_killed()
        self.restart()
        self.wait_settled()

    def test_vgpud_may_die_while_it_writes(self):
        self.add("a", "b", "c")
        for fault, n in (("spill.writing=kill", ""), ("image.write=kill", "5"), ("spill.written=kill", ""),
                         ("spill.kept=kill", ""), ("spill.recorded=kill", "")):
            with self.subTest(fault=fault):
                self.suspend("a", "b")
                self.die(fault, lambda: self.suspend("c"), n)
                self.assertEqual(self.spilled(), {"a"} if fault.startswith("spill.recorded") else set())
                self.assertEqual(self.host.vgpu("c")["state"], "running")
                for name in "ab":
                    self.resume(name)
                for guest in self.guests.values():
                    guest.step()
        self.finish()

    def test_vgpud_may_die_while_it_reads(self):
        self.add("a", "b", "c")
        for fault, n in (("spill.reading=kill", ""), ("image.read=kill", "5"), ("spill.read=kill", ""),
                         ("resume.fetched=kill", "")):
            with self.subTest(fault=fault):
                self.suspend("a", "b", "c")
                self.assertEqual(self.spilled(), {"a"})
                self.resume("b")
                self.die(fault, lambda: self.resume("a"), n)
                self.assertEqual(self.spilled(), set() if fault.startswith("resume.fetched") else {"a"})
                self.resume("a", "c")
                for guest in self.guests.values():
                    guest.step()
        self.finish()

    def test_vgpud_and_the_keeper_are_killed_one_after_the_other(self):
        self.add("a", "b", "c")
        self.suspend("a", "b", "c")
        self.kill_manager()
        self.assertEqual(self.spilled(), {"a"})
        keeper, = self.host.keepers()
        os.kill(keeper, signal.SIGKILL)
        self.resume("b")  # it finds that the keeper is gone, and starts another
        self.kill_manager()
        self.assertEqual(self.spilled(), {"a"})
        self.finish()

    def test_the_mover_is_killed(self):
        self.add("a", "b", "c")
        self.suspend("a", "b", "c")
        self.resume("b")
        self.arm("spill.reading=pause")
        client = self.host.client()
        client.send("ResumeVgpu", name="a")
        self.host.wait_paused("spill.reading")
        for pid in self.host.movers():
            os.kill(pid, signal.SIGKILL)
        self.host.go_on("spill.reading")
        client.answer()
        self.guests["a"].step()
        self.finish()


class Refusals(Spill):
    def check_nothing_happened(self):
        self.assertEqual(self.spilled(), set())
        self.assertEqual(self.host.vgpu("c")["state"], "running")
        for name in "ab":
            self.assertEqual(self.host.vgpu(name)["state"], "suspended")
        self.guests["c"].step()

    def refused(self):
        return expect_error("PoolTooSmall", self.host.call, "SuspendVgpu", name="c").parameters["message"]

    def test_the_limit_is_reached(self):
        self.host.kill_manager()
        self.host.start(options=["--spill-limit", str(SIZE - MIB)])
        self.add("a", "b", "c")
        self.suspend("a", "b")
        self.assertIn("--spill-limit", self.refused())
        self.check_nothing_happened()
        self.finish()

    def test_the_disk_fails(self):
        """Writing: all stays in the pool. Reading: the vGPU stays suspended, and comes back when the disk does."""
        self.add("a", "b", "c")
        self.suspend("a", "b")
        self.arm("image.write=fail", "3")
        self.assertIn("the spill takes no more", self.refused())
        self.check_nothing_happened()
        self.suspend("c")
        self.assertEqual(self.spilled(), {"a"})
        self.resume("b")
        self.arm("image.read=fail", "3")
        refused = expect_error("Failed", self.host.call, "ResumeVgpu", name="a")
        self.assertIn("cannot be read", refused.parameters["message"])
        self.assertEqual(self.host.vgpu("a")["state"], "suspended")
        self.assertEqual(self.spilled(), {"a"})
        self.finish()

    def mount_disk(self):
        """A file system of its own, which can be taken away as a disk that is unplugged."""
        image, disk = self.host.root / "image", self.host.root / "disk"
        disk.mkdir()
        with open(image, "wb") as file:
            file.truncate(400 * MIB)
        if shutil.which("mkfs.ext4") is None or subprocess.run(["mkfs.ext4", "-q", image], check=False).returncode:
            self.skipTest("there is no mkfs.ext4")
        if subprocess.run(["mount", "-o", "loop", image, disk], check=False, stderr=subprocess.DEVNULL).returncode:
            self.skipTest("mounting is not permitted here")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=True)
        disk.chmod(0o700)
        (disk / "lost+found").rmdir()
        self.host.kill_manager()
        self.host.start(options=["--spill", disk])
        return disk

    def unplug(self, disk):
        """From now on the kernel answers every call for that file system with an error."""
        descriptor = os.open(disk, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, EXT4_IOC_SHUTDOWN, struct.pack("I", EXT4_SHUTDOWN_NO_FLUSH))
        except OSError as error:
            self.skipTest(f"this file system cannot be taken away: {error}")
        finally:
            os.close(descriptor)

    @unittest.skipIf(os.geteuid() != 0, "only root mounts")
    def test_the_disk_is_unplugged_while_it_is_written_to(self):
        disk = self.mount_disk()
        self.add("a", "b", "c")
        self.suspend("a", "b")
        self.arm("spill.writing=pause")
        client = self.host.client()
        client.send("SuspendVgpu", name="c")
        self.host.wait_paused("spill.writing")
        self.unplug(disk)
        self.host.go_on("spill.writing")
        refused = expect_error("PoolTooSmall", client.answer).parameters["message"]
        self.assertIn("Input/output error", refused)
        self.check_nothing_happened()
        self.assertIn("Input/output error", self.refused())  # and again, at once
        for name in ("a", "b", "c"):  # nothing of them was lost
            if self.host.vgpu(name)["state"] != "running":
                self.resume(name)
            self.guests[name].step()
            self.guests.pop(name).finish()

    @unittest.skipIf(os.geteuid() != 0, "only root mounts")
    def test_the_disk_is_unplugged_with_what_is_on_it(self):
        """That vGPU stays suspended and says why; all others go on, and it can be removed."""
        disk = self.mount_disk()
        self.add("a", "b", "c")
        self.suspend("a", "b", "c")
        self.assertEqual(self.spilled(), {"a"})
        self.unplug(disk)
        self.resume("b", "c")
        for name in "bc":
            self.guests[name].step()
        for _ in range(2):
            refused = expect_error("Failed", self.host.call, "ResumeVgpu", name="a").parameters["message"]
            self.assertIn("Input/output error", refused)
            self.assertEqual(self.host.vgpu("a")["state"], "suspended")
        self.suspend("b")
        self.resume("b")
        for name in "bc":
            self.guests[name].step()
            self.guests.pop(name).finish()
        self.guests.pop("a").kill()
        self.host.wait_state("a", "idle")
        self.host.call("RemoveVgpu", name="a")
        until(lambda: self.pool()["spilled"] == 0, "its file to be given back")

    @unittest.skipIf(os.geteuid() != 0, "only root mounts")
    def test_the_disk_is_full(self):
        small = self.host.root / "small"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60M,mode=0700", "none", small], check=False).returncode:
            self.skipTest("mounting is not permitted here")
        self.addCleanup(subprocess.run, ["umount", "-l", small], check=True)
        self.host.kill_manager()
        self.host.start(options=["--spill", small])
        self.add("a", "b", "c")
        filler = pathlib.Path(small / "filler")
        filler.write_bytes(bytes(30 * MIB))
        self.suspend("a", "b")
        self.assertIn("No space left", self.refused())
        self.check_nothing_happened()
        filler.unlink()
        self.suspend("c")
        self.assertEqual(self.spilled(), {"a"})
        # It comes back through the pool, and the disk has no room for another one meanwhile.
        expect_error("PoolTooSmall", self.host.call, "ResumeVgpu", name="a")
        self.resume("b")
        self.finish()

    def test_the_disk_has_room_for_a_smaller_one(self):
        """Who has most in the pool goes first; if the disk has no room for that, somebody else does."""
        small = self.host.root / "small"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60M,mode=0700", "none", small], check=False).returncode:
            self.skipTest("mounting is not permitted here")
        self.addCleanup(subprocess.run, ["umount", "-l", small], check=True)
        self.host.kill_manager()
        self.host.start(options=["--spill", small, "--pool-limit", "140M"])
        self.host.call("CreateVgpu", name="large", frame_buffer=128 * MIB, device="0")
        self.guests["large"] = self.host.guest("large", "--size", "80M", "--piece", "10M", "--on-demand")
        self.add("a", "b")
        self.suspend("large", "a")
        self.suspend("b")
        self.assertEqual(self.spilled(), {"a"})
        for name in ("large", "b", "a"):
            self.resume(name)
        self.finish()

    def test_what_can_never_fit_sends_nobody_away(self):
        self.add("a", "b")
        self.host.call("CreateVgpu", name="large", frame_buffer=256 * MIB, device="0")
        guest = self.host.guest("large", "--size", "150M", "--on-demand")
        self.suspend("a", "b")
        expect_error("PoolTooSmall", self.host.call, "SuspendVgpu", name="large")
        self.assertEqual(self.spilled(), set())
        guest.step()
        guest.finish()
        self.finish()

    @unittest.skipIf(os.geteuid() != 0, "only root makes vGPUs for others")
    def test_what_its_user_may_never_have_sends_none_of_his_away(self):
        """The pool has room for it, and its user's half of the pool has none, whoever goes."""
        self.host.kill_manager()
        self.restart("--pool-limit", "200M")
        self.add("first", owner=1000)
        self.host.call("CreateVgpu", name="large", frame_buffer=256 * MIB, device="0", owner=1000)
        guest = self.host.guest("large", "--size", "120M", "--on-demand")
        self.suspend("first")
        expect_error("PoolTooSmall", self.host.call, "SuspendVgpu", name="large")
        self.assertEqual(self.spilled(), set())
        guest.step()
        guest.finish()
        self.finish()

    def test_another_vgpud_without_the_option(self):
        """What is on disk comes back, and nothing more goes there."""
        self.add("a", "b", "c")
        self.suspend("a", "b", "c")
        self.host.kill_manager()
        self.host.options = self.host.options[:-4]
        self.restart()
        self.assertEqual(self.spilled(), {"a"})
        expect_error("PoolTooSmall", self.host.call, "ResumeVgpu", name="a")
        self.resume("b")
        self.resume("a")
        self.assertEqual(self.spilled(), set())
        self.finish()


if __name__ == "__main__":
    unittest.main()
