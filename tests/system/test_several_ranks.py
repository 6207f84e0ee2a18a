#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Ranks of one vGPU of several devices that wait for each other: a launcher has given each a device of its own
(CUDA_VISIBLE_DEVICES). They meet in memory of the first, which the others have imported.
"""
import contextlib
import random
import signal
import time
import unittest

from harness import MIB, Host
from ranks import SLOW_HOST, Ranks
from wait import until
from wire import Refused

# Nobody comes to rest within this by itself, and everybody by steps, also on a busy machine.
PATIENT = 60


class SeveralRanks(unittest.TestCase):
    def open_host(self, n, *options):
        self.host = self.enterContext(Host(options=("--simulate", f"{n}xH200:1G")))
        self.host.start()
        self.host.call("CreateVgpu", name="train", frame_buffer=64 * MIB,
                       device=",".join(str(i) for i in reversed(range(n))))
        return Ranks(self.host, n, "--device", *SLOW_HOST, *options, n_devices=n)

    def suspend(self, timeout=PATIENT, **parameters):
        return self.host.call("SuspendVgpu", name="train", timeout=timeout, **parameters)

    def resume(self):
        return self.host.call("ResumeVgpu", name="train")

    def suspend_at_random(self, n, times, *options):
        ranks = self.open_host(n, *options)
        used = [part["frame_buffer_used"] > 0 for part in self.host.vgpu("train")["parts"]]
        self.assertEqual(used, [True] * n, "each is on a device of its own")
        chance = random.Random(n)
        for i in range(times):
            time.sleep(chance.uniform(0, 0.02))
            self.suspend(keep_context=i % 4 != 0)
            self.resume()
        ranks.wait_steps()
        ranks.finish()

    def test_two_devices(self):
        self.suspend_at_random(2, 50)

    def test_three_devices_and_graphs(self):
        self.suspend_at_random(3, 20, "--graph")

    def test_four_devices(self):
        self.suspend_at_random(4, 20)

    def test_eight_devices(self):
        self.suspend_at_random(8, 10)

    def test_the_manager_is_killed(self):
        ranks = self.open_host(2)
        for kind, step in (("suspend", "closed"), ("suspend", "released"), ("suspend", "moved"), ("resume", "restored"),
                           ("resume", "created"), ("resume", "copied")):
            with self.subTest(f"{kind}.{step}"):
                if kind == "resume":
                    self.suspend()
                (self.host.faults / f"{kind}.{step}=kill").touch()
                with contextlib.suppress(ConnectionError, OSError, Refused):
                    self.suspend() if kind == "suspend" else self.resume()
                self.host.wait_killed()
                self.host.start()
                until(lambda: self.host.vgpu("train")["state"] in ("running", "suspended"), "it to be undone or ended")
                if self.host.vgpu("train")["state"] == "suspended":
                    self.resume()
                ranks.wait_steps()
        ranks.finish()

    def test_a_rank_that_stays_stopped_is_named(self):
        ranks = self.open_host(3)
        ranks.all[1].signal(signal.SIGSTOP)
        with self.assertRaises(Refused) as refused:
            self.suspend(timeout=2)
        self.assertEqual(refused.exception.name, "TimedOut")
        self.assertIn(f"process {ranks.all[1].pid} ", refused.exception.parameters["message"])
        ranks.all[1].signal(signal.SIGCONT)
        until(lambda: self.host.vgpu("train")["state"] == "running", "it to be undone")
        ranks.wait_steps()
        self.suspend()
        self.resume()
        ranks.wait_steps()
        ranks.finish()


if __name__ == "__main__":
    unittest.main(verbosity=2)
