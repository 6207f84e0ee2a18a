#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A process that becomes another program by exec() is a new guest: what the former program had is gone, and a vGPU that
is off its device stays off."""
import case
from wait import until


class Exec(case.Case):
    HOST = {"devices": "1xH200:512M"}

    def begin(self):
        guest = self.host.run(self.host.create("train"), "guest-exec", "8M")
        guest.wait_line("ready 0")
        return guest

    def look(self, guest, n=1):
        guest.write("look")
        until(lambda: guest.lines.count("good") == n, "its memory to be good", context=guest.context)

    def wait_started(self):
        """As before a program has come to CUDA: it is there, and has nothing."""
        self.host.wait_for("train", lambda vgpu: vgpu["state"] == "running" and vgpu["frame_buffer_used"] == 0,
                           "to have a program without memory")

    def test_the_next_program_of_a_running_vgpu_leaves_and_comes_back(self):
        guest = self.begin()
        for n in range(1, 4):
            guest.write("again")
            guest.wait_line(f"ready {n}")
            self.host.vgpu("suspend", "train")
            self.host.vgpu("resume", "train")
            self.look(guest, n)
        self.assertEqual(guest.end_input(), 0, guest.context())

    def check_stays_off(self, *options):
        guest = self.begin()
        self.host.vgpu("suspend", "train", *options)
        state = self.host.get("train")["state"]
        guest.write("again")
        guest.wait_line("begins 1")
        self.host.wait_for("train", lambda vgpu: vgpu["frame_buffer_used"] == 0, "to have nothing")
        self.assertEqual(self.host.get("train")["state"], state)
        self.assertNotIn("ready 1", guest.lines)
        self.host.vgpu("resume", "train")
        guest.wait_line("ready 1")
        self.look(guest)
        self.assertEqual(guest.end_input(), 0, guest.context())

    def test_the_next_program_of_a_suspended_vgpu_waits(self):
        self.check_stays_off()

    def test_the_next_program_of_an_evicted_vgpu_waits(self):
        self.check_stays_off("--keep-context")

    def test_a_program_without_cuda_has_nothing_of_its_vgpu(self):
        guest = self.begin()
        guest.write("sleep")
        guest.wait_line("sleeps")
        self.wait_started()
        other = self.host.train("train", "--size", "4M")
        self.host.vgpu("suspend", "train")
        self.host.vgpu("resume", "train")
        other.finish()
        guest.end_input()

    def test_a_program_without_cuda_does_not_keep_a_vgpu_that_is_resumed(self):
        guest = self.begin()
        self.host.vgpu("suspend", "train")
        guest.write("sleep")
        guest.wait_line("sleeps")
        self.host.vgpu("resume", "train")
        self.wait_started()
        guest.end_input()

    def test_a_program_that_begins_while_no_manager_is_there_waits_too(self):
        guest = self.begin()
        self.host.vgpu("suspend", "train")
        self.host.kill()
        guest.write("again")
        guest.wait_line("begins 1")
        self.host.start()
        self.assertEqual(self.host.get("train")["state"], "suspended")
        self.host.vgpu("resume", "train")
        guest.wait_line("ready 1")
        self.assertEqual(guest.end_input(), 0, guest.context())


if __name__ == "__main__":
    case.main()
