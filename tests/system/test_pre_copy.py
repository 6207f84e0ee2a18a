#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A suspend that copies while the programs run: what is copied while they stand still is what they changed last."""
import os
import signal
import time
import unittest

from harness import MIB, Host
from wait import until
from wire import Refused

SIZE, PIECE = 40 * MIB, 8 * MIB
STILL = 3 * PIECE  # of it never changes
ROUND = "copied a round while it ran"
SLICE = "mover.live-piece"
# After the last copy while it runs, and before its gate closes.
LAST = "suspend.ahead"


class PreCopy(unittest.TestCase):
    options = []

    def setUp(self):
        self.host = self.enterContext(Host(options=self.options))
        self.host.start()
        self.create("train")

    def create(self, name, size=256 * MIB, **parameters):
        self.host.call("CreateVgpu", name=name, frame_buffer=size, **{"device": "0"} | parameters)

    def guest(self, *arguments, name="train"):
        return self.host.guest(name, "--on-demand", "--size", str(SIZE), "--piece", str(PIECE), "--still", "3", *arguments)

    def log(self):
        return (self.host.root / "log").read_text(errors="replace")

    def arm(self, point, what="pause", count=""):
        (self.host.faults / f"{point}={what}").write_text(count)

    def suspend(self, name="train", **parameters):
        return self.host.call("SuspendVgpu", name=name, pre_copy=True, **parameters)

    def send(self, **parameters):
        client = self.host.client()
        client.send("SuspendVgpu", name="train", pre_copy=True, **parameters)
        return client

    def go_on(self, *guests):
        """All bytes are right: the guests compare them."""
        self.host.call("ResumeVgpu", name="train")
        for guest in guests:
            guest.step()
            guest.finish()
        self.assertNotIn("was taken for unchanged", self.log())


class Ways(PreCopy):
    def test_nothing_is_left_to_copy(self):
        guest = self.guest()
        report = self.suspend()
        self.assertEqual((report["bytes"], report["bytes_unchanged"]), (SIZE, SIZE))
        self.assertEqual(report["pre_copy_bytes"], SIZE)
        self.assertGreater(report["pre_copy_seconds"], 0)
        self.go_on(guest)

    def test_without_it_all_is_copied(self):
        guest = self.guest()
        report = self.host.call("SuspendVgpu", name="train")
        self.assertEqual((report["bytes_unchanged"], report["pre_copy_bytes"]), (0, 0))
        self.go_on(guest)

    def test_what_it_changes_last_is_copied_at_the_end(self):
        for parameters in ({}, {"keep_context": True}, {"verify": True}):
            with self.subTest(**parameters):
                guest = self.guest()
                self.arm(LAST)
                client = self.send(**parameters)
                self.host.wait_paused(LAST)
                guest.step()  # it runs
                self.host.go_on(LAST)
                report = client.answer()
                self.assertEqual((report["bytes"], report["bytes_unchanged"]), (SIZE, STILL))
                self.go_on(guest)

    def test_it_runs_while_it_is_copied(self):
        """In the middle of a copy it changes what has been copied and what has not."""
        for point in (SLICE, "mover.refreshing"):
            with self.subTest(point=point):
                guest = self.guest()
                self.arm(point)
                client = self.send()
                self.host.wait_paused(point)
                guest.step()
                self.host.go_on(point)
                self.assertEqual(client.answer()["bytes_unchanged"], SIZE)
                self.go_on(guest)

    def test_what_it_changes_meanwhile_another_round_copies(self):
        guest = self.guest()
        self.arm("suspend.round")
        client = self.send()
        self.host.wait_paused("suspend.round")
        guest.step()
        self.host.go_on("suspend.round")
        report = client.answer()
        self.assertEqual(report["bytes_unchanged"], SIZE)
        self.assertEqual(report["pre_copy_bytes"], SIZE + (SIZE - STILL))
        self.go_on(guest)

    def test_it_ends_where_always_as_much_changes(self):
        """After two rounds that copied the same, a third would, too."""
        guest = self.guest("--still", "0")
        client = None
        for _ in range(2):
            self.arm("suspend.round")
            client = client or self.send()
            self.host.wait_paused("suspend.round")
            guest.step()
            self.host.go_on("suspend.round")
        report = client.answer()
        self.assertEqual((report["bytes_unchanged"], report["pre_copy_bytes"]), (0, 2 * SIZE))
        self.go_on(guest)

    def test_the_second_time_only_what_has_changed(self):
        guest = self.guest()
        self.suspend()
        self.host.call("ResumeVgpu", name="train")
        guest.step()
        report = self.suspend()
        self.assertEqual((report["bytes_unchanged"], report["pre_copy_bytes"]), (SIZE, SIZE - STILL))
        self.go_on(guest)

    def test_blocks_that_others_hold_are_not_written_to(self):
        guests = [self.guest("--alike")]
        self.create("other")
        guests.append(self.guest("--alike", name="other"))
        self.host.call("SuspendVgpu", name="other")
        self.suspend()
        self.host.call("ResumeVgpu", name="train")
        guests[0].step()
        self.assertEqual(self.suspend()["bytes_unchanged"], SIZE)
        self.host.call("ResumeVgpu", name="other")
        guests[1].step()
        guests[1].finish()
        self.go_on(guests[0])

    def test_several_processes(self):
        guests = [self.guest(), self.guest("--seed", "7")]
        report = self.suspend()
        self.assertEqual((report["bytes"], report["bytes_unchanged"]), (2 * SIZE, 2 * SIZE))
        self.go_on(*guests)


class Memory(PreCopy):
    """The program frees memory and wants some while it is copied."""
    options = ["--simulate", "1xH200:256M", "--pool-limit", "512M"]

    def create(self, name, size=160 * MIB, **parameters):
        super().create(name, size, **parameters)

    def test_who_wants_it_gets_it(self):
        """The device has no room for both: what was freed is let go, and the allocation waits for that."""
        guest = self.host.start_guest("train", "guest-hold", "144M")
        guest.hold("device")
        self.arm(SLICE)
        client = self.send()
        self.host.wait_paused(SLICE)
        guest.hold("nothing")
        guest.write("attempt")
        self.host.go_on(SLICE)
        self.assertEqual(client.answer()["vgpu"]["state"], "suspended")
        self.host.call("ResumeVgpu", name="train")
        until(lambda: guest.lines[-1] == "attempt", "the answer", context=guest.context)
        self.assertIn("got", guest.lines)

    def test_another_vgpu_gets_what_it_was_promised(self):
        """Who frees memory and wants as much again has it twice meanwhile: the others wait, too."""
        guest = self.host.start_guest("train", "guest-hold", "100M")
        guest.hold("device")
        self.create("other", 64 * MIB)
        other = self.host.start_guest("other", "guest-hold", "60M")
        other.hold("device")
        other.hold("nothing")
        self.arm(SLICE)
        client = self.send()
        self.host.wait_paused(SLICE)
        guest.hold("nothing")
        guest.hold("device")
        other.write("attempt")
        time.sleep(.1)  # so that it is refused now, if it is
        self.host.go_on(SLICE)
        self.assertEqual(client.answer()["vgpu"]["state"], "suspended")
        until(lambda: other.lines[-1] == "attempt", "the answer", context=other.context)
        self.assertIn("got", other.lines)


class Deaths(PreCopy):
    def test_its_mover_dies(self):
        guest = self.guest()
        for point in (SLICE, "mover.hashed", "mover.job-imported"):
            with self.subTest(point=point):
                self.arm(point, "kill")
                self.assertEqual(self.suspend()["bytes_unchanged"], 0)
                self.host.call("ResumeVgpu", name="train")
                guest.step()
        guest.finish()

    def test_it_fails(self):
        """It is a suspend as any other then."""
        guest = self.guest()
        for point in (SLICE, "mover.hashing", "mover.refreshing"):
            with self.subTest(point=point):
                self.arm(point, "fail")
                report = self.suspend()
                self.assertEqual((report["bytes"], report["vgpu"]["state"]), (SIZE, "suspended"))
                self.assertIn("memory is not copied while the process runs", self.log())
                self.host.call("ResumeVgpu", name="train")
                guest.step()
        guest.finish()

    def test_its_process_dies(self):
        guest = self.guest()
        self.arm(SLICE)
        client = self.send()
        self.host.wait_paused(SLICE)
        guest.kill()
        self.host.go_on(SLICE)
        with self.assertRaises(Refused):
            client.answer()
        self.host.wait_state("train", "idle")
        until(lambda: self.host.call("GetInfo")["pool"]["used"] == 0, "the room in the pool to be given back")
        until(lambda: self.host.call("ListDevices")["devices"][0]["memory_used"] == 0, "its memory to be free")
        self.host.call("RemoveVgpu", name="train")

    def test_vgpud_dies(self):
        guest = self.guest()
        for point in (SLICE, "suspend.round", LAST):
            with self.subTest(point=point):
                self.arm(point)
                self.send()
                self.host.wait_paused(point)
                self.host.kill_manager()
                self.host.go_on(point)
                guest.step()
                self.host.start()
                self.host.wait_state("train", "running")
                self.assertEqual(self.suspend()["bytes_unchanged"], SIZE)
                self.host.call("ResumeVgpu", name="train")
                guest.step()
        guest.finish()

    def test_its_mover_hangs_and_is_killed(self):
        guest = self.guest()
        self.arm(SLICE)
        client = self.send()
        self.host.wait_paused(SLICE)
        mover = int(until((self.host.faults / SLICE).read_text, "the mover to say who it is"))
        guest.step()
        os.kill(mover, signal.SIGKILL)
        self.assertEqual(client.answer()["bytes_unchanged"], 0)
        self.go_on(guest)


class Off(PreCopy):
    options = ["--clean-copies", "off"]

    def test_without_hashes_it_is_a_suspend(self):
        guest = self.guest()
        report = self.suspend()
        self.assertEqual((report["bytes"], report["bytes_unchanged"], report["pre_copy_bytes"]), (SIZE, 0, 0))
        self.go_on(guest)


if __name__ == "__main__":
    unittest.main()
