#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One vGPU comes into the room that another one leaves, while it leaves; and whoever dies, nothing is lost."""
import os
import re
import signal
import time
import unittest
import unittest.mock

from harness import MIB, Host
from wait import until

# One of these fits on a device of 256 MiB beside their contexts of 16 MiB, two do not.
SIZE = ("--size", "160M", "--piece", "8M")
QUOTA = 200 * MIB
# Seconds for which the one that leaves is held up.
HELD_UP = 4

OPTIONS = ("--simulate", "1xH200:256M", "--overcommit", "all", "--pool-limit", "1G", "--log-level", "debug")


class Handover(unittest.TestCase):
    options = OPTIONS
    keeps_context = True
    swap_time = "100"

    def setUp(self):
        self.host = self.enterContext(Host(options=(*self.options, "--swap-time", self.swap_time)))
        self.host.start()
        self.guests = [self.guest(name) for name in ("one", "two")]

    def guest(self, name):
        self.host.call("CreateVgpu", name=name, frame_buffer=QUOTA)
        if self.keeps_context:
            self.host.call("SetVgpuIdle", name=name, idle_after=3600, idle_keep_context=True)
        faults = self.host.faults / name  # of its gate alone: who comes exports its memory, too
        faults.mkdir()
        with unittest.mock.patch.dict(os.environ, OPENVGPU_FAULT_DIR=str(faults)):
            return self.host.guest(name, *SIZE, *self.contents(), "--on-demand")

    def contents(self):
        """No two have a block in common."""
        return ("--seed", 1000 * len(self.host.guests))

    def log(self):
        return (self.host.root / "log").read_text(errors="replace")

    def away(self):
        """Who is not on the device, and then the other one, once the swap before has ended for both."""
        def look():
            states = {self.host.vgpu(self.name(guest))["state"]: guest for guest in self.guests}
            away = states.get("suspended") or states.get("evicted")
            return away and "running" in states and [away, states["running"]]

        return until(look, "one to be away and the other one to run", context=self.log)

    def name(self, guest):
        return ("one", "two")[self.guests.index(guest)]

    def finish(self):
        """All of their memory is right."""
        for guest in self.guests:
            guest.signal(signal.SIGTERM)
            guest.process.stdin.close()
        for guest in self.guests:
            self.assertEqual(guest.join(), 0, guest.context())
            self.assertTrue(guest.lines[-1].endswith("ok"), guest.lines)

    @staticmethod
    def ask(guest):
        """It wants a step; true once it has it."""
        wanted = guest.steps() + 1
        guest.write("")
        return lambda: guest.steps() >= wanted

    def begin(self):
        """Half a swap: the one that leaves has handed over some, and the other one comes into that."""
        coming, leaving = self.away()
        (self.host.faults / "mover.passed=pause").touch()
        has_come = self.ask(coming)
        self.host.wait_paused("mover.passed")
        return coming, leaving, has_come

    def begin_before_export(self, coming, leaving):
        """The one that leaves stands still at the returned point, with all of its memory, and the other one comes."""
        gate = f"{self.name(leaving)}/gate-export"
        (self.host.faults / f"{gate}=pause").touch()
        has_come = self.ask(coming)
        self.host.wait_paused(gate)
        return gate, has_come

    def since_coming(self):
        """The log since one began to come."""
        return self.log().rpartition(" comes in by demand ")[2]

    def parts(self, coming, moment):
        """How many others were copied at each such moment of a part of its memory."""
        return [int(n) for n in re.findall(rf"part is {moment} vgpu={self.name(coming)} .*beside=(\d+)",
                                           self.since_coming())]

    def wait_beside(self, coming):
        """The mover is held up at the end of a part; meanwhile it makes the next one ready and copies it."""
        self.host.wait_paused("mover.job-copied")
        until(lambda: 1 in self.parts(coming, "filled"), "another part to arrive")

    def wait_coming(self, coming):
        return self.host.wait_state(self.name(coming), "resuming")

    def check_end(self, *conditions):
        """Nothing is lost, and nothing of a swap is left in the keeper."""
        for has_come in conditions:
            until(has_come, "the step")
        for _ in range(2):
            for guest in self.guests:
                guest.step()
        parked = [label for label in self.host.labels() if label.startswith("parked/")]
        self.assertEqual(parked, [])
        self.finish()


class Waits(Handover):
    swap_time = "10"

    def test_a_wait_for_the_other_one_makes_no_stay_longer(self):
        """A guaranteed stay is nine times what the way out and in took, but not of what others let one wait."""
        coming, leaving, has_come = self.begin()
        self.wait_coming(coming)
        until(lambda: self.parts(coming, "filled"), "a part of it to arrive")
        paused = time.monotonic()
        until(lambda: time.monotonic() - paused > HELD_UP, "a long wait")
        self.host.go_on("mover.passed")
        until(has_come, "the step")
        came = time.monotonic()
        until(self.ask(leaving), "its next step", seconds=9 * HELD_UP + 30, context=self.log)
        self.assertLess(time.monotonic() - came, 9 * HELD_UP)
        self.finish()


class Swaps(Handover):
    def test_one_comes_while_the_other_leaves(self):
        coming, leaving, has_come = self.begin()
        self.wait_coming(coming)
        self.assertEqual(self.host.vgpu(self.name(leaving))["state"], "suspending")
        until(lambda: self.parts(coming, "filled"), "a part of it to arrive")
        self.host.go_on("mover.passed")
        self.check_end(has_come)

    def test_one_part_is_copied_while_another_one_is(self):
        coming, _, has_come = self.begin()
        (self.host.faults / "mover.job-copied=pause").touch()
        self.wait_beside(coming)
        self.host.go_on("mover.job-copied")
        self.host.go_on("mover.passed")
        self.check_end(has_come)

    def test_it_takes_what_is_free_once_the_other_one_stands_still(self):
        """The one that leaves has not even exported its memory when a part of the other one is there."""
        coming, leaving = self.away()
        gate, has_come = self.begin_before_export(coming, leaving)
        until(lambda: self.parts(coming, "filled"), "a part of it to arrive")
        self.assertEqual(self.host.vgpu(self.name(leaving))["state"], "suspending")
        self.assertNotIn(f"exported vgpu={self.name(leaving)} ", self.since_coming())
        self.host.go_on(gate)
        self.check_end(has_come)

    def test_who_leaves_is_killed_while_the_other_one_takes_what_is_free(self):
        coming, leaving = self.away()
        gate, has_come = self.begin_before_export(coming, leaving)
        until(lambda: self.parts(coming, "filled"), "a part of it to arrive")
        leaving.process.kill()
        until(has_come, "the step")
        self.guests.remove(leaving)
        self.finish()

    def test_who_leaves_is_killed_before_anything_is_free(self):
        coming, leaving = self.away()
        (self.host.faults / "mover.hashing=pause").touch()
        has_come = self.ask(coming)
        self.host.wait_paused("mover.hashing")
        self.wait_coming(coming)
        leaving.process.kill()
        self.host.go_on("mover.hashing")
        until(has_come, "the step")
        self.guests.remove(leaving)
        self.finish()

    def test_one_that_is_stopped_while_it_comes(self):
        """It is given up, and the other one leaves all the same; later it comes."""
        coming, _, has_come = self.begin()
        coming.signal(signal.SIGSTOP)
        self.host.go_on("mover.passed")
        until(lambda: "stopped" in self.host.vgpu(self.name(coming))["demand_reason"] or
              "does not answer" in self.host.vgpu(self.name(coming))["demand_reason"], "the reason")
        coming.signal(signal.SIGCONT)
        self.check_end(has_come)

    def test_one_that_has_changed_nothing(self):
        """The second time it leaves at once, and what the other one takes is the whole."""
        one, two = self.guests
        one.step()
        two.step()
        (self.host.faults / "suspend.handed=pause").touch()
        has_come = self.ask(one)
        self.host.wait_paused("suspend.handed")
        self.host.go_on("suspend.handed")
        self.check_end(has_come)


class ContextsIncluded(Handover):
    keeps_context = False

    def test_one_comes_while_the_other_leaves(self):
        coming, leaving, has_come = self.begin()
        self.wait_coming(coming)
        self.assertEqual(self.host.vgpu(self.name(leaving))["state"], "suspending")
        self.host.go_on("mover.passed")
        self.check_end(has_come)

    def test_it_fails_after_all(self):
        """Who leaves comes back, although the other one had a part of its room."""
        coming, _, has_come = self.begin()
        self.wait_coming(coming)
        (self.host.faults / "suspend.moved=fail").touch()
        self.host.go_on("mover.passed")
        self.check_end(has_come)


class Faults(Handover):
    def test_the_manager_is_killed(self):
        for fault in ("suspend.handed", "suspend.handed@2", "suspend.moved", "suspend.recorded", "suspend.dropped",
                      "resume.arriving", "resume.arrived", "resume.copied", "resume.recorded",
                      "resume.opened"):
            point, _, number = fault.partition("@")
            with self.subTest(fault):
                coming, _, has_come = self.begin()
                if not fault.startswith("suspend.handed"):
                    self.wait_coming(coming)
                path = self.host.faults / f"{point}=kill"
                path.write_text(number or "1")
                self.host.go_on("mover.passed")
                self.host.wait_killed()
                self.host.start()
                until(has_come, "the step")
        self.check_end()

    def test_the_manager_is_killed_while_it_undoes(self):
        for fault in ("suspend.undo-moved", "suspend.undoing-release", "suspend.release-undone", "suspend.undo-released",
                      "suspend.undo-kept", "resume.undo-copied", "resume.undo-created"):
            with self.subTest(fault):
                coming, _, has_come = self.begin()
                self.wait_coming(coming)
                (self.host.faults / "suspend.moved=fail").touch()
                (self.host.faults / f"{fault}=kill").touch()
                self.host.go_on("mover.passed")
                self.host.wait_killed()
                self.host.start()
                until(has_come, "the step")
        self.check_end()

    def test_a_step_fails(self):
        """Both are as before, and try again."""
        for fault in ("suspend.handed", "suspend.handed@2", "suspend.moved", "resume.arriving", "resume.arrived",
                      "resume.copied", "mover.job-copied"):
            point, _, number = fault.partition("@")
            with self.subTest(fault):
                coming, _, has_come = self.begin()
                if not fault.startswith("suspend.handed"):
                    self.wait_coming(coming)
                path = self.host.faults / f"{point}=fail"
                path.write_text(number or "1")
                self.host.go_on("mover.passed")
                until(has_come, "the step")
                self.assertFalse(path.exists(), "the point was passed")
        self.check_end()

    def test_the_mover_is_killed(self):
        """What is in the pool already is not copied again; what is not yet, another mover copies."""
        for point in ("mover.passed", "resume.arriving", "resume.arrived", "suspend.moved"):
            with self.subTest(point):
                coming, _, has_come = self.begin()
                self.wait_coming(coming)
                if point != "mover.passed":
                    (self.host.faults / f"{point}=pause").touch()
                    self.host.go_on("mover.passed")
                    self.host.wait_paused(point)
                for pid in self.host.movers():
                    os.kill(pid, signal.SIGKILL)
                self.host.go_on(point)
                until(has_come, "the step")
        self.check_end()

    def test_the_mover_is_killed_with_two_parts_under_way(self):
        """What was copied is not copied again; what was not, another mover copies."""
        for point in ("mover.passed", "mover.job-copied"):
            with self.subTest(point):
                coming, _, has_come = self.begin()
                (self.host.faults / "mover.job-copied=pause").touch()
                self.wait_beside(coming)
                if point != "mover.passed":
                    self.host.go_on("mover.passed")
                for pid in self.host.movers():
                    os.kill(pid, signal.SIGKILL)
                for left in ("mover.passed", "mover.job-copied"):
                    (self.host.faults / left).unlink(missing_ok=True)
                until(has_come, "the step")
        self.check_end()

    def test_it_fails_with_two_parts_under_way(self):
        """All that has arrived is let go of, and who leaves has its room again."""
        coming, _, has_come = self.begin()
        (self.host.faults / "mover.job-copied=pause").touch()
        self.wait_beside(coming)
        (self.host.faults / "suspend.moved=fail").touch()
        self.host.go_on("mover.passed")
        until(lambda: not (self.host.faults / "suspend.moved=fail").exists(), "the step to fail")
        self.host.go_on("mover.job-copied")
        self.check_end(has_come)

    def test_who_leaves_stays_after_all_while_the_other_one_takes_what_is_free(self):
        coming, leaving = self.away()
        gate, has_come = self.begin_before_export(coming, leaving)
        until(lambda: self.parts(coming, "filled"), "a part of it to arrive")
        (self.host.faults / "suspend.exported=fail").touch()
        self.host.go_on(gate)
        until(lambda: f"waits again: who was leaving for it stays vgpu={self.name(coming)}" in self.log(), "the undoing")
        self.check_end(has_come)

    def test_the_one_that_leaves_is_killed(self):
        coming, leaving, has_come = self.begin()
        self.wait_coming(coming)
        leaving.process.kill()
        self.host.go_on("mover.passed")
        until(has_come, "the step")
        self.host.wait_state(self.name(leaving), "idle")
        self.guests.remove(leaving)
        self.finish()

    def test_the_one_that_comes_is_killed(self):
        coming, leaving, _ = self.begin()
        self.wait_coming(coming)
        coming.process.kill()
        self.host.go_on("mover.passed")
        self.host.wait_state(("one", "two")[self.guests.index(coming)], "idle")
        self.guests.remove(coming)
        leaving.step()
        self.finish()


if __name__ == "__main__":
    unittest.main()
