#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The quota: out of memory at exactly the limit, and exact numbers whatever happened before."""
import case
import stage
from wait import until

MIB = 1 << 20


class Quota(case.Case):
    def alloc(self, vgpu="small", threads=8, rounds=400, largest="8M", seed=1):
        return self.host.run(vgpu, "guest-alloc", threads, rounds, largest, seed)

    @staticmethod
    def held(guest):
        return int(guest.wait_line("held ").split()[1])

    @staticmethod
    def refused(guest):
        return int(guest.wait_line("refused ").split()[1])

    def used(self, vgpu="small"):
        return self.host.get(vgpu)["frame_buffer_used"]

    def test_the_number_is_exact_after_thousands_of_allocations_from_many_threads(self):
        self.host.create("small", "64M")
        guest = self.alloc()
        guest.wait_ready()
        self.assertGreater(self.refused(guest), 0, "the quota was never met")
        vgpu = self.host.get("small")
        self.assertEqual(vgpu["frame_buffer_used"], self.held(guest))
        self.assertEqual(vgpu["processes"][0]["memory_used"], self.held(guest))
        self.assertEqual(self.host.device(0)["memory_used"], self.held(guest))
        self.assertLessEqual(self.held(guest), 64 * MIB)
        self.assertEqual(guest.end_input(), 0)
        self.assertEqual(guest.lines[-1], "freed")
        self.host.wait_for("small", lambda v: v["frame_buffer_used"] == 0, "to be empty")

    def test_several_processes_share_one_quota(self):
        self.host.create("small", "64M")
        guests = [self.alloc(threads=4, rounds=200, seed=seed) for seed in (1, 2, 3)]
        while not all("ready" in guest.lines for guest in guests):
            self.assertLessEqual(self.used(), 64 * MIB)
        self.assertGreater(sum(map(self.refused, guests)), 0, "the quota was never met")
        self.assertEqual(self.used(), sum(map(self.held, guests)))

        guests[0].kill()
        left = sum(map(self.held, guests[1:]))
        self.host.wait_for("small", lambda v: v["frame_buffer_used"] == left,
                           f"to use the {left} bytes of those who live")
        for guest in guests[1:]:
            self.assertEqual(guest.end_input(), 0)
        self.host.wait_for("small", lambda v: v["frame_buffer_used"] == 0, "to be empty")

    def test_out_of_memory_is_an_answer_and_the_program_goes_on(self):
        self.host.create("small", "16M")
        guest = self.alloc(threads=1, rounds=300, largest="16M")
        guest.wait_ready()
        self.assertGreater(self.refused(guest), 0)
        self.assertEqual(guest.end_input(), 0)

    def test_a_program_that_needs_more_than_its_quota_is_told_so_by_the_driver(self):
        self.host.create("small", "16M")
        guest = self.host.run("small", "guest-train", "--size", "32M")
        self.assertEqual(guest.join(), 1)
        self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", "".join(guest.errors))

    def test_a_script_that_sets_its_own_preload_takes_no_program_out_of_its_vgpu(self):
        """As launch scripts, ncu and AddressSanitizer do: the driver is found in the gate's folder then."""
        self.host.create("small", "16M")
        for preload in ("", "libm.so.6"):
            done = self.host.vgpu("run", "--vgpu", "small", "--", "env", f"LD_PRELOAD={preload}",
                                  stage.GUESTS / "guest-train", "--size", "32M", "--steps", "1", code=1)
            self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", done.errors)

    def test_the_quota_is_all_the_memory_that_a_program_sees(self):
        self.host.create("small", "48M")
        guest = self.host.run("small", "guest-memory")
        self.assertEqual(guest.join(), 0, guest.context())
        [line] = guest.lines
        free, total = map(int, line.split())
        self.assertEqual(total, 48 * MIB)
        self.assertLessEqual(free, total)

    def test_ten_thousand_small_allocations_share_a_few_blocks(self):
        self.host.create("small", "32M")
        guest = self.host.train("small", "--size", "4M", "--small", "10000", "--pause", "50")
        self.assertLessEqual(self.used(), 4 * MIB + 10000 * 512 + 2 * MIB)
        self.host.vgpu("suspend", "small")
        self.host.vgpu("resume", "small", "--device", "1")
        guest.wait_steps()
        self.assertLessEqual(self.used(), 4 * MIB + 10000 * 512 + 2 * MIB)
        guest.finish()

    def test_numbers_stay_exact_across_suspend_resume_and_migrate(self):
        self.host.create("small", "64M")
        guest = self.alloc(threads=2, rounds=200, largest="4M")
        guest.wait_ready()
        held = self.held(guest)
        self.host.vgpu("suspend", "small")
        self.host.vgpu("resume", "small", "--device", "1")
        self.assertEqual(self.used(), held)
        self.host.vgpu("migrate", "small", "--device", "0")
        self.assertEqual(self.used(), held)
        self.assertEqual(guest.end_input(), 0)
        self.host.wait_state("small", "idle")

    def test_a_quota_changes_while_a_program_runs(self):
        self.host.create("small", "64M")
        guest = self.host.train("small", "--size", "40M")
        used = self.used()
        told = self.host.vgpu("resize", "small", "--fb", f"{used - 1}", code=7)
        self.assertIn("hold", told.errors)
        self.assertEqual(self.host.get("small")["frame_buffer"], 64 * MIB)
        self.assertEqual(self.host.vgpu("resize", "small", "--fb", f"{used}").output.split(":")[0], "resized small")
        self.assertEqual(self.host.device(0)["memory_promised"], used)
        more = self.host.run("small", "guest-train", "--size", "2M")
        self.assertEqual(more.join(), 1)
        self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", "".join(more.errors))

        self.host.vgpu("resize", "small", "--fb", "128M")
        seen = self.host.run("small", "guest-memory")
        self.assertEqual(seen.join(), 0, seen.context())
        self.assertEqual(int(seen.lines[0].split()[1]), 128 * MIB)
        self.host.restart()
        self.assertEqual(self.host.get("small")["frame_buffer"], 128 * MIB)
        self.host.train("small", "--size", "60M").kill()
        guest.wait_steps()
        guest.finish()

    def test_a_quota_is_no_more_than_the_device_has_left(self):
        self.host.create("small", "64M", device=1)
        self.host.create("large", "896M", device=1)
        self.assertIn("left to promise", self.host.vgpu("resize", "small", "--fb", "129M", code=1).errors)
        self.host.vgpu("resize", "small", "--fb", "2G", code=1)
        self.host.vgpu("resize", "small", "--fb", "1K", code=2)
        self.host.vgpu("resize", "small", code=2)
        self.host.vgpu("resize", "nobody", "--fb", "64M", code=3)
        self.host.vgpu("resize", "large", "--fb", "512M")
        self.host.vgpu("resize", "small", "--fb", "512M")

    def test_a_suspended_vgpu_needs_the_room_when_it_comes_back(self):
        self.host.create("small", "64M")
        guest = self.host.train("small", "--size", "40M")
        self.host.vgpu("suspend", "small")
        self.host.vgpu("resize", "small", "--fb", "32M", code=7)
        self.host.create("large", "960M", device=0)
        self.host.vgpu("resize", "small", "--fb", "128M")
        self.host.vgpu("resume", "small", "--device", "0", code=1)
        self.host.vgpu("resize", "small", "--fb", "64M")
        self.host.vgpu("resume", "small", "--device", "0")
        guest.wait_steps()
        guest.finish()

    def test_programs_that_allocate_never_hold_more_than_a_quota_that_was_lowered(self):
        self.host.create("small", "64M")
        guest = self.alloc(threads=8, rounds=4000, largest="4M")
        while "ready" not in guest.lines:
            self.assertTrue(guest.is_alive(), guest.context())
            for size in (48, 40, 32, 24):
                told = self.host.vgpu("resize", "small", "--fb", f"{size}M", code=None)
                self.assertIn(told.code, (0, 7), told)
                if told.code == 0:
                    self.assertLessEqual(self.used(), size * MIB)
            self.host.vgpu("resize", "small", "--fb", "64M")
        self.assertEqual(self.used(), self.held(guest))
        self.host.vgpu("resize", "small", "--fb", self.held(guest))
        self.assertEqual(guest.end_input(), 0)

    def test_a_crowded_device_keeps_its_promises(self):
        for i in range(4):
            self.host.create(f"part-{i}", "192M", device=1)
        self.host.create("contexts", "256M", device=1)  # which are promised to nobody
        self.host.vgpu("create", "more", "--fb", "2M", "--device", "1", code=1)
        guests = [self.alloc(f"part-{i}", threads=2, rounds=100, largest="32M", seed=i)
                  for i in range(4)]
        for guest in guests:
            guest.wait_ready()
        for i, guest in enumerate(guests):
            self.assertEqual(self.used(f"part-{i}"), self.held(guest))
            self.assertEqual(guest.end_input(), 0)
        until(lambda: self.host.device(1)["memory_used"] == 0, "the device to be empty")


class LeftOut(case.Case):
    """vgpud --leave-out: a device for programs without a vGPU."""

    HOST = {"options": ["--leave-out", "0"]}

    def refused(self, *command):
        self.assertIn("device 0 is for programs without a vGPU", self.host.vgpu(*command, code=1).errors)

    def test_it_is_no_place_for_a_vgpu(self):
        for _ in range(2):
            self.host.vgpu("create", "--fb", "512M")
        self.assertEqual({vgpu["device"] for vgpu in self.host.call("ListVgpus")["vgpus"]}, {1})
        self.assertIn("device 1 has 0 B left", self.host.vgpu("create", "--fb", "64M", code=1).errors)
        self.refused("create", "here", "--fb", "64M", "--device", "0")

    def test_no_vgpu_comes_there(self):
        self.host.create("here", "64M", device=1)
        guest = self.host.train("here")
        self.refused("migrate", "here", "--device", "0")
        self.host.vgpu("suspend", "here")
        self.refused("resume", "here", "--device", "0")
        self.host.vgpu("resume", "here")
        guest.wait_steps()

    def test_it_is_shown(self):
        self.assertIn("left out", self.host.vgpu("devices").output.splitlines()[1])
        self.assertEqual([device["left_out"] for device in self.host.call("ListDevices")["devices"]], [True, False])


if __name__ == "__main__":
    case.main()
