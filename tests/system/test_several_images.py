#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images of vGPUs of several devices: all of it is in one image, and comes back to as many devices, byte for byte."""
import json
import os
import signal
import subprocess
import sys

import case
from images import Files
from several import MIB, Case
from wire import Refused


class Base(Case, Files):
    HOST = {"devices": "4xH200:1G", "pool": "512M", "slab": "8M"}

    def begin(self):
        """The vGPU "job" on GPUs 0,1, suspended, and its guest."""
        self.make("job", "0,1", 256)
        self.job = self.start()
        self.call("SuspendVgpu")
        return self.job

    def dump(self, *options):
        path = self.path()
        self.host.vgpu("checkpoint", "dump", "job", path, *options)
        return path

    def load(self, path, *options, **more):
        return self.host.vgpu("checkpoint", "load", path, "--vgpu", "job", *options, **more)

    def change(self, *values):
        """Other contents on both devices."""
        self.call("ResumeVgpu")
        for device, value in enumerate(values):
            self.assertEqual(self.tell(self.job, f"fill {device} {value}"), "filled")
        self.call("SuspendVgpu")

    def check_values(self, *values):
        for device, value in enumerate(values):
            self.assertEqual(self.tell(self.job, f"check {device} {value}"), "right", self.host.log())

    def go_on(self, *values, device=None):
        """Each byte is as it was, and it works; nothing is left behind anywhere."""
        self.call("ResumeVgpu", **({"device": device} if device else {}))
        self.check_values(*values)
        self.assertEqual(self.tell(self.job, "copy 0 1"), "copied")
        self.end(self.job)
        self.host.wait_state("job", "idle")
        self.assertEqual(self.memory(), [0] * 4)


class Images(Base):
    def test_what_is_loaded_is_what_was_dumped(self):
        self.begin()
        old = self.dump()
        self.change(51, 68)
        new = self.dump("--compress", "zstd:3")
        self.load(old)
        self.call("ResumeVgpu")
        self.check_values(17, 34)
        self.call("SuspendVgpu")
        self.load(new)
        self.go_on(51, 68)

    def test_it_comes_back_to_any_devices_in_any_order(self):
        self.begin()
        path = self.dump()
        for device in ("1,0", "2,3", "3,0"):
            with self.subTest(device=device):
                self.change(85, 102)
                self.load(path, "--device", device)
                self.assertEqual([part["device"] for part in self.host.get("job")["parts"]],
                                 [int(index) for index in device.split(",")])
                self.check_values(17, 34)
                self.call("SuspendVgpu")
        self.go_on(17, 34, device="0,1")

    def test_devices_that_do_not_fit_leave_it_suspended(self):
        self.begin()
        path = self.dump()
        for device, words in (("2", "2 devices"), ("0,9", "no device '9'"), ("2,2", "twice")):
            self.assertIn(words, self.load(path, "--device", device, code=None).errors)
            self.assertEqual(self.host.get("job")["state"], "suspended")
        self.go_on(17, 34)

    def test_a_chain_of_images(self):
        self.begin()
        first = self.dump()
        self.change(17, 85)
        second = self.path()
        answer = self.host.vgpu("checkpoint", "dump", "job", second, "--parent", first, "--json").json
        self.assertGreater(answer["inherited_bytes"], 10 * MIB)  # of the first device; and of the second nothing
        self.assertLess(answer["inherited_bytes"], 16 * MIB)
        self.change(1, 2)
        self.load(second)
        self.call("ResumeVgpu", device="2,3")
        self.check_values(17, 85)
        self.call("SuspendVgpu")
        self.load(first)
        self.go_on(17, 34)

    def test_the_image_says_what_it_is_of(self):
        self.begin()
        answer = self.host.vgpu("checkpoint", "dump", "job", self.path(), "--json").json
        uuids = [self.host.device(index)["uuid"] for index in range(2)]
        self.assertEqual(answer["device_uuids"], uuids)
        with open(os.path.join(answer["directory"], "manifest.json")) as file:
            manifest = json.load(file)
        self.assertEqual(manifest["version"], 3)
        self.assertEqual([device["uuid"] for device in manifest["image"]["devices"]], uuids)
        sums = [0, 0]
        for address, size, *device in manifest["image"]["processes"][0]["allocations"]:
            sums[device[0] if device else 0] += size
        self.assertEqual(sum(sums), answer["memory_bytes"])
        self.assertTrue(all(10 * MIB <= each <= 16 * MIB for each in sums), sums)
        self.assertIn("of GPU memory of 2 GPUs", self.host.vgpu("checkpoint", "check", answer["directory"]).output)
        self.go_on(17, 34)

    def test_several_processes(self):
        self.begin()
        self.call("ResumeVgpu")
        second = self.guest("job")
        for line, answer in (("hold 1 8M", "held"), ("fill 1 99", "filled")):
            self.assertEqual(self.tell(second, line), answer)
        self.call("SuspendVgpu")
        path = self.dump()
        self.change(7, 8)
        self.load(path, "--device", "1,0")
        self.assertEqual(self.tell(second, "check 1 99"), "right")
        self.end(second)
        self.call("SuspendVgpu")
        self.go_on(17, 34)


class Processes(Base):
    """Of a dump with CRIU; simulated GPUs have no restore, so the manager is told of what came back."""

    def came_back(self):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        return child

    def test_a_process_that_came_back_has_memory_on_each_device(self):
        self.make("job", "2,0", 64)
        child = self.came_back()
        memory = [[0x7f0000000000, 2 * MIB, 1], [0x7f0000400000, 6 * MIB], [0x7f0000a00000, 62 * MIB, 1]]
        process = {"pid": child.pid, "allocations": memory}
        with self.host.connect() as control:
            control.call("ReplaceMemory", name="job", processes=[process])
            control.call("CommitMemory", name="job")
        for restart in (False, True):
            if restart:
                self.host.restart()
            self.assertEqual(self.host.get("job")["state"], "suspended")
            with self.host.connect() as control:
                answer = control.call("OpenMemory", name="job")
            self.assertEqual(answer["processes"][0]["allocations"], memory)
        child.kill()
        self.host.wait_state("job", "idle")

    def test_what_cannot_come_back(self):
        self.make("job", "2,0", 64)
        child = self.came_back()
        for allocation, error in (([4096, 2 * MIB, 2], "InvalidParameter"), ([4096, 2 * MIB, -1], "InvalidParameter"),
                                  ([4096, 2 * MIB, 1, 1], "InvalidParameter"), ([4096, 66 * MIB, 1], "NoRoom")):
            with self.subTest(allocation=allocation), self.assertRaisesRegex(Refused, error):
                self.host.call("ReplaceMemory", name="job",
                               processes=[{"pid": child.pid, "allocations": [allocation]}])

    def test_a_process_that_is_dumped_goes_on(self):
        self.make("job", "0,1", 256)
        self.job = self.start()
        good, bad = self.fake_criu(self.GOOD_DUMP), self.fake_criu("exit 1")
        for options, code in ((("--criu", bad), 1), (("--criu", good, "--leave-running"), 0)):
            path = self.path()
            self.host.vgpu("checkpoint", "dump", self.job.pid, path, "--cut-pipes", *options, code=code)
            self.assertEqual(os.path.exists(path), code == 0)
            self.check(self.job)
        self.assertIn("of GPU memory of 2 GPUs", self.host.vgpu("checkpoint", "check", path).output)
        self.end(self.job)


class Faults(Base):
    def test_a_number_of_devices_that_has_changed(self):
        self.begin()
        path = self.dump()
        self.make("one", "2")
        other = self.guest("one")
        self.assertEqual(self.tell(other, "hold 0 8M"), "held")
        self.host.vgpu("suspend", "one")
        self.assertIn("the image is of 2 devices, vGPU one has 1",
                      self.host.vgpu("checkpoint", "load", path, "--vgpu", "one", code=1).errors)
        single = self.path()
        self.host.vgpu("checkpoint", "dump", "one", single)
        self.assertIn("is of 1 devices, vGPU job has 2", self.load(single, code=1).errors)
        self.host.vgpu("resume", "one")
        self.end(other)
        self.go_on(17, 34)

    def test_memory_of_one_device_that_has_changed(self):
        self.begin()
        path = self.dump()
        self.call("ResumeVgpu")
        self.assertEqual(self.tell(self.job, "hold 1 6M"), "held")
        self.assertEqual(self.tell(self.job, "fill 1 34"), "filled")
        self.call("SuspendVgpu")
        self.assertIn("has other memory than in the image", self.load(path, code=1).errors)
        self.go_on(17, 34)

    def test_a_part_of_it_that_is_missing_changes_nothing(self):
        self.begin()
        path = self.dump()
        self.change(51, 68)
        data = os.path.join(path, "memory.data")
        size = os.path.getsize(data)
        with open(data, "r+b") as file:
            file.seek(size - 5000)
            file.write(b"wrong")
        self.assertIn("altered", self.load(path, code=1).errors)
        os.truncate(data, size // 2)
        self.assertIn("cut off", self.load(path, code=1).errors)
        os.unlink(data)
        self.assertIn("memory.data is missing", self.load(path, code=1).errors)
        os.unlink(os.path.join(path, "manifest.json"))
        self.assertIn("no manifest", self.load(path, code=1).errors)
        self.go_on(51, 68)

    def test_a_parent_that_is_missing_changes_nothing(self):
        self.begin()
        first = self.dump()
        self.change(17, 85)
        second = self.dump("--parent", first)
        os.rename(first, first + "-away")
        self.change(1, 2)
        self.assertIn("parent", self.load(second, code=1).errors)
        os.rename(first + "-away", first)
        self.load(second)
        self.go_on(17, 85)

    def test_a_disk_that_is_full(self):
        self.begin()
        with self.limited_files(12 * MIB):
            path = self.path()
            errors = self.host.vgpu("checkpoint", "dump", "job", path, code=1).errors
        self.assertIn("memory.data", errors)
        self.assertFalse(os.path.exists(path) or os.path.exists(path + ".partial"))
        self.load(self.dump())
        self.go_on(17, 34)

    def test_who_dumps_is_killed_or_fails(self):
        self.begin()
        for point in ("image.write", "image.commit"):
            for how, code in (("fail", 1), ("kill", -signal.SIGKILL)):
                with self.subTest(point=point, how=how):
                    path = self.path()
                    self.host.vgpu("checkpoint", "dump", "job", path, code=code,
                                   environment=self.host.environment(OPENVGPU_FAULT=f"{point}={how}"))
                    self.assertFalse(os.path.exists(path))
                    if how == "kill":
                        self.wait_free("job")
        self.load(self.dump())
        self.go_on(17, 34)

    def test_who_loads_is_killed_or_fails(self):
        self.begin()
        path = self.dump()
        self.change(51, 68)
        for how, code in (("fail", 1), ("kill", -signal.SIGKILL)):
            self.host.vgpu("checkpoint", "load", path, "--vgpu", "job", code=code,
                           environment=self.host.environment(OPENVGPU_FAULT=f"image.read={how}"))
            self.wait_free("job")
        self.call("ResumeVgpu")
        self.check_values(51, 68)
        self.call("SuspendVgpu")
        self.load(path)
        self.go_on(17, 34)

    def test_the_manager_is_killed(self):
        self.begin()
        path = self.dump()
        self.change(51, 68)
        self.load(path)
        self.host.kill()
        self.host.start()
        self.go_on(17, 34, device="3,2")

    def test_a_guest_that_dies_while_its_image_is_loaded(self):
        self.begin()
        with self.host.connect() as control:
            control.call("ReplaceMemory", name="job")
            self.job.kill()
            self.host.wait_for("job", lambda v: not v["processes"], "to be empty")
            with self.assertRaisesRegex(Refused, "GuestLost"):
                control.call("CommitMemory", name="job")
        self.host.wait_state("job", "idle")
        self.assertEqual(self.memory(), [0] * 4)


if __name__ == "__main__":
    case.main()
