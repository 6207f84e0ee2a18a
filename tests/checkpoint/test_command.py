#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu checkpoint and cuda-checkpoint as commands: what they print and how they exit."""
import json
import os
import signal
import subprocess
import unittest

import commands


class Command(commands.Case):
    def test_exit_codes(self):
        pid = self.guest("idle").pid
        self.assertEqual(self.vgpu("state", pid), (0, "running\n", ""))
        self.assertEqual(self.vgpu("unlock", pid)[0], 1)
        self.assertEqual(self.vgpu("fly", pid)[0], 2)
        self.assertEqual(self.vgpu("state", "x")[0], 2)
        self.assertEqual(self.vgpu("lock", pid, "--gpu", "0=1")[0], 2)
        self.assertEqual(self.vgpu("state", os.getpid())[0], 3)
        self.assertEqual(self.vgpu("wait", pid, "--for", "locked", "--timeout", "0.01")[0], 4)
        self.assertEqual(self.vgpu("suspend", pid)[0], 0)
        self.assertEqual(self.vgpu("resume", pid, "--gpu", "0=7")[0], 2)
        self.assertEqual(self.vgpu("wait", pid, "--for", "checkpointed")[0], 0)
        code, _, err = self.vgpu("resume", pid, "--json",
                                 OPENVGPU_SIM_FAIL="cuCheckpointProcessRestore@1=2")
        error = json.loads(err)["error"]
        self.assertEqual((code, error["exit_code"], error["driver_code"], error["undone"]),
                         (5, 5, 2, False))
        self.assertEqual(self.vgpu("resume", pid, "--gpu", "0=1")[0], 0)
        report = json.loads(self.vgpu("state", pid, "--json")[1])
        self.assertEqual(report["processes"][0]["state"], "running")

    def test_an_interrupted_suspend_is_undone(self):
        pid = self.guest("idle").pid
        point = self.root / "checkpointer.locked"
        command = subprocess.Popen(
            [os.environ["TEST_VGPU"], "checkpoint", "suspend", str(pid)],
            env=dict(self.environment, OPENVGPU_FAULT="checkpointer.locked=pause"))
        self.wait(command, point.exists, "the fault point")
        command.send_signal(signal.SIGINT)
        self.assertEqual(command.wait(), -signal.SIGINT)
        point.unlink()
        self.assertEqual(self.vgpu("wait", pid, "--timeout", "60")[0], 0)

    def test_a_call_that_does_not_return_is_named(self):
        """And the other process is as it was."""
        pids = [str(self.guest("idle").pid) for _ in range(2)]
        code, _, err = self.vgpu("suspend", *pids, "--timeout", "0.1", "--json", OPENVGPU_FAULT="checkpointer.lock=pause")
        error = json.loads(err)["error"]
        self.assertEqual((code, error["undone"]), (5, False), err)
        self.assertIn(f"the driver does not answer for process {pids[0]}: cuCheckpointProcessLock has not returned",
                      error["message"])
        self.assertEqual(self.vgpu("wait", pids[1], "--timeout", "60")[0], 0)

    def test_what_the_plugin_of_criu_calls(self):
        pid = str(self.guest("idle").pid)
        code, out, _ = self.tool("-h")
        self.assertEqual(code, 0)
        self.assertIn("--action", out[:2000])
        code, out, _ = self.tool("--get-restore-tid", "--pid", pid)
        self.assertEqual(code, 0)
        thread = out.strip()
        self.assertTrue(thread.isdigit())
        self.assertEqual(self.tool("--get-state", "--pid", thread), (0, "running\n", ""))
        self.assertEqual(self.tool("--action", "lock", "--pid", pid, "--timeout", "10000"),
                         (0, "", ""))
        self.assertEqual(self.tool("--get-state", "--pid", thread), (0, "locked\n", ""))
        for action, state in (("checkpoint", "checkpointed"), ("restore", "locked"),
                              ("unlock", "running")):
            self.assertEqual(self.tool("--action", action, "--pid", pid), (0, "", ""))
            self.assertEqual(self.tool("--get-state", "--pid", pid), (0, state + "\n", ""))

    def test_the_plugin_of_criu_after_a_checkpoint_that_failed(self):
        """It asks for a restore then, whatever the state is, and unlocks only if that succeeds."""
        pid = str(self.guest("managed").pid)
        self.assertEqual(self.tool("--action", "lock", "--pid", pid)[0], 0)
        code, _, err = self.tool("--action", "checkpoint", "--pid", pid)
        self.assertEqual(code, 1)
        self.assertIn('"operation not supported"', err)
        self.assertEqual(self.tool("--get-state", "--pid", pid), (0, "locked\n", ""))
        self.assertEqual(self.tool("--action", "restore", "--pid", pid, "--device-map", "0=1")[0],
                         1)
        self.assertEqual(self.tool("--action", "restore", "--pid", pid), (0, "", ""))
        self.assertEqual(self.tool("--action", "unlock", "--pid", pid), (0, "", ""))
        self.assertEqual(self.tool("--action", "restore", "--pid", pid)[0], 1)
        self.assertEqual(self.tool("--get-state", "--pid", pid), (0, "running\n", ""))

    def test_the_words_of_nvidias_program(self):
        pid = str(self.guest("idle").pid)
        for words, first in (
                (["--action", "unlock", "--pid", pid], f"Could not unlock on process ID {pid}: "),
                (["--get-state", "--pid", str(os.getpid())],
                 f"Error getting process state for process ID {os.getpid()}: "
                 "\"initialization error\""),
                (["--get-restore-tid", "--pid", str(os.getpid())],
                 f"Could not find restore thread for process ID {os.getpid()}"),
                ([], "No operation selected"),
                (["--toggle", "--get-state", "--pid", pid], "Too many operations selected"),
                (["--get-state"], "Missing pid to perform operation on"),
                (["--action", "fly", "--pid", pid], "Invalid process state"),
                (["--toggle", "--pid", pid, "--device-map", "x"], "Invalid device remap")):
            code, out, err = self.tool(*words)
            self.assertEqual((code, out), (1, ""))
            self.assertTrue(err.startswith(first), err)
        self.assertEqual(self.tool("--toggle", "-p", pid)[0], 0)
        self.assertEqual(self.vgpu("state", pid)[1], "checkpointed\n")
        self.assertEqual(self.tool("--toggle", "-p", pid)[0], 0)


if __name__ == "__main__":
    unittest.main()
