#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real devices: what NVIDIA's library tells of their processes, through the sampler."""
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import state_page
from harness import MIB, Host
from wait import until
from wire import Refused


class Case(unittest.TestCase):
    LIBRARY = "TEST_FAKE_NVML"

    def setUp(self):
        self.host = self.enterContext(Host(fake=True))
        directory = self.host.root / "nvidia"
        directory.mkdir()
        (directory / "libnvidia-ml.so.1").symlink_to(os.environ[self.LIBRARY])
        self.samples = self.host.root / "samples"
        self.present = self.host.root / "present"
        self.host.variables = {"LD_LIBRARY_PATH": str(directory),
                               "FAKE_NVML_SAMPLES": str(self.samples),
                               "FAKE_NVML_PRESENT": str(self.present)}
        self.host.start()
        self.uuids = [d["uuid"] for d in self.host.call("ListDevices")["devices"]]

    @staticmethod
    def write(path, lines):
        new = path.with_suffix(".new")
        new.write_text("".join(" ".join(map(str, line)) + "\n" for line in lines))
        new.rename(path)

    def tell(self, *lines):
        """What the library says from now on of what was used, ..."""
        self.write(self.samples, lines)

    def tell_present(self, *lines):
        """... and of what is there."""
        self.write(self.present, lines)

    def guest(self, *sizes):
        self.host.call("CreateVgpu", name="train", frame_buffer=64 * MIB, device="0")
        return self.host.fake_guest("train", *sizes)


class Samples(Case):

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

    def test_the_sampler_ends_with_the_last_vgpu(self):
        """Not with its last program: it sees those that have no gate."""
        self.tell()
        guest = self.guest()
        until(lambda: self.host.children("vgpu-sampler"), "the sampler")
        guest.kill()
        self.host.wait_state("train", "idle")
        self.assertEqual(len(self.host.children("vgpu-sampler")), 1)
        self.host.call("RemoveVgpu", name="train")
        until(lambda: not self.host.children("vgpu-sampler"), "the sampler to end")

    def test_the_sampler_may_do_nothing_of_what_root_may(self):
        self.tell()
        self.guest(MIB)
        pid, = until(lambda: self.host.children("vgpu-sampler"), "the sampler")
        until(lambda: "CapEff:\t" + 16 * "0" in pathlib.Path(f"/proc/{pid}/status").read_text(),
              "it to give up what it has")

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
        until(lambda: "does not report the use of a device by process" in
                  (self.host.root / "log").read_text(),
              "a word about it")
        self.assertEqual(self.device()["source"], "none")
        self.assertEqual(self.record()["gpu_seconds"], 0)

    def is_lost(self, index):
        return state_page.read(self.host.run / "state-page")[f"device {index}"]["lost"]

    def test_a_device_that_falls_off_the_bus_is_said_to_be_lost(self):
        self.tell()
        guest = self.guest()
        self.assertEqual(self.is_lost(0), 0)
        self.tell((self.uuids[0], 0, 0, 0, 0, 0, 0, 0))
        until(lambda: self.is_lost(0), "the state page to say it")
        self.assertEqual(self.is_lost(1), 0)
        self.assertIn("fell off the bus", (self.host.root / "log").read_text())
        with self.assertRaises(Refused) as refused:
            self.host.call("CreateVgpu", name="more", frame_buffer=8 * MIB, device="0")
        self.assertIn("fell off the bus", refused.exception.parameters["message"])
        self.host.call("CreateVgpu", name="big", frame_buffer=128 * MIB, device="1")
        self.host.call("CreateVgpu", name="elsewhere", frame_buffer=8 * MIB)
        self.assertEqual(self.host.vgpu("elsewhere")["device"], 1)
        self.tell((self.uuids[0], guest.pid, 10, 0, 0, 0, 0, 0))
        until(lambda: not self.is_lost(0), "the state page to say that it is back")

    def test_the_sampler_ends_with_its_manager(self):
        self.tell()
        self.guest()
        until(lambda: self.host.children("vgpu-sampler"), "the sampler")
        self.host.kill_manager()
        until(lambda: not self.host.children("vgpu-sampler"), "the sampler to end")


class Nvml(Case):
    """Seen through our own library and the command."""

    def vgpu(self, *arguments):
        done = subprocess.run(
            [os.environ["TEST_VGPU"], *arguments, "--json"], capture_output=True, text=True,
            check=False, env={**os.environ, "OPENVGPU_RUN": str(self.host.run),
                              "OPENVGPU_NVML": os.environ["TEST_NVML"]})
        self.assertEqual(done.returncode, 0, done)
        return json.loads(done.stdout)

    def sessions(self, name="train"):
        return self.vgpu("sessions", name)["sessions"]

    def wait_sessions(self, n):
        def look():
            self.told = self.sessions()
            return len(self.told) == n
        until(look, f"{n} sessions", context=lambda: self.told)
        return self.told


class Sessions(Nvml):
    def encoder(self, pid, number, uuid=None, fps=30):
        return uuid or self.uuids[0], "encoder", pid, number, 1, 1920, 1080, fps, 2000

    def capture(self, pid, number):
        return self.uuids[0], "capture", pid, number, 4, 1280, 720, 25, 900, 1, 9, 3840, 2160

    def test_they_are_those_of_the_processes_of_a_vgpu(self):
        self.tell_present()
        guest = self.guest()
        self.tell_present(self.encoder(guest.pid, 7), self.encoder(guest.pid, 8, fps=60),
                          self.capture(guest.pid, 7),
                          self.encoder(1, 9),                        # not ours
                          self.encoder(guest.pid, 9, self.uuids[1]))  # it is not there
        told = self.wait_sessions(3)
        self.assertEqual([(one["use"], one["session"], one["average_fps"]) for one in told],
                         [("encoder", 7, 30), ("encoder", 8, 60), ("capture", 7, 25)])
        self.assertEqual({one["pid"] for one in told}, {guest.pid})
        self.assertEqual([told[0][key] for key in ("kind", "width", "height", "average_latency_us")],
                         ["hevc", 1920, 1080, 2000])
        self.assertEqual([told[2][key] for key in ("kind", "width", "height", "average_latency_us")],
                         ["encoder", 1280, 720, 900])
        shown = self.vgpu("show", "train")
        self.assertEqual([shown["encoder"][key] for key in ("sessions", "average_fps")], [2, 45])

    def test_they_change_and_end(self):
        self.tell_present()
        guest = self.guest()
        self.tell_present(self.encoder(guest.pid, 7), self.encoder(guest.pid, 8),
                          self.capture(guest.pid, 9))
        self.wait_sessions(3)
        self.tell_present(self.encoder(guest.pid, 8, fps=12))
        self.assertEqual([(one["session"], one["average_fps"]) for one in self.wait_sessions(1)],
                         [(8, 12)])
        self.tell_present()
        self.wait_sessions(0)

    def test_they_end_with_their_process_and_with_who_tells_them(self):
        self.tell_present()
        first = self.guest()
        second = self.host.fake_guest("train")
        self.tell_present(self.encoder(first.pid, 7), self.encoder(second.pid, 8))
        self.wait_sessions(2)
        first.kill()
        self.assertEqual([one["session"] for one in self.wait_sessions(1)], [8])
        os.kill(self.host.children("vgpu-sampler")[0], signal.SIGKILL)
        self.wait_sessions(0)


class RuntimeState(Nvml):
    def size(self):
        return self.vgpu("show", "train")["runtime_state"]

    def wait_size(self, size):
        until(lambda: self.size() == size, f"{size} bytes", context=self.size)

    def test_it_is_what_the_gate_has_not_charged(self):
        self.tell_present()
        guest = self.guest(8 * MIB)
        other = self.host.fake_guest("train")
        self.wait_size(0)
        self.tell_present((self.uuids[0], "memory", guest.pid, 520 * MIB),
                          (self.uuids[0], "memory", other.pid, 500 * MIB),
                          (self.uuids[0], "memory", 1, 999 * MIB),           # not ours
                          (self.uuids[1], "memory", guest.pid, 900 * MIB))   # it is not there
        self.wait_size((512 + 500) * MIB)
        other.kill()
        self.wait_size(512 * MIB)
        self.tell_present((self.uuids[0], "memory", guest.pid, 4 * MIB))  # less than is charged
        self.wait_size(0)

    def test_what_is_not_known_is_not_counted(self):
        self.tell_present()
        guest = self.guest()
        self.tell_present((self.uuids[0], "memory", guest.pid, 100 * MIB))
        self.wait_size(100 * MIB)
        self.tell_present((self.uuids[0], "memory", guest.pid, (1 << 64) - 1),
                          (self.uuids[0], "encoder", guest.pid, 7, 0, 8, 8, 1, 1))
        self.wait_sessions(1)
        self.assertEqual(self.size(), 100 * MIB)


class WithoutThem(Nvml):
    """Devices that have no encoder, and libraries that do not know what one is."""

    def check(self):
        self.tell()
        guest = self.guest()
        self.tell((self.uuids[0], guest.pid, 50, 0, 0, 0, 0, 0))
        until(lambda: self.host.call("GetUtilization")["vgpus"][0]["gpu"] == 50, "samples")
        self.assertEqual(self.sessions(), [])
        self.assertEqual(self.vgpu("show", "train")["runtime_state"], 0)
        self.assertNotIn("the sampler has ended", (self.host.root / "log").read_text())

    def test_not_supported(self):
        self.check()


class OldLibrary(WithoutThem):
    LIBRARY = "TEST_OLD_NVML"


if __name__ == "__main__":
    unittest.main()
