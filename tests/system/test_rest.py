#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Coming to rest together: processes whose kernels wait for each other's are suspended at random moments."""
import os
import random
import select
import signal
import time
import unittest

from harness import MIB, Host, expect_error
from ranks import SLOW_HOST, Ranks
from wait import until
from wire import Refused

# Nobody comes to rest within this by itself, and everybody by steps, also on a busy machine.
PATIENT = 60


class Rest(unittest.TestCase):
    def setUp(self):
        self.host = self.enterContext(Host())
        self.host.start()
        self.host.call("CreateVgpu", name="train", frame_buffer=512 * MIB, device="0")

    def suspend(self, timeout=PATIENT, **parameters):
        return self.host.call("SuspendVgpu", name="train", timeout=timeout, **parameters)

    def suspend_at_random(self, ranks, times, **parameters):
        chance = random.Random(len(ranks.all))
        for _ in range(times):
            time.sleep(chance.uniform(0, 0.02))
            self.suspend(**parameters)
            self.host.call("ResumeVgpu", name="train")
        ranks.wait_steps()
        ranks.finish()
        self.host.wait_state("train", "idle")


class Moments(Rest):
    """
    50 times each, at random moments; afterwards every word is right. The hosts are slower than the device:
    without steps, more than half of the suspends would time out.
    """

    def test_two_ranks(self):
        self.suspend_at_random(Ranks(self.host, 2, *SLOW_HOST), 50)

    def test_four_ranks(self):
        self.suspend_at_random(Ranks(self.host, 4, *SLOW_HOST), 50)

    def test_eight_ranks(self):
        self.suspend_at_random(Ranks(self.host, 8, *SLOW_HOST), 50, keep_context=True)

    def test_a_device_that_is_slower_than_the_hosts(self):
        self.suspend_at_random(Ranks(self.host, 3, "--size", "4M"), 50, keep_context=True)

    def test_many_launches_between_two_collectives(self):
        self.suspend_at_random(Ranks(self.host, 3, "--launches", 40, "--size", "64K", "--pause", 200), 50,
                               keep_context=True)

    def test_graphs_with_collectives(self):
        self.suspend_at_random(Ranks(self.host, 3, "--graph", *SLOW_HOST), 50, keep_context=True)

    def test_ranks_that_meet_in_imported_device_memory(self):
        self.suspend_at_random(Ranks(self.host, 4, "--device", *SLOW_HOST), 50, keep_context=True)

    def test_ranks_are_moved(self):
        ranks = Ranks(self.host, 3, *SLOW_HOST)
        for device in ("1", "0", "1"):
            self.host.call("MigrateVgpu", name="train", device=device, timeout=PATIENT)
            ranks.wait_steps()
        ranks.finish()

    def test_beside_a_program_that_waits_for_nobody(self):
        other = self.host.guest("train", "--size", "4M")
        ranks = Ranks(self.host, 2, *SLOW_HOST)
        for _ in range(10):
            self.suspend()
            self.host.call("ResumeVgpu", name="train")
            ranks.wait_steps()
        ranks.finish()
        other.wait_steps()
        other.finish()


class Faults(Rest):
    """Whatever happens on the way to rest: who is left runs on, and the answer is true."""

    def begin(self, n=1, timeout=PATIENT):
        """Four ranks, and a suspend that pauses before its @n-th step; many come to rest without any."""
        ranks = Ranks(self.host, 4, *SLOW_HOST)
        point = self.host.faults / "suspend.step"
        while True:
            ranks.wait_steps()
            (self.host.faults / "suspend.step=pause").write_text(str(n))
            client = self.host.client()
            client.send("SuspendVgpu", name="train", timeout=timeout)
            until(lambda: point.exists() or select.select([client.socket], [], [], 0)[0],
                  "a step or the end")
            if point.exists():
                return ranks, client
            client.answer()
            self.host.call("ResumeVgpu", name="train")

    def go_on(self):
        self.host.go_on("suspend.step")

    def check_that_all_is_well(self, ranks):
        ranks.wait_steps()
        self.suspend()
        self.host.call("ResumeVgpu", name="train")
        ranks.wait_steps()
        ranks.finish()

    def test_a_rank_is_stopped_and_continued(self):
        for n in (1, 3):
            ranks, client = self.begin(n)
            ranks.all[1].signal(signal.SIGSTOP)
            self.go_on()
            self.host.call("GetInfo")  # vgpud has one thread: it has asked those that shall make a step
            ranks.all[1].signal(signal.SIGCONT)
            client.answer()
            self.host.call("ResumeVgpu", name="train")
            self.check_that_all_is_well(ranks)

    def test_a_rank_that_stays_stopped_is_named(self):
        ranks = Ranks(self.host, 3, *SLOW_HOST)
        ranks.wait_steps()
        ranks.all[1].signal(signal.SIGSTOP)
        error = expect_error("TimedOut", self.suspend, timeout=1)
        self.assertIn(f"process {ranks.all[1].pid} (guest-rank) is stopped", error.parameters["message"])
        self.host.wait_state("train", "running")
        ranks.all[1].signal(signal.SIGCONT)
        self.check_that_all_is_well(ranks)

    def test_a_rank_that_is_killed_leaves_the_others_where_they_wait(self):
        for n in (1, 2, 4):
            ranks, client = self.begin(n, timeout=3)
            ranks.all[2].process.kill()
            ranks.all[2].process.wait()
            self.go_on()
            # Those that are left wait for it for ever, in a kernel or before it.
            try:
                client.answer()
            except Refused as error:
                self.assertEqual(error.name, "TimedOut")
            ranks.kill()
            self.host.wait_state("train", "idle")

    def test_all_ranks_are_killed(self):
        ranks, client = self.begin(2)
        ranks.die()
        self.go_on()
        with self.assertRaises(Refused) as raised:
            client.answer()
        self.assertEqual(raised.exception.name, "GuestLost")
        ranks.kill()
        self.host.wait_state("train", "idle")

    def test_the_manager_is_killed(self):
        for n in (1, 2, 5):
            ranks, _ = self.begin(n)
            self.host.kill_manager()
            self.go_on()
            ranks.wait_steps()  # nobody but the gates themselves has opened them
            self.host.start()
            self.host.wait_state("train", "running")
            self.check_that_all_is_well(ranks)

    def test_a_step_that_fails_lets_all_run_on(self):
        ranks = Ranks(self.host, 4, *SLOW_HOST)
        ranks.wait_steps()
        fault = self.host.faults / "suspend.step=fail"
        fault.write_text("1")
        while fault.exists():
            try:
                self.suspend()
            except Refused as error:
                self.assertIn("suspend.step", error.parameters["message"])
            else:
                self.host.call("ResumeVgpu", name="train")
            ranks.wait_steps()
        self.check_that_all_is_well(ranks)

    def test_a_gate_that_fails_to_open_at_first_is_opened_when_all_is_undone(self):
        stuck = Ranks(self.host, 1, *SLOW_HOST)
        os.environ.update(OPENVGPU_FAULT="gate-open=fail", OPENVGPU_FAULT_DIR=str(self.host.faults))
        try:
            other = self.host.start_guest("train", "guest-hold")
        finally:
            del os.environ["OPENVGPU_FAULT"], os.environ["OPENVGPU_FAULT_DIR"]
        other.hold("managed")
        stuck.wait_steps()
        stuck.all[0].hold("stick")
        error = expect_error("NotMovable", self.suspend, timeout=2)
        self.assertIn(f"process {other.pid}", error.parameters["message"])
        self.host.wait_state("train", "running")
        other.hold("nothing")
        other.kill()
        self.host.guests.remove(other)
        stuck.all[0].write("free")
        self.check_that_all_is_well(stuck)

    def test_a_rank_that_never_rests_is_named_with_those_that_wait_for_it(self):
        ranks = Ranks(self.host, 4, *SLOW_HOST)
        ranks.wait_steps()
        stuck = ranks.all[2]
        stuck.hold("stick")
        error = expect_error("TimedOut", self.suspend, timeout=2)
        self.assertIn(str(stuck.pid), error.parameters["message"])
        self.assertIn("did not come to rest within 2000 ms", error.parameters["message"])
        self.host.wait_state("train", "running")
        stuck.write("free")
        self.check_that_all_is_well(ranks)

    def test_who_was_at_rest_is_named_as_well(self):
        stuck, other = Ranks(self.host, 1, *SLOW_HOST), self.host.guest("train", "--size", "4M")
        stuck.wait_steps()
        stuck.all[0].hold("stick")
        error = expect_error("TimedOut", self.suspend, timeout=2)
        self.assertIn(f"process {stuck.all[0].pid} (guest-rank) did not come to rest within 2000 ms: it is in ",
                      error.parameters["message"])
        self.assertTrue(error.parameters["message"].endswith(f"; at rest meanwhile: {other.pid}"),
                        error.parameters["message"])
        other.wait_steps()
        stuck.all[0].write("free")
        self.check_that_all_is_well(stuck)

    def test_what_cannot_be_suspended_holds_nobody_up(self):
        """The first refusal opens all gates at once: nobody waits for the time-out."""
        ranks = Ranks(self.host, 3, *SLOW_HOST)
        other = self.host.start_guest("train", "guest-hold", "1M")
        other.hold("managed")
        ranks.wait_steps()
        for _ in range(5):
            error = expect_error("NotMovable", self.suspend)
            self.assertIn("managed memory", error.parameters["message"])
            ranks.wait_steps()
        ranks.finish()


class Alone(Rest):
    """A program that waits for nobody takes no step, and neither do several of them."""

    def test_one_process_takes_no_step(self):
        guest = self.host.start_guest("train", "guest-busy", 300000)
        for _ in range(3):
            self.suspend()
            self.host.call("ResumeVgpu", name="train")
        self.assertEqual(guest.end_input(), 0)
        self.assertNotIn("at rest together", (self.host.root / "log").read_text(errors="replace"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
