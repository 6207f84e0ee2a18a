#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Death and failure at every step of every operation, with guests and a driver that do as told.

After each: no byte of a guest is lost, the vGPU is in a state that the next commands work with, and
nothing is left behind.
"""
import contextlib
import os
import signal
import unittest

from harness import MIB, CallError, Host, wait_for

SIZES = [(4 * MIB, 2 * MIB, 4096), (6 * MIB,)]

STEPS = {
    "suspend": ["reserved", "closed", "exported", "kept", "released", "copied", "checkpointed",
                "moved", "recorded", "dropped"],
    "resume": ["checked", "restored", "created", "copied", "recorded", "opened", "dropped"],
    "migrate": ["checked", "closed", "exported", "kept", "released", "checkpointed", "restored",
                "created", "copied", "recorded", "opened", "dropped"],
}
METHODS = {"suspend": ("SuspendVgpu", {}), "resume": ("ResumeVgpu", {"device": "1"}),
           "migrate": ("MigrateVgpu", {"device": "1"})}

# After the point of no return the operation has happened, before it it has not.
FINAL = {"suspend": "recorded", "resume": "recorded", "migrate": "recorded"}


class Scene:
    """A vGPU with two guests, ready for @kind."""

    def __init__(self, test, kind, fault=""):
        self.host = test.enterContext(Host(fake=True))
        self.kind, self.test = kind, test
        self.host.start(fault)
        self.host.call("CreateVgpu", name="train", frame_buffer=256 * MIB, device="0")
        self.guests = [self.host.fake_guest("train", *sizes) for sizes in SIZES]
        if kind == "resume":
            self.host.call("SuspendVgpu", name="train")

    def run(self):
        method, parameters = METHODS[self.kind]
        return self.host.call(method, name="train", **parameters)

    def run_until(self, step):
        method, parameters = METHODS[self.kind]
        client = self.host.client()
        client.send(method, name="train", **parameters)
        self.host.wait_paused(f"{self.kind}.{step}")
        return client

    def go_on(self, step):
        self.host.go_on(f"{self.kind}.{step}")

    def state_before(self):
        return ("suspended", 0) if self.kind == "resume" else ("running", 0)

    def state_after(self):
        return ("suspended", 0) if self.kind == "suspend" else ("running", 1)

    def check_state(self, has_happened):
        vgpu = self.host.vgpu("train")
        wanted = self.state_after() if has_happened else self.state_before()
        self.test.assertEqual((vgpu["state"], vgpu["device"]), wanted)

    def check_usable(self):
        """The next commands work, nobody lost a byte, nothing is left behind."""
        host, alive = self.host, [g for g in self.guests if g.process.poll() is None]
        if host.vgpu("train")["state"] == "suspended":
            host.call("ResumeVgpu", name="train")
        host.call("SuspendVgpu", name="train")
        host.call("ResumeVgpu", name="train", device="0")
        host.call("MigrateVgpu", name="train", device="1")
        for guest in alive:
            self.test.assertTrue(guest.is_intact())
            self.test.assertEqual(guest.lines.count("DAMAGED"), 0, guest.lines.read())
        self.check_clean(len(alive))

    def check_clean(self, n_guests):
        host = self.host
        vgpu = host.vgpu("train")
        self.test.assertEqual(len(vgpu["processes"]), n_guests)
        self.test.assertEqual(vgpu["frame_buffer_used"],
                              sum(sum(guest_sizes) for guest, guest_sizes in
                                  zip(self.guests, SIZES) if guest.process.poll() is None))
        self.test.assertEqual(host.call("GetInfo")["pool"]["used"], 0)
        for guest in self.guests:
            guest.kill()
        self.test.assertEqual(wait_for("the vGPU to be idle", lambda: host.vgpu("train")
                                       if host.vgpu("train")["state"] == "idle" else None)
                              ["frame_buffer_used"], 0)
        host.call("RemoveVgpu", name="train")
        self.test.assertEqual([d["memory_promised"] for d in host.call("ListDevices")["devices"]],
                              [0, 0])
        wait_for("the movers to go", lambda: not host.movers())
        host.kill_manager()
        self.test.assertEqual(host.labels(), [])


def steps(*kinds):
    return [(kind, step) for kind in kinds or STEPS for step in STEPS[kind]]


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
        self.assertEqual(scene.host.held_memory(), 4)
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
            with self.assertRaises(CallError):
                scene.run()
        scene.check_state(has_happened)
        scene.check_usable()


class UndoKilled(unittest.TestCase):
    """The manager fails at one step, and dies while it undoes another."""

    def check(self, kind, step):
        last = UNDOABLE[kind][-1]
        scene = Scene(self, kind, f"{kind}.{last}=fail,{kind}.undo-{step}=kill")
        with contextlib.suppress(ConnectionError, OSError, CallError):
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
        client.result(client.receive())
        wait_for("the dead process to be forgotten",
                 lambda: len(scene.host.vgpu("train")["processes"]) == 1)
        scene.check_state(True)
        scene.check_usable()


class MoverKilled(unittest.TestCase):
    def check(self, kind, step):
        scene = Scene(self, kind, f"{kind}.{step}=pause")
        client = scene.run_until(step)
        kill_all(scene.host.movers())
        scene.go_on(step)
        client.result(client.receive())
        scene.check_state(True)
        scene.check_usable()


class KeeperKilled(unittest.TestCase):
    """And the manager dies as well, later on: what the keeper held must be in the new one."""

    def check(self, kind, step):
        scene = Scene(self, kind, f"{kind}.{step}=pause")
        client = scene.run_until(step)
        kill_all(scene.host.keepers())
        scene.go_on(step)
        client.result(client.receive())
        wait_for("a new keeper", lambda: scene.host.keepers())
        scene.host.kill_manager()
        scene.host.start()
        scene.check_state(True)
        scene.check_usable()


def kill_all(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def add_tests(case, table):
    for kind, step in table:
        def run(self, kind=kind, step=step):
            self.check(kind, step)

        setattr(case, f"test_{kind}_{step}", run)


UNDOABLE = {"suspend": ["reserved", "closed", "exported", "kept", "released", "moved"],
            "resume": ["checked", "restored", "created", "copied"],
            "migrate": ["checked", "closed", "exported", "kept", "released", "restored", "created",
                        "copied"]}

add_tests(ManagerKilled, steps())
add_tests(StepFails, steps())
add_tests(UndoKilled, [(kind, step) for kind, names in UNDOABLE.items() for step in names])
add_tests(GuestKilled, steps())
add_tests(MoverKilled, steps())
add_tests(KeeperKilled, steps())

if __name__ == "__main__":
    unittest.main(verbosity=2)
