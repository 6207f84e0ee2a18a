#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of an overcommitted GPU, on simulated ones: they run to their end, in time, and notice what is wrong."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

import case
import stage
from wait import PATIENCE, until

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
DEVICE = ("--simulate", "1xH200:256M")


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
