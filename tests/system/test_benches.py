#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of an overcommitted GPU, on simulated ones: they run to their end, in time, and notice what is wrong."""
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import case
import stage
from wait import PATIENCE, until

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
DEVICE = ("--simulate", "1xH200:256M")


CUDA = """
import ctypes, os, time, unittest
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
IS_IN_VGPU = "OPENVGPU_VGPU" in os.environ
assert cuda.cuInit(0) == 0 == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == cuda.cuCtxSetCurrent(context)

def allocate(size):
    pointer = ctypes.c_uint64()
    assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
    return pointer

class Suite(unittest.TestCase):
"""

SUITE = CUDA + """
    def test_passes(self):
        allocate(1 << 20)

    def test_checkpoint(self):
        self.assertNotEqual(cuda.cuCheckpointProcessLock(-1, None), 801)

    def test_crashes_there(self):
        if IS_IN_VGPU:
            os.kill(os.getpid(), 11)

    def test_fails_there(self):
        if IS_IN_VGPU:
            raise AssertionError("in a vGPU")

    def test_hangs_there(self):
        while IS_IN_VGPU:
            time.sleep(1)

    def test_is_skipped(self):
        self.skipTest("always")

    def test_passes_behind_all_that(self):
        allocate(3 << 20)
"""

WORKS = CUDA + """
    def check(self, seconds):
        pointer, size, end = allocate(8 << 20), ctypes.c_size_t(8 << 20), time.monotonic() + seconds
        host, value = (ctypes.c_ubyte * size.value)(), 0
        while time.monotonic() < end:
            value = (value + 1) % 256
            assert cuda.cuMemsetD8_v2(pointer, ctypes.c_ubyte(value), size) == 0
            time.sleep(0.01)
            assert cuda.cuMemcpyDtoH_v2(host, pointer, size) == 0
            assert host[0] == host[4711] == host[-1] == value

    def test_some(self):
        self.check(6)

    def test_more(self):
        self.check(6)
"""

SHORT = CUDA + """
    def test_short(self):
        allocate(1 << 20)
"""

ENDLESS = SHORT + """
    def test_without_end(self):
        while True:
            time.sleep(1)
"""


class Benches(unittest.TestCase):
    def start(self, name, *options):
        stage.make()
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        process = subprocess.Popen([sys.executable, BENCH / name, "--prefix", stage.ROOT, *map(str, options)],
                                   env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def run_to_its_end(self, name, *options, status=0):
        before, process = keepers(), self.start(name, *options)
        output, errors = process.communicate(timeout=5 * PATIENCE)
        self.assertEqual(process.returncode, status, output + errors)
        until(lambda: keepers() == before, "its keeper to end")
        return output

    def test_overcommit(self):
        output = self.run_to_its_end("overcommit", *DEVICE, "--guests", stage.GUESTS, "--seconds", 3, "--turn", 1,
                                     "batch", "kept", "managed")
        self.assertEqual(output.count("contents: all right"), 3, output)
        self.assertEqual(len(re.findall(r"^\| two of .* of one alone", output, re.M)), 4, output)

    def test_overcommit_keeps_time_to_compare(self):
        """What it measures is cut short, not the comparison; without any time for it, it says so."""
        output = self.run_to_its_end("overcommit", *DEVICE, "--guests", stage.GUESTS, "--seconds", 1000, "--limit", 40,
                                     "managed")
        self.assertIn("contents: all right", output)
        output = self.run_to_its_end("overcommit", *DEVICE, "--guests", stage.GUESTS, "--limit", 8, "managed", status=1)
        self.assertIn("no time is left to measure", output)

    def test_idle(self):
        output = self.run_to_its_end("overcommit", *DEVICE, "--guests", stage.GUESTS, "--seconds", 2, "--vgpus", 5, "idle")
        self.assertIn("| 5 idle vGPUs of 5 swapped out", output)

    def test_model_servers(self):
        output = self.run_to_its_end("model-servers", *DEVICE, "--seconds", 4)
        self.assertRegex(output, r"its vGPU had to come in \| median [\d.]+ s")
        self.assertRegex(output, r"tokens: 0 of \d+ answers differ; those of 1 servers")

    def test_compat_demand(self):
        output = self.run_to_its_end("compat-demand", *DEVICE, "--seconds", 4)
        self.assertEqual(len(re.findall(r"^\| plain-\w+ \| \d+ \| [1-9]\d* \|.*\| ok \|$", output, re.M)), 4, output)

    def suite(self, name, kind, text):
        """A suite of others, of which the names say how its tests end in each way."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / name).mkdir()
        (folder / name / "openvgpu-suite.json").write_text(json.dumps({"kind": kind}))
        (folder / name / "test_suite.py").write_text(text)
        return folder

    def run_suite(self, folder, *options, status=0):
        return self.run_to_its_end("suites", "--simulate", "1xH200:1G", "--fb", "512M", *options, folder, status=status)

    def test_suites(self):
        """All that is there is run, and goes on behind a test that ends the process or hangs."""
        output = self.run_suite(self.suite("others", "unittest", SUITE), "--way", "vgpu", "--silence", "4", status=1)
        self.assertIn("cuda-bindings: not run, there is no ", output)
        self.assertIn("others, native: 7 tests: 6 passed, 1 skipped;", output)
        self.assertRegex(output, r"others, vgpu: 7 tests: 1 crashed, 2 failed, 1 hung, 2 passed, 1 skipped; [\d.]+ s, [\d.]+ of")
        said = dict(re.findall(r"^  others, vgpu: test_suite\.Suite\.test_(\w+): passed natively, (.*)$", output, re.M))
        self.assertEqual(sorted(said), ["checkpoint", "crashes_there", "fails_there", "hangs_there"])
        self.assertIn("(known: in a vGPU the driver's checkpoint is `vgpud`'s)", said["checkpoint"])
        self.assertEqual(said["crashes_there"], "crashed here: ended by signal 11 (NO REASON)")
        self.assertEqual(said["fails_there"], "failed here: AssertionError: in a vGPU (NO REASON)")
        self.assertEqual(said["hangs_there"], "hung here (NO REASON)")
        self.assertIn("differences without a reason: 3; programs lost by operations: 0", output)

    def test_suites_under_operations(self):
        output = self.run_suite(self.suite("others", "unittest", WORKS), "--way", "moved")
        self.assertRegex(output, r"others, moved: 2 tests: 2 passed;")
        self.assertRegex(output, r"others, operations: [1-9]\d* resume, [1-9]\d* suspend; it left \d+ times by itself")
        self.assertIn("differences without a reason: 0; programs lost by operations: 0", output)

    def test_suites_beside_each_other(self):
        """Each has a vGPU of its own. What the time limit cuts off is not compared."""
        folder = self.suite("others", "unittest", SHORT)
        shutil.copytree(folder / "others", folder / "slow")
        (folder / "slow/test_suite.py").write_text(ENDLESS)
        output = self.run_suite(folder, "--way", "vgpu", "--beside", 2, "--limit", PATIENCE / 2)
        self.assertRegex(output, r"(?m)^others, vgpu: 1 tests: 1 passed;")
        self.assertIn("  slow, native: the time limit came before the end", output)
        self.assertIn("  slow, vgpu: the time limit came before the end", output)
        self.assertIn("differences without a reason: 0", output)

    @unittest.skipUnless(importlib.util.find_spec("pytest"), "pytest is not installed")
    def test_suites_of_pytest(self):
        output = self.run_suite(self.suite("others", "pytest", SUITE), "--way", "vgpu", "--silence", "4", "--no-recheck", status=1)
        self.assertRegex(output, r"others, vgpu: 7 tests: 1 crashed, 2 failed, 1 hung, 2 passed, 1 skipped;")
        self.assertIn("others, vgpu: test_suite.py::Suite::test_crashes_there: passed natively, crashed here", output)

    def test_suites_of_nothing(self):
        process = self.start("suites", "--simulate", "1xH200:1G", self.enterContext(tempfile.TemporaryDirectory()))
        _, errors = process.communicate(timeout=5 * PATIENCE)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("none of the suites can run here", errors)

    def test_shared_suspends(self):
        output = self.run_to_its_end("shared-suspends", "--simulate", "1xH200:1G", "--guests", stage.GUESTS, "--times", 2)
        self.assertEqual(len(re.findall(r"^\| (?:descriptor|ipc|pool) \| 2 \|.*\| ok \|$", output, re.M)), 3, output)

    def test_a_program_that_cannot_start(self):
        """What is outside of all vGPUs leaves it no room: the row says what failed."""
        output = self.run_to_its_end("compat-demand", *DEVICE, "--seconds", 1, "--only", "plain-1", "--room", 20, status=1)
        self.assertIn("FAILED", output)

    def test_a_name_that_is_unknown_is_refused_at_once(self):
        for words in (("compat-demand", *DEVICE, "--only", "foo"), ("ranks", *DEVICE, "foo")):
            process = self.start(*words)
            _, errors = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 1, errors)
            self.assertIn("there is no program 'foo'", errors)
            self.assertNotIn("Traceback", errors)

    def test_a_refusal_of_the_ranks_is_told_in_a_line(self):
        process = self.start("ranks", "--simulate", "2xH200:256M", "--fb", "100M", "--way", "move", "--to", "2,3", "--times", 1,
                             "--seconds", 5, "plain")
        _, errors = process.communicate(timeout=5 * PATIENCE)
        self.assertIn("migrate plain --device 2,3 --json: there is no device '2'", errors)

    def test_told_to_end(self):
        """Nothing is left of it."""
        before = keepers()
        process = self.start("compat-demand", *DEVICE)
        until(lambda: children(process.pid), "its programs to start")
        ours = children(process.pid)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in ours), "all to end")
        until(lambda: keepers() == before, "its keeper to end")


def keepers():
    """Of a benchmark: it has the pool's memory."""
    found = set()
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if b"OPENVGPU_RUN=/tmp/vgpu-demand-" in (entry / "environ").read_bytes() and \
                    (entry / "exe").resolve().name.startswith("vgpu-keeper"):
                found.add(entry.name)
        except OSError:
            continue
    return found


def children(pid):
    found = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return found if len(found) >= 4 else []


if __name__ == "__main__":
    case.main()
