#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nvidia-smi of Debian, unmodified, shows what the scenarios of share/scenarios/ have set.

Each class plays one scenario in a vgpud of its own; what is expected is read from the scenario.
"""
import ctypes
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "system"))

import case  # noqa: E402
import packages  # noqa: E402
import stage  # noqa: E402
from host import Host  # noqa: E402
from wait import until  # noqa: E402

SCENARIOS = pathlib.Path(__file__).parents[2] / "share" / "scenarios"
SMI = None


class Scenario(unittest.TestCase):
    NAME = None

    @classmethod
    def setUpClass(cls):
        path = SCENARIOS / f"{cls.NAME}.json"
        cls.document = json.loads(path.read_text())
        cls.vgpus = {vgpu["name"]: vgpu for vgpu in cls.document["vgpus"]}
        cls.host = Host()
        cls.host.options = ["--scenario", str(path)]
        cls.host.start()
        cls.addClassCleanup(cls.host.close, expect_clean=False)  # what it plays is in use
        cls.library = cls.host.info()["nvml_path"]

    def environment(self):
        return self.host.environment(LD_LIBRARY_PATH=self.library)

    def smi(self, *arguments, code=0):
        done = subprocess.run([SMI, *arguments], env=self.environment(), text=True, timeout=20,
                              capture_output=True)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    def smi_loop(self, *arguments, lines):
        """The first lines of one of the views that never end."""
        client = subprocess.Popen(["stdbuf", "-oL", SMI, *arguments], text=True,
                                  env=self.environment(), stdout=subprocess.PIPE)
        try:
            return "".join(client.stdout.readline() for _ in range(lines))
        finally:
            client.kill()
            client.stdout.close()
            client.wait()

    def nvml(self):
        """Our library in this process, for what nvidia-smi does not show."""
        nvml = ctypes.CDLL(os.path.join(self.library, "libnvidia-ml.so.1"))
        os.environ["OPENVGPU_RUN"] = self.host.run_directory
        self.addCleanup(os.environ.pop, "OPENVGPU_RUN")
        self.assertEqual(nvml.nvmlInit_v2(), 0)
        self.addCleanup(nvml.nvmlShutdown)
        return nvml

    def device(self, nvml, index):
        handle = ctypes.c_void_p()
        self.assertEqual(nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)), 0)
        return handle

    def query(self):
        """What `nvidia-smi vgpu -q` says of each vGPU: its fields by its VM's name."""
        found = {}
        for block in re.split(r"(?m)^ +vGPU ID +: ", self.smi("vgpu", "-q"))[1:]:
            fields = {}
            for name, value in re.findall(r"(?m)^ +(\S[^:\n]*?) +: ?(.*)$", block):
                fields.setdefault(name, value)
            found[fields["VM Name"]] = {"vGPU ID": block.split()[0], **fields}
        self.assertEqual(set(found), set(self.vgpus))
        for name, fields in found.items():
            self.assertEqual(fields["vGPU ID"], str(self.vgpus[name]["id"]))
            self.assertEqual(fields["vGPU Name"], f"NVIDIA {self.vgpus[name]['type']}")
        return found


class Licences(Scenario):
    NAME = "licences"

    def test_every_state_and_expiry(self):
        shown = {name: fields["License Status"] for name, fields in self.query().items()}
        self.assertEqual(shown, {
            "until-2027": "Licensed (Expiry: 2027-3-31 23:59:59 GMT)",
            "for-ever": "Licensed (Expiry: Permanent)",
            "expired": "Unlicensed",
            "grace": "Unlicensed (Unrestricted)",
            "restricted": "Unlicensed (Restricted)",
            "never-asked": "Unlicensed",
            "who-knows": shown["who-knows"],  # nvidia-smi's own word for a state without a name
        })
        self.assertNotIn("Licensed", shown["who-knows"].split())

    def test_the_device_has_its_licensed_product(self):
        nvml, features = self.nvml(), ctypes.create_string_buffer(860)
        handle = self.device(nvml, 0)
        self.assertEqual(nvml.nvmlDeviceGetGridLicensableFeatures_v4(handle, features), 0)
        head = struct.unpack_from("<iIII", features)
        self.assertEqual(head, (1, 1, 1, 1))  # supported, one, of a vGPU, licensed
        product = features.raw[8 + 136:8 + 264].split(b"\0")[0].decode()
        self.assertEqual(product, self.document["devices"][0]["features"][0]["product"])
        self.assertEqual(struct.unpack_from("<IHHHHHB", features, 8 + 268),
                         (2027, 3, 31, 23, 59, 59, 2))


class Mig(Scenario):
    NAME = "mig"

    def test_vgpus_have_the_gpu_instances_that_were_set(self):
        shown = {name: fields["GPU Instance ID"] for name, fields in self.query().items()}
        self.assertEqual(shown, {name: str(vgpu.get("gpu_instance", "N/A"))
                                 for name, vgpu in self.vgpus.items()})

    def test_creatable_is_what_an_unused_gpu_instance_can_hold(self):
        lines = [line.strip() for line in self.smi("vgpu", "-c", "-i", "0").splitlines()[1:]]
        self.assertEqual([line for line in lines if line], ["NVIDIA H100XM-2-20C"])


class MigDevices(Scenario):
    NAME = "compute-instances"

    def devices(self, gpu):
        """Of `nvidia-smi -L`, as {name: UUID}, by their order."""
        block = re.split(r"(?m)^GPU ", self.smi("-L"))[gpu + 1]
        return dict(re.findall(r"(?m)^ +MIG (\S+) +Device +\d+: \(UUID: (\S+)\)$", block))

    def test_compute_instances_are_devices(self):
        found = self.devices(0)
        self.assertEqual(list(found), ["1c.3g.20gb", "2c.3g.20gb", "2g.10gb"])
        self.assertEqual(found["1c.3g.20gb"], "MIG-b5c1b1a0-0000-4000-8000-000000000001")
        rows = re.findall(r"(?m)^\| +0 +(\d+) +(\d+) +(\d+) +\|(?: +0MiB / +(\d+)MiB)?",
                          self.smi("-i", "0"))
        self.assertEqual(rows, [("1", "0", "0", "19968"), ("1", "4", "1", ""),  # of one GPU instance
                                ("2", "0", "2", "9984")])

    def test_each_has_a_block_of_its_own(self):
        blocks = re.split(r"(?m)^ +MIG Device$", self.smi("-q", "-i", "0"))[1:]
        found = [re.findall(r" (?:Index|GPU Instance ID|Compute Instance ID|Multiprocessor count) +: (\d+)",
                            block)[:4] for block in blocks]
        self.assertEqual(found, [["0", "1", "0", "14"], ["1", "1", "4", "28"], ["2", "2", "0", "28"]])

    def test_instances_are_made_and_ended(self):
        self.assertEqual(self.devices(1), {})
        self.assertIn("created compute instance ID  0", self.smi("mig", "-i", "1", "-cgi", "9,19", "-C"))
        self.assertEqual(list(self.devices(1)), ["3g.40gb", "1g.10gb"])
        self.assertRegex(self.smi("mig", "-lgip", "-i", "1"), r"MIG 2g.20gb +14 +1/3 ")
        self.assertIn("Insufficient Resources", self.smi("mig", "-i", "1", "-cgi", "0", code=23))
        self.assertIn("In use", self.smi("mig", "-i", "1", "-dgi", code=19))
        self.smi("mig", "-i", "1", "-dci")
        self.smi("mig", "-i", "1", "-dgi")
        self.assertRegex(self.smi("mig", "-lgip", "-i", "1"), r"MIG 7g.80gb +0 +1/1 ")


class NvLink(Scenario):
    NAME = "nvlink"

    def test_devices_are_connected_by_links(self):
        text = re.sub(r"\x1b\[\d*m", "", self.smi("topo", "-m"))
        rows = [line.split("\t")[1:7] for line in text.splitlines() if line.startswith("GPU")]
        self.assertEqual([[cell.strip() for cell in row] for row in rows], [
            ["X", "NV18", "NV18", "NV18", "SYS", "SYS"], ["NV18", "X", "NV18", "NV18", "SYS", "SYS"],
            ["NV18", "NV18", "X", "NV18", "SYS", "SYS"], ["NV17", "NV17", "NV17", "X", "SYS", "SYS"],
            ["SYS", "SYS", "SYS", "SYS", "X", "NV12"], ["SYS", "SYS", "SYS", "SYS", "NV12", "X"]])

    def test_a_control_group_has_a_limit(self):
        nvml, path = self.nvml(), self.host.run_directory.encode()

        class Limits(ctypes.Structure):
            _fields_ = [("path", ctypes.c_char_p), ("soft", ctypes.c_uint64),
                        ("hard", ctypes.c_uint64), ("used", ctypes.c_uint64)]

        def get(index):
            limits = Limits(path)
            self.assertEqual(nvml.nvmlDeviceGetMemoryLimits_v1(self.device(nvml, index),
                                                               ctypes.byref(limits)), 0)
            return limits.soft, limits.hard, limits.used

        def change(soft, hard):
            limits = Limits(path, soft, hard)
            return nvml.nvmlDeviceSetMemoryLimits_v1(self.device(nvml, 0), ctypes.byref(limits))
        nothing = 0, 2 ** 64 - 1, 0
        self.assertEqual(change(4 << 30, 8 << 30), 0)
        self.assertEqual((get(0), get(1)), ((4 << 30, 8 << 30, 0), nothing))
        self.assertEqual(change(0, 2 ** 64 - 1), 0)
        self.assertEqual(get(0), nothing)

    def test_links_have_state_and_errors(self):
        speeds = re.findall(r"Link (\d+): (.*)", self.smi("nvlink", "-s", "-i", "3"))
        self.assertEqual(dict(speeds)["4"], "26.562 GB/s")
        self.assertEqual(dict(speeds)["5"], "<inactive>")
        self.assertEqual(len(speeds), 18)
        self.assertIn("Link 0: Replay Errors: 12", self.smi("nvlink", "-e", "-i", "3"))
        self.assertIn("Link 11: 00000000:0B:00.0", self.smi("nvlink", "-p", "-i", "4"))


class NoDriver(Scenario):
    NAME = "no-driver"

    def test_what_only_the_driver_knows_is_not_available(self):
        shown = self.query()
        for name in ("bare", "booting"):
            self.assertEqual(shown[name]["Guest Driver Version"], "N/A")
            self.assertEqual(shown[name]["License Status"], "N/A (Expiry: N/A)")
            self.assertEqual(shown[name]["Accounting Mode"], "N/A")
        self.assertEqual(shown["bare"]["Bus Id"], "00000000:00:00.0")
        self.assertEqual(shown["booting"]["Bus Id"], "")
        for field, value in (("Guest Driver Version", "550.54.14"), ("Bus Id", "00000000:02:04.0"),
                             ("MDEV UUID", "a8f5f167-f44f-4964-9e6b-2c1d1f6a0b11"),
                             ("Accounting Mode", "Enabled")):
            self.assertEqual(shown["up"][field], value)


class Lost(Scenario):
    NAME = "lost"

    def test_a_device_that_fell_off_the_bus(self):
        nvml = self.nvml()
        handle, number = ctypes.c_void_p(), ctypes.c_uint()
        until(lambda: nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 15,
              "the device to be lost")
        mode = nvml.nvmlDeviceGetVirtualizationMode
        self.assertEqual(mode(self.device(nvml, 1), ctypes.byref(number)), 0)
        self.assertIn("GPU is lost", self.smi("vgpu", code=15))
        self.assertIn("NVIDIA H200", self.smi("-L", code=15))
        self.assertRegex(self.smi("-q", "-i", "1"), "Virtualization Mode +: Host VGPU")


class Sessions(Scenario):
    NAME = "sessions"

    def test_each_session_has_a_row(self):
        vgpu = self.vgpus["designer"]
        rows = [line.split() for line in self.smi_loop("vgpu", "-es", lines=5).splitlines()[2:]]
        codecs = {"H.264": "H.264", "HEVC": "H.265", "AV1": "AV1"}
        for row, session in zip(rows, vgpu["encoder_sessions"]):
            self.assertEqual(row, ["0", str(vgpu["id"]), str(session["id"]), str(session["pid"]),
                                   codecs[session["codec"]], str(session["width"]),
                                   str(session["height"]), str(session["fps"]),
                                   str(session["latency"])])
        self.assertEqual(rows[2][:3], ["0", str(self.vgpus["watcher"]["id"]), "-"])
        rows = [line.split() for line in self.smi_loop("vgpu", "-fs", lines=4).splitlines()[2:]]
        self.assertEqual(rows[0][1:7], [str(vgpu["id"]), "11", "777", "0", "HWEnc", "Enabled"])
        self.assertEqual(rows[1][1:7], [str(vgpu["id"]), "12", "777", "1", "ToSys", "Disabled"])
        self.assertEqual(rows[0][-4:], ["1920", "1080", "30", "1500"])
        self.assertEqual(rows[1][-4:], ["0", "0", "0", "0"])

    def test_averages_and_processes(self):
        text = self.smi("vgpu", "-q")
        self.assertRegex(text, r"Encoder Stats\s+Active Sessions +: 2\s+Average FPS +: 45\s+"
                               r"Average Latency +: 3000")
        text = self.smi()
        self.assertRegex(text, r"777 +G +dwm.exe +900MiB")
        self.assertRegex(text, r"778 +C\+G +cad.exe +5120MiB")


class Schedulers(Scenario):
    NAME = "schedulers"

    def test_each_device_has_its_policy(self):
        blocks = re.split(r"(?m)^GPU ", self.smi("vgpu", "-ss"))[1:]
        self.assertRegex(blocks[0], r"Scheduler Policy +: Best Effort")
        for pattern in (r"Policy +: Equal Share", r"ARR Mode +: Enabled", r"Factor +: 20",
                        r"Time Slice\(ns\) +: 2500000"):
            self.assertRegex(blocks[1], pattern)
        for pattern in (r"Policy +: Fixed Share", r"ARR Mode +: Disabled",
                        r"Time Slice\(ns\) +: 5000000"):
            self.assertRegex(blocks[2], pattern)


class Load(Scenario):
    NAME = "load"

    def test_utilization_follows_its_curves(self):
        rows = [line.split() for line in self.smi_loop("vgpu", "-u", lines=12).splitlines()
                if not line.startswith("#")]
        wave = [int(row[2]) for row in rows if row[1] == str(self.vgpus["wave"]["id"])]
        steps = [int(row[2]) for row in rows if row[1] == str(self.vgpus["steps"]["id"])]
        self.assertTrue(wave and steps, rows)
        self.assertTrue(all(5 <= value <= 60 for value in wave), wave)
        self.assertGreater(len(set(wave)), 1)
        self.assertTrue(set(steps) <= {0, 4, 35, 39}, steps)

    def test_a_process_that_ended_leaves_its_account(self):
        def accounts():
            text = self.smi("vgpu", "--query-accounted-apps=vgpu_instance,pid,gpu_util,max_memory_usage,time",
                            "--format=csv,noheader")
            return {int(line.split(",")[1]): line for line in text.splitlines()}
        until(lambda: "512 MiB" in accounts().get(601, "") and "0 ms" not in accounts()[601].split(", "),
              "the short process to end")
        self.assertIn("44 %, 3072 MiB, 92000 ms", accounts()[590])
        self.assertRegex(accounts()[500], r", 0 ms$")

    def test_a_vgpu_comes_when_it_is_time(self):
        until(lambda: "visitor" in self.smi("vgpu"), "the visitor to come")


class Ecc(Scenario):
    NAME = "ecc"

    def test_ecc_is_on_off_or_not_there(self):
        shown = {name: fields["ECC Mode"] for name, fields in self.query().items()}
        self.assertEqual(shown, {"with": "Enabled", "without": "Disabled", "unknown": "N/A"})
        modes = self.smi("--query-gpu=ecc.mode.current,ecc.mode.pending,"
                         "ecc.errors.corrected.aggregate.total", "--format=csv,noheader")
        self.assertEqual(modes.splitlines(), ["Enabled, Enabled, 2017", "Disabled, Enabled, [N/A]",
                                              "[N/A], [N/A], [N/A]"])


class Heterogeneous(Scenario):
    NAME = "heterogeneous"

    def test_placements_are_those_that_were_set(self):
        nvml, shown = self.nvml(), {}
        for name, vgpu in self.vgpus.items():
            placement = (ctypes.c_uint * 2)(0x01000008, 7)
            self.assertEqual(nvml.nvmlVgpuInstanceGetPlacementId(ctypes.c_uint(vgpu["id"]), placement), 0)
            shown[name] = placement[1]
        self.assertEqual(shown, {"half": 20, "quarter": 0, "eighth": 15, "uniform-1": 0xffff,
                                 "uniform-2": 0xffff})

    def test_creatable_types_go_by_free_slots_or_by_the_running_size(self):
        blocks = re.split(r"(?m)^GPU .*\n", self.smi("vgpu", "-c"))[1:]
        names = [[line.strip() for line in block.splitlines() if line.strip()] for block in blocks]
        self.assertEqual(names, [["NVIDIA A100X-5C", "NVIDIA A100X-4C"], ["NVIDIA A100X-8C"]])


def main():
    global SMI
    stage.make()
    try:
        root = packages.fetch(os.environ["TEST_PACKAGES"], *packages.NAMES, rare=packages.RARE)
    except packages.Missing as error:
        print(f"1..0 # SKIP Debian's packages cannot be had: {error}")
        return
    SMI = str(next(path for path in root.resolve().rglob("nvidia-smi")
                   if path.is_file() and "share" not in path.parts))
    result = case.TapResult()
    names = sys.argv[1:]
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(names, sys.modules["__main__"]) if names else \
        loader.loadTestsFromModule(sys.modules["__main__"])
    suite.run(result)
    print(f"1..{result.n}")
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
