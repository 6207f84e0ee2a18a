#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Slabs that go from one to the next: a pool of one slab, so that they must."""
import select

import case
from wait import until


class OneSlab(case.Case):
    HOST = {"pool": "8M", "slab": "8M", "options": ["--clean-copies", "off"]}  # else it stays its owner's

    def test_a_mover_that_still_zeroes_the_slab_does_not_zero_what_comes_after(self):
        host = self.host
        guest = host.train(host.create("train"), "--on-demand", "--size", "4M")
        host.arm("mover.slab-zeroing", "pause")
        host.arm("mover.leaving", "pause")
        host.call("SuspendVgpu", name="train")
        host.call("ResumeVgpu", name="train")
        host.wait_paused("mover.slab-zeroing")
        # Nobody needs the mover of device 0 any more. If it were let go now, it would work on, and the
        # slab could be had by the mover of device 1.
        host.arm("mover.slab-zeroed", "pause")
        host.call("MigrateVgpu", name="train", device="1")
        with host.connect() as control:
            control.send("SuspendVgpu", name="train")
            # It must not end before the slab is zeroed; if it does, it does so in less than this.
            early = select.select([control.socket], [], [], 1)[0]
            host.remove_pause("mover.slab-zeroing")
            host.wait_paused("mover.slab-zeroed")
            host.remove_pause("mover.slab-zeroed")
            control.answer()
        host.disarm("mover.leaving")
        host.call("ResumeVgpu", name="train")
        guest.step()
        guest.finish()
        self.assertFalse(early)


class Shown(case.Case):
    HOST = {"pool": "32M", "slab": "8M"}

    def get_host_memory(self):
        return {vgpu["name"]: vgpu["host_memory"] for vgpu in self.host.call("ListVgpus")["vgpus"]}

    def test_a_vgpu_says_how_much_of_the_pool_it_has(self):
        host = self.host
        for name, size in (("small", "2M"), ("large", "6M")):
            host.train(host.create(name), "--size", size)
            host.call("SuspendVgpu", name=name)
        host.train(host.create("running"), "--size", "2M")
        shown = self.get_host_memory()
        self.assertEqual(shown["running"], 0)
        self.assertGreaterEqual(shown["small"], 2 << 20)
        self.assertEqual(shown["large"] - shown["small"], 4 << 20)
        pool = host.call("GetInfo")["pool"]
        self.assertEqual(sum(shown.values()), pool["used"] + pool["saved"])
        host.restart()
        self.assertEqual(self.get_host_memory(), shown)


class PinAhead(case.Case):
    HOST = {"pool": "64M", "slab": "8M", "options": ["--pin-ahead", "all"]}

    def comes_without_waiting(self, device):
        """Does it come from the other device and find the pool pinned for this one?"""
        self.host.call("SuspendVgpu", name="train")
        self.host.call("ResumeVgpu", name="train", device=str(1 - device))
        self.host.call("SuspendVgpu", name="train")
        report = self.host.call("ResumeVgpu", name="train", device=str(device))
        return report["pool_seconds"] == 0

    def test_a_device_is_ready_for_who_comes_from_another_one(self):
        host = self.host
        guest = host.train(host.create("train"), "--on-demand", "--size", "16M")
        for device in (1, 0):
            until(lambda device=device: self.comes_without_waiting(device),
                  f"device {device} to be ready for it", context=host.log)
        killed = host.kill_program("vgpu-mover")
        until(lambda: len(host.movers()) == 2 and not set(killed) & set(host.movers()), "new movers", context=host.log)
        until(lambda: self.comes_without_waiting(1), "the next mover to be ready for it", context=host.log)
        guest.step()
        guest.finish()

    def is_all_pinned(self):
        pool = self.host.info()["pool"]
        return pool["ready"] == pool["size"] > 0

    def test_what_is_in_use_is_pinned_again_after_a_restart(self):
        host = self.host
        guest = host.train(host.create("train"), "--on-demand", "--size", "16M")
        host.call("SuspendVgpu", name="train")

        def is_ready_at_once():
            host.restart()
            until(self.is_all_pinned, "it to be pinned", context=host.log)
            report = host.call("ResumeVgpu", name="train")
            host.call("SuspendVgpu", name="train")
            return report["pool_seconds"] == 0
        until(is_ready_at_once, "it to be pinned for its device")
        host.call("ResumeVgpu", name="train")
        guest.step()
        guest.finish()


if __name__ == "__main__":
    case.main()
