#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks on several devices, a vGPU each, come to rest together: suspended and resumed with `group`."""
import contextlib
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


class Groups(unittest.TestCase):
    def open_host(self, n):
        """A host with @n devices, and a vGPU on each."""
        self.host = self.enterContext(Host(options=("--simulate", f"{n}xH200:512M")))
        self.host.start()
        self.names = [f"rank{i}" for i in range(n)]
        for i, name in enumerate(self.names):
            self.host.call("CreateVgpu", name=name, frame_buffer=64 * MIB, device=str(i))

    def start_ranks(self, *options):
        """They meet in device memory of the first, which the others have imported."""
        return Ranks(self.host, len(self.names), "--device", *SLOW_HOST, *options, vgpus=self.names)

    def suspend(self, name="rank0", timeout=PATIENT, **parameters):
        return self.host.call("SuspendVgpu", name=name, group=True, timeout=timeout, **parameters)

    def resume(self, name="rank0"):
        return self.host.call("ResumeVgpu", name=name, group=True)

    def wait_states(self, *states):
        for name in self.names:
            until(lambda name=name: self.host.vgpu(name)["state"] in states, f"{name} to be {states}")

    def check_that_all_is_well(self, ranks):
        self.wait_states("running")
        ranks.wait_steps()
        self.suspend()
        self.resume()
        ranks.wait_steps()
        ranks.finish()


class Moments(Groups):
    """At random moments; afterwards every word is right."""

    def suspend_at_random(self, n, times, *options):
        self.open_host(n)
        ranks = self.start_ranks(*options)
        chance = random.Random(n)
        for i in range(times):
            time.sleep(chance.uniform(0, 0.02))
            self.suspend(chance.choice(self.names), keep_context=i % 4 != 0)
            self.assertEqual({self.host.vgpu(name)["state"] for name in self.names},
                             {"evicted" if i % 4 != 0 else "suspended"})
            self.resume(chance.choice(self.names))
        ranks.wait_steps()
        ranks.finish()

    def test_two_devices(self):
        self.suspend_at_random(2, 50)

    def test_three_devices_and_graphs(self):
        self.suspend_at_random(3, 25, "--graph")

    def test_four_devices(self):
        self.suspend_at_random(4, 25)

    def test_eight_devices(self):
        self.suspend_at_random(8, 12)

    def test_many_launches_between_two_collectives(self):
        self.suspend_at_random(2, 25, "--launches", 40, "--pause", 200)


class Faults(Groups):
    """Whatever happens on the way to rest: who is left runs on, and the answer is true."""

    def setUp(self):
        self.open_host(3)

    def begin(self, n=1, timeout=PATIENT):
        """A suspend that pauses before its @n-th step; some come to rest without so many."""
        ranks = self.start_ranks()
        point = self.host.faults / "suspend.step"
        while True:
            ranks.wait_steps()
            (self.host.faults / "suspend.step=pause").write_text(str(n))
            client = self.host.client()
            client.send("SuspendVgpu", name="rank1", group=True, timeout=timeout)
            until(lambda: point.exists() or select.select([client.socket], [], [], 0)[0],
                  "a step or the end")
            if point.exists():
                return ranks, client
            client.answer()
            self.resume()

    def go_on(self):
        self.host.go_on("suspend.step")

    def test_a_rank_that_stays_stopped_is_named(self):
        ranks = self.start_ranks()
        ranks.wait_steps()
        ranks.all[1].signal(signal.SIGSTOP)
        error = expect_error("TimedOut", self.suspend, timeout=1)
        self.assertIn(f"process {ranks.all[1].pid} (guest-rank) is stopped", error.parameters["message"])
        ranks.all[1].signal(signal.SIGCONT)
        self.check_that_all_is_well(ranks)

    def test_a_rank_that_is_stopped_while_it_is_away_is_named_at_once(self):
        """The driver would wait for it for half a minute, whatever the time-out is."""
        ranks = self.start_ranks()
        ranks.wait_steps()
        self.suspend()
        ranks.all[1].signal(signal.SIGSTOP)
        begin = time.monotonic()
        error = expect_error("TimedOut", self.host.call, "ResumeVgpu", name="rank0", group=True, timeout=1)
        self.assertLess(time.monotonic() - begin, 15)
        self.assertIn(f"process {ranks.all[1].pid} (guest-rank) is stopped", error.parameters["message"])
        self.assertIn("kill -CONT", error.parameters["hint"])
        self.wait_states("suspended")
        ranks.all[1].signal(signal.SIGCONT)
        self.resume()
        self.check_that_all_is_well(ranks)

    def test_a_rank_that_hangs_is_named_with_its_vgpu_and_those_that_wait(self):
        ranks = self.start_ranks()
        other = self.host.guest("rank0", "--size", "4M")
        ranks.wait_steps()
        ranks.all[2].hold("stick")
        message = expect_error("TimedOut", self.suspend, timeout=2).parameters["message"]
        for name, rank in zip(self.names, ranks.all):
            self.assertRegex(message, f"process {rank.pid} .guest-rank. of vGPU {name} did not come|"
                                      f"neither did .*{rank.pid} in {name}|"
                                      f"at rest meanwhile: .*{rank.pid} in {name}")
        self.assertRegex(message, f"at rest meanwhile: .*{other.pid} in rank0")
        self.assertIn("did not come to rest within 2000 ms", message)
        # The others have memory of the first, in which their kernels wait.
        for rank in ranks.all[1:]:
            self.assertRegex(message, f"; memory is shared: .*{ranks.all[0].pid} with {rank.pid}")
        other.wait_steps()
        other.finish()
        self.wait_states("running")
        ranks.all[2].write("free")
        self.check_that_all_is_well(ranks)

    def test_a_rank_that_is_killed_leaves_the_others_where_they_wait(self):
        for n, victim in ((1, 1), (2, 2), (3, 0)):
            ranks, client = self.begin(n, timeout=3)
            ranks.all[victim].process.kill()
            ranks.all[victim].process.wait()
            self.go_on()
            # Those that are left wait for it for ever, in a kernel or before it.
            with self.assertRaises(Refused) as raised:
                client.answer()
            self.assertIn(raised.exception.name, ("TimedOut", "GuestLost", "NotMovable"))
            self.wait_states("running", "idle")
            ranks.kill()
            self.wait_states("idle")

    def test_all_ranks_are_killed(self):
        ranks, client = self.begin(2)
        ranks.die()
        self.go_on()
        with self.assertRaises(Refused) as raised:
            client.answer()
        self.assertEqual(raised.exception.name, "GuestLost")
        ranks.kill()
        self.wait_states("idle")

    def test_the_manager_is_killed(self):
        for n in (1, 2, 4):
            ranks, _ = self.begin(n)
            self.host.kill_manager()
            self.go_on()
            ranks.wait_steps()  # nobody but the gates themselves has opened them
            self.host.start()
            self.check_that_all_is_well(ranks)

    def test_a_step_that_fails_lets_all_run_on(self):
        ranks = self.start_ranks()
        ranks.wait_steps()
        fault = self.host.faults / "suspend.step=fail"
        fault.write_text("1")
        while fault.exists():
            try:
                self.suspend()
            except Refused as error:
                self.assertIn("suspend.step", error.parameters["message"])
            else:
                self.resume()
            self.wait_states("running")
            ranks.wait_steps()
        self.check_that_all_is_well(ranks)

    def test_what_cannot_be_suspended_holds_nobody_up(self):
        """The first refusal opens all gates at once, of all vGPUs: nobody waits for the time-out."""
        ranks = self.start_ranks()
        other = self.host.start_guest("rank2", "guest-hold", "1M")
        other.hold("managed")
        ranks.wait_steps()
        for _ in range(5):
            error = expect_error("NotMovable", self.suspend)
            self.assertIn("managed memory", error.parameters["message"])
            self.wait_states("running")
            ranks.wait_steps()
        ranks.finish()

    def test_a_group_that_is_stopped_and_continued(self):
        ranks, client = self.begin(2)
        ranks.all[1].signal(signal.SIGSTOP)
        self.go_on()
        self.host.call("GetInfo")  # vgpud has one thread: it has asked those that shall make a step
        ranks.all[1].signal(signal.SIGCONT)
        with contextlib.suppress(Refused):
            client.answer()
            self.resume()
        self.check_that_all_is_well(ranks)


if __name__ == "__main__":
    unittest.main(verbosity=2)
