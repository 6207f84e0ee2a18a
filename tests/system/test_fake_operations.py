#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Suspend, resume and migrate with guests and a driver that do as they are told."""
import unittest

from harness import MIB, Host, expect_error
from wait import until


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
        expect_error("WrongState", host.call, "PrepareRun", name="train")

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

    def test_a_device_without_room_is_found_out_when_a_mover_gets_there(self):
        """Nobody was there before, so the guest has stopped already: it goes on where it was."""
        host = self.host
        guest = host.fake_guest("train", 6 * MIB)
        (host.driver / "free").write_text("1000")
        expect_error("NoRoom", host.call, "MigrateVgpu", name="train", device="1")
        guest.wait_for("opened")
        self.assertTrue(guest.is_intact())
        self.assertEqual(host.vgpu("train")["device"], 0)
        (host.driver / "free").unlink()
        self.assertEqual(host.call("MigrateVgpu", name="train", device="1")["to_device"], 1)
        guest.wait_for("opened", 2)
        self.assertTrue(guest.is_intact())

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
        guest.wait_for("released", 2)
        (host.driver / "pause-SLAB_ZERO").unlink()
        self.assertEqual(client.answer()["vgpu"]["state"], "suspended")
        until(lambda: not movers <= set(host.movers()), "device 0's mover to go")
        host.call("ResumeVgpu", name="train")
        guest.wait_for("opened", 2)
        self.assertTrue(guest.is_intact())


if __name__ == "__main__":
    unittest.main(verbosity=2)
