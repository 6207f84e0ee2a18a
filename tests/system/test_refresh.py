#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the pool has of a vGPU follows it while it is idle: it leaves for nothing although it has changed."""
import os
import random
import signal
import time
import unittest

from harness import MIB, Host
from wait import until
from wire import Refused

SIZE, PIECE = 40 * MIB, 8 * MIB
STILL = 3 * PIECE  # of it never changes
DONE, PART = "refreshed what the pool has of a process", "refreshed in part"
WAITS = "a program waits for what is copied of it"
SLICE = "mover.refreshed-piece"


class Refresh(unittest.TestCase):
    options = ["--refresh", "32M"]  # half a second: what is to stop in the middle is told in time

    def setUp(self):
        self.host = self.enterContext(Host(options=self.options))
        self.host.start()
        self.create("train")

    def create(self, name, size=256 * MIB):
        # Half of the time after which it leaves is enough to be refreshed. It does not leave within a test.
        self.host.call("CreateVgpu", name=name, frame_buffer=size, device="0", idle_after=3600)

    def guest(self, *arguments, name="train"):
        return self.host.guest(name, "--on-demand", "--size", str(SIZE), "--piece", str(PIECE), "--still", "3", *arguments)

    def swap(self, name="train", **parameters):
        report = self.host.call("SuspendVgpu", name=name, **parameters)
        self.host.call("ResumeVgpu", name=name)
        return report

    def log(self):
        return (self.host.root / "log").read_text(errors="replace")

    def count(self, what):
        return self.log().count(what)

    def count_of(self, name, what):
        return sum(what in line and f"vgpu={name} " in line for line in self.log().splitlines())

    def wait_log(self, what, before):
        until(lambda: self.count(what) > before, what)

    def step_and_follow(self, guest):
        """It works, and then its copy follows."""
        before = self.count(DONE)
        guest.step()
        self.wait_log(DONE, before)

    def pause_in_the_middle(self, guest, pieces=2):
        """It has worked; its copy has followed a part of the way."""
        (self.host.faults / f"{SLICE}=pause").write_text(str(pieces))
        guest.step()
        self.host.wait_paused(SLICE)

    def ask(self, guest):
        """It wants to do a step, and has not done it yet."""
        guest.process.stdin.write("\n")
        guest.process.stdin.flush()

    def pool(self):
        return self.host.call("GetInfo")["pool"]


class Ways(Refresh):
    def test_a_changed_guest_leaves_for_nothing(self):
        guest = self.guest()
        self.swap()
        for parameters in ({}, {"keep_context": True}, {"verify": True}):
            with self.subTest(**parameters):
                self.step_and_follow(guest)
                spare = self.pool()["spare"]
                report = self.swap(**parameters)
                self.assertEqual(report["bytes_unchanged"], report["bytes"])
                until(lambda spare=spare: self.pool()["spare"] == spare, "the copy to be spare again")
        guest.finish()

    def test_it_rests_when_nothing_has_changed(self):
        """Another one that works after it, and is idle as long as it takes, is followed; this one is not again."""
        guest = self.guest()
        self.create("other")
        other = self.guest("--seed", "7", name="other")
        self.swap()
        self.swap("other")
        self.step_and_follow(guest)
        followed = self.count_of("train", DONE)
        for _ in range(2):
            before = self.count_of("other", DONE)
            other.step()
            until(lambda before=before: self.count_of("other", DONE) > before, "the other to be followed")
        self.assertEqual(self.count_of("train", DONE), followed)
        for one in (guest, other):
            one.finish()

    def test_who_has_work_goes_on(self):
        """It waits for what is being copied, and for no more; what was copied counts."""
        guest = self.guest()
        self.swap()
        self.pause_in_the_middle(guest)
        steps, before = guest.steps(), self.count(PART)
        self.ask(guest)
        self.wait_log(WAITS, 0)
        self.assertEqual(guest.steps(), steps)
        self.host.go_on(SLICE)
        until(lambda: guest.steps() > steps, "the step")
        self.wait_log(PART, before)
        self.assertIn("its program goes on", self.log())
        # What it has changed by now is not what was copied; what was known still is.
        report = self.swap()
        self.assertGreaterEqual(report["bytes_unchanged"], STILL)
        self.assertLess(report["bytes_unchanged"], report["bytes"])
        guest.finish()

    def test_nothing_is_lost_whenever_it_wakes(self):
        guest = self.guest()
        self.swap()
        for _ in range(6):
            guest.step()
            time.sleep(random.uniform(0.9, 1.6))
            guest.step()
            self.swap(verify=random.random() < 0.5)
            guest.step()
        self.assertNotIn("was taken for unchanged", self.log())
        guest.finish()

    def test_a_part_of_the_way_counts(self):
        """Another vGPU wants the mover: it does not wait for the rest."""
        guest = self.guest()
        self.create("other")
        other = self.guest("--seed", "7", name="other")
        self.swap()
        self.pause_in_the_middle(guest)
        client = self.host.client()
        client.send("SuspendVgpu", name="other")
        self.host.wait_state("other", "suspending")
        self.host.go_on(SLICE)
        self.assertEqual(client.answer()["vgpu"]["state"], "suspended")
        self.assertIn("an operation began", self.log())
        report = self.swap()  # two pieces of 2 MiB at least were copied
        self.assertGreater(report["bytes_unchanged"], STILL)
        self.assertLess(report["bytes_unchanged"], report["bytes"])
        guest.step()
        self.host.call("ResumeVgpu", name="other")
        for one in (guest, other):
            one.finish()

    def test_it_may_leave_in_the_middle(self):
        guest = self.guest()
        self.swap()
        self.pause_in_the_middle(guest)
        client = self.host.client()
        client.send("SuspendVgpu", name="train")
        self.host.wait_state("train", "suspending")
        self.host.go_on(SLICE)
        report = client.answer()
        self.assertGreater(report["bytes_unchanged"], STILL)
        self.assertLess(report["bytes_unchanged"], report["bytes"])
        self.host.call("ResumeVgpu", name="train")
        guest.step()
        guest.finish()

    def test_equal_blocks_stay_one(self):
        """Blocks that others hold too are not written to, and are held again where they have not changed."""
        guests = [self.guest("--alike")]
        self.create("other")
        guests.append(self.guest("--alike", name="other"))
        self.host.call("SuspendVgpu", name="other")
        self.swap()
        self.step_and_follow(guests[0])
        self.assertNotIn("a slab could not be prepared", self.log())  # what it gave back is nobody's
        report = self.swap()
        self.assertEqual(report["bytes_unchanged"], report["bytes"])
        self.host.call("ResumeVgpu", name="other")
        for guest in guests:
            guest.step()
            guest.finish()


    def test_it_follows_who_has_more_memory_by_now_or_less(self):
        guest = self.host.start_guest("train", "guest-hold", "16M")
        guest.hold("device")
        self.swap()
        for what in ("device", "nothing"):
            before = self.count(DONE)
            guest.hold(what)
            self.wait_log(DONE, before)
            report = self.swap()
            self.assertEqual(report["bytes_unchanged"], report["bytes"])


class Room(Refresh):
    options = ["--refresh", "1G", "--simulate", "1xH200:512M", "--pool-limit", "64M", "--slab-size", "2M"]

    def test_who_suspends_gets_the_room(self):
        """The pool has room for one: its copy is given up for the other that leaves, in the middle of following."""
        guest = self.guest()
        self.create("other", 128 * MIB)
        other = self.guest("--seed", "7", name="other")
        self.swap()
        self.pause_in_the_middle(guest)
        client = self.host.client()
        client.send("SuspendVgpu", name="other")
        self.host.wait_state("other", "suspending")
        self.host.go_on(SLICE)
        self.assertEqual(client.answer()["vgpu"]["state"], "suspended")
        guest.step()
        self.host.call("ResumeVgpu", name="other")
        for one in (guest, other):
            one.step()
            one.finish()


class Beside(Refresh):
    """A vGPU on another device is copied while its program runs."""
    options = ["--refresh", "1G", "--simulate", "2xH200:512M", "--pool-limit", "256M", "--slab-size", "2M"]
    LIVE = "mover.live-piece"

    def start(self):
        guest = self.guest()
        self.host.call("CreateVgpu", name="other", frame_buffer=256 * MIB, device="1", idle_after=3600)
        other = self.guest("--seed", "7", name="other")
        self.swap()
        (self.host.faults / f"{self.LIVE}=pause").write_text("")
        client = self.host.client()
        client.send("SuspendVgpu", name="other", pre_copy=True)
        self.host.wait_paused(self.LIVE)
        return guest, other, client

    def finish(self, *guests):
        self.host.call("ResumeVgpu", name="other")
        for guest in guests:
            guest.step()
            guest.finish()

    def test_it_goes_on(self):
        guest, other, client = self.start()
        self.step_and_follow(guest)
        self.host.go_on(self.LIVE)
        self.assertEqual(client.answer()["bytes_unchanged"], SIZE)
        self.finish(guest, other)

    def test_it_stops_before_the_other_stands_still(self):
        guest, other, client = self.start()
        parts = self.count(PART)
        self.pause_in_the_middle(guest)
        self.host.go_on(self.LIVE)
        # A mover that does not answer is not waited for.
        self.assertEqual(client.answer()["bytes_unchanged"], SIZE)
        self.assertEqual(self.count(PART), parts)
        self.host.go_on(SLICE)
        self.wait_log(PART, parts)
        self.assertIn('reason="an operation began"', self.log())
        self.finish(guest, other)

    def test_vgpud_dies_during_both(self):
        guest, other, _ = self.start()
        self.pause_in_the_middle(guest)
        self.host.kill_manager()
        for point in (self.LIVE, SLICE):
            self.host.go_on(point)
        self.host.start()
        for name in ("train", "other"):
            self.host.wait_state(name, "running")
        for one in (guest, other):
            one.step()
            one.finish()

    def test_nothing_follows_on_the_same_device(self):
        guest, other, client = self.start()
        self.create("third")
        third = self.guest("--seed", "9", name="third")
        self.host.go_on(self.LIVE)
        client.answer()
        self.host.call("ResumeVgpu", name="other")
        self.swap("third")
        (self.host.faults / f"{self.LIVE}=pause").write_text("")
        client = self.host.client()
        client.send("SuspendVgpu", name="third", pre_copy=True)
        third.step()
        self.host.wait_paused(self.LIVE)
        before, others = self.count_of("train", DONE), self.count_of("other", DONE)
        guest.step()
        other.step()
        until(lambda: self.count_of("other", DONE) > others, "the copy on the other device to follow")
        self.assertEqual(self.count_of("train", DONE), before)
        self.host.go_on(self.LIVE)
        client.answer()
        until(lambda: self.count_of("train", DONE) > before, "it to follow after that")
        self.host.call("ResumeVgpu", name="third")
        for one in (guest, other, third):
            one.step()
            one.finish()


class Free(Refresh):
    options = ["--refresh", "1G", "--simulate", "1xH200:256M", "--pool-limit", "192M", "--slab-size", "2M"]

    def create(self, name, size=160 * MIB):
        super().create(name, size)

    def test_memory_that_is_freed_is_free(self):
        """In the middle it frees its memory and allocates as much at once: the device has no room for both."""
        guest = self.host.start_guest("train", "guest-hold", "144M")
        guest.hold("device")
        self.swap()
        (self.host.faults / "mover.refreshing=pause").write_text("")
        self.host.wait_paused("mover.refreshing")
        guest.write("nothing")
        guest.write("attempt")
        self.wait_log(WAITS, 0)
        self.assertNotIn("nothing", guest.lines)
        self.host.go_on("mover.refreshing")
        until(lambda: guest.lines[-1] == "attempt", "the answers", context=guest.context)
        self.assertIn("got", guest.lines)


class Deaths(Refresh):
    def test_its_mover_dies(self):
        guest = self.guest()
        for point in (SLICE, "mover.hashed"):
            with self.subTest(point=point):
                guest.step()
                self.swap()
                (self.host.faults / f"{point}=kill").write_text("")
                guest.step()
                until(lambda point=point: not (self.host.faults / f"{point}=kill").exists(), point)
                until(lambda: self.pool()["spare"] == 0, "the copy to be given up")
                guest.step()
                report = self.swap()
                self.assertEqual(report["bytes_unchanged"], 0)
        guest.finish()

    def test_it_fails(self):
        """Before anything was written the copy is what it was; else it is none any more."""
        guest = self.guest()
        self.swap()
        for point, unchanged in (("mover.hashing", STILL), ("mover.job-imported", STILL), (SLICE, 0)):
            with self.subTest(point=point):
                before = self.count("could not be refreshed")
                (self.host.faults / f"{point}=fail").write_text("")
                guest.step()
                self.wait_log("could not be refreshed", before)
                guest.step()
                report = self.swap()
                self.assertEqual(report["bytes_unchanged"], unchanged)
        guest.finish()

    def test_its_process_dies(self):
        guest = self.guest()
        self.swap()
        self.pause_in_the_middle(guest)
        guest.kill()
        self.host.go_on(SLICE)
        self.host.wait_state("train", "idle")
        until(lambda: self.pool()["spare"] == 0, "the copy to be given back")
        until(lambda: self.host.call("ListDevices")["devices"][0]["memory_used"] == 0, "its memory to be free")
        self.host.call("RemoveVgpu", name="train")

    def test_its_vgpu_is_removed_when_its_process_dies(self):
        """What the mover still has of the process is let go first."""
        guest = self.guest()
        self.swap()
        self.pause_in_the_middle(guest)
        guest.kill()
        for _ in range(20):  # from before vgpud sees the end until long after it
            with self.assertRaises(Refused) as refused:
                self.host.call("RemoveVgpu", name="train")
            self.assertEqual(refused.exception.name, "Busy")
            time.sleep(0.05)
        self.host.go_on(SLICE)
        self.host.wait_state("train", "idle")
        self.host.call("RemoveVgpu", name="train")
        until(lambda: self.pool()["spare"] + self.pool()["used"] == 0, "the copy to be given back")
        until(lambda: self.host.call("ListDevices")["devices"][0]["memory_used"] == 0, "its memory to be free")

    def test_vgpud_dies(self):
        guest = self.guest()
        self.swap()
        self.pause_in_the_middle(guest)
        self.host.kill_manager()
        self.host.go_on(SLICE)
        guest.step()  # its gate opens by itself
        self.host.start()
        guest.step()
        report = self.swap()
        self.assertEqual(report["bytes_unchanged"], 0)
        guest.step()
        guest.finish()

    def test_its_process_is_stopped(self):
        """Its gate does not open before it is continued. Nobody else waits for it."""
        guest = self.guest()
        self.create("other")
        other = self.guest("--seed", "7", name="other")
        self.swap()
        self.pause_in_the_middle(guest)
        guest.signal(signal.SIGSTOP)
        self.host.go_on(SLICE)
        self.swap("other")
        guest.signal(signal.SIGCONT)
        guest.step()
        self.swap()
        for one in (guest, other):
            one.step()
            one.finish()

    def test_its_mover_hangs(self):
        """On another device operations go on."""
        guest = self.guest()
        self.host.call("CreateVgpu", name="other", frame_buffer=256 * MIB, device="1")
        other = self.guest("--seed", "7", name="other")
        self.swap()
        self.pause_in_the_middle(guest)
        mover = int(until((self.host.faults / SLICE).read_text, "the mover to say who it is"))
        self.swap("other")
        os.kill(mover, signal.SIGKILL)
        guest.step()
        for one in (guest, other):
            one.finish()


class Off(Refresh):
    options = ["--refresh", "0"]

    def test_nothing_follows(self):
        """Until another one has left for being idle longer than it takes to be followed."""
        guest = self.guest()
        self.host.call("CreateVgpu", name="other", frame_buffer=256 * MIB, device="0", idle_after=3)
        other = self.guest("--seed", "7", name="other")
        self.swap()
        guest.step()
        other.step()
        self.host.wait_state("other", "suspended")
        other.step()
        other.finish()
        self.assertEqual(self.count(DONE) + self.count(PART), 0)
        self.assertEqual(self.swap()["bytes_unchanged"], STILL)
        guest.finish()


if __name__ == "__main__":
    unittest.main()
