#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Death and failure at every step of every operation.

After each: no byte of a guest is lost, the vGPU is in a state that the next commands work with, and
nothing is left behind.
"""
import contextlib
import unittest

from scene import FINAL, STEPS, TARGETS, UNDOABLE, Scene, add_tests, kill_all, steps
from wait import until
from wire import Refused


class ManagerKilled(unittest.TestCase):
    def check(self, kind, step):
        scene = Scene(self, kind, f"{kind}.{step}=kill")
        with contextlib.suppress(ConnectionError, OSError):
            scene.run()
        scene.host.wait_killed()
        scene.host.start()
        names = STEPS[kind]
        scene.check_state(names.index(step) >= names.index(FINAL[kind]))
        scene.check_usable()


class Leftovers(unittest.TestCase):
    def test_a_manager_that_dies_after_the_end_leaves_no_device_memory_behind(self):
        scene = Scene(self, "suspend", "suspend.recorded=kill")
        with contextlib.suppress(ConnectionError, OSError):
            scene.run()
        scene.host.wait_killed()
        self.assertGreater(scene.host.held_memory(), 0)
        scene.host.start()
        scene.host.kill_manager()
        self.assertEqual(scene.host.held_memory(), 0)
        scene.host.start()
        scene.check_usable()


class StepFails(unittest.TestCase):
    def check(self, kind, step):
        scene = Scene(self, kind, f"{kind}.{step}=fail")
        names = STEPS[kind]
        has_happened = names.index(step) >= names.index(FINAL[kind])
        if has_happened:
            scene.run()
        else:
            with self.assertRaises(Refused):
                scene.run()
        scene.check_state(has_happened)
        scene.check_usable()


class UndoKilled(unittest.TestCase):
    """The manager fails at one step, and dies while it undoes another."""

    def check(self, kind, step):
        last = UNDOABLE[kind][-1]
        scene = Scene(self, kind, f"{kind}.{last}=fail,{kind}.undo-{step}=kill")
        with contextlib.suppress(ConnectionError, OSError, Refused):
            scene.run()
        scene.host.wait_killed()
        scene.host.start()
        scene.check_state(False)
        scene.check_usable()


class GuestKilled(unittest.TestCase):
    def check(self, kind, step):
        scene = Scene(self, kind, f"{kind}.{step}=pause")
        client = scene.run_until(step)
        scene.guests[0].kill()
        scene.go_on(step)
        client.answer()
        until(lambda: len(scene.host.vgpu("train")["processes"]) == 1,
              "the dead process to be forgotten")
        scene.check_state(True)
        scene.check_usable()


class MoverKilled(unittest.TestCase):
    def check(self, kind, step):
        scene = Scene(self, kind, f"{kind}.{step}=pause")
        client = scene.run_until(step)
        kill_all(scene.host.movers())
        scene.go_on(step)
        client.answer()
        scene.check_state(True)
        scene.check_usable()


class KeeperKilled(unittest.TestCase):
    """And the manager dies as well, later on: what the keeper held must be in the new one."""

    def check(self, kind, step):
        scene = Scene(self, kind, f"{kind}.{step}=pause")
        client = scene.run_until(step)
        kill_all(scene.host.keepers())
        scene.go_on(step)
        client.answer()
        scene.host.call("GetInfo")  # by now it has seen the loss, if not before
        until(scene.host.keepers, "a new keeper")
        scene.host.kill_manager()
        scene.host.start()
        scene.check_state(True)
        scene.check_usable()


def who_passes(kind, point):
    """The device whose mover does that: the checkpoint is left to the one that the vGPU leaves."""
    return 0 if point in ("locked", "checkpointed") else TARGETS[kind]


class MoverDies(unittest.TestCase):
    """By itself, in the middle of its work; another one does it again."""

    def check(self, kind, step):
        scene = Scene(self, kind)
        scene.host.fail_mover(who_passes(kind, step), f"mover.{step}", "kill")
        scene.run()
        if step != "staged":  # it may be over before there is anything to stage
            self.assertEqual(list(scene.host.faults.glob("mover.*")), [])
        scene.check_state(True)
        scene.check_usable()


class MoverFails(unittest.TestCase):
    """A driver call of its fails: undone."""

    def check(self, kind, step):
        scene = Scene(self, kind)
        scene.host.fail_mover(who_passes(kind, step), f"mover.{step}", "fail")
        with self.assertRaises(Refused) as caught:
            scene.run()
            while step == "staged":  # the copy was asked for before the staging had begun
                scene.go_back()
                scene.run()
        self.assertEqual(caught.exception.name, "DriverFailed")
        scene.check_state(False)
        scene.check_usable()


MOVER_POINTS = {
    "suspend": ["job-imported", "copy-half", "job-copied", "locked", "checkpointed"],
    "resume": ["staged", "job-imported", "job-copied", "restored", "unlocked"],
    "migrate": ["staged", "job-imported", "job-copied", "locked", "checkpointed", "restored",
                "unlocked"],
}
MOVER_STEPS = [(kind, point) for kind, points in MOVER_POINTS.items() for point in points]

add_tests(ManagerKilled, steps())
# Every step of every kind, with a step that fails and a process that dies, is in fuzz/test-steps.c. Of the whole product: one
# of each kind, and where the mover works.
ONE_OF_EACH = [("suspend", "copied"), ("suspend", "checkpointed"), ("resume", "restored"), ("migrate", "checkpointed"),
               ("migrate", "copied")]
add_tests(StepFails, ONE_OF_EACH)
add_tests(UndoKilled, [(kind, step) for kind, names in UNDOABLE.items() for step in names])
add_tests(GuestKilled, ONE_OF_EACH)
add_tests(MoverKilled, steps())
add_tests(KeeperKilled, steps())
add_tests(MoverDies, MOVER_STEPS)
add_tests(MoverFails, MOVER_STEPS)

if __name__ == "__main__":
    unittest.main(verbosity=2)
