#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks of a vGPU of several devices, each on a device of its own, share memory: all goes and comes as one."""
from unittest import mock

import case
import test_sharing


class Sharing(test_sharing.Pairs, case.Case):
    HOST = {"devices": "4xH200:2G", "pool": "256M", "slab": "4M"}
    ORDINALS = (0, 1)

    def used(self, name):
        return [part["frame_buffer_used"] for part in self.host.get(name)["parts"]]

    def ranks(self, n, name="job"):
        """A ring: on each device is memory that is used on the next one."""
        pairs = []
        for i in range(n):
            self.ORDINALS = (i, (i + 1) % n)
            pairs.append(self.pair(test_sharing.WAYS[i % 3], name, name, ("4M", 2)))
            self.check_both_ways(*pairs[-1], i)
        return pairs

    def test_the_device_where_it_was_made_pays(self):
        self.host.create("job", device="2,0")
        used = self.used("job")
        maker, user = self.pair(arguments=("4M", 3))
        self.assertEqual([a - b for a, b in zip(self.used("job"), used)], [12 * test_sharing.MIB, 0])
        self.end(user, maker)

    def test_ranks_of_two_to_four_devices(self):
        for devices in ("1,0", "2,3,1", "0,1,2,3"):
            with self.subTest(devices):
                self.host.create("job", device=devices)
                pairs = self.ranks(devices.count(",") + 1)
                for options in ((), ("--keep-context",), ()):
                    self.suspend_and_resume(*options)
                    for i, (maker, user) in enumerate(pairs):
                        user.hold(f"check={1000 + i}")
                        self.check_both_ways(maker, user, i)
                self.end_pairs(pairs)
                self.host.wait_state("job", "idle")
                self.host.vgpu("rm", "job")

    def test_groups_of_vgpus_that_overlap_on_a_device(self):
        self.host.create("job", device="0,1")
        self.host.create("other", device="1,2")
        pairs = [self.pair("descriptor", "job", "other"), self.pair("ipc", "other", "job"), self.pair("ipc")]
        for i, (maker, user) in enumerate(pairs):
            self.check_both_ways(maker, user, i)
        for name in ("job", "other"):
            self.refused("NotMovable", "SuspendVgpu", name=name)
        for options in ((), ("--keep-context",)):
            self.host.vgpu("suspend", "other", "--group", *options)
            self.host.vgpu("resume", "job", "--group")
            for i, (maker, user) in enumerate(pairs):
                user.hold(f"check={1000 + i}")
                self.check_both_ways(maker, user, i)
        self.end_pairs(pairs)

    def test_a_process_that_was_moved_imports(self):
        self.host.create("job", device="0,1")
        with mock.patch.object(self, "ENVIRONMENT", {"OPENVGPU_ALL_DEVICES": "1"}):
            maker, user = self.pair()
        user.hold("try=1")
        user.hold("drop")
        self.host.vgpu("migrate", "job", "--device", "2,3")
        user.hold("try=1")
        self.assertEqual([line for line in user.lines if line.startswith("code")], ["code 0", "code 0"])
        maker.hold("fill=4")
        self.suspend_and_resume()
        maker.hold("check=4")
        self.end(user, maker)


class Faults(test_sharing.Faults):
    """Every fault of test_sharing.py; a group are two vGPUs that overlap on a device."""

    HOST = {"devices": "3xH200:1G", "pool": "128M", "slab": "4M"}
    DEVICES = {"job": "0,1", "other": "1,2"}
    ORDINALS = (0, 1)


if __name__ == "__main__":
    case.main()
