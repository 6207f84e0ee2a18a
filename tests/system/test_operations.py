#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Suspend, resume and migrate: real guests, gates and movers on the simulated GPUs."""
import os
import resource
import signal
import unittest

from harness import MIB, Host, crowd_out, expect_error
from wait import until


class Operations(unittest.TestCase):
    def setUp(self):
        self.host = self.enterContext(Host())
        self.host.start()
        self.host.call("CreateVgpu", name="train", frame_buffer=256 * MIB, device="0")

    def used(self):
        return [device["memory_used"] for device in self.host.call("ListDevices")["devices"]]

    def test_a_guest_is_suspended_resumed_and_moved(self):
        host = self.host
        guest = host.guest("train", "--size", "40M", "--piece", "6M", "--small", "1000")
        used = host.vgpu("train")["frame_buffer_used"]
        self.assertGreaterEqual(used, 40 * MIB)
        client = host.client()
        report, progress = client.call_more("SuspendVgpu", name="train")
        self.assertGreaterEqual(report["bytes"], 40 * MIB)
        self.assertEqual(report["vgpu"]["state"], "suspended")
        self.assertTrue(progress)
        self.assertEqual(self.used(), [0, 0])

        report = host.call("ResumeVgpu", name="train", device="1")
        self.assertEqual((report["from_device"], report["to_device"]), (0, 1))
        guest.wait_steps()
        self.assertEqual(self.used(), [0, used])

        self.assertGreater(report["stopped_seconds"], report["seconds"])  # since the suspend
        report = host.call("MigrateVgpu", name="train", device="0")
        self.assertEqual((report["from_device"], report["to_device"]), (1, 0))
        self.assertGreater(report["stopped_seconds"], 0)
        self.assertLess(report["stopped_seconds"], report["seconds"])
        guest.wait_steps()
        self.assertEqual(self.used(), [used, 0])
        guest.finish()
        host.wait_state("train", "idle")
        self.assertEqual(self.used(), [0, 0])
        until(lambda: host.call("GetInfo")["pool"]["used"] == 0, "the pool to be empty")

    def test_the_report_says_how_long_the_pool_was_waited_for(self):
        guest = self.host.guest("train", "--size", "16M")
        self.host.call("SuspendVgpu", name="train")
        report = self.host.call("ResumeVgpu", name="train")
        self.assertEqual(report["pool_seconds"], 0)  # pinned for this device by the suspend
        self.host.call("SuspendVgpu", name="train")
        report = self.host.call("ResumeVgpu", name="train", device="1")
        # And not for that one: what the copy did not overtake counts, if there was any.
        self.assertGreaterEqual(report["pool_seconds"], 0)
        self.assertLess(report["pool_seconds"], report["seconds"])
        guest.wait_steps()
        guest.finish()

    @unittest.skipIf(os.geteuid() != 0, "needs root to make vGPUs of two owners")
    def test_one_without_room_does_not_keep_other_owners_waiting(self):
        """It waits as long as its owner likes, and was the only one that was looked at."""
        for name, size, owner in (("large", 128, 0), ("small", 8, 65534)):
            self.host.call("CreateVgpu", name=name, frame_buffer=2 * size * MIB, device="0", owner=owner)
            self.host.guest(name, "--size", f"{size}M")
            self.host.call("SuspendVgpu", name=name)
        self.host.guest("train", "--size", "8M")
        (self.host.faults / "mover.copy-half=pause").write_text("")
        suspend, resume = self.host.client(), self.host.client()
        suspend.send("SuspendVgpu", name="train", timeout=600)  # at work on the device: it may make room
        self.host.wait_paused("mover.copy-half")
        crowd_out(self.host, "large", "120M")  # a context takes 64M
        resume.send("ResumeVgpu", name="large", timeout=600)
        until(lambda: "waiting for room vgpu=large" in (self.host.root / "log").read_text(errors="replace"), "it to wait")
        self.assertEqual(self.host.call("ResumeVgpu", name="small", timeout=600)["vgpu"]["state"], "running")
        self.assertEqual(self.host.vgpu("large")["state"], "resuming")
        self.host.go_on("mover.copy-half")
        suspend.answer()
        expect_error("NoRoom", resume.answer)

    def test_a_vgpu_is_removed_while_its_last_operation_tidies_up(self):
        guest = self.host.guest("train", "--size", "4M")
        self.host.call("SuspendVgpu", name="train")
        (self.host.faults / "resume.opened=pause").write_text("")
        resume = self.host.client()
        resume.send("ResumeVgpu", name="train")
        self.host.wait_paused("resume.opened")  # the step with which it is answered
        movers = self.host.movers()
        for pid in movers:
            os.kill(pid, signal.SIGSTOP)  # so it does not come to the end of tidying up
        self.host.go_on("resume.opened")
        resume.answer()
        guest.process.kill()
        guest.process.wait()
        removal = self.host.client()
        removal.send("RemoveVgpu", name="train")
        self.host.call("GetInfo")  # the manager has come past it
        for pid in movers:
            os.kill(pid, signal.SIGCONT)
        self.assertEqual(removal.answer()["vgpu"]["name"], "train")
        self.assertEqual(self.host.call("ListVgpus")["vgpus"], [])

    def test_a_mover_has_room_for_the_descriptors_of_large_guests(self):
        self.host.guest("train", "--size", "16M")
        self.host.call("SuspendVgpu", name="train")
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self.assertTrue(self.host.movers())
        for pid in self.host.movers():
            self.assertGreaterEqual(self.host.room_for_descriptors(pid), min(limit, 65536))

    def test_several_processes_and_threads(self):
        guests = [self.host.guest("train", "--size", "16M", "--threads", "3") for _ in range(3)]
        for device in ("1", "0"):
            self.host.call("SuspendVgpu", name="train")
            self.host.call("ResumeVgpu", name="train", device=device)
            self.host.call("MigrateVgpu", name="train", device="1" if device == "0" else "0")
        for guest in guests:
            guest.wait_steps()
            guest.finish()

    def test_the_context_may_stay(self):
        guest = self.host.guest("train", "--size", "16M")
        report = self.host.call("SuspendVgpu", name="train", keep_context=True)
        self.assertEqual(report["vgpu"]["state"], "evicted")
        self.assertEqual(report["context_seconds"], 0)
        self.host.call("ResumeVgpu", name="train")
        guest.wait_steps()
        self.host.call("SuspendVgpu", name="train", keep_context=True)
        self.host.call("ResumeVgpu", name="train", device="1")
        guest.wait_steps()
        guest.finish()

    def test_a_suspended_vgpu_moves(self):
        guest = self.host.guest("train", "--size", "16M")
        self.host.call("SuspendVgpu", name="train")
        report = self.host.call("MigrateVgpu", name="train", device="1")
        self.assertEqual(report["vgpu"]["state"], "running")
        guest.wait_steps()
        guest.finish()

    def test_what_is_suspended_makes_room(self):
        self.host.guest("train", "--size", "16M")
        expect_error("NoRoom", self.host.call, "CreateVgpu", name="big", frame_buffer=1024 * MIB,
                     device="0")
        self.host.call("SuspendVgpu", name="train")
        self.host.call("CreateVgpu", name="big", frame_buffer=1024 * MIB, device="0")
        expect_error("NoRoom", self.host.call, "ResumeVgpu", name="train")
        self.assertEqual(self.host.vgpu("train")["state"], "suspended")
        self.host.call("RemoveVgpu", name="big")
        self.host.call("ResumeVgpu", name="train")

    def test_managed_memory_is_named_and_the_guest_goes_on(self):
        guest = self.host.guest("train", "--size", "16M", "--managed")
        error = expect_error("NotMovable", self.host.call, "SuspendVgpu", name="train")
        self.assertIn("managed", error.parameters["message"])
        guest.wait_steps()
        expect_error("NotMovable", self.host.call, "MigrateVgpu", name="train", device="1")
        guest.wait_steps()
        self.host.call("SuspendVgpu", name="train", keep_context=True)
        self.host.call("ResumeVgpu", name="train")
        guest.wait_steps()
        guest.finish()

    def test_a_pool_that_is_too_small_is_said_before_anything_happens(self):
        self.host.stop_manager()
        self.host.start(options=["--pool-limit", "16M"])
        guest = self.host.guest("train", "--size", "40M")
        error = expect_error("PoolTooSmall", self.host.call, "SuspendVgpu", name="train")
        self.assertIn("--pool-limit", error.parameters["hint"])
        guest.wait_steps()
        self.host.call("MigrateVgpu", name="train", device="1")
        guest.wait_steps()
        guest.finish()

    def test_a_stopped_guest_is_a_time_out_and_goes_on_later(self):
        guest = self.host.guest("train", "--size", "16M", "--pause", "500")
        other = self.host.guest("train", "--size", "16M")
        guest.wait_steps()
        os.kill(guest.pid, signal.SIGSTOP)  # in its pause: the simulated engine is not in its hands
        expect_error("TimedOut", self.host.call, "SuspendVgpu", name="train", timeout=0.2)
        self.assertEqual(self.host.vgpu("train")["demand_reason"], "")  # by itself it would not leave
        other.wait_steps()
        os.kill(guest.pid, signal.SIGCONT)
        guest.wait_steps()
        self.host.call("SuspendVgpu", name="train")
        self.host.call("ResumeVgpu", name="train")
        guest.wait_steps()

    def test_one_operation_at_a_time(self):
        guest = self.host.guest("train", "--size", "16M")
        self.host.stop_manager()
        self.host.start("suspend.closed=pause")
        client, other = self.host.client(), self.host.client()
        client.send("SuspendVgpu", name="train")
        self.host.wait_paused("suspend.closed")
        other.send("ResumeVgpu", name="train")
        self.host.go_on("suspend.closed")
        self.assertEqual(client.answer()["vgpu"]["state"], "suspended")
        other.receive()
        if self.host.vgpu("train")["state"] == "suspended":
            self.host.call("ResumeVgpu", name="train")
        guest.wait_steps()

    def test_a_client_that_hangs_up_does_not_end_what_it_asked_for(self):
        guest = self.host.guest("train", "--size", "16M")
        client = self.host.client()
        client.send("SuspendVgpu", more=True, name="train")
        client.close()
        self.host.wait_state("train", "suspended")
        self.host.call("ResumeVgpu", name="train")
        guest.wait_steps()

    def test_the_quota_goes_along(self):
        guest = self.host.guest("train", "--size", "200M", "--piece", "10M")
        self.host.call("MigrateVgpu", name="train", device="1")
        vgpu = self.host.vgpu("train")
        self.assertLessEqual(vgpu["frame_buffer_used"], vgpu["frame_buffer"])
        self.assertGreaterEqual(vgpu["frame_buffer_used"], 200 * MIB)
        guest.wait_steps()
        guest.kill()
        self.host.wait_state("train", "idle")
        self.assertEqual(self.used(), [0, 0])

    def test_movers_go_when_they_are_not_needed(self):
        guest = self.host.guest("train", "--size", "16M")
        until(lambda: self.host.movers(), "a mover")
        guest.finish()
        until(lambda: not self.host.movers(), "no mover")

    def test_a_mover_stands_by_where_a_vgpu_could_move_to(self):
        guest = self.host.guest("train", "--size", "16M")
        until(lambda: len(self.host.movers()) == 2, "a mover for each device")
        first = set(self.host.movers())
        self.host.call("MigrateVgpu", name="train", device="1")
        # The one that came has slabs and a context now, the one of the old device has neither.
        until(lambda: len(self.host.movers()) == 2 and not first <= set(self.host.movers()),
              "a new one on the old device")
        guest.finish()

    def test_who_asked_does_not_wait_until_all_is_tidied_up(self):
        host = self.host
        guest = host.guest("train", "--size", "16M")
        host.fail_mover(1, "mover.job-ending", "pause")
        report = host.call("MigrateVgpu", name="train", device="1")
        self.assertEqual(report["vgpu"]["state"], "running")
        guest.wait_steps()
        host.wait_paused("mover.job-ending")

        next_one, one_too_many = host.client(), host.client()
        next_one.send("SuspendVgpu", name="train")
        host.call("GetInfo")  # it has been read by now
        one_too_many.send("ResumeVgpu", name="train")
        refused = one_too_many.receive()
        self.assertEqual(refused["error"], "org.openvgpu.Busy")
        self.assertIn("not quite over", refused["parameters"]["message"])
        error = expect_error("Busy", host.call, "RemoveVgpu", name="train")
        self.assertIn("1 process", error.parameters["message"], "what its caller can do something about")
        self.assertEqual(host.vgpu("train")["state"], "running")
        host.go_on("mover.job-ending")
        self.assertEqual(next_one.answer()["vgpu"]["state"], "suspended")
        host.call("ResumeVgpu", name="train")
        guest.wait_steps()
        guest.finish()

    def migrate_but_tidy_up_later(self):
        """'train' is on device 1, and its former memory is still there until the fault point goes on."""
        guest = self.host.guest("train", "--size", "16M")
        self.host.fail_mover(1, "mover.job-ending", "pause")
        self.host.call("MigrateVgpu", name="train", device="1")
        self.host.wait_paused("mover.job-ending")
        return guest

    def test_a_rename_waits_until_all_is_tidied_up(self):
        host = self.host
        guest = self.migrate_but_tidy_up_later()
        rename = host.client()
        rename.send("RenameVgpu", name="train", to="other")
        host.call("GetInfo")  # it has been read by now
        host.go_on("mover.job-ending")
        self.assertEqual(rename.answer()["vgpu"]["name"], "other")
        guest.wait_steps()
        guest.finish()

    def test_memory_that_is_about_to_be_free_is_waited_for(self):
        host = self.host
        host.call("CreateVgpu", name="other", frame_buffer=64 * MIB, device="1")
        other = host.guest("other", "--size", "16M")
        guest = self.migrate_but_tidy_up_later()
        client = host.client()
        client.send("MigrateVgpu", name="other", device="0")
        host.call("GetInfo")
        self.assertEqual(host.vgpu("other")["state"], "migrating")
        host.go_on("mover.job-ending")
        self.assertEqual(client.answer()["to_device"], 0)
        for each in (guest, other):
            each.wait_steps()
            each.finish()


class WithoutPeerAccess(unittest.TestCase):
    """Devices that cannot use each other's memory: the driver copies by way of the host."""

    def test_a_guest_moves_all_the_same(self):
        host = self.enterContext(Host())
        host.variables["OPENVGPU_SIM_PEER"] = "0"
        host.start()
        host.call("CreateVgpu", name="train", frame_buffer=256 * MIB, device="0")
        guest = host.guest("train", "--size", "40M", "--piece", "6M", "--small", "100")
        for device in ("1", "0"):
            host.call("MigrateVgpu", name="train", device=device)
            guest.wait_steps()
        host.fail_mover(1, "mover.job-copied", "fail")
        expect_error("DriverFailed", host.call, "MigrateVgpu", name="train", device="1")
        self.assertEqual(host.vgpu("train")["device"], 0)
        guest.wait_steps()
        host.call("MigrateVgpu", name="train", device="1")
        host.call("SuspendVgpu", name="train")
        host.call("ResumeVgpu", name="train", device="0")
        guest.wait_steps()
        guest.finish()
        host.wait_state("train", "idle")
        until(lambda: [d["memory_used"] for d in host.call("ListDevices")["devices"]] == [0, 0],
              "the devices to be empty")


if __name__ == "__main__":
    unittest.main(verbosity=2)
