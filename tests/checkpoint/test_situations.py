#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What goes wrong when a checkpoint is asked for: what both commands say, and how they exit."""
import contextlib
import json
import os
import pwd
import subprocess
import unittest

import commands
import freezer

DONE, FAILED, USAGE, NO_CUDA, TIMED_OUT, LOST = range(6)
ACTIONS = ["state", "lock", "checkpoint", "restore", "unlock", "suspend", "resume", "toggle", "tid"]

# Answers of drivers that a simulated one has no reason for: (action, failure, exit status, what is
# said). The process is running or, for a resume, checkpointed.
ANSWERS = [
    ("suspend", "Lock@1=304", FAILED, "failed in the driver"),
    ("suspend", "Checkpoint@1=2", FAILED, "MIG"),
    ("suspend", "Checkpoint@1=304", FAILED, "failed in the driver"),
    ("suspend", "Checkpoint@1=801", FAILED, "managed memory"),
    ("suspend", "Checkpoint@1=304,cuCheckpointProcessUnlock@1=304,cuCheckpointProcessUnlock@2=304",
     LOST, "304"),
    ("resume", "Restore@1=1", USAGE, "cannot be restored onto these devices"),
    ("resume", "Restore@1=2", LOST, "the process can only be killed"),
    ("resume", "Restore@1=304", FAILED, "failed in the driver"),
    ("resume", "Restore@1=800", FAILED, "persistence mode"),
    ("resume", "Restore@1=801", LOST, "imported from another process"),
]


class Situations(commands.Case):
    def refuse(self, code, *words, says="", **more):
        """Both lines, as one text."""
        status, out, err = self.vgpu(*words, **more)
        self.assertEqual((status, out), (code, ""), err)
        self.assertIn(says, err)
        self.assertLessEqual(len(err.splitlines()), 2, err)
        self.assertTrue(err.startswith("vgpu: checkpoint"), err)
        return err

    def test_the_wrong_state(self):
        pid = self.guest("idle").pid
        wrong = {"running": ["checkpoint", "restore", "unlock"], "locked": ["lock", "restore"],
                 "checkpointed": ["lock", "checkpoint", "unlock"]}
        for state, onward in (("running", "lock"), ("locked", "checkpoint"),
                              ("checkpointed", "resume")):
            for action in wrong[state]:
                self.refuse(FAILED, action, pid, says="one can be")
                self.assertEqual(self.vgpu("state", pid)[1], state + "\n")
            self.assertEqual(self.vgpu(onward, pid)[0], DONE)

    def test_a_process_that_does_not_run(self):
        """The driver is not asked, for it would never answer; the process can be checkpointed when it runs again."""
        pid = self.guest("idle").pid
        for kind in freezer.find_kinds():
            with contextlib.closing(kind(pid)) as group:
                group.freeze()
                for action in ("state", "suspend", "lock"):
                    self.refuse(FAILED, action, pid, says=f"process {pid} {kind.halt}")
            for action in ("suspend", "resume"):
                self.assertEqual(self.vgpu(action, pid)[0], DONE)

    def test_work_that_does_not_end_in_time(self):
        pid = self.guest("busy").pid
        for action in ("lock", "suspend", "toggle"):
            self.refuse(TIMED_OUT, action, pid, "--timeout", "0.05", says="continues")
        code, _, err = self.tool("--action", "lock", "--pid", pid, "--timeout", 50)
        self.assertEqual(code, 1)
        self.assertTrue(err.startswith(f'Could not lock on process ID {pid}: "device not ready"'))
        self.assertEqual(self.vgpu("state", pid)[1], "running\n")

    def test_a_process_without_cuda(self):
        pid = os.getpid()
        for action in ACTIONS:
            self.refuse(NO_CUDA, action, pid, says="has no CUDA")
        for words in (["--get-state"], ["--toggle"], ["--get-restore-tid"], ["--action", "lock"]):
            code, out, err = self.tool(*words, "--pid", pid)
            self.assertEqual((code, out), (1, ""))
            self.assertIn("has no CUDA", err)

    def test_no_process(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        for action in ACTIONS:
            self.refuse(FAILED, action, ended.pid, says=str(ended.pid))
        for pid in ("0", "-1", "x", "99999999999"):
            self.assertEqual(self.vgpu("state", "--", pid)[0], USAGE)
            self.assertEqual(self.tool("--get-state", "--pid", pid)[0], 1)
        code, _, err = self.tool("--toggle", "--pid", ended.pid)
        self.assertEqual(code, 1)
        self.assertEqual(err, f'Error toggling CUDA in process ID {ended.pid}: "No such process"\n')

    @unittest.skipIf(os.geteuid() != 0, "needs root to be somebody else")
    def test_a_process_of_another_user(self):
        pid = self.guest("idle").pid
        os.chmod(self.root, 0o755)
        for action in ACTIONS:
            err = self.refuse(FAILED, action, pid, user="nobody", says="may not be controlled by you")
            self.assertIn("CAP_SYS_PTRACE", err)
        code, _, err = self.vgpu("suspend", pid, "--json", user="nobody")
        error = json.loads(err)["error"]
        self.assertEqual((code, error["name"], error["driver_code"], error["pid"], error["undone"]),
                         (FAILED, "PermissionDenied", 304, pid, True))
        code, _, err = self.tool("--toggle", "--pid", pid, user="nobody")
        self.assertEqual(code, 1)
        self.assertIn("hint: be root", err)
        self.refuse(FAILED, "state", os.getpid(), user="nobody", says="may not be controlled by you")
        self.assertEqual(self.vgpu("state", pid)[1], "running\n")

    @unittest.skipIf(os.geteuid() != 0, "needs root to be somebody else")
    def test_a_process_of_ones_own_needs_no_privileges(self):
        os.chmod(self.root, 0o777)
        pid = self.guest("idle", user="nobody").pid
        self.assertEqual(os.stat(f"/proc/{pid}").st_uid, pwd.getpwnam("nobody").pw_uid)
        for action in ("suspend", "resume"):
            self.assertEqual(self.vgpu(action, pid, user="nobody")[0], DONE)

    def test_a_thread_stands_for_its_process(self):
        pid = self.guest("idle").pid
        thread = int(self.vgpu("tid", pid)[1])
        self.assertNotEqual(thread, pid)
        for action, state in (("lock", "locked"), ("checkpoint", "checkpointed"),
                              ("resume", "running"), ("suspend", "checkpointed"),
                              ("restore", "locked"), ("unlock", "running")):
            self.assertEqual(self.vgpu(action, thread)[0], DONE)
            self.assertEqual(self.vgpu("state", pid)[1], state + "\n")

    def test_devices_that_are_hidden(self):
        """The driver wants all of the host in the pairs, whatever target and caller see."""
        pid = self.guest("idle", CUDA_VISIBLE_DEVICES="1").pid
        for pair in ("1=0", "0=1", "0=0"):
            self.assertEqual(self.vgpu("suspend", pid, CUDA_VISIBLE_DEVICES="0")[0], DONE)
            code, _, err = self.vgpu("resume", pid, "--gpu", pair, CUDA_VISIBLE_DEVICES="0")
            self.assertEqual((code, err), (DONE, ""))
            self.assertEqual(self.vgpu("state", pid)[1], "running\n")

    def test_answers_of_other_drivers(self):
        for action, failure, code, says in ANSWERS:
            with self.subTest(action=action, failure=failure):
                pid = self.guest("idle").pid
                if action == "resume":
                    self.assertEqual(self.vgpu("suspend", pid)[0], DONE)
                self.refuse(code, action, pid, says=says,
                          OPENVGPU_SIM_FAIL="cuCheckpointProcess" + failure)
                if code != LOST:
                    self.assertEqual(self.vgpu("state", pid)[1],
                                     "checkpointed\n" if action == "resume" else "running\n")
                self.assertEqual(self.vgpu("resume", pid)[0], DONE)  # in truth nothing is spoilt


if __name__ == "__main__":
    unittest.main()
