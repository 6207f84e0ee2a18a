#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""To another device with a pre-copy: a suspend that copies while the programs run, and a resume there.

These are two operations. Between them the vGPU is suspended, and nothing is held for it on any device.
"""
import contextlib
import time
import unittest

from harness import MIB, Host, expect_error
from scene import FINAL, STEPS, UNDOABLE, kill_all
from wait import until
from wire import Refused

# Its steps, with what it passes only when it copies ahead.
LEAVING = ["reserved", "round", "ahead"] + STEPS["suspend"][1:]
POINTS = [("suspend", step) for step in LEAVING] + [("resume", step) for step in STEPS["resume"]]
UNDONE = [(kind, step) for kind in ("suspend", "resume") for step in UNDOABLE[kind]]
# After the last copy while it runs, and before its gate closes.
LAST = "suspend.ahead"


def has_happened(kind, step):
    names = LEAVING if kind == "suspend" else STEPS[kind]
    return names.index(step) >= names.index(FINAL[kind])


class Case(unittest.TestCase):
    options = []

    def setUp(self):
        self.host = self.enterContext(Host(options=self.options))
        self.host.start()
        self.create("train", 256)
        self.guests = []

    def create(self, name, mib, device="0"):
        self.host.call("CreateVgpu", name=name, frame_buffer=mib * MIB, device=device)

    def arm(self, point, what):
        (self.host.faults / f"{point}={what}").touch()

    def add_guest(self, size):
        """It changes its memory all the time, and compares all of it in each step."""
        seed = (len(self.guests) + 1) << 24
        guest = self.host.guest("train", "--size", size, "--piece", "2M", "--small", "20", "--seed", seed)
        self.guests.append(guest)
        return guest

    def leave(self, **parameters):
        return self.host.call("SuspendVgpu", name="train", pre_copy=True, **parameters)

    def come(self, device):
        return self.host.call("ResumeVgpu", name="train", device=str(device))

    def where(self):
        vgpu = self.host.vgpu("train")
        return vgpu["state"], vgpu["device"]

    def check(self):
        for guest in self.guests:
            guest.wait_steps(2)

    def finish(self):
        """No byte is wrong, and nothing is left."""
        self.check()
        for guest in self.guests:
            guest.finish()
        self.host.wait_state("train", "idle")
        until(lambda: self.host.call("GetInfo")["pool"]["used"] == 0, "the pool to be empty")
        until(lambda: [d["memory_used"] for d in self.host.call("ListDevices")["devices"]] == [0, 0],
              "the devices to be empty")


class Ways(Case):
    def test_it_stands_still_from_the_end_of_the_pre_copy_to_the_other_device(self):
        self.add_guest("9M")
        self.arm(LAST, "pause")
        client = self.host.client()
        client.send("SuspendVgpu", name="train", pre_copy=True)
        self.host.wait_paused(LAST)
        self.check()  # it runs
        began = time.monotonic()
        self.host.go_on(LAST)
        left = client.answer()
        came = self.come(1)
        self.assertLess(came["stopped_seconds"], time.monotonic() - began)
        self.assertGreater(came["stopped_seconds"], left["stopped_seconds"] + came["seconds"])
        self.assertGreater(left["pre_copy_bytes"], 0)
        self.assertEqual(self.where(), ("running", 1))
        self.finish()

    def test_the_way_back_copies_only_what_has_changed(self):
        """The pool has what the other device got from it."""
        guest = self.host.guest("train", "--on-demand", "--size", "24M", "--piece", "8M", "--still", "2")
        self.leave()
        self.come(1)
        guest.step()
        report = self.leave()
        self.assertEqual((report["bytes"], report["bytes_unchanged"], report["pre_copy_bytes"]),
                         (24 * MIB, 24 * MIB, 8 * MIB))
        self.come(0)
        guest.step()
        guest.finish()

    def test_the_context_that_stayed_follows(self):
        self.add_guest("9M")
        self.leave(keep_context=True)
        self.assertEqual(self.where(), ("evicted", 0))
        self.come(1)
        self.assertEqual(self.where(), ("running", 1))
        self.finish()

    def test_a_manager_in_between_does_not_know_for_how_long(self):
        self.add_guest("9M")
        self.leave()
        self.host.kill_manager()
        self.host.start()
        self.assertEqual(self.come(1)["stopped_seconds"], 0)
        self.assertEqual(self.where(), ("running", 1))
        self.finish()

    def test_nothing_is_held_for_it(self):
        """Neither where it goes nor where it was: it waits in the pool until one of them has room."""
        self.add_guest("9M")
        self.leave()
        self.create("there", 1024, "1")
        error = expect_error("NoRoom", self.come, 1)
        self.assertIn("device 1", error.parameters["message"])
        self.create("here", 1024, "0")
        expect_error("NoRoom", self.come, 0)
        self.assertEqual(self.where(), ("suspended", 0))
        self.host.call("RemoveVgpu", name="here")
        self.come(0)
        self.assertEqual(self.where(), ("running", 0))
        self.finish()


class SmallPool(Case):
    options = ["--pool-limit", "8M"]

    def test_it_is_refused_before_anything_is_copied(self):
        self.add_guest("24M")
        expect_error("PoolTooSmall", self.leave)
        self.assertEqual(self.where(), ("running", 0))
        self.finish()


class Faults(Case):
    """At each step of both: the vGPU is where it was or where it goes, and can go on from there."""

    def setUp(self):
        super().setUp()
        self.target = 1

    def check_each(self, action, points=POINTS, *, is_always_done=False):
        for kind, step in points:
            with self.subTest(step=f"{kind}.{step}"):
                while len(self.guests) < 2:
                    self.add_guest("5M")
                action(kind, step)
                self.go_on(kind, is_always_done or has_happened(kind, step))
        self.finish()

    def begin(self, kind):
        """The point is in the second of the two."""
        if kind == "resume":
            self.leave()

    def run_it(self, kind):
        return self.leave() if kind == "suspend" else self.come(self.target)

    def run_until(self, kind, point):
        self.arm(point, "pause")
        client = self.host.client()
        if kind == "suspend":
            client.send("SuspendVgpu", name="train", pre_copy=True)
        else:
            client.send("ResumeVgpu", name="train", device=str(self.target))
        self.host.wait_paused(point)
        return client

    def go_on(self, kind, is_done):
        """Is it where it must be? Then the rest; the next one goes the other way."""
        where = {("suspend", False): ("running", 1 - self.target), ("suspend", True): ("suspended", 1 - self.target),
                 ("resume", False): ("suspended", 1 - self.target), ("resume", True): ("running", self.target)}
        wanted = where[kind, is_done]
        until(lambda: self.where() == wanted, f"the vGPU to be {wanted}", context=lambda: str(self.where()))
        if wanted == ("running", 1 - self.target):
            self.check()
            self.leave()
        if wanted != ("running", self.target):
            self.come(self.target)
        self.assertEqual(self.where(), ("running", self.target))
        self.check()
        self.target = 1 - self.target


class Deaths(Faults):
    def kill_manager_at(self, kind, step):
        self.begin(kind)
        self.arm(f"{kind}.{step}", "kill")
        with contextlib.suppress(ConnectionError, OSError):
            self.run_it(kind)
        self.host.wait_killed()
        self.host.start()

    def test_vgpud_is_killed_in_the_suspend(self):
        self.check_each(self.kill_manager_at, [point for point in POINTS if point[0] == "suspend"])

    def test_vgpud_is_killed_in_the_resume(self):
        self.check_each(self.kill_manager_at, [point for point in POINTS if point[0] == "resume"])

    def kill_manager_undoing(self, kind, step):
        self.begin(kind)
        self.arm(f"{kind}.{UNDOABLE[kind][-1]}", "fail")
        self.arm(f"{kind}.undo-{step}", "kill")
        with contextlib.suppress(ConnectionError, OSError, Refused):
            self.run_it(kind)
        self.host.wait_killed()
        self.host.start()

    def test_vgpud_is_killed_while_it_undoes(self):
        self.check_each(self.kill_manager_undoing, UNDONE)

    def kill_the_next_manager(self, kind, step):
        """It dies after the last step that is undone, and the next one while it undoes that one's."""
        self.begin(kind)
        self.arm(f"{kind}.{UNDOABLE[kind][-1]}", "kill")
        with contextlib.suppress(ConnectionError, OSError):
            self.run_it(kind)
        self.host.wait_killed()
        self.arm(f"{kind}.undo-{step}", "kill")
        self.host.start_only()
        self.host.wait_killed()
        self.host.start()

    def test_vgpud_is_killed_again(self):
        self.check_each(self.kill_the_next_manager, UNDONE)


class Failures(Faults):
    def fail_at(self, kind, step):
        self.begin(kind)
        self.arm(f"{kind}.{step}", "fail")
        with contextlib.nullcontext() if has_happened(kind, step) else self.assertRaises(Refused):
            self.run_it(kind)

    def test_a_step_fails(self):
        self.check_each(self.fail_at)

    def test_the_mover_of_the_other_device_fails(self):
        """It goes on where it was, or there once more."""
        for point in ("restored", "job-imported", "job-copied"):
            with self.subTest(point=point):
                self.add_guest("5M")
                self.leave()
                self.host.fail_mover(1, f"mover.{point}", "fail")
                expect_error("DriverFailed", self.come, 1)
                self.assertEqual(self.where(), ("suspended", 0))
                self.come(0)
                self.check()
        self.leave()
        self.come(1)
        self.finish()

    def kill_movers_at(self, kind, step):
        """Others do it again."""
        self.begin(kind)
        client = self.run_until(kind, f"{kind}.{step}")
        kill_all(self.host.movers())
        self.host.go_on(f"{kind}.{step}")
        client.answer()

    def test_the_movers_are_killed(self):
        self.check_each(self.kill_movers_at, is_always_done=True)

    def kill_guest_at(self, kind, step):
        self.begin(kind)
        client = self.run_until(kind, f"{kind}.{step}")
        self.guests.pop(0).kill()
        self.host.go_on(f"{kind}.{step}")
        client.answer()
        until(lambda: len(self.host.vgpu("train")["processes"]) == 1, "the dead process to be forgotten")

    def test_a_process_is_killed(self):
        self.check_each(self.kill_guest_at, is_always_done=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
