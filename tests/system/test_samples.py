#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real devices on which nothing is enforced: use is what NVIDIA's library tells, through the sampler."""
import os
import signal
import time
import unittest

from harness import MIB, Host
from wait import until


class Samples(unittest.TestCase):
    def setUp(self):
        self.host = self.enterContext(Host(fake=True))
        directory = self.host.root / "nvidia"
        directory.mkdir()
        (directory / "libnvidia-ml.so.1").symlink_to(os.environ["TEST_FAKE_NVML"])
        self.samples = self.host.root / "samples"
        self.host.variables = {"LD_LIBRARY_PATH": str(directory),
                               "FAKE_NVML_SAMPLES": str(self.samples)}
        self.host.start()
        self.uuids = [d["uuid"] for d in self.host.call("ListDevices")["devices"]]

    def tell(self, *lines):
        """What the library says from now on."""
        new = self.samples.with_suffix(".new")
        new.write_text("".join(" ".join(map(str, line)) + "\n" for line in lines))
        new.rename(self.samples)

    def guest(self):
        self.host.call("CreateVgpu", name="train", frame_buffer=64 * MIB, device="0")
        return self.host.fake_guest("train")

    def device(self, index=0):
        return self.host.call("GetUtilization")["devices"][index]

    def vgpu(self):
        return self.host.call("GetUtilization")["vgpus"][0]

    def record(self):
        return self.host.call("GetAccounting", name="train")["records"][0]

    def test_percent_times_period_is_the_time_used(self):
        self.tell()
        begin = time.monotonic()
        guest = self.guest()
        self.tell((self.uuids[0], guest.pid, 50, 20, 10, 4, 2, 1),
                  (self.uuids[0], 1, 40, 40, 0, 0, 0, 0),           # not ours
                  (self.uuids[1], guest.pid, 100, 100, 0, 0, 0, 0))  # it is not there
        until(lambda: self.record()["gpu_seconds"] > 1, "a second of GPU time")
        vgpu, record, passed = self.vgpu(), self.record(), time.monotonic() - begin
        self.assertEqual([vgpu[key] for key in ("gpu", "memory", "encoder", "decoder", "jpeg",
                                                "ofa")], [50, 20, 10, 4, 2, 1])
        self.assertEqual(self.device()["gpu"], 50)
        self.assertEqual(self.device()["source"], "samples")
        self.assertLessEqual(record["gpu_seconds"], 0.5 * passed)
        self.assertAlmostEqual(record["memory_seconds"], 0.4 * record["gpu_seconds"], places=3)
        self.assertAlmostEqual(record["ofa_seconds"], 0.02 * record["gpu_seconds"], places=3)
        self.tell()
        until(lambda: self.vgpu()["gpu"] == 0, "what is old to be forgotten")

    def test_processes_whose_samples_lag_lose_nothing(self):
        self.tell()
        first = self.guest()
        second = self.host.fake_guest("train")
        self.tell(*((self.uuids[0], guest.pid, 50, 0, 0, 0, 0, 0) for guest in (first, second)))
        begin = time.monotonic()

        def seconds():
            return {r["pid"]: r["gpu_seconds"]
                    for r in self.host.call("GetAccounting", name="train")["records"]}
        before = until(lambda: all(seconds().values()) and seconds(), "both to be seen")
        until(lambda: seconds()[first.pid] > before[first.pid] + 1.5,
              "a second and a half of the first")
        after, passed = seconds(), time.monotonic() - begin
        used = [after[guest.pid] - before[guest.pid] for guest in (first, second)]
        self.assertLessEqual(sum(used), passed)
        self.assertGreater(used[1], 0.75 * used[0], used)  # a period may be under way

    def test_the_sampler_runs_only_while_it_is_needed(self):
        self.tell()
        self.assertEqual(self.host.children("vgpu-sampler"), [])
        guest = self.guest()
        until(lambda: self.host.children("vgpu-sampler"), "the sampler")
        guest.kill()
        until(lambda: not self.host.children("vgpu-sampler"), "the sampler to end")

    def test_a_sampler_that_dies_costs_nobody_anything(self):
        self.tell()
        self.guest()
        until(lambda: self.host.children("vgpu-sampler"), "the sampler")
        os.kill(self.host.children("vgpu-sampler")[0], signal.SIGKILL)
        until(lambda: "the sampler has ended" in (self.host.root / "log").read_text(),
              "a word about it")
        self.assertTrue(self.record()["running"])
        self.assertEqual(self.host.manager.poll(), None)

    def test_a_device_without_samples_is_said_to_have_none(self):
        self.guest()
        until(lambda: "tells no use of a device by processes" in
                  (self.host.root / "log").read_text(),
              "a word about it")
        self.assertEqual(self.device()["source"], "none")
        self.assertEqual(self.record()["gpu_seconds"], 0)

    def test_the_sampler_ends_with_its_manager(self):
        self.tell()
        self.guest()
        until(lambda: self.host.children("vgpu-sampler"), "the sampler")
        self.host.kill_manager()
        until(lambda: not self.host.children("vgpu-sampler"), "the sampler to end")


if __name__ == "__main__":
    unittest.main()
