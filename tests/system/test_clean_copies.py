#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The second suspend copies only what has changed, and never the wrong thing."""
import contextlib
import unittest

from harness import MIB, Host
from wait import until
from wire import Refused

SIZE, PIECE = 40 * MIB, 8 * MIB


class CleanCopies(unittest.TestCase):
    options = []

    def setUp(self):
        self.host = self.enterContext(Host(options=self.options))
        self.host.start()
        self.host.call("CreateVgpu", name="train", frame_buffer=256 * MIB, device="0")

    def guest(self, *arguments):
        return self.host.guest("train", "--size", str(SIZE), "--piece", str(PIECE), *arguments)

    def suspend(self, **parameters):
        return self.host.call("SuspendVgpu", name="train", **parameters)

    def swap_at_rest(self, **parameters):
        """Off and on again; the report of the suspend."""
        report = self.suspend(**parameters)
        self.host.call("ResumeVgpu", name="train")
        return report

    def swap(self, guest, **parameters):
        report = self.swap_at_rest(**parameters)
        guest.wait_steps()
        return report

    def pool(self):
        return self.host.call("GetInfo")["pool"]

    def test_what_has_not_changed_is_not_copied_again(self):
        guest = self.guest("--still", "3")
        first = self.swap(guest)
        self.assertEqual(first["bytes_unchanged"], 0)
        for parameters in ({}, {"keep_context": True}, {"verify": True}, {}):
            with self.subTest(**parameters):
                report = self.swap(guest, **parameters)
                self.assertEqual(report["bytes"], first["bytes"])
                self.assertEqual(report["bytes_unchanged"], 3 * PIECE)
        guest.finish()
        until(lambda: self.pool()["spare"] == 0, "the clean copy to be given back")

    def test_a_guest_that_rests_leaves_for_nothing(self):
        guest = self.guest("--on-demand")
        report = self.swap_at_rest()
        self.assertEqual(report["bytes_unchanged"], 0)
        report = self.swap_at_rest()
        self.assertEqual(report["bytes_unchanged"], report["bytes"])
        guest.step()
        report = self.swap_at_rest()
        self.assertLess(report["bytes_unchanged"], report["bytes"])
        guest.finish()

    def test_a_move_leaves_the_clean_copy_of_use(self):
        guest = self.guest("--still", "3")
        self.swap(guest)
        self.host.call("MigrateVgpu", name="train", device="1")
        guest.wait_steps()
        report = self.swap(guest)
        self.assertEqual(report["bytes_unchanged"], 3 * PIECE)
        guest.finish()

    def test_it_costs_its_owner_nothing_and_nobody_room(self):
        guest = self.guest("--still", "3")
        self.swap(guest)
        until(lambda: self.pool()["used"] == 0, "the resume to have given its slabs back")
        self.assertGreaterEqual(self.pool()["spare"], SIZE)
        guest.finish()

    def test_each_process_of_a_vgpu_has_its_own(self):
        guests = [self.guest("--still", str(n), "--seed", str(1000 * n)) for n in (1, 2, 3)]
        self.swap_at_rest()
        for guest in guests:
            guest.wait_steps()  # what changes has changed
        report = self.swap_at_rest()
        self.assertEqual(report["processes"], 3)
        self.assertEqual(report["bytes_unchanged"], 6 * PIECE)
        for guest in guests:
            guest.wait_steps()
            guest.finish()

    def test_a_failed_suspend_is_followed_by_a_right_one(self):
        points = ["suspend.closed", "suspend.kept", "suspend.copied", "suspend.moved"]
        guest = self.guest("--still", "3")
        self.swap(guest)
        for point in points:
            with self.subTest(point=point):
                (self.host.faults / f"{point}=fail").write_text("")
                with self.assertRaises(Refused):
                    self.suspend()
                guest.wait_steps()
                self.swap(guest)
                report = self.swap(guest)
                self.assertEqual(report["bytes_unchanged"], 3 * PIECE)
        guest.finish()

    def test_without_hashes_everything_is_copied_and_the_log_says_so(self):
        guest = self.guest("--still", "3")
        self.swap(guest)
        for point in ("mover.hashing", "mover.hashed"):
            with self.subTest(point=point):
                (self.host.faults / f"{point}=fail").write_text("")
                report = self.swap(guest)
                self.assertEqual(report["bytes_unchanged"], 0)
                self.assertIn("the device cannot tell what has not changed",
                              (self.host.root / "log").read_text())
                report = self.swap(guest)  # of the last one nothing is known
                self.assertEqual(report["bytes_unchanged"], 0)
                report = self.swap(guest)
                self.assertEqual(report["bytes_unchanged"], 3 * PIECE)
        guest.finish()

    def test_a_mover_that_dies_of_it_is_followed_by_one_that_copies_everything(self):
        guest = self.guest("--still", "3")
        self.swap(guest)
        for point in ("mover.hashing", "mover.hashed", "mover.job-copied"):
            with self.subTest(point=point):
                (self.host.faults / f"{point}=kill").write_text("")
                report = self.swap(guest)
                self.assertEqual(report["bytes_unchanged"], 0)
                self.swap(guest)
                self.assertEqual(self.swap(guest)["bytes_unchanged"], 3 * PIECE)
        guest.finish()

    def test_the_next_vgpud_knows_of_none(self):
        guest = self.guest("--still", "3")
        self.swap(guest)
        self.host.kill_manager()
        self.host.start()
        guest.wait_steps()
        self.assertEqual(self.pool()["spare"], 0)
        report = self.swap(guest)
        self.assertEqual(report["bytes_unchanged"], 0)
        self.assertEqual(self.swap(guest)["bytes_unchanged"], 3 * PIECE)
        guest.finish()

    def test_vgpud_may_die_in_the_middle_of_a_second_suspend(self):
        guest = self.guest("--still", "3")
        self.swap(guest)
        for point in ("suspend.reserved", "suspend.kept", "suspend.copied", "suspend.moved", "suspend.recorded",
                      "resume.recorded", "resume.dropped"):
            with self.subTest(point=point):
                self.swap(guest)
                (self.host.faults / f"{point}=kill").write_text("")
                with contextlib.suppress(ConnectionError):
                    self.swap_at_rest()
                self.host.wait_killed()
                self.host.start()
                until(lambda: self.host.vgpu("train")["state"] in ("running", "suspended"), "the undoing")
                if self.host.vgpu("train")["state"] == "suspended":
                    self.host.call("ResumeVgpu", name="train")
                guest.wait_steps()
        guest.finish()


class Verifying(CleanCopies):
    """vgpud compares every byte that is not copied."""

    options = ["--clean-copies", "verify"]


class Off(unittest.TestCase):
    def test_nothing_is_kept(self):
        host = self.enterContext(Host(options=["--clean-copies", "off"]))
        host.start()
        host.call("CreateVgpu", name="train", frame_buffer=256 * MIB, device="0")
        guest = host.guest("train", "--size", "16M", "--piece", "8M", "--still", "1")
        for _ in range(2):
            report = host.call("SuspendVgpu", name="train")
            self.assertEqual(report["bytes_unchanged"], 0)
            host.call("ResumeVgpu", name="train")
            guest.wait_steps()
            self.assertEqual(host.call("GetInfo")["pool"]["spare"], 0)
        guest.finish()


if __name__ == "__main__":
    unittest.main()
