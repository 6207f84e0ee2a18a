#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nvidia-smi, nvtop, btop, nvitop, glances, netdata and pynvml of Debian, unmodified, against our libnvidia-ml.so.1.

On a state page made by make-state-page.c, whose values are looked for in what they print; and on a real
vgpud with simulated devices.
"""
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import fcntl
import termios

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "system"))

import case  # noqa: E402
import packages  # noqa: E402
import stage  # noqa: E402
from host import Host  # noqa: E402
from wait import until  # noqa: E402

NVML = os.environ["TEST_NVML_DIRECTORY"]
MAKE_STATE_PAGE = os.environ["TEST_MAKE_STATE_PAGE"]
ROOT = None

TENANTS = {"tenant-a": 3251634213, "tenant-b": 3251634214}


def look(name):
    """The program of this name that was fetched, or None."""
    return next((str(path) for path in ROOT.rglob(name) if path.is_file() and os.access(path, os.X_OK)
                 and "share" not in path.parts), None)


def find(name):
    path = look(name)
    assert path, f"{name} was not fetched"
    return path


class OnMadeBoard(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="vg-")
        cls.addClassCleanup(directory.cleanup)
        cls.directory = directory.name
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("OPENVGPU_", "TEST_"))}
        cls.environment = {**kept, "OPENVGPU_RUN": cls.directory, "LD_LIBRARY_PATH": NVML,
                           "HOME": cls.directory, "TERM": "xterm"}
        for name in ("XDG_CONFIG_HOME", "LINES", "COLUMNS"):
            cls.environment.pop(name, None)

    def setUp(self):
        subprocess.run([MAKE_STATE_PAGE, os.path.join(self.directory, "state-page")], check=True)

    def run_client(self, *command, code=0, timeout=20):
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=timeout)
        self.assertEqual(done.returncode, code, f"{command}: {done.stdout}{done.stderr}")
        return done.stdout

    def smi(self, *arguments, **options):
        return self.run_client(find("nvidia-smi"), *arguments, **options)

    def smi_loop(self, *arguments, lines=5):
        """The first lines of one of the views that never end."""
        client = subprocess.Popen(["stdbuf", "-oL", find("nvidia-smi"), *arguments], text=True,
                                  env=self.environment, stdout=subprocess.PIPE,
                                  stdin=subprocess.DEVNULL)
        try:
            return "".join(client.stdout.readline() for _ in range(lines))
        finally:
            client.kill()
            client.stdout.close()
            client.wait()


class NvidiaSmi(OnMadeBoard):
    def test_overview_shows_devices_and_processes(self):
        text = self.smi()
        self.assertRegex(text, r"\| +0 +NVIDIA H200 .*00000000:17:00\.0")
        self.assertRegex(text, r"\| +1 +NVIDIA H200 .*00000000:27:00\.0")
        self.assertIn("9000MiB / 14377", text)
        self.assertIn("Driver Version: 580.159.04", text)
        self.assertRegex(text, r"CUDA Version: 13\.0")
        self.assertRegex(text, r"0 +N/A +N/A +4242 +C +train-0 +6000MiB")

    def test_list_shows_uuids(self):
        self.assertEqual(self.smi("-L").splitlines(), [
            f"GPU {i}: NVIDIA H200 (UUID: GPU-11111111-2222-3333-4444-55555555555{i})"
            for i in range(2)])

    def test_vgpu_lists_the_active_vgpus(self):
        text = self.smi("vgpu")
        self.assertRegex(text, r"3251634213 +NVIDIA H200\.\.\. \| 1000 +tenant-a +\| +20%")
        self.assertRegex(text, r"3251634214 +NVIDIA H200\.\.\. \| 1001 +tenant-b +\| +21%")
        self.assertNotIn("tenant-c", text)

    def test_vgpu_query_shows_every_value(self):
        text = self.smi("vgpu", "-q")
        for field, value in (("VM ID", "1000"), ("VM Name", "tenant-a"),
                             ("vGPU Name", "NVIDIA H200-35C"), ("vGPU Type", str(0x233504)),
                             ("vGPU UUID", "e5c1b1a0-0000-4000-8000-000000000000"),
                             ("MDEV UUID", "a5c1b1a0-0000-4000-8000-000000000000"),
                             ("Guest Driver Version", "570.86.10"),
                             ("License Status", r"Licensed \(Expiry: Permanent\)"),
                             ("License Status", r"Licensed \(Expiry: 2031-12-24 5:6:7 GMT\)"),
                             ("ECC Mode", "Enabled"),
                             ("GPU Instance ID", "N/A"), ("Accounting Mode", "Enabled"),
                             ("Bus Id", "00000000:02:04.0"), ("Total", "35840 MiB"),
                             ("Used", "6000 MiB"), ("Free", "29840 MiB"), ("Gpu", "20 %"),
                             ("Active Sessions", "1"), ("Average FPS", "30"),
                             ("Average FPS", "25"), ("Average Latency", "2000"),
                             ("Average Latency", "3000")):
            self.assertRegex(text, rf"(?m)^ +{field} +: {value}$")
        self.assertEqual(text.count("Active vGPUs"), 2)
        self.assertNotIn("ERR", text)

    def test_supported_and_creatable_types_have_nvidias_names(self):
        names = [f"NVIDIA H200-{size}C" for size in (141, 70, 35, 28, 17, 14, 8, 7, 4)]
        supported = [line.strip() for line in self.smi("vgpu", "-s", "-i", "0").splitlines()]
        self.assertEqual(supported[1:10], names)
        creatable = [line.strip() for line in self.smi("vgpu", "-c", "-i", "0").splitlines()]
        self.assertEqual(creatable[1:9], names[1:])

    def test_a_type_is_described_to_the_end(self):
        text = self.smi("vgpu", "-s", "-v", "-i", "1")
        self.assertEqual(text.count("GRID License"), 9)
        self.assertIn("0x233510de", text)

    def test_scheduler_views_answer(self):
        state = self.smi("vgpu", "-ss")
        for field, value in (("Scheduler Policy", "Equal Share"), ("ARR Mode", "Disabled"),
                             (r"Time Slice\(ns\)", "2083000")):
            self.assertRegex(state, rf"(?m)^ +{field} +: {value}$")
        capabilities = self.smi("vgpu", "-sc")
        self.assertRegex(capabilities, r"Best Effort\s+Equal Share\s+Fixed Share")
        self.assertRegex(capabilities, "Maximum Timeslice +: 30000000 ns")
        self.assertIn("Engine Id", self.smi_loop("vgpu", "-sl"))

    def test_the_scheduler_log_has_the_turns(self):
        log = self.smi_loop("vgpu", "-sl", lines=12)
        self.assertIn("1234567", log)
        self.assertIn("7654321", log)

    def test_migration_capability_is_yes(self):
        self.assertRegex(self.smi("vgpu", "-m"), "Migration capability +: Yes")

    def test_utilization_views_show_vgpus_and_processes(self):
        self.assertRegex(self.smi_loop("vgpu", "-u"), r"0 3251634213 +20 +5 +1 +2")
        self.setUp()
        self.assertRegex(self.smi_loop("vgpu", "-p"), r"0 3251634213 +4242 +20 +5 .*train-0")

    def test_session_views_show_the_sessions(self):
        self.assertRegex(self.smi_loop("vgpu", "-es"),
                         r"0 3251634213 +1 +777 +H\.264 +1920 +1080 +30 +2000")
        self.assertRegex(self.smi_loop("vgpu", "-fs"),
                         r"0 +3251634213 +5 +778 .*3840 +2160 .*2560 +1440 +25 +3000")

    def test_accounted_applications_are_listed(self):
        text = self.smi("vgpu", "--query-accounted-apps=vgpu_instance,pid,max_memory_usage",
                        "--format=csv,noheader")
        self.assertIn("3251634213, 4242, 6000 MiB", text)

    def test_scheduler_cannot_be_set_while_vgpus_run(self):
        self.assertIn("active on the device",
                      self.smi("vgpu", "set-scheduler-state", "-p", "2", "-i", "0"))

    def test_query_has_no_errors_and_what_the_device_measures(self):
        text = self.smi("-q")
        for field, value in (("Virtualization Mode", "Host VGPU"), ("Serial Number", "1654422005434"),
                             ("GPU Current Temp", "34 C"), ("(Instantaneous )?Power Draw", "121.50 W"),
                             ("VBIOS Version", "96.00.BC.00.01"), ("Graphics", "1980 MHz")):
            self.assertRegex(text, rf"(?m)^ +{field} +: {value}$")
        self.assertNotRegex(packages.without_internals(text), r": (ERR!|Unknown Error|Uninitialized)")

    def test_csv_query_of_devices_and_processes(self):
        self.assertIn("NVIDIA H200, 143771 MiB, 37 %", self.smi(
            "--query-gpu=name,memory.total,utilization.gpu", "--format=csv,noheader"))
        self.assertIn("4242, train-0, 6000 MiB", self.smi(
            "--query-compute-apps=pid,name,used_memory", "--format=csv,noheader"))

    def test_the_topology_has_the_cpus_of_this_machine(self):
        self.assertRegex(self.smi("topo", "-m"), r"GPU0\s+X\s+SYS\s+0[-,0-9]*\s+0")

    def test_devices_are_found_by_bus_id(self):
        self.assertIn("27:00.0", self.smi("vgpu", "-i", "00000000:27:00.0"))

    def test_dmon_shows_utilization(self):
        self.assertRegex(self.smi("dmon", "-c", "1"), r"0 +121 +34 +- +37 +12 .*3201 +1980")

    def test_without_a_state_page_it_says_that_there_is_no_driver(self):
        if os.path.exists("/proc/driver/nvidia"):
            self.skipTest("this machine has a driver")
        os.unlink(os.path.join(self.directory, "state-page"))
        self.assertIn("couldn't communicate", self.smi(code=9))


class OnScreen(OnMadeBoard):
    """Clients that draw in a terminal."""

    def screen(self, *words, client, seconds=20):
        """What it draws until all of @words are there."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(find(client), [client], {**self.environment, "LANG": "C.UTF-8"})
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        seen, end = b"", time.monotonic() + seconds
        try:
            while time.monotonic() < end and not all(word.encode() in seen for word in words):
                if select.select([terminal], [], [], 0.2)[0]:
                    seen += os.read(terminal, 65536)
        except OSError:
            pass  # it ended by itself: the assertions say what is missing
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            os.close(terminal)
        return re.sub(r"\x1b(\[[0-9;?]*[a-zA-Z]|[()][0AB]|[=>])", " ", seen.decode(errors="replace"))

    def test_nvtop_shows_devices_and_processes(self):
        text = self.screen("6000MiB", "Device 1", client="nvtop")
        self.assertRegex(text, r"Device 0 +\[NVIDIA H200\]")
        self.assertRegex(text, r"Device 1 +\[NVIDIA H200\]")
        self.assertRegex(text, r"8\.789Gi/140\.401Gi")
        self.assertRegex(text, r"4242 .*(20%|N/A) +6000MiB")  # nvtop 3.2.0 has it only in MIG mode

    def test_btop_shows_devices(self):
        btop = look("btop")
        if not btop:
            self.skipTest("this Debian has no btop")
        version = re.search(r"(\d+)\.(\d+)\.\d+", self.run_client(btop, "--version"))
        if tuple(map(int, version.groups())) < (1, 3):
            self.skipTest("this btop knows no GPUs")
        folder = pathlib.Path(self.directory, ".config", "btop")
        folder.mkdir(parents=True)
        (folder / "btop.conf").write_text('shown_boxes = "gpu0 gpu1"\nsave_config_on_exit = False\n')
        text = self.screen("gpu1", " GiB", "0 Byte", client="btop")
        self.assertRegex(text, r"gpu0[^\0]*H200[^\0]*gpu1[^\0]*H200")
        for shown in (r"GPU\W+37 *%", "34 *°C", "1980 M[Hh]z", r"PWR\W+12[12]\b[^W]*W"):
            self.assertRegex(text, shown)
        self.assertRegex(text, r"Used:\W+8\.7[89] GiB")


class Monitors(OnMadeBoard):
    """Clients in Python that print lines."""

    def setUp(self):
        super().setUp()
        self.modules = next(ROOT.rglob("pynvml.py")).parent

    def run_module(self, name, *arguments):
        """What a program that is a Python module prints; skips the test where it cannot run."""
        if not (self.modules / name).exists():
            self.skipTest(f"this Debian has no {name}")
        done = subprocess.run([sys.executable, "-m", name, *arguments], text=True, timeout=100,
                              env={**self.environment, "PYTHONPATH": str(self.modules), "TMPDIR": self.directory},
                              capture_output=True)
        missing = re.search("ModuleNotFoundError.*|ImportError.*", done.stderr)
        if missing:
            self.skipTest(f"this Python lacks something: {missing[0]}")
        return done.stdout

    def test_nvitop_shows_devices_and_processes(self):
        text = self.run_module("nvitop", "-1", "--no-unicode")
        self.assertRegex(text, r" 34C +P0 +12[12]W / 700W \| +9000MiB / 140\.4GiB \| +37% ")
        text = text.replace("No Such Process", "")  # nvitop 1.5 writes it between the letters, for there is none
        self.assertRegex(text, r"\| +0 +4242 +C .* 6000MiB ")

    def test_glances_shows_devices(self):
        if list(self.modules.glob("Glances-3.*")):
            self.skipTest("Glances 3 asks for py3nvml, which Debian lacks")
        text = self.run_module("glances", "--stdout", "gpu", "--stop-after", "2")
        self.assertRegex(text, r"'NVIDIA H200', 'mem': 6\.2\d+, 'proc': 37, 'temperature': 34.*"
                         r"'NVIDIA H200', 'mem': 0\.0, 'proc': 37, 'temperature': 34")

    def test_netdata_collects_what_nvidia_smi_tells(self):
        plugin = next(ROOT.rglob("python.d.plugin"), None)
        if not plugin:
            self.skipTest("this Debian has no netdata-plugins-python")
        folder = pathlib.Path(self.directory, "netdata")
        folder.mkdir()
        (folder / "python.d.conf").write_text("nvidia_smi: yes\n")
        (folder / "nvidia-smi").symlink_to(find("nvidia-smi"))
        collector = subprocess.Popen(
            [sys.executable, str(plugin), "nvidia_smi", "1"], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
            env={**self.environment, "PATH": f"{folder}:{os.environ['PATH']}",
                 **{f"NETDATA_{name}": str(folder) for name in ("USER_CONFIG_DIR", "LIB_DIR", "LOCK_DIR")},
                 "NETDATA_STOCK_CONFIG_DIR": str(plugin.parents[1] / "conf.d"),
                 "NETDATA_PLUGINS_DIR": str(plugin.parent)})
        self.addCleanup(collector.stdout.close)
        self.addCleanup(collector.wait)
        self.addCleanup(os.killpg, collector.pid, 9)  # with the nvidia-smi that it started
        lines = []
        for line in collector.stdout:
            lines.append(line.strip())
            if "ModuleNotFoundError" in line:
                self.skipTest(f"its Python lacks something: {line}")
            if line.startswith("BEGIN netdata.runtime_nvidia_smi"):
                break
        for line in ("gpu0_gpu_util' = 37", "gpu0_fb_memory_used' = 9000", "gpu1_gpu_temp' = 34",
                     "gpu0_sm_clock' = 1980", "gpu0_process_mem_4242' = 6000"):
            self.assertIn(f"SET '{line}", lines)


class Pynvml(OnMadeBoard):
    SCRIPT = pathlib.Path(__file__).parent / "walk_pynvml.py"

    def test_every_vgpu_binding_answers(self):
        module = next(ROOT.rglob("pynvml.py")).parent
        self.environment["PYTHONPATH"] = str(module)
        self.run_client(sys.executable, str(self.SCRIPT))


class WithManager(unittest.TestCase):
    """A real vgpud; what a guest sees is in a vGPU of it."""

    @classmethod
    def setUpClass(cls):
        stage.make()
        cls.host = Host(devices="2xH200:8G").start()
        cls.addClassCleanup(cls.host.close)

    def smi(self, *arguments, **more):
        environment = self.host.environment(LD_LIBRARY_PATH=self.host.info()["nvml_path"], **more)
        return subprocess.run([find("nvidia-smi"), *arguments], env=environment, text=True,
                              capture_output=True, check=True, timeout=20).stdout

    def test_a_vgpu_comes_and_goes(self):
        self.host.create("train", "2G")
        try:
            until(lambda: "train" in self.smi("vgpu"), "nvidia-smi to list the vGPU")
            self.assertRegex(self.smi("vgpu", "-q"), "VM Name +: train")
        finally:
            self.host.vgpu("rm", "train")
        until(lambda: "train" not in self.smi("vgpu"), "nvidia-smi to forget the vGPU")

    def test_a_guest_sees_its_vgpu(self):
        self.host.create("train", "2G")
        try:
            done = self.host.vgpu("run", "--vgpu", "train", "--", find("nvidia-smi"),
                                  "--query-gpu=count,memory.total", "--format=csv,noheader")
            self.assertEqual(done.output.strip(), "1, 2048 MiB")
        finally:
            self.host.wait_state("train", "idle")
            self.host.vgpu("rm", "train")


def main():
    global ROOT
    try:
        ROOT = packages.fetch(os.environ["TEST_PACKAGES"], *packages.NAMES, rare=packages.RARE)
    except packages.Missing as error:
        print(f"1..0 # SKIP Debian's packages cannot be had: {error}")
        return
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
