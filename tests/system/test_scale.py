#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Very many vGPUs and processes: all are there, in all answers, and all go again. No times."""
import contextlib
import os
import resource
import sqlite3
import subprocess
import unittest

import state_page
from harness import MIB, Host, expect_error
from wait import PATIENCE, until

MOST_VGPUS = 4096  # the state page's
VGPUS, PROCESSES, ENDING = 300, 2100, 500  # more than there could once be

# Of short-lived processes, the ledger lists so many of a user one by one (src/meter/allowance.h).
LISTED, MORE_IN_TEN_MINUTES = 1000, 60

# Of vgpud: for each vGPU and process, and for all else.
A_VGPU, A_PROCESS, ELSE = 3, 2, 400


def limit_of_descriptors():
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return limit if limit != resource.RLIM_INFINITY else 1 << 30


def most_processes():
    limit = limit_of_descriptors()
    return min(PROCESSES, (limit // 8 * 7 - A_VGPU * VGPUS - ELSE) // A_PROCESS)


class Crowd:
    """Processes that have joined and do nothing, one after another in each of the vGPUs."""

    def __init__(self, host, n, names):
        self.process = subprocess.Popen([os.environ["TEST_SCALE_GUESTS"], host.run, str(n), *names],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "joined\n"

    def end(self):
        """Kills all of them at once."""
        self.process.communicate("end\n", timeout=PATIENCE)
        assert self.process.returncode == 0


class Full(unittest.TestCase):
    def test_nobody_has_more_vgpus_than_the_state_page(self):
        if limit_of_descriptors() // 4 * 3 < A_VGPU * MOST_VGPUS + ELSE:
            self.skipTest("the limit of descriptors is too low (ulimit -Hn)")
        host = self.enterContext(Host(options=["--simulate", "2xH200:8G", "--log-level", "warning"]))
        host.start()
        client = host.client()
        for _ in range(MOST_VGPUS):
            client.call("CreateVgpu", frame_buffer=2 * MIB, transient=True)
        error = expect_error("NoRoom", client.call, "CreateVgpu", frame_buffer=2 * MIB)
        self.assertIn(str(MOST_VGPUS), error.parameters["message"])
        client.call("RemoveVgpu", name="vgpu-7")
        client.call("CreateVgpu", frame_buffer=2 * MIB)


class Loop(unittest.TestCase):
    def test_who_makes_and_removes_vgpus_does_not_fill_the_ledger(self):
        host = self.enterContext(Host(options=["--user-vgpus", "0", "--log-level", "warning"]))
        host.start()
        client = host.client()
        for _ in range(LISTED + 200):
            client.call("CreateVgpu", name="again", frame_buffer=2 * MIB, transient=True)
            client.call("RemoveVgpu", name="again")

        def rows():
            with contextlib.closing(sqlite3.connect(f"file:{host.state}/ledger.db?mode=ro", uri=True)) as ledger:
                return [row[0] for row in ledger.execute("SELECT name FROM vgpu")]
        until(lambda: "(others)" in rows(), "a vGPU that stands for others")
        host.stop_manager()
        self.assertEqual(rows().count("(others)"), 1)
        self.assertLessEqual(rows().count("again"), LISTED + MORE_IN_TEN_MINUTES)


class Scale(unittest.TestCase):
    def setUp(self):
        self.n = most_processes()
        if self.n <= ENDING:
            self.skipTest("the limit of descriptors is too low (ulimit -Hn)")
        self.host = self.enterContext(Host(options=["--user-vgpus", "0", "--log-level", "warning"]))
        self.host.start()
        self.client = self.host.client()
        self.names = [f"v{i}" for i in range(VGPUS)]
        for i, name in enumerate(self.names):
            self.client.call("CreateVgpu", name=name, frame_buffer=2 * MIB, device=str(i % 2),
                             transient=True)

    def counts(self, method):
        """How many vGPUs and processes, and how many different ones, are in an answer."""
        vgpus = self.client.call(method)["vgpus"]
        pids = [process["pid"] for vgpu in vgpus for process in vgpu["processes"]]
        self.assertEqual(len(set(pids)), len(pids))
        self.assertEqual({vgpu["name"] for vgpu in vgpus}, set(self.names))
        return len(vgpus), len(pids)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.host.manager.pid}/fd"))

    def on_state_page(self):
        found = state_page.read(self.host.run / "state-page")
        return (sum(key.startswith("instance ") for key in found),
                sum(key.startswith("process ") for key in found))

    def wait_for(self, n):
        for method in ("ListVgpus", "GetUtilization"):
            until(lambda method=method: self.counts(method) == (VGPUS, n), f"{n} processes in {method}")
        until(lambda: self.on_state_page() == (VGPUS, n), f"{n} processes on the state page")

    def states(self):
        return {vgpu["state"] for vgpu in self.client.call("ListVgpus")["vgpus"]}

    def listed(self, has_ended):
        """How many processes the ledger lists."""
        with contextlib.closing(sqlite3.connect(f"file:{self.host.state}/ledger.db?mode=ro", uri=True)) as ledger:
            return ledger.execute("SELECT count(*) FROM process WHERE (ended_ms > 0) = ?", (has_ended,)).fetchone()[0]

    def test_all_are_there_and_all_go(self):
        before = self.descriptors()
        ending = Crowd(self.host, ENDING, self.names)
        others = Crowd(self.host, self.n - ENDING, self.names)
        self.wait_for(self.n)
        self.assertEqual(self.states(), {"running"})
        self.assertLess(self.descriptors(), before + A_PROCESS * self.n + ELSE)
        ending.end()
        self.wait_for(self.n - ENDING)
        others.end()
        self.wait_for(0)
        until(lambda: self.states() == {"idle"}, "all vGPUs to be idle")
        until(lambda: self.descriptors() < before + ELSE, "the descriptors to be closed")
        for name in self.names:
            self.client.call("RemoveVgpu", name=name)
        self.names = []
        self.assertEqual(self.counts("ListVgpus"), (0, 0))
        until(lambda: self.listed(0) == 0, "the ledger to know that all have ended")  # written with each removal
        self.assertLess(self.listed(1), LISTED + MORE_IN_TEN_MINUTES)
        self.assertIsNone(self.host.manager.poll())

    def test_who_has_ended_does_not_stand_in_the_way(self):
        """Their vGPU can be removed and joined, however many others are still to be cleared away."""
        Crowd(self.host, ENDING, self.names).end()
        for name in self.names[:10]:
            self.client.call("RemoveVgpu", name=name)
        self.names = self.names[10:]
        again = Crowd(self.host, len(self.names), self.names)
        until(lambda: self.counts("ListVgpus") == (len(self.names), len(self.names)), "those that joined")
        again.end()


if __name__ == "__main__":
    unittest.main(verbosity=2)
