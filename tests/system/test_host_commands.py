#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands that ask NVML, over our own library and a real vgpud."""
import os
import re

import case
from wait import until

MIB = 1 << 20


def wait_shown(host, at_least):
    """Until NVML shows what the guest holds: the board is written ten times a second."""
    def look():
        shown = host.vgpu("show", "train", "--json", code=None)
        return shown.code == 0 and shown.json["frame_buffer_used"] >= at_least
    until(look, "NVML to know what train holds")


class OneKind(case.Case):
    HOST = {"devices": "2xH200:1G"}

    def test_a_running_vgpu_is_shown_with_what_it_holds(self):
        self.host.create("train", "512M")
        self.host.train("train", "--size", "40M")
        wait_shown(self.host, 40 * MIB)
        record = self.host.get("train")
        by_name = self.host.vgpu("show", "train", "--json").json
        self.assertEqual((by_name["name"], by_name["state"], by_name["quota"]),
                         ("train", "running", 512 * MIB))
        self.assertEqual((by_name["id"], by_name["uuid"]), (record["id"], record["uuid"]))
        self.assertEqual((by_name["device"], by_name["gpu_instance"]), (0, None))
        self.assertGreaterEqual(by_name["frame_buffer_used"], 40 * MIB)
        self.assertEqual(by_name["vm_id"], str(os.geteuid()))
        self.assertEqual(by_name["licence"],
                         {"licensed": True, "state": "licensed", "expiry": "permanent"})
        self.assertEqual(by_name["encoder"]["sessions"], 0)
        for word in (record["id"], record["uuid"]):
            same = self.host.vgpu("show", word, "--json").json
            self.assertEqual((same["uuid"], same["type"]), (by_name["uuid"], by_name["type"]))

        types = self.host.vgpu("types", "--device", "0", "--json").json["types"]
        mine = [one for one in types if one["id"] == by_name["type"]]
        self.assertEqual([one["name"] for one in mine], [by_name["type_name"]])
        used = self.host.vgpu("utilization", "--json").json["utilization"]
        self.assertEqual([(one["name"], one["id"]) for one in used], [("train", record["id"])])

    def test_a_suspended_vgpu_is_known_to_vgpud_alone(self):
        self.host.create("train", "512M")
        self.host.train("train", "--size", "16M")
        wait_shown(self.host, 16 * MIB)
        self.assertIn("\ntrain ", self.host.vgpu("licence").output)
        self.host.vgpu("suspend", "train")
        self.assertIn("suspended", self.host.vgpu("show", "train").output)
        self.assertIn("is suspended", self.host.vgpu("licence", "train", code=7).errors)
        until(lambda: "train" not in self.host.vgpu("licence").output,
              "NVML to know that it is gone")
        self.host.vgpu("resume", "train", "--device", "1")
        until(lambda: self.host.vgpu("show", "train", "--json").json["device"] == 1,
              "NVML to know where it is now")

    def test_what_is_set_is_refused_while_vgpus_run(self):
        self.host.create("idle", "64M")
        errors = self.host.vgpu("version-range", "set", "1.0", "1.0", code=7).errors
        self.assertIn("in use", errors)
        self.assertIn("device 0: in use", self.host.vgpu("heterogeneous", "off", "--device", "0",
                                                         code=7).errors)
        self.host.vgpu("rm", "idle")
        self.host.vgpu("version-range", "set", "1.0", "1.0")
        self.host.vgpu("version-range", "set", "9.0", "9.1", code=2)
        self.assertIn("off", self.host.vgpu("heterogeneous", "off", "--device", "0").output)
        self.assertIn("on", self.host.vgpu("heterogeneous", "on", "--device", "0").output)

    def test_it_can_move_to_what_is_of_its_kind(self):
        self.host.create("train", "512M")
        self.host.train("train", "--size", "16M")
        wait_shown(self.host, 16 * MIB)
        check_metadata(self, self.host, live=True)
        self.host.vgpu("migrate", "train", "--device", "1")

    def test_without_vgpud_there_is_no_nvml_or_the_systems(self):
        gone = self.host.environment(OPENVGPU_RUN=os.path.join(self.host.directory, "nowhere"),
                                     OPENVGPU_NVML="/nonexistent/libnvidia-ml.so.1")
        self.assertIn("cannot load", self.host.vgpu("types", code=5, environment=gone).errors)


def check_metadata(test, host, live):
    """The answer of the two files, and its exit status."""
    vgpu, device = (os.path.join(host.directory, name) for name in ("vgpu", "device"))
    host.vgpu("metadata", "export", "train", "-o", vgpu)
    host.vgpu("metadata", "export", "--device", "1", "-o", device)
    answer = host.vgpu("metadata", "check", vgpu, device, "--json", code=0 if live else 7).json
    test.assertEqual("live" in answer["can_move"], live)
    test.assertEqual(answer["limited_by"], [] if live else ["device"])


class TwoKinds(case.Case):
    HOST = {"devices": "1xH200:1G,1xA100:1G"}

    def test_a_move_to_another_kind_is_refused_as_nvml_says(self):
        self.host.create("train", "512M")
        guest = self.host.train("train", "--size", "16M")
        wait_shown(self.host, 16 * MIB)
        check_metadata(self, self.host, live=False)
        errors = self.host.vgpu("migrate", "train", "--device", "1", code=1).errors
        self.assertTrue(re.search("cannot move from device 0 .* not of one kind", errors), errors)
        guest.wait_steps()
        self.host.vgpu("suspend", "train")
        errors = self.host.vgpu("resume", "train", "--device", "1", code=1).errors
        self.assertIn("not of one kind", errors)
        self.assertEqual(self.host.get("train")["state"], "suspended")
        self.host.vgpu("resume", "train")
        guest.wait_steps()


if __name__ == "__main__":
    case.main()
