#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands that ask NVML, over our own library and a real vgpud."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest
import unittest.mock

import case
import stage
from host import Host
from wait import until

MIB = 1 << 20
CONTEXT = 64 * MIB  # of a simulated device of 1 GiB


def wait_shown(host, at_least):
    """Until NVML shows what the guest holds: the state page is written ten times a second."""
    def look():
        shown = host.vgpu("show", "train", "--json", code=None)
        return shown.code == 0 and shown.json["frame_buffer_used"] >= at_least
    until(look, "NVML to know what train holds")


class WithoutLibrary(unittest.TestCase):
    """The NVML library is a package of its own."""

    def test_who_needs_it_says_what_is_missing(self):
        directory = tempfile.mkdtemp(prefix="vg-", dir="/tmp")
        self.addCleanup(shutil.rmtree, directory)
        root = pathlib.Path(directory) / "root"
        shutil.copytree(stage.ROOT, root, symlinks=True, ignore=shutil.ignore_patterns("nvml", "man", "include"))
        with unittest.mock.patch.multiple(stage, VGPUD=root / "bin" / "vgpud", VGPU=root / "bin" / "vgpu"), \
                contextlib.closing(Host()) as host:
            host.start()
            for command in (("env",), ("simulate", "plain", "--", "true")):
                self.assertIn("install the package openvgpu-nvml", host.vgpu(*command, code=1).errors)


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

    def test_a_vgpu_can_be_shown_at_once(self):
        """NVML's clients see it some milliseconds later: a script need not know that."""
        for _ in range(50):
            self.host.create("train", "512M")
            self.assertEqual(self.host.vgpu("show", "train", "--json").json["name"], "train")
            self.host.vgpu("rm", "train")

    def test_a_suspended_vgpu_is_known_to_vgpud_alone(self):
        self.host.create("train", "512M")
        self.host.train("train", "--size", "16M")
        wait_shown(self.host, 16 * MIB)
        self.assertIn("\ntrain ", self.host.vgpu("licence").output)
        self.host.vgpu("suspend", "train")
        self.assertIn("suspended", self.host.vgpu("show", "train").output)
        self.assertIn("is suspended", self.host.vgpu("licence", "train", code=7).errors)
        self.assertIn("there is no vGPU 'trian'\nhint: did you mean 'train'?", self.host.vgpu("show", "trian", code=3).errors)
        until(lambda: "train" not in self.host.vgpu("licence").output,
              "NVML to know that it is gone")
        self.host.vgpu("resume", "train", "--device", "1")
        until(lambda: self.host.vgpu("show", "train", "--json").json["device"] == 1,
              "NVML to know where it is now")

    def wait_runtime_state(self, size):
        until(lambda: self.host.vgpu("show", "train", "--json").json["runtime_state"] == size,
              f"NVML to know of {size} bytes of contexts")

    def test_the_runtime_state_is_what_the_contexts_take(self):
        self.host.create("train", "512M")
        self.wait_runtime_state(0)
        first = self.host.run("train", "guest-hold").wait_ready()
        first.hold("device")
        self.wait_runtime_state(CONTEXT)
        second = self.host.run("train", "guest-hold").wait_ready()
        self.wait_runtime_state(2 * CONTEXT)
        self.host.vgpu("migrate", "train", "--device", "1")
        self.wait_runtime_state(2 * CONTEXT)
        second.end_input()
        self.wait_runtime_state(CONTEXT)

    def test_what_is_set_is_refused_while_vgpus_run(self):
        self.host.create("idle", "64M")
        errors = self.host.vgpu("version-range", "set", "1.0", "1.0", code=7).errors
        self.assertIn("not while a vGPU is active", errors)
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

    def test_what_a_process_holds_may_keep_it_where_it_is(self):
        self.host.create("train", "512M")
        guest = self.host.run("train", "guest-hold").wait_ready()
        guest.hold("device")
        wait_shown(self.host, 16 * MIB)
        check_metadata(self, self.host, live=True)
        for what, why in (("managed", "which the driver cannot checkpoint"),
                          ("managed-pool", "a pool of managed memory (cuMemPoolCreate"),
                          ("host-pool", "memory of a pool on the host (cuMemPoolCreate)"),
                          ("imported", "which the driver cannot checkpoint"),
                          ("registered", "a dma-buf (RDMA)"), ("mapped", "a dma-buf (RDMA)")):
            with self.subTest(what):
                guest.hold(what)
                until(lambda: "other" in metadata(self.host)["limited_by"], "NVML to know of it")
                check_metadata(self, self.host, live=False, limited_by=["other"])
                errors = self.host.vgpu("migrate", "train", "--device", "1", code=1).errors
                self.assertIn(why, errors)
                self.assertEqual(self.host.get("train")["device"], 0)
                guest.hold("nothing")
                until(lambda: not metadata(self.host)["limited_by"], "NVML to know that it is gone")
        self.host.vgpu("migrate", "train", "--device", "1")

    def test_without_vgpud_there_is_no_nvml_or_the_systems(self):
        gone = self.host.environment(OPENVGPU_RUN=os.path.join(self.host.directory, "nowhere"),
                                     OPENVGPU_NVML="/nonexistent/libnvidia-ml.so.1")
        self.assertIn("cannot load", self.host.vgpu("types", code=5, environment=gone).errors)


def metadata(host, code=None, name="train"):
    """What the files of the vGPU and of device 1 say of a move; the exit status is the code."""
    vgpu, device = (os.path.join(host.directory, name) for name in ("vgpu", "device"))
    host.vgpu("metadata", "export", name, "-o", vgpu)
    host.vgpu("metadata", "export", "--device", "1", "-o", device)
    return host.vgpu("metadata", "check", vgpu, device, "--json", code=code).json


def check_metadata(test, host, live, limited_by=("device",)):
    """The answer of the two files, and its exit status."""
    answer = metadata(host, code=0 if live else 7)
    test.assertEqual("live" in answer["can_move"], live)
    test.assertEqual(answer["limited_by"], [] if live else list(limited_by))


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


def write_scenario(directory, devices, vgpus=()):
    path = os.path.join(directory, "mine.json")
    with open(path, "w") as file:
        json.dump({"openvgpu_scenario": 1, "devices": devices, "vgpus": list(vgpus)}, file)
    return path


class Moves(unittest.TestCase):
    """vgpud and NVML agree on what a scenario says of its devices."""

    def check(self, devices, hint, limited_by, size="512M"):
        host = Host()
        host.options = ["--scenario", write_scenario(host.directory, devices)]
        self.addCleanup(host.close)
        host.start()
        host.create("train", size)
        guest = host.run("train", "guest-hold").wait_ready()
        guest.hold("device")
        wait_shown(host, 16 * MIB)
        check_metadata(self, host, live=not hint, limited_by=[limited_by])
        errors = host.vgpu("migrate", "train", "--device", "1", code=1 if hint else 0).errors
        self.assertIn(hint, errors)

    def test_equal_ones(self):
        self.check([{"board": "L4", "memory": "8G", "count": 2}], "", "")

    def test_one_with_ecc_and_one_without(self):
        self.check([{"board": "L4", "memory": "8G", "ecc": True},
                    {"board": "L4", "memory": "8G", "ecc": False}], "not of one kind", "device")

    def test_one_that_is_smaller_than_the_vgpu(self):
        self.check([{"board": "L4", "memory": "8G"}, {"board": "L4", "memory": "2G"}],
                   "device 1 is smaller than vGPU train", "device", size="3G")

    def test_one_that_is_smaller_and_large_enough(self):
        self.check([{"board": "L4", "memory": "8G"}, {"board": "L4", "memory": "2G"}], "", "")

    def test_one_that_takes_none(self):
        self.check([{"board": "L4", "memory": "8G"},
                    {"board": "L4", "memory": "8G", "can_migrate": False}],
                   "no vGPU can move there", "other")


class Played(unittest.TestCase):
    """What a scenario sets is what the commands show."""

    def test_what_keeps_a_vgpu_where_it_is(self):
        host = Host()
        vgpus = [{"name": f"v{id}", "id": id, "type": "L4-8C", "uses": uses}
                 for id, uses in ((1001, []), (1002, ["imported memory", "managed memory", "registered memory"]))]
        host.options = ["--scenario", write_scenario(host.directory,
                                                     [{"board": "L4", "count": 2}], vgpus)]
        self.addCleanup(host.close, expect_clean=False)
        host.start()
        self.assertEqual(metadata(host, 0, "1001")["limited_by"], [])
        self.assertEqual(metadata(host, 7, "1002"),
                         {"can_move": ["cold"], "limited_by": ["other"]})

    def play(self, name):
        host = Host()
        host.options = ["--scenario",
                        str(stage.ROOT / "share" / "openvgpu" / "scenarios" / (name + ".json"))]
        self.addCleanup(host.close, expect_clean=False)
        return host.start()

    def test_licences(self):
        listed = self.play("licences").vgpu("licence", "--json").json["licences"]
        self.assertEqual([(one["state"], one["expires"] or one["expiry"]) for one in listed[:5]],
                         [("licensed", "2027-03-31 23:59:59 GMT"), ("licensed", "permanent"),
                          ("unlicensed", "2025-01-01 00:00:00 GMT"),
                          ("unlicensed, unrestricted", "not applicable"),
                          ("unlicensed, restricted", "not applicable")])

    def test_sessions(self):
        listed = self.play("sessions").vgpu("sessions", "3251634601", "--json").json["sessions"]
        self.assertEqual([(one["use"], one["kind"], one["width"], one["average_fps"])
                          for one in listed],
                         [("encoder", "h264", 1920, 30), ("encoder", "hevc", 3840, 60),
                          ("capture", "encoder", 1920, 30), ("capture", "to-system", 0, 0)])

    def test_gpu_instances(self):
        host = self.play("mig")
        shown = host.vgpu("show", "3251634401", "--json").json
        self.assertEqual((shown["gpu_instance"], shown["type_name"]), (1, "NVIDIA H100XM-3-40C"))
        creatable = host.vgpu("types", "--creatable", "--device", "0", "--json").json["types"]
        self.assertEqual([one["name"] for one in creatable], ["NVIDIA H100XM-2-20C"])
        self.assertIn("device 0", host.vgpu("placements", "--device", "0", code=1).errors)

    def test_a_guest_without_a_driver(self):
        host = self.play("no-driver")
        self.assertIn("no driver runs in the guest", host.vgpu("licence").output)
        shown = host.vgpu("show", "3251634801", "--json").json
        self.assertEqual((shown["vm_driver_version"], shown["accounting"]), (None, None))

    def test_a_gpu_that_falls_off_the_bus_does_not_hide_the_other(self):
        host = self.play("lost")
        until(lambda: host.vgpu("types", code=None).code == 1, "a GPU to fall off the bus")
        listed = host.vgpu("types", code=1)
        self.assertIn("fell off the bus", listed.errors)
        self.assertIn("NVIDIA H200-70C", listed.output)


if __name__ == "__main__":
    case.main()
