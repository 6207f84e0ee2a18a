#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Suspend, resume and migrate with guests and a driver that do as they are told."""
import signal
import unittest

from fake_gate import SENT
from harness import MIB, Host, expect_error
from scene import kill_all
from wait import PATIENCE, until
from wire import Refused


CONTEXT_MIB = 72  # assumed of a process of which nothing is known: src/manager/model/footprint.c


class Operations(unittest.TestCase):
    def setUp(self):
        self.host = self.enterContext(Host(fake=True))
        self.host.start()
        self.host.call("CreateVgpu", name="train", frame_buffer=256 * MIB, device="0")

    def test_suspend_resume_migrate(self):
        host = self.host
        one = host.fake_guest("train", 4 * MIB, 2 * MIB, 4096)
        two = host.fake_guest("train", 6 * MIB)
        report = host.call("SuspendVgpu", name="train")
        self.assertEqual(report["bytes"], 12 * MIB + 4096)
        self.assertEqual(report["vgpu"]["state"], "suspended")
        self.assertEqual(host.call("GetInfo")["pool"]["used"], 12 * MIB + 4096)
        expect_error("WrongState", host.call, "PrepareRun", name="train", usable=True)

        report = host.call("ResumeVgpu", name="train", device="1")
        self.assertEqual(report["to_device"], 1)
        for guest in (one, two):
            guest.wait_for("opened")
            self.assertTrue(guest.is_intact())
        self.assertEqual(host.vgpu("train")["device"], 1)
        until(lambda: host.call("GetInfo")["pool"]["used"] == 0, "the pool to be empty")

        report = host.call("MigrateVgpu", name="train", device="0")
        self.assertEqual(report["from_device"], 1)
        for guest in (one, two):
            guest.wait_for("opened", 2)
            self.assertTrue(guest.is_intact())
        self.assertEqual(host.vgpu("train")["state"], "running")

    def test_a_gate_that_lost_its_opening_is_opened_once_the_operation_is_over(self):
        """It connects again in the middle, where nobody but the operation could look at it."""
        host = self.host
        one, two = (host.fake_guest("train", 4 * MIB) for _ in range(2))
        for n, (method, parameters) in enumerate([("ResumeVgpu", {}), ("MigrateVgpu", {"device": "1"})], 1):
            if method == "ResumeVgpu":
                host.call("SuspendVgpu", name="train")
            one.plan("lose OPEN")
            host.call(method, name="train", **parameters)
            for guest in (one, two):
                guest.wait_for("opened", n)
                self.assertTrue(guest.is_intact())
            self.assertEqual(host.vgpu("train")["state"], "running")

    def test_the_last_word_of_a_gate_that_leaves_something_unread_is_heard(self):
        """For that, the kernel tells of an error before what the gate has sent."""
        host = self.host
        one, two = (host.fake_guest("train", 4 * MIB) for _ in range(2))
        host.call("SuspendVgpu", name="train")
        one.plan("leave CREATE")
        client = host.client()
        client.send("ResumeVgpu", name="train")
        one.wait_for("leaves")
        host.call("SetVgpuIdle", name="train", idle_after=3600)  # which both gates are told
        client.answer()
        two.wait_for("opened")
        self.assertIn("it is ending: cuFake failed with 4", (host.root / "log").read_text())
        host.call("SuspendVgpu", name="train")
        host.call("ResumeVgpu", name="train")

    def test_a_process_that_ends_slowly_is_not_taken_for_one_that_hangs(self):
        """On a busy machine seconds go by between the end of its connection and its own."""
        host = self.host
        one, two = (host.fake_guest("train", 4 * MIB) for _ in range(2))
        host.call("SuspendVgpu", name="train")
        one.plan("end CREATE")
        host.call("ResumeVgpu", name="train")
        two.wait_for("opened")
        host.call("SuspendVgpu", name="train")
        host.call("ResumeVgpu", name="train")
        two.wait_for("opened", 2)
        self.assertTrue(two.is_intact())
        self.assertNotIn("left a process behind", (host.root / "log").read_text())

    def test_a_gate_that_has_not_read_for_long_gets_all_that_counts(self):
        """Its socket is full when it is asked to close, and when it is told what it shall report."""
        host = self.host
        guest = host.fake_guest("train", 4 * MIB)
        guest.signal(signal.SIGSTOP)
        for after in [3600, None] * 1000:  # each time its gate is told
            host.call("SetVgpuIdle", name="train", **({"idle_after": after} if after else {}))
        self.assertLess(guest.count("watch"), 1)
        client = host.client()
        client.send("SuspendVgpu", name="train", timeout=PATIENCE)
        host.wait_state("train", "suspending")
        guest.signal(signal.SIGCONT)
        self.assertEqual(client.answer()["vgpu"]["state"], "suspended")
        host.call("ResumeVgpu", name="train")
        guest.wait_for("opened")
        self.assertTrue(guest.is_intact())
        until(lambda: [line for line in guest.lines if line.startswith("watch")][-1] == "watch 0 0",
              "the gate to be told that nobody wants to know", context=guest.context)
        self.assertLess(guest.count("watch"), 2000)  # so its socket was full

    def test_vgpud_reads_all_that_a_gate_has_sent_before_it_looked(self):
        """More messages than it takes at a time, and then the gate says nothing more."""
        host = self.host
        guest = host.fake_guest("train", *[4096] * (40 * SENT))
        guest.plan("stop EXPORT")
        client = host.client()
        client.send("SuspendVgpu", name="train", timeout=PATIENCE)
        guest.wait_for("stops")
        host.manager.send_signal(signal.SIGSTOP)
        guest.signal(signal.SIGCONT)
        guest.wait_for("exported")
        host.manager.send_signal(signal.SIGCONT)
        self.assertEqual(client.answer()["vgpu"]["state"], "suspended")
        host.call("ResumeVgpu", name="train")
        guest.wait_for("opened")
        self.assertTrue(guest.is_intact())

    def test_an_undo_whose_connection_breaks_goes_on_with_the_next_one(self):
        host = self.host
        one, two = (host.fake_guest("train", 4 * MIB) for _ in range(2))
        for n, message in enumerate(("OPEN", "MAP"), 1):
            one.plan(f"lose {message}")
            (host.driver / "fail-JOB_RUN").write_text("999")
            expect_error("DriverFailed", host.call, "SuspendVgpu", name="train")
            for guest in (one, two):
                guest.wait_for("opened", n)
                self.assertTrue(guest.is_intact())
            self.assertEqual(host.vgpu("train")["state"], "running")

    def test_a_device_without_room_is_found_out_before_anything_is_touched(self):
        """Nobody was there before, so a mover has to go there first."""
        host = self.host
        guest = host.fake_guest("train", 6 * MIB)
        (host.driver / "free").write_text("1000")
        expect_error("NoRoom", host.call, "MigrateVgpu", name="train", device="1")
        self.assertEqual(guest.count("closed"), 0)
        self.assertTrue(guest.is_intact())
        self.assertEqual(host.vgpu("train")["device"], 0)
        (host.driver / "free").unlink()
        self.assertEqual(host.call("MigrateVgpu", name="train", device="1")["to_device"], 1)
        guest.wait_for("opened")
        self.assertTrue(guest.is_intact())

    def test_who_grows_while_it_moves_has_the_room_that_was_for_staging(self):
        """And where there is none without staging either, it stays as it was."""
        host = self.host
        guest = host.fake_guest("train", 48 * MIB)
        (host.driver / "free").write_text(str((CONTEXT_MIB + 140) * MIB))  # 64 of it are left to others, 28 are for staging
        guest.plan(f"grow CLOSE {40 * MIB}")
        report = host.call("MigrateVgpu", name="train", device="1")
        self.assertEqual(report["bytes"], 88 * MIB)
        guest.wait_for("opened")
        self.assertTrue(guest.is_intact())
        guest.plan(f"grow CLOSE {60 * MIB}")
        expect_error("NoRoom", host.call, "MigrateVgpu", name="train", device="0")
        guest.wait_for("opened", 2)
        self.assertTrue(guest.is_intact())
        self.assertEqual(host.vgpu("train")["device"], 1)

    def test_without_a_context_that_could_copy_nobody_is_stopped(self):
        host = self.host
        guest = host.fake_guest("train", 6 * MIB)
        (host.driver / "fail-CONTEXT").write_text("2")
        expect_error("NoRoom", host.call, "SuspendVgpu", name="train")
        self.assertEqual(guest.count("closed"), 0)
        self.assertEqual(host.vgpu("train")["state"], "running")
        host.call("SuspendVgpu", name="train")

    def test_a_mover_that_still_zeroes_a_slab_is_waited_for(self):
        """Else it would zero what the slab is used for by then."""
        host = self.host
        guest = host.fake_guest("train", 6 * MIB)
        host.call("SuspendVgpu", name="train")
        (host.driver / "pause-SLAB_ZERO").touch()
        movers = set(host.movers())
        host.call("ResumeVgpu", name="train", device="1")  # device 0's mover shall zero the slabs
        client = host.client()
        client.send("SuspendVgpu", name="train")
        # It waits where it takes the slab, or at its end, if it took the slab before the mover came to it.
        until(lambda: host.vgpu("train")["state"] != "running", "the suspend to begin")
        (host.driver / "pause-SLAB_ZERO").unlink()
        self.assertEqual(client.answer()["vgpu"]["state"], "suspended")
        until(lambda: not movers <= set(host.movers()), "device 0's mover to go")
        host.call("ResumeVgpu", name="train")
        guest.wait_for("opened", 2)
        self.assertTrue(guest.is_intact())

    def test_a_guest_that_is_not_undone_is_not_forgotten_when_another_one_is_tried_again(self):
        """One loses its memory's way back for good, the other one only a mover."""
        host = self.host
        host.kill_manager()
        host.start("suspend.undo-moved=pause")
        one, two = (host.fake_guest("train", 6 * MIB) for _ in range(2))
        (host.driver / "fail-JOB_RUN").write_text("999")
        client = host.client()
        client.send("SuspendVgpu", name="train")
        host.wait_paused("suspend.undo-moved")
        (host.driver / "pause-JOB_RUN").touch()
        for guest in (one, two):
            guest.plan("refuse MAP 3")
        one.plan("refuse CREATE 999")
        two.plan("stop CREATE")  # its job would keep this mover, which does one thing at a time, from the other
        host.go_on("suspend.undo-moved")
        one.wait_for("refused-CREATE")
        two.wait_for("stops")
        two.signal(signal.SIGCONT)
        two.wait_for("created")
        kill_all(host.movers())
        (host.driver / "pause-JOB_RUN").unlink()
        with self.assertRaises(Refused) as caught:
            client.answer()
        self.assertEqual(caught.exception.name, "DriverFailed")  # why it was undone at all
        two.wait_for("opened")
        self.assertTrue(two.is_intact())
        self.assertEqual(one.count("opened"), 0)
        self.assertEqual(host.vgpu("train")["state"], "failed")
        one.kill()  # and the other one is all that is left: it goes on
        host.wait_state("train", "running")

    def test_a_resize_does_not_believe_the_page_of_who_is_away(self):
        """Its programs can write there that they hold nothing; what is in the pool is known."""
        host = self.host
        guest = host.fake_guest("train", 40 * MIB)
        host.call("SuspendVgpu", name="train")
        guest.tell("deny")
        guest.wait_for("denied")
        expect_error("InUse", host.call, "ResizeVgpu", name="train", frame_buffer=32 * MIB)
        self.assertEqual(host.vgpu("train")["frame_buffer"], 256 * MIB)
        host.call("ResizeVgpu", name="train", frame_buffer=40 * MIB)
        host.call("ResumeVgpu", name="train")
        guest.wait_for("opened")
        self.assertTrue(guest.is_intact())


if __name__ == "__main__":
    unittest.main(verbosity=2)
