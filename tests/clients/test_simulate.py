#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Debian's nvidia-smi, nvtop, gpustat and pynvml in 'vgpu simulate': do they show what the scenario says?"""
import json
import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
import unittest

SYSTEM = pathlib.Path(__file__).parents[1] / "system"
sys.path.insert(0, str(SYSTEM))

import case  # noqa: E402
import packages  # noqa: E402
import stage  # noqa: E402
from wait import PATIENCE  # noqa: E402

EXAMPLES = pathlib.Path(__file__).parents[2] / "share" / "scenarios"
ROOT = None


def find(name):
    return str(next(path for path in ROOT.rglob(name) if path.is_file() and os.access(path, os.X_OK)
                    and "share" not in path.parts))


class Simulated(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("OPENVGPU_", "TEST_")) and name != "LD_LIBRARY_PATH"}
        directory = tempfile.TemporaryDirectory(prefix="vg-")
        cls.addClassCleanup(directory.cleanup)
        cls.environment = {**kept, "HOME": directory.name, "TERM": "xterm",
                           "PYTHONPATH": str(next(ROOT.rglob("pynvml.py")).parent)}
        cls.directory = directory.name

    def run_in(self, scenario, *command, code=0):
        done = subprocess.run([str(stage.VGPU), "simulate", str(scenario), "--", *command],
                              env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=2 * PATIENCE)
        self.assertEqual(done.returncode, code, f"{command}: {done.stdout}{done.stderr}")
        return done.stdout

    def smi(self, scenario, *arguments, **options):
        return self.run_in(scenario, find("nvidia-smi"), *arguments, **options)

    def views(self, scenario, *views):
        """The first lines of views that never end, of one run."""
        script = "".join(f"timeout 10 stdbuf -oL {find('nvidia-smi')} vgpu {view} | head -6;"
                         for view in views)
        return self.run_in(scenario, "sh", "-c", script)

    def vgpus(self, scenario):
        """What 'nvidia-smi vgpu -q' says of each vGPU: {name: {field: value}}."""
        found = {}
        for block in self.smi(scenario, "vgpu", "-q").split("vGPU ID")[1:]:
            fields = dict(re.findall(r"(?m)^ +([^:\n]+?) +: (.*)$", block))
            found[fields["VM Name"]] = fields
        return found


class Examples(Simulated):
    def test_every_example_is_shown_by_every_view(self):
        for path in EXAMPLES.glob("*.json"):
            document = json.loads(path.read_text())
            with self.subTest(path.stem):
                names = [vgpu["name"] for vgpu in document["vgpus"] if not vgpu.get("from")]
                shown = self.vgpus(path.stem)
                if not any("lost_at" in device for device in document["devices"]):
                    self.assertLessEqual(set(names), {re.sub("^vm-", "tenant-", name)
                                                      for name in shown} | set(shown))
                smi = find("nvidia-smi")
                text = self.run_in(path.stem, "sh", "-c", f"for view in -L '' -q vgpu 'vgpu -s -v' "
                                   "'vgpu -c' 'vgpu -ss' 'vgpu -sc' 'vgpu -m'; do "
                                   f"{smi} $view; done; true")
                self.assertNotRegex(packages.without_internals(text), r"ERR!|Unknown Error|Uninitialized")

    def test_plain(self):
        shown = self.vgpus("plain")
        self.assertEqual(shown["vm-a"]["VM UUID"], "7d1f3c50-5a0e-4c2e-9a63-1f0a5e6b2c01")
        self.assertEqual(shown["vm-b"]["VM ID"], "12")
        self.assertEqual(shown["vm-a"]["vGPU Name"], "NVIDIA H200-35C")
        self.assertEqual(shown["vm-a"]["Used"], "6000 MiB")
        self.assertEqual(shown["vm-a"]["Gpu"], "20 %")
        text = self.smi("plain")
        self.assertRegex(text, r"4242 +C +train.py +6000MiB")
        self.assertIn("41%", text)

    def test_licences(self):
        shown = {name: fields["License Status"] for name, fields in self.vgpus("licences").items()}
        self.assertEqual(shown, {
            "until-2027": "Licensed (Expiry: 2027-3-31 23:59:59 GMT)",
            "for-ever": "Licensed (Expiry: Permanent)", "expired": "Unlicensed",
            "grace": "Unlicensed (Unrestricted)", "restricted": "Unlicensed (Restricted)",
            "never-asked": "Unlicensed", "who-knows": "Unlicensed"})

    def test_mig(self):
        shown = self.vgpus("mig")
        self.assertEqual({name: fields["GPU Instance ID"] for name, fields in shown.items()},
                         {"large": "1", "small": "7", "beside": "N/A"})
        self.assertEqual(shown["large"]["vGPU Name"], "NVIDIA H100XM-3-40C")
        creatable = self.smi("mig", "vgpu", "-c").split("GPU 0")
        self.assertEqual([part.split()[1:] for part in creatable[1:]],
                         [["NVIDIA", "H100XM-2-20C"], ["NVIDIA", "H100XM-40C"]])
        self.assertIn("Enabled", self.smi("mig", "--query-gpu=mig.mode.current", "--format=csv"))
        profiles = self.smi("mig", "mig", "-lgip", "-i", "0")  # the other one is not in MIG mode: some end with an error
        self.assertEqual(re.findall(r"MIG (\S+) +\d+ +(\d+/\d+)", profiles),
                         [("1g.10gb", "0/7"), ("1g.10gb+me", "0/1"), ("1g.20gb", "0/4"),
                          ("2g.20gb", "0/3"), ("3g.40gb", "0/2"), ("4g.40gb", "0/1"),
                          ("7g.80gb", "0/1")])
        placements = self.smi("mig", "mig", "-lgipp")
        self.assertRegex(placements, r"Profile ID 14 Placements: +\{0,2,4\}:2")
        self.assertRegex(placements, r"Profile ID +5 Placement : \{0\}:4")

    def test_heterogeneous(self):
        creatable = self.smi("heterogeneous", "vgpu", "-c").split("GPU 0")
        self.assertIn("A100X-5C", creatable[1])
        self.assertNotIn("A100X-10C", creatable[1])
        self.assertEqual(creatable[2].split()[1:], ["NVIDIA", "A100X-8C"])
        script = ("import pynvml as n; n.nvmlInit()\n"
                  "for i in range(2):\n"
                  "  d = n.nvmlDeviceGetHandleByIndex(i)\n"
                  "  print(*sorted(n.nvmlDeviceGetActiveVgpus(d)))")
        self.assertEqual(self.run_in("heterogeneous", sys.executable, "-c", script).split(),
                         ["3251634501", "3251634502", "3251634503", "3251634504", "3251634505"])

    def test_sessions(self):
        text = self.views("sessions", "-es", "-fs", "-p", "-u")
        self.assertRegex(text, r"3251634601 +1 +777 +H\.264 +1920 +1080 +30 +2000")
        self.assertRegex(text, r"3251634601 +2 +777 +H\.265 +3840 +2160 +60 +4000")
        self.assertRegex(text, r"3251634601 +11 +777 +0 +HWEnc +Enabled")
        self.assertRegex(text, r"3251634601 +778 +31 +11 +0 +0 +(0 +0 +)?cad.exe")
        self.assertRegex(text, r"3251634601 +43 +11 +9 +0")
        fields = self.vgpus("sessions")["designer"]
        self.assertEqual(fields["Frame Rate Limit"], "60 FPS")

    def test_guests_without_a_driver(self):
        shown = self.vgpus("no-driver")
        self.assertEqual(shown["bare"]["Bus Id"], "00000000:00:00.0")
        for name in ("bare", "booting"):
            self.assertEqual(shown[name]["License Status"], "N/A (Expiry: N/A)")
            self.assertEqual(shown[name]["Accounting Mode"], "N/A")
            self.assertEqual(shown[name]["Guest Driver Version"], "N/A")
        self.assertEqual(shown["up"]["Guest Driver Version"], "550.54.14")
        self.assertEqual(shown["up"]["Bus Id"], "00000000:02:04.0")
        self.assertEqual(shown["up"]["MDEV UUID"], "a8f5f167-f44f-4964-9e6b-2c1d1f6a0b11")

    def test_ecc(self):
        text = self.smi("ecc", "--query-gpu=ecc.mode.current,ecc.mode.pending,"
                        "ecc.errors.uncorrected.volatile.total", "--format=csv,noheader")
        self.assertEqual(text.splitlines(), ["Enabled, Enabled, 1", "Disabled, Enabled, [N/A]",
                                             "[N/A], [N/A], [N/A]"])
        text = self.smi("ecc", "-q", "-i", "0")
        for field, value in (("DRAM Correctable", "1[78]"), ("DRAM Uncorrectable", "1"),
                             ("DRAM Correctable", "2017"), ("DRAM Uncorrectable", "3"),
                             ("SRAM Correctable", "0")):
            self.assertRegex(text, rf"(?m)^ +{field} +: {value}$")
        self.assertEqual({name: fields["ECC Mode"] for name, fields in self.vgpus("ecc").items()},
                         {"with": "Enabled", "without": "Disabled", "unknown": "N/A"})

    def test_schedulers(self):
        text = self.smi("schedulers", "vgpu", "-ss")
        self.assertRegex(text, r"Equal Share\n.*Enabled\n.*Average Factor +: 20\n.*: 2500000")
        self.assertRegex(text, r"Fixed Share\n.*Disabled\n.*Time Slice\(ns\) +: 5000000")
        self.assertIn("Fixed Share", self.smi("schedulers", "vgpu", "-sc"))

    def test_boards(self):
        shown = {name: fields["vGPU Name"] for name, fields in self.vgpus("boards").items()}
        self.assertEqual(shown["on-t4"], "NVIDIA T4-2B")
        self.assertEqual(shown["on-rtx6000ada"], "NVIDIA RTX6000-Ada-24Q")
        self.assertEqual(len(self.smi("boards", "-L").splitlines()), 7)

    def test_load_changes(self):
        script = (f"smi={find('nvidia-smi')}; for i in $(seq 100); do $smi vgpu > $HOME/now;"
                  " grep -q visitor $HOME/now && break; sleep 0.1; done; cat $HOME/now;"
                  " $smi vgpu --query-accounted-apps=pid,gpu_util,max_memory_usage,time"
                  " --format=csv,noheader")
        text = self.run_in("load", "sh", "-c", script)
        self.assertIn("visitor", text)
        self.assertRegex(text, r"590, 44 %, 3072 MiB, 92000 ms")
        self.assertRegex(text, r"601, 4 %, 512 MiB, [1-9][0-9]{3,} ms")
        self.assertRegex(text, r"500, .*, 0 ms")

    def test_load_is_measured(self):
        text = self.smi("load", "-q")
        self.assertRegex(text, r"(?m)^ +(Instantaneous )?Power Draw +: [1-6][0-9]{2}\.[0-9]{2} W$")
        self.assertRegex(text, r"(?m)^ +Current Power Limit +: 700\.00 W$")
        names = self.smi("load", "--query-compute-apps=name", "--format=csv,noheader")
        self.assertEqual(names.split()[:2], ["trainer", "batch"])

    def test_a_lost_device(self):
        script = (f"smi={find('nvidia-smi')}; for i in $(seq 100); do"
                  " $smi -L > $HOME/now; grep -q lost $HOME/now && break; sleep 0.1; done;"
                  " cat $HOME/now")
        text = self.run_in("lost", "sh", "-c", script)
        self.assertRegex(text, r"(?s)gpu 0: GPU is lost.*GPU 1: NVIDIA H200")


class OtherClients(Simulated):
    def test_nvtop_shows_the_load(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(stage.VGPU, ["vgpu", "simulate", "plain", "--", find("nvtop")],
                      self.environment)
        seen, end = "", time.monotonic() + PATIENCE
        try:
            while time.monotonic() < end and not ("4242" in seen and "Device 1" in seen):
                if select.select([terminal], [], [], 0.2)[0]:
                    seen += os.read(terminal, 65536).decode(errors="replace")
        except OSError:
            pass  # it ended by itself: the assertions say what is missing
        finally:
            os.kill(pid, 15)
            os.waitpid(pid, 0)
            os.close(terminal)
        self.assertRegex(seen, "NVIDIA H200")
        self.assertIn("4242", seen)

    def test_gpustat_shows_devices_and_processes_that_exist(self):
        if subprocess.run([sys.executable, "-c", "import psutil"], env=self.environment,
                          stderr=subprocess.DEVNULL).returncode:
            self.skipTest("Debian's psutil is for another Python than this one")
        sleeper = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        path = pathlib.Path(self.directory, "real.json")
        path.write_text(json.dumps({
            "openvgpu_scenario": 1,
            "devices": [{"board": "H200", "sensors": {"temperature": 41, "power": 135000,
                                                      "power_limit": 700000, "fan": 30}},
                        {"board": "H100", "mig": True}],
            "vgpus": [{"name": "a", "type": "H200-35C", "processes": [
                {"pid": sleeper.pid, "name": "sleep", "memory": "6G",
                 "utilization": {"gpu": 30, "encoder": 7}}]}]}))
        text = self.run_in(path, sys.executable, "-m", "gpustat", "-a", "--no-color")
        self.assertRegex(text, rf"\[0\] NVIDIA H200 +\| 41°C, +30 %, +30 % \(E: +7 % +D: +0 %\), +"
                         rf"135 / 700 W \| +6144 / 143770 MB \| \S+:sleep/{sleeper.pid}\(6144M\)")
        self.assertRegex(text, r"\[1\] NVIDIA H100 .*\?\?°C.* 0 / 81558 MB")

    def test_pynvml_reads_a_device_that_falls_off(self):
        script = ("import sys; sys.path.insert(0, sys.argv[1])\n"
                  "import pynvml as n\n"
                  "from wait import until\n"
                  "n.nvmlInit()\n"
                  "def error():\n"
                  "  try: n.nvmlDeviceGetMemoryInfo(n.nvmlDeviceGetHandleByIndex(0))\n"
                  "  except n.NVMLError as e: return e.value\n"
                  "print(until(error, 'the device to fall off'))\n")
        self.assertEqual(self.run_in("lost", sys.executable, "-c", script, str(SYSTEM)), "15\n")

    @unittest.skipIf(os.getuid() != 0, "needs root to set something")
    def test_nvidia_smi_sets_a_scheduler(self):
        path = pathlib.Path(self.directory, "mine.json")
        path.write_text(json.dumps({"openvgpu_scenario": 1, "devices": [{"board": "L4"}]}))
        smi = find("nvidia-smi")
        script = ("import pynvml as n; n.nvmlInit(); d = n.nvmlDeviceGetHandleByIndex(0)\n"
                  "print(n.nvmlDeviceGetVgpuSchedulerState(d).schedulerPolicy)")
        text = self.run_in(path, "sh", "-c", f"{smi} vgpu set-scheduler-state -p 2 -i 0;"
                           f"{sys.executable} -c '{script}'")
        self.assertTrue(text.endswith("2\n"), text)


def main():
    global ROOT
    try:
        ROOT = packages.fetch(os.environ["TEST_PACKAGES"], *packages.NAMES, rare=packages.RARE)
    except packages.Missing as error:
        print(f"1..0 # SKIP Debian's packages cannot be had: {error}")
        return
    case.main()


if __name__ == "__main__":
    main()
