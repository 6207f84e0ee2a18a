#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The store fails or the manager dies, at any point: nobody's memory becomes anybody else's.

With TEST_POINTS=all in the environment, all points are played, once and twice restarted; else some.
"""
import contextlib
import os
import sqlite3
import sys
import unittest

from harness import MIB, Host, crowd_out, expect_error
from recovery import Crowd, Fault, change_stamps, count_writes, play
from scene import STEPS, UNDOABLE, kill_all
from wait import until
from wire import Refused

DISK = 1 << 20  # bytes

IS_ALL = os.environ.get("TEST_POINTS") == "all"


class Restarts(unittest.TestCase):
    def test_a_gate_of_a_suspended_process_follows_each_manager(self):
        """It must not call the driver, which would not answer: a refused resume asks it something."""
        crowd = Crowd(self)
        crowd.host.call("SuspendVgpu", name="one")
        crowd.restart(times=3)
        crowd.arm("resume.checked", "fail")
        with self.assertRaises(Refused):
            crowd.host.call("ResumeVgpu", name="one")
        self.assertEqual(crowd.states()["one"], "suspended")
        crowd.host.call("ResumeVgpu", name="one")
        crowd.check()

    def test_memory_of_the_movers_of_the_manager_before_is_waited_for(self):
        """They may be in a call of the driver when it dies. A program outside of all vGPUs stands for them here."""
        host = self.enterContext(Host(options=("--simulate", "1xH200:256M"))).start()
        host.call("CreateVgpu", name="train", frame_buffer=128 * MIB)
        guest = host.guest("train", "--size", "64M", "--on-demand")
        host.call("SuspendVgpu", name="train")
        former = crowd_out(host, "train", "40M")
        host.kill_manager()
        host.start()
        client = host.client()
        client.send("ResumeVgpu", name="train")
        until(lambda: "waiting for room vgpu=train" in (host.root / "log").read_text(errors="replace"), "the resume to wait")
        former.end_input()
        client.answer()
        guest.step()


class DiskFull(unittest.TestCase):
    """The disk is full while an operation is undone."""

    def test_a_suspend_that_was_undone_leaves_no_claim_on_what_another_vgpu_has_in_the_pool(self):
        for keep_context in (False, True):
            with self.subTest(keep_context=keep_context):
                self.suspend_in_vain(keep_context)

    def suspend_in_vain(self, keep_context):
        crowd = Crowd(self, pool="16M")  # what the second gets is what the first had
        crowd.arm("suspend.moved", "pause")
        client = crowd.host.client()
        client.send("SuspendVgpu", name="one", keep_context=keep_context)
        crowd.host.wait_paused("suspend.moved")
        crowd.fill_disk()
        crowd.host.go_on("suspend.moved")
        with self.assertRaises(Refused):
            client.answer()
        crowd.check()
        crowd.disarm()
        crowd.host.call("SuspendVgpu", name="two")
        crowd.restart()
        self.assertEqual(crowd.states(), {"one": "running", "two": "suspended", "three": "running"})
        crowd.host.call("MigrateVgpu", name="one", device="1")
        crowd.check("one", "three")
        crowd.host.call("ResumeVgpu", name="two")
        crowd.check()


    def test_what_cannot_be_undone_without_the_database_is_undone_once_it_can(self):
        """The way back from another device must be noted down before the driver is asked."""
        crowd = Crowd(self)
        crowd.arm("migrate.restored", "pause")
        client = crowd.host.client()
        client.send("MigrateVgpu", name="one", device="1")
        crowd.host.wait_paused("migrate.restored")
        crowd.fill_disk()
        crowd.host.go_on("migrate.restored")
        with self.assertRaises(Refused) as refused:
            client.answer()
        self.assertIn("room", refused.exception.parameters["hint"])
        self.assertEqual(crowd.states(), {"one": "failed", "two": "running", "three": "running"})
        crowd.check("two", "three")
        crowd.disarm()
        crowd.host.wait_state("one", "running")
        self.assertEqual(crowd.host.vgpu("one")["device"], 0)
        crowd.check()
        crowd.host.call("MigrateVgpu", name="one", device="1")
        crowd.check()

    def test_a_manager_starts_and_guests_go_on(self):
        crowd = Crowd(self)
        crowd.host.call("SuspendVgpu", name="two")
        crowd.fill_disk()
        crowd.restart()
        crowd.check("one", "three")
        error = expect_error("Failed", crowd.host.call, "SuspendVgpu", name="one")
        self.assertIn("state database", error.parameters["message"])
        crowd.check("one", "three")
        crowd.disarm()
        crowd.host.call("ResumeVgpu", name="two")
        crowd.check()

    def test_a_mover_whose_row_cannot_be_written_does_its_work(self):
        crowd = Crowd(self)
        kill_all(crowd.host.movers())
        crowd.arm("store.mover", "fail", "1+")
        crowd.host.call("SuspendVgpu", name="one")
        crowd.host.call("ResumeVgpu", name="one", device="1")
        crowd.check()

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to mount a small disk")
    def test_a_disk_that_is_really_full(self):
        """The store holds room on it: what is suspended comes back at the first try, also by another manager."""
        crowd = Crowd(self, disk=DISK)
        crowd.host.call("SuspendVgpu", name="two")
        filler = crowd.host.state / "filler"
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        for method in ("SuspendVgpu", "ResumeVgpu") * 20:
            crowd.host.call(method, name="one")
        crowd.restart()
        crowd.host.call("ResumeVgpu", name="two")
        crowd.check()
        filler.unlink()
        crowd.host.call("SuspendVgpu", name="three")
        crowd.restart(times=2)
        crowd.bring_home()
        crowd.check()
        crowd.check_nothing_left()
        crowd.finish()


class WrongDatabase(unittest.TestCase):
    """It says that the memory of one vGPU is where that of another is; the slabs know better."""

    def setUp(self):
        self.crowd = Crowd(self)
        for name in ("one", "two"):
            self.crowd.host.call("SuspendVgpu", name=name)

    def test_a_process_whose_extents_are_those_of_another_gets_nothing(self):
        crowd = self.crowd
        crowd.host.kill_manager()
        with contextlib.closing(sqlite3.connect(crowd.host.state / "state.db")) as database:
            (one,), (two,) = (database.execute("SELECT id FROM instance WHERE name = ?", (name,))
                              .fetchone() for name in ("one", "two"))
            database.execute("DELETE FROM extent WHERE instance = ?", (two,))
            database.execute("INSERT INTO extent SELECT ?, ?, slab, offset, length, generation "
                             "FROM extent WHERE instance = ? AND pid = ?",
                             (two, crowd.guests["two"][0].pid, one, crowd.guests["one"][0].pid))
            database.commit()
        crowd.start()
        expect_error("GuestLost", crowd.host.call, "ResumeVgpu", name="two")
        self.assertEqual(crowd.states(),
                         {"one": "suspended", "two": "suspended", "three": "running"})
        crowd.host.call("ResumeVgpu", name="one")
        crowd.check("one", "three")

    def test_the_other_processes_of_the_vgpu_are_resumed_without_the_one_that_is_lost(self):
        crowd = self.crowd
        crowd.host.kill_manager()
        lost, other = crowd.guests["one"]
        with contextlib.closing(sqlite3.connect(crowd.host.state / "state.db")) as database:
            database.execute("UPDATE extent SET generation = 7 WHERE pid = ?", (lost.pid,))
            database.commit()
        crowd.start()
        error = expect_error("GuestLost", crowd.host.call, "ResumeVgpu", name="one")
        self.assertIn(f"process {lost.pid} ", error.parameters["message"])
        lost.kill()
        until(lambda: len(crowd.host.vgpu("one")["processes"]) == 1, "the lost one to be gone")
        crowd.host.call("ResumeVgpu", name="one")
        other.wait_steps()
        crowd.host.call("ResumeVgpu", name="two")
        crowd.check("two", "three")

    def test_an_operation_that_nobody_knows_fails_its_vgpu_and_not_the_manager(self):
        crowd = self.crowd
        crowd.host.kill_manager()
        with contextlib.closing(sqlite3.connect(crowd.host.state / "state.db")) as database:
            database.execute("INSERT INTO operation SELECT id, 'teleport', 'beamed', device, device,"
                             " 0 FROM instance WHERE name = 'one'")
            database.commit()
        crowd.start()
        self.assertEqual(crowd.states(), {"one": "failed", "two": "suspended", "three": "running"})
        for guest in crowd.guests["one"]:
            guest.kill()
        crowd.host.wait_state("one", "idle")
        crowd.host.call("ResumeVgpu", name="two")
        crowd.check("two", "three")

    def restored_to(self, device, complete="fetched"):
        """As vgpud leaves it that dies in the middle of a restore on that device; former ones did so after `checked`."""
        with contextlib.closing(sqlite3.connect(self.crowd.host.state / "state.db")) as database:
            (one,) = database.execute("SELECT id FROM instance WHERE name = 'one'").fetchone()
            database.execute("UPDATE process SET context = 3, context_target = ? "
                             "WHERE instance = ?", (device, one))
            database.execute("INSERT OR REPLACE INTO operation SELECT id, 'resume', ?, "
                             "device, ?, 0 FROM instance WHERE id = ?", (complete, device, one))
            database.commit()

    def test_a_restore_to_a_device_that_is_gone_waits_for_that_device(self):
        crowd = self.crowd
        device = crowd.host.call("ListDevices")["devices"][1]["uuid"]
        crowd.host.kill_manager()
        self.restored_to("GPU-00000000-0000-4000-8000-000000000000")
        crowd.start()
        self.assertEqual(crowd.states(), {"one": "failed", "two": "suspended", "three": "running"})
        crowd.host.call("ResumeVgpu", name="two")
        crowd.check("two", "three")
        for complete in ("fetched", "checked"):
            crowd.host.kill_manager()
            self.restored_to(device, complete)
            crowd.start()
            self.assertEqual(crowd.states()["one"], "suspended")
        crowd.host.call("ResumeVgpu", name="one")
        crowd.check()

    def test_a_slab_that_has_other_memory_is_not_copied_to_a_device(self):
        crowd = self.crowd
        owner = crowd.host.vgpu("two")["uuid"]
        change_stamps(crowd.host.manager.pid, owner, 1)
        error = expect_error("GuestLost", crowd.host.call, "ResumeVgpu", name="two")
        self.assertIn(f"process {crowd.guests['two'][0].pid} ", error.parameters["message"])
        self.assertIn("vGPU two", error.parameters["message"])
        expect_error("GuestLost", crowd.host.call, "OpenMemory", name="two")  # nor shown to anybody
        self.assertEqual(crowd.states()["two"], "suspended")
        crowd.host.call("ResumeVgpu", name="one")
        crowd.check("one", "three")
        change_stamps(crowd.host.manager.pid, owner, -1)
        crowd.host.call("ResumeVgpu", name="two")
        crowd.check()


def play_all(test, kind, faults, keep):
    """Each in turn with the same guests; at the end all of their words are compared."""
    if not IS_ALL:
        faults = faults[len(kind) % keep::keep]
    crowd = Crowd(test)
    for fault in faults:
        print(f"{kind}: {fault}", file=sys.stderr, flush=True)
        play(crowd, kind, fault)
    crowd.finish()


class Steps(unittest.TestCase):
    """The manager dies or fails after each step."""

    def check(self, kind):
        play_all(self, kind, [Fault(f"{kind}.{step}", action, restarts=restarts)
                              for step in STEPS[kind] for action in ("kill", "fail")
                              for restarts in (1, 2)], keep=11)


class Undoing(unittest.TestCase):
    """It dies while it undoes each step: with room on the disk, with none, or as the next manager."""

    def check(self, kind):
        last, faults = UNDOABLE[kind][-1], []
        for step in UNDOABLE[kind]:
            for restarts in (1, 2):
                undo = f"{kind}.undo-{step}"
                faults += [Fault(undo, "kill", restarts=restarts, also=[f"{kind}.{last}"]),
                           Fault(undo, "kill", restarts=restarts, full_from=last),
                           Fault(f"{kind}.{last}", "kill", restarts=restarts, next_point=undo)]
        play_all(self, kind, faults, keep=11)


class Writes(unittest.TestCase):
    """It dies at each write; or this one fails, or this and all after it: the disk is full."""

    def check(self, kind):
        crowd = Crowd(self)
        n = count_writes(crowd, kind)
        crowd.finish()
        faults = []
        for write in range(1, n + 1):
            restarts = 1 + write % 2
            faults += [Fault("store.write", "kill", str(write), restarts),
                       Fault("store.write", "fail", str(write), restarts),
                       Fault("store.write", "fail", f"{write}+", restarts),
                       Fault("store.write", "fail", f"{write}+", restarts, is_crash=True)]
        play_all(self, kind, faults, keep=23)


for each in STEPS:
    for case in (Steps, Undoing, Writes):
        setattr(case, f"test_{each}", lambda self, kind=each: self.check(kind))


if __name__ == "__main__":
    unittest.main(verbosity=2)
