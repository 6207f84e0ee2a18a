#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vGPUs of several devices: placement, what their programs see, the quota on each, what is refused."""
import json
import os
import pwd
import signal
import subprocess
import sys

import case
import stage
from several import MIB, Case
from wait import PATIENCE, until
from wire import Gate

JOIN = """
import os, struct, sys
from wire import Gate
with Gate(os.path.join(sys.argv[1], "gate.sock")) as gate:
    gate.join(sys.argv[2], version=int(sys.argv[3]))
    print(struct.unpack_from("<IHH", gate.receive()[0])[2])
"""

# As PyTorch counts devices, before it has a context.
NVML = """
import ctypes, json
nvml = ctypes.CDLL("libnvidia-ml.so.1")
number, total = ctypes.c_uint(), (ctypes.c_ulonglong * 3)()
assert nvml.nvmlInit_v2() == 0 == nvml.nvmlDeviceGetCount_v2(ctypes.byref(number))
seen = []
for i in range(number.value):
    device, index, uuid = ctypes.c_void_p(), ctypes.c_uint(), ctypes.create_string_buffer(96)
    assert nvml.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(device)) == 0
    assert nvml.nvmlDeviceGetIndex(device, ctypes.byref(index)) == 0 and index.value == i
    assert nvml.nvmlDeviceGetUUID(device, uuid, 96) == 0 == nvml.nvmlDeviceGetMemoryInfo(device, total)
    seen.append((uuid.value.decode(), total[0]))
assert nvml.nvmlDeviceGetHandleByIndex_v2(number.value, ctypes.byref(device)) != 0
print(json.dumps(seen))
"""


class Making(Case):
    def test_the_devices_are_those_that_were_named_in_that_order(self):
        vgpu = self.make("job", "2,0")
        self.assertEqual([part["device"] for part in vgpu["parts"]], [2, 0])
        self.assertEqual(vgpu["device"], 2)
        self.assertEqual(len({part["id"] for part in vgpu["parts"]}), 2)
        guest = self.guest("job")
        self.assertEqual(self.seen(guest), (self.uuids(2, 0), [64 * MIB] * 2))
        self.end(guest)

    def test_a_number_of_devices_is_enough(self):
        self.make("large", "1", 768)
        vgpu = self.host.call("CreateVgpu", name="job", frame_buffer=512 * MIB, devices=2)["vgpu"]
        self.assertEqual([part["device"] for part in vgpu["parts"]], [0, 2])

    def test_each_device_promises_its_part(self):
        self.make("job", "0,1", 512)
        self.assertEqual([self.host.device(i)["memory_promised"] for i in range(3)], [512 * MIB, 512 * MIB, 0])
        self.assertEqual([self.host.device(i)["vgpus"] for i in range(3)], [1, 1, 0])
        self.make("other", "1,2", 512)  # they overlap
        with self.assertRaisesRegex(Exception, "NoRoom"):
            self.make("third", "0,1", 256)
        self.assertEqual([self.host.device(i)["memory_promised"] for i in range(3)], [512 * MIB, 1024 * MIB, 512 * MIB])
        self.host.vgpu("rm", "job")
        self.assertEqual(self.host.device(0)["memory_promised"], 0)

    def test_what_cannot_be_is_refused_with_the_reason(self):
        for options, words in ((("--devices", "4"), "there are 3 devices, not 4"),
                               (("--device", "0,0"), "device 0 is named twice"),
                               (("--device", "0,9"), "there is no device '9'")):
            with self.subTest(options=options):
                self.assertIn(words, self.refused("create", "job", "--fb", "64M", *options))
        for way in (("create", "job"), ("run",)):
            self.assertIn("'0,,1' has no device beside a comma",
                          self.refused(*way, "--fb", "64M", "--device", "0,,1", *(["true"] if way == ("run",) else [])))
        self.assertIn("there are 3 devices, not 4", self.refused("run", "--fb", "64M", "--devices", "4", "true"))
        self.assertIn("exclude each other", self.refused("run", "--vgpu", "job", "--devices", "2", "true"))
        self.assertIn("leave out", self.host.vgpu("create", "job", "--fb", "64M", "--devices", "2", "--device", "0", code=2).errors)
        self.make("large", "1", 768)
        self.assertIn("2 of 3 devices can take a part of 512 MiB, and 3 are needed",
                      said := self.refused("create", "job", "--fb", "512M", "--devices", "3"))
        self.assertIn("suspend or remove a vGPU", said)
        self.assertRegex(self.refused("create", "job", "--fb", "2G", "--devices", "3"), "hint: ask for less\n")
        self.assertEqual(self.host.names(), ["large"])

    def test_it_is_shown_everywhere(self):
        self.assertIn("64 MiB on each of GPUs 0,1", self.host.vgpu("create", "job", "--fb", "64M", "--devices", "2").output)
        self.assertRegex(self.host.vgpu("ls").output, r"job +0,1 +idle +- +- +0 B / 2 x 64 MiB +0\n")
        self.assertIn("job: once a program has run in it, leaves GPUs 0,1 after 30 s without work",
                      self.host.vgpu("idle", "job", "30s").output)
        self.assertIn("hint: name 2 devices, for example --device 1,0\n",
                      self.host.vgpu("migrate", "job", "--device", "2", code=2).errors)
        [shown] = json.loads(self.host.vgpu("ls", "--json").output)["vgpus"]
        self.assertEqual([part["device"] for part in shown["parts"]], [0, 1])
        self.assertEqual(shown["parts"][1]["device_uuid"], self.host.device(1)["uuid"])
        self.assertIn("created: 64 MiB on each of GPUs 0,1", self.host.vgpu("logs", "job").output)
        self.assertRegex(self.host.vgpu("show", "job").output,
                         r"on its devices +GPU 0: id \d+, 0 B, 0\.0 s of its time; GPU 1: id \d+, 0 B, 0\.0 s of its time\n")
        self.assertRegex(self.host.vgpu("show", "job").output, r"\n  first device +0, whose part of the vGPU these facts are of\n")
        top = self.host.vgpu("top", "--once").output
        self.assertRegex(top, r"job +idle +2x ")
        for index in (0, 1):
            self.assertRegex(top, rf"  on GPU {index} +{index} .* 0B/64M ")
        environment = self.host.call("PrepareRun", name="job")["environment"]
        self.assertEqual(environment["CUDA_VISIBLE_DEVICES"],
                         ",".join(self.host.device(i)["uuid"] for i in range(2)))
        self.assertIn("128 MiB on each", self.host.vgpu("resize", "job", "--fb", "128M").output)
        self.assertEqual(self.host.device(1)["memory_promised"], 128 * MIB)


    def test_events_name_all_devices_that_they_are_about(self):
        self.make("job", "2,0")
        self.make("one", "1")
        self.host.vgpu("migrate", "job", "--device", "0,1")
        said = {(event["vgpu"], event["event"]): (event["device"], event["devices"])
                for event in self.host.vgpu("logs", "--json").json["events"]}
        self.assertEqual(said["job", "created"], (2, "2,0"))
        self.assertEqual(said["job", "migrated"], (0, "0,1"))
        self.assertEqual(said["one", "created"], (1, "1"))

    def test_usage_names_devices_by_their_index(self):
        self.make("job", "2,0")
        guest = self.guest("job")
        self.assertEqual(self.tell(guest, "hold 0 8M"), "held")
        for by in ("part", "device"):
            table = self.host.vgpu("usage", "--by", by).output
            for index in (0, 2):
                self.assertRegex(table, rf"(?m) {index}  \S.*  {self.host.device(index)['uuid']}$")
        self.end(guest)

    def test_the_owner_is_shown_by_name(self):
        self.make("job", "0,1")
        owner = pwd.getpwuid(os.geteuid()).pw_name
        until(lambda: f" {owner}\n" in self.host.vgpu("show", "job", code=None).output, "NVML to know it, and its owner")

    def test_a_list_may_be_as_long_as_all_uuids_are(self):
        uuids = [self.host.device(index)["uuid"] for index in (2, 0, 1)]
        self.assertEqual([part["device"] for part in self.make("job", ",".join(uuids))["parts"]], [2, 0, 1])
        for option, words in ((("--device", ",".join(uuids * 5)), "the device is longer than 512 characters"),
                              (("--device", ""), "the device is empty"), (("--pool-group", ""), "the pool group is empty"),
                              (("--pool-group", "x" * 600), "the pool group is longer than 512 characters")):
            said = self.refused("create", "more", "--fb", "64M", *option)
            self.assertIn(words, said)
            self.assertRegex(said, "leave it out|write it shorter")

    def test_a_file_declares_it(self):
        path = os.path.join(self.host.directory, "declared.conf")
        for text, line in (("[job]\nfb = 64M\ndevice = 2,1\n", "created job: 64 MiB on each of GPUs 2,1"),
                           ("[more]\nfb = 64M\ndevices = 3\n", "created more: 64 MiB on each of GPUs 0,1,2")):
            with open(path, "w") as file:
                file.write(text)
            self.assertIn(line, self.host.vgpu("apply", path).output)
        for text, words in (("[bad]\nfb = 64M\ndevice = 0,,1\n", "'0,,1' has no device beside a comma"),
                            ("[bad]\nfb = 64M\ndevice = 0\nshare = 10\ndevice = 0,1\n",
                             "declared.conf:5: device: it is given twice, first in line 3")):
            with open(path, "w") as file:
                file.write(text)
            self.assertIn(words, self.refused("apply", path))

    def test_a_program_gets_several_for_its_life(self):
        done = self.host.vgpu("run", "--fb", "64M", "--devices", "2", "--", sys.executable, "-c", NVML)
        self.assertEqual(json.loads(done.output), [[self.host.device(index)["uuid"], 64 * MIB] for index in (0, 1)])


class Running(Case):
    def test_a_program_chooses_among_them_as_on_a_machine(self):
        self.make("job", "2,0,1")
        for wanted, seen in (("1", (0,)), ("1,0", (0, 2)), (self.host.device(1)["uuid"], (1,)),
                             ("7", (2, 0, 1)), ("0,0", (2, 0, 1))):
            with self.subTest(wanted=wanted):
                guest = self.host.run("job", "/usr/bin/env", f"CUDA_VISIBLE_DEVICES={wanted}",
                                      self.guest_path()).wait_ready()
                self.assertEqual(self.seen(guest)[0], self.uuids(*seen))
                self.assertEqual(self.tell(guest, "hold 0 8M"), "held")
                self.assertEqual(self.used("job"), [8 * MIB if d == seen[0] else 0 for d in (2, 0, 1)])
                self.end(guest)
                self.host.wait_for("job", lambda v: not v["processes"], "to be empty")

    def test_nvml_shows_the_same_devices_in_the_same_order(self):
        self.make("job", "2,0")
        self.make("other", "1")
        for name, devices in (("job", (2, 0)), ("other", (1,))):
            seen = json.loads(self.host.vgpu("run", "--vgpu", name, "--", sys.executable, "-c", NVML).output)
            self.assertEqual(seen, [[self.host.device(i)["uuid"], 64 * MIB] for i in devices])

    def guest_path(self):
        return stage.GUESTS / "guest-devices"

    def test_the_quota_holds_on_each_device(self):
        self.make("job", "0,1")
        guest = self.guest("job")
        for way in ("hold", "create", "pool"):
            with self.subTest(way=way):
                self.assertEqual(self.tell(guest, f"{way} 1 48M"), "held")
                self.assertEqual(self.used("job"), [0, 48 * MIB])
                self.assertEqual(self.tell(guest, f"{way} 1 32M"), "refused")
                self.assertEqual(self.tell(guest, f"{way} 0 32M"), "held")
                self.assertEqual(self.used("job"), [32 * MIB, 48 * MIB])
                free, total = map(int, self.tell(guest, "info 1").split()[1:])
                self.assertEqual((free, total), (16 * MIB, 64 * MIB))
                self.assertEqual([self.host.device(i)["memory_used"] for i in range(2)], [32 * MIB, 48 * MIB])
                self.assertEqual(self.tell(guest, "drop 1"), "dropped")
                self.assertEqual(self.used("job"), [32 * MIB, 0])
                self.assertEqual(self.tell(guest, "drop 0"), "dropped")
        vgpu = self.host.get("job")
        self.assertEqual((vgpu["frame_buffer_used"], len(vgpu["processes"])), (0, 1))
        self.end(guest)

    def test_peers_copy_and_reach_each_others_memory(self):
        self.make("job", "1,2")
        guest = self.guest("job")
        for line in ("copy 0 1", "copy 1 0"):
            self.assertEqual(self.tell(guest, line), "copied")
        for line in ("access 0 1", "access 1 0", "access 0 1"):
            self.assertEqual(self.tell(guest, line), "accessed")
        self.assertEqual(self.used("job"), [0, 0])
        self.end(guest)

    def test_two_that_overlap_on_a_device_do_not_meet(self):
        self.make("left", "0,1")
        self.make("right", "1,2")
        left, right = self.guest("left"), self.guest("right")
        self.assertEqual(self.tell(left, "hold 1 64M"), "held")
        self.assertEqual(self.tell(right, "hold 0 64M"), "held")
        self.assertEqual(self.tell(right, "hold 0 2M"), "refused")
        self.assertEqual((self.used("left"), self.used("right")), ([0, 64 * MIB], [64 * MIB, 0]))
        self.assertEqual(self.host.device(1)["memory_used"], 128 * MIB)
        left.kill()
        self.host.wait_for("left", lambda v: v["frame_buffer_used"] == 0, "to be empty")
        self.assertEqual(self.used("right"), [64 * MIB, 0])
        self.end(right)

    def test_another_manager_knows_all_of_it(self):
        before = self.make("job", "2,0")
        guest = self.guest("job")
        self.assertEqual(self.tell(guest, "hold 1 48M"), "held")
        for stop in (self.host.kill, self.host.stop):
            with self.subTest(stop=stop.__name__):
                stop()
                self.host.start()
                after = self.host.get("job")
                self.assertEqual([(p["id"], p["device"]) for p in after["parts"]],
                                 [(p["id"], p["device"]) for p in before["parts"]])
                self.assertEqual(self.used("job"), [0, 48 * MIB])
                self.assertEqual(self.tell(guest, "hold 1 32M"), "refused")
                self.assertEqual(self.tell(guest, "hold 0 2M"), "held")
                self.assertEqual(self.tell(guest, "drop 0"), "dropped")
        other = self.guest("job")
        self.assertEqual(self.tell(other, "hold 1 32M"), "refused")
        self.assertEqual(self.tell(other, "hold 1 16M"), "held")
        guest.signal(signal.SIGKILL)
        self.host.wait_for("job", lambda v: len(v["processes"]) == 1, "to have one process")
        self.assertEqual(self.used("job"), [0, 16 * MIB])
        self.end(other)

    def test_a_smaller_quota_is_refused_on_all_devices_or_taken_on_all(self):
        self.make("job", "0,1")
        guest = self.guest("job")
        self.assertEqual(self.tell(guest, "hold 1 48M"), "held")
        self.assertIn("hold 48 MiB, more than 32 MiB", self.refused("resize", "job", "--fb", "32M"))
        self.assertEqual(self.tell(guest, "hold 0 64M"), "held")
        self.assertEqual(self.tell(guest, "drop 0"), "dropped")
        self.host.vgpu("resize", "job", "--fb", "48M")
        for line, answer in (("hold 1 2M", "refused"), ("hold 0 50M", "refused"), ("hold 0 48M", "held")):
            self.assertEqual(self.tell(guest, line), answer)
        self.end(guest)


# What NVML tells of one vGPU instance: the account of a process, and who was busy lately.
ACCOUNT = """
import ctypes, sys
nvml = ctypes.CDLL("libnvidia-ml.so.1")
class Stats(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint), ("peak", ctypes.c_ulonglong),
                ("time", ctypes.c_ulonglong), ("start", ctypes.c_ulonglong), ("running", ctypes.c_uint),
                ("reserved", ctypes.c_uint * 5)]
stats = Stats()
assert nvml.nvmlInit_v2() == 0
assert nvml.nvmlVgpuInstanceGetAccountingStats(int(sys.argv[1]), int(sys.argv[2]), ctypes.byref(stats)) == 0
print(stats.gpu, stats.peak)
"""


class Metered(Case):
    BUSY_US = 300000

    def now(self, name):
        [vgpu] = [v for v in self.host.call("GetUtilization")["vgpus"] if v["name"] == name]
        return vgpu

    def seconds(self, name):
        return [part["gpu_seconds"] for part in self.now(name)["parts"]]

    def billed(self, by, name):
        """GPU seconds of the ledger, by the index of the device; of earlier vGPUs too where it is by device."""
        rows = self.host.call("GetUsage", since=0, by=by)["rows"]
        uuid = self.host.get(name)["uuid"] if by == "part" else None
        sums = {row["device_uuid"]: row["gpu_seconds"] for row in rows if row.get("vgpu_uuid") == uuid}
        return [sums.get(self.host.device(index)["uuid"], 0) for index in range(3)]

    def account(self, part, pid):
        library = os.path.join(stage.PRIVATE, "nvml")
        done = subprocess.run([sys.executable, "-c", ACCOUNT, str(part["id"]), str(pid)], capture_output=True,
                              text=True, timeout=PATIENCE, env={**self.host.environment(), "LD_LIBRARY_PATH": library})
        self.assertEqual(done.returncode, 0, done.stderr)
        return [int(word) for word in done.stdout.split()]

    def test_time_and_memory_are_those_of_the_device_where_they_were_used(self):
        before = self.billed("device", None)
        vgpu = self.make("job", "2,0")
        guest = self.guest("job")
        self.assertEqual(self.tell(guest, "hold 0 8M"), "held")
        self.assertEqual(self.tell(guest, "hold 1 24M"), "held")
        self.assertEqual(self.tell(guest, f"busy 1 {self.BUSY_US}"), "done")
        first, second = self.seconds("job")
        self.assertEqual(first, 0)
        self.assertGreaterEqual(second, self.BUSY_US / 1e6)
        now = self.now("job")
        self.assertEqual([part["device"] for part in now["parts"]], [2, 0])
        self.assertEqual([part["frame_buffer_used"] for part in now["parts"]], [8 * MIB, 24 * MIB])
        self.assertEqual((now["gpu_seconds"], now["gpu_seconds_total"]), (second, second))
        self.assertEqual([part["gpu_seconds_total"] for part in self.host.get("job")["parts"]], [0, second])
        self.assertEqual(self.tell(guest, f"busy 0 {self.BUSY_US}"), "done")
        first, second = self.seconds("job")
        self.assertGreaterEqual(first, self.BUSY_US / 1e6)
        billed = self.billed("part", "job")
        self.assertEqual(billed[1], 0)
        for index, seconds in ((2, first), (0, second)):
            self.assertAlmostEqual(billed[index], seconds, places=6)
        after = self.billed("device", None)
        for index in range(3):
            self.assertAlmostEqual(after[index] - before[index], billed[index], places=6)
        [record] = self.host.call("GetAccounting", name="job")["records"]
        self.assertAlmostEqual(record["gpu_seconds"], first + second, places=6)
        self.assertEqual(record["memory_peak"], 32 * MIB)
        for part, peak in zip(vgpu["parts"], (8 * MIB, 24 * MIB)):
            until(lambda p=part: self.account(p, guest.pid)[0] > 0, "the account on the state page", context=guest.context)
            self.assertEqual(self.account(part, guest.pid)[1], peak)
        self.end(guest)

    def test_only_the_device_that_works_is_busy(self):
        vgpu = self.make("job", "0,1")
        guest = self.guest("job")

        def look():
            self.tell(guest, f"busy 1 {self.BUSY_US}")
            return self.now("job")["parts"][1]["gpu"] > 0
        until(look, "a sample of the device that works", context=guest.context)
        now = self.now("job")
        self.assertEqual(now["parts"][0]["gpu"], 0)
        self.assertEqual(now["gpu"], now["parts"][1]["gpu"] // 2)
        self.assertEqual(self.account(vgpu["parts"][0], guest.pid)[0], 0)
        self.end(guest)

    def test_another_manager_counts_on_by_device(self):
        self.make("job", "0,1")
        guest, ended = self.guest("job"), self.guest("job")
        self.assertEqual(self.tell(ended, f"busy 0 {self.BUSY_US}"), "done")
        self.end(ended)
        self.assertEqual(self.tell(guest, f"busy 1 {self.BUSY_US}"), "done")
        self.billed("part", "job")  # who asks has all written first
        self.host.kill()
        self.host.start()
        self.assertEqual(self.tell(guest, f"busy 1 {self.BUSY_US}"), "done")
        first, second = self.seconds("job")
        self.assertEqual(first, 0)
        self.assertGreaterEqual(second, 2 * self.BUSY_US / 1e6)
        billed = self.billed("part", "job")
        self.assertGreaterEqual(billed[0], self.BUSY_US / 1e6)
        self.assertAlmostEqual(billed[1], second, places=6)
        parts = self.host.get("job")["parts"]
        until(lambda: self.account(parts[0], ended.pid)[0] > 0, "the account on the state page", context=guest.context)
        self.assertEqual(self.account(parts[1], ended.pid)[0], 0)
        self.end(guest)

    def test_each_device_tells_what_is_its_own(self):
        vgpu = self.make("job", "2,0")
        ids = [part["id"] for part in vgpu["parts"]]
        rows = self.host.vgpu("licence", "--json").json["licences"]
        self.assertEqual(sorted((row["id"], row["name"]) for row in rows), sorted((id, "job") for id in ids))
        self.assertIn("job: once a program has run in it, leaves GPUs 2,0 after", self.host.vgpu("idle", "job", "1h").output)
        guest = self.guest("job")
        self.assertEqual(self.tell(guest, "hold 1 24M"), "held")
        self.assertEqual(self.tell(guest, f"busy 1 {self.BUSY_US}"), "done")
        second = self.seconds("job")[1]
        for index, seconds in ((2, 0), (0, second)):
            [shown] = self.host.call("GetScheduler", device=str(index))["vgpus"]
            self.assertAlmostEqual(shown["received"], seconds, places=6)
            self.assertEqual((shown["enforced"], shown["entitled"]), (True, 100))
        self.host.call("SuspendVgpu", name="job")
        self.assertEqual([self.host.device(index)["memory_swapped"] for index in range(3)], [24 * MIB, 0, 0])
        self.assertFalse(self.host.call("GetScheduler", device="0")["vgpus"][0]["enforced"])
        self.host.call("ResumeVgpu", name="job")
        self.end(guest)


class Refused(Case):
    def answer(self, vgpu, version):
        """What a process that joins is answered: each is one of its own."""
        done = subprocess.run([sys.executable, "-c", JOIN, self.host.run_directory, vgpu["uuid"], str(version)],
                              capture_output=True, text=True, cwd=os.path.dirname(__file__) or ".", timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout)

    def test_a_gate_of_an_older_version_joins_only_those_of_one_device(self):
        several, one = self.make("job", "0,1"), self.make("one", "2")
        self.assertEqual(self.answer(one, 5), Gate.WELCOME)
        self.assertEqual(self.answer(several, 5), Gate.REFUSED)
        for version in (6, 8, Gate.NEWEST):
            self.assertEqual(self.answer(several, version), Gate.WELCOME)
            self.assertEqual(self.answer(one, version), Gate.WELCOME)
        for name in ("one", "job"):
            self.host.wait_for(name, lambda v: not v["processes"], "to be empty")


class Overcommitted(Case):
    HOST = {"devices": "3xH200:1G", "options": ("--overcommit", "2,7")}

    def test_an_option_for_a_device_that_is_not_there_is_told(self):
        self.assertRegex(self.host.log(), r"option=--overcommit device=7 devices=3")
        self.assertNotRegex(self.host.log(), r"option=--\S+ device=2 ")

    def test_all_devices_of_one_are_overcommitted_or_none(self):
        for way in (("create", "job", "--device", "0,2"), ("create", "job", "--device", "2,1")):
            self.assertRegex(self.refused(*way, "--fb", "64M"), "device 2 is overcommitted and device [01] is not: a vGPU "
                             "takes turns on all of its devices, or on none\nhint: choose devices that are all")
        self.assertRegex(self.refused("create", "job", "--fb", "64M", "--devices", "3"),
                         "2 of 3 devices .* some devices are overcommitted and others are not")
        vgpu = self.host.call("CreateVgpu", name="job", frame_buffer=64 * MIB, devices=2)["vgpu"]
        self.assertEqual([part["device"] for part in vgpu["parts"]], [0, 1])
        self.assertIn("device 2 is overcommitted", self.refused("migrate", "job", "--device", "0,2"))


class Kept(Case):
    """vgpud is started anew with --overcommit for devices that have a vGPU of several."""
    HOST = {"devices": "2xH200:256M", "pool": "1G", "options": ("--swap-time", "50")}

    def tearDown(self):
        super().tearDown()
        self.start_anew()

    def start_anew(self, *options):
        self.host.stop()
        before = self.host.options[:]
        self.host.options += options
        self.host.start()
        self.host.options = before

    def train(self, name, device, *options):
        self.host.create(name, "200M", device)
        return self.host.train(name, "--size", "110M", "--piece", "11M", *options)

    def finish(self, guest):
        guest.signal(signal.SIGTERM)
        guest.process.stdin.close()
        self.assertEqual(guest.join(), 0, guest.context())

    def test_it_stays_and_the_others_make_room_for_each_other(self):
        """Only some of its devices are: on the others its room might be gone when it comes back."""
        for devices, overcommitted in (("0,1", "0"), ("0,1", "1"), ("1,0", "1")):
            with self.subTest(devices=devices, overcommitted=overcommitted):
                self.make("job", devices)
                guest = self.start()
                self.start_anew("--overcommit", overcommitted)
                others = [self.train(f"v{device}{i}", device) for device in (0, 1) for i in (1, 2)
                          if overcommitted == str(device)]
                for other in (*others, *others):
                    other.wait_steps(2)
                self.check(guest)
                self.assertNotRegex(self.host.log(), "leaves by itself vgpu=job")
                self.assertEqual(self.host.get("job")["state"], "running")
                for other in others:
                    self.finish(other)
                self.end(guest)
                for name in self.host.names():
                    self.host.wait_state(name, "idle")
                    self.host.vgpu("rm", name)
                self.start_anew()

    def test_who_was_away_comes_back_to_all_of_its_devices(self):
        """It has more than one of them has: only a part of that is to come there."""
        self.make("job", "0,1", 200)
        guest = self.guest("job")
        for line in ("hold 0 140M", "hold 1 140M"):
            self.assertEqual(self.tell(guest, line), "held")
        for overcommitted in ("all", "0", "1"):
            with self.subTest(overcommitted=overcommitted):
                for line in ("fill 0 17", "fill 1 34"):
                    self.assertEqual(self.tell(guest, line), "filled")
                self.call("SetVgpuIdle", idle_after=0.2)
                self.host.wait_state("job", "suspended")
                self.call("SetVgpuIdle", idle_after=3600)
                self.start_anew("--overcommit", overcommitted)
                for line in ("check 0 17", "check 1 34"):
                    self.assertEqual(self.tell(guest, line), "right", self.host.log())
                self.start_anew()
        self.end(guest)


if __name__ == "__main__":
    case.main()
