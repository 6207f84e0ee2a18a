#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu checkpoint with a driver of CUDA 13.4: where device memory goes, what is told of it.

The programs are named as for test_command.py, whose class makes the guests.
"""
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import unittest

from test_command import Command


class Storage(unittest.TestCase):
    def setUp(self):
        if shutil.disk_usage("/dev/shm").free < 2 << 30:
            self.skipTest("/dev/shm has less than 2 GiB left")
        self.command = Command()
        self.command.setUp()
        self.addCleanup(self.command.doCleanups)
        self.command.environment["OPENVGPU_SIM_CUDA"] = "13040"
        self.folder = self.command.root / "folder"
        self.folder.mkdir()

    def vgpu(self, *words, **variables):
        code, out, err = self.command.vgpu(*words, "--json", **variables)
        self.assertEqual(code, 0, err)
        return json.loads(out)["processes"][0]

    def test_what_is_told(self):
        pid = self.command.guest("idle").pid
        done = self.vgpu("suspend", pid)
        self.assertEqual((done["storage"], done["storage_reason"]), ("memory", ""))
        self.assertEqual(self.vgpu("state", pid)["storage"], "memory")
        self.assertEqual(self.vgpu("resume", pid)["storage"], "memory")
        self.assertEqual(self.vgpu("state", pid)["storage"], "")
        done = self.vgpu("suspend", pid, OPENVGPU_SIM_CUDA="13000")
        self.assertEqual(done["storage"], "driver")
        self.assertIn("13.4", done["storage_reason"])
        self.assertEqual(self.vgpu("resume", pid)["storage"], "driver")

    def test_a_directory_that_is_named(self):
        pid = self.command.guest("idle").pid
        os.chdir(self.command.root)
        self.addCleanup(os.chdir, "/")
        self.assertEqual(self.vgpu("suspend", pid, "--storage", "./folder")["storage"], "directory")
        self.assertEqual(len(list(self.folder.iterdir())), 1)
        os.chdir("/")
        self.assertEqual(self.vgpu("resume", pid)["storage"], "directory")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_wrong_words(self):
        pid = self.command.guest("idle").pid
        self.assertEqual(self.command.vgpu("suspend", pid, "--storage", "folder")[0], 2)
        self.assertEqual(self.command.vgpu("suspend", pid, "--storage", "/nonexistent/x")[0], 2)
        self.assertEqual(self.command.vgpu("lock", pid, "--storage", "memory")[0], 2)
        self.assertEqual(self.command.vgpu("resume", pid, "--storage", "memory")[0], 2)
        self.assertEqual(self.command.vgpu("state", pid), (0, "running\n", ""))

    def test_a_member_of_a_launch_job_takes_the_drivers_way(self):
        self.command.environment["CUDA_CHECKPOINT_JOB_FILE"] = "/proc/self/fd/9"
        pid = self.command.guest("idle").pid
        del self.command.environment["CUDA_CHECKPOINT_JOB_FILE"]
        done = self.vgpu("suspend", pid)
        self.assertEqual(done["storage"], "driver")
        self.assertIn("CUDA_CHECKPOINT_JOB_FILE", done["storage_reason"])
        self.assertEqual(self.vgpu("resume", pid)["storage"], "driver")
        self.assertEqual(self.command.vgpu("suspend", pid, "--storage", "memory")[0], 1)

    def test_nobody_sweeps_what_belongs_to_another_pid_namespace(self):
        elsewhere = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"]
        if subprocess.run(elsewhere + ["true"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("no namespaces here")
        pid = self.command.guest("idle").pid
        self.vgpu("suspend", pid)
        looked = subprocess.run(elsewhere + [os.environ["TEST_VGPU"], "checkpoint", "state", "1"],
                                env=self.command.environment, capture_output=True, check=False)
        self.assertEqual(looked.returncode, 3, looked.stderr)  # it has looked: no CUDA there
        self.assertEqual(self.vgpu("resume", pid)["storage"], "memory")

    def test_who_looks_at_a_process_removes_nothing_that_is_stored_meanwhile(self):
        pid = self.command.guest("idle").pid
        point = self.command.root / "checkpointer.looked"
        with subprocess.Popen([os.environ["TEST_VGPU"], "checkpoint", "state", str(pid)],
                              env=self.command.environment |
                              {"OPENVGPU_FAULT": "checkpointer.looked=pause"},
                              stdout=subprocess.PIPE, text=True) as looking:
            self.command.wait(looking, point.exists, "the fault point")
            self.vgpu("suspend", pid)
            point.unlink()
            self.assertEqual(looking.communicate()[0], "running\n")
        self.assertEqual(self.vgpu("resume", pid)["storage"], "memory")

    def block_the_note(self):
        """No second note can be written beside the first one: so it is where a disk is full."""
        note, = (self.command.root / "run" / "checkpoint").glob("*.storage")
        note.with_name(note.name + ".new").mkdir()

    def test_a_note_that_cannot_be_replaced_costs_no_process(self):
        pid = self.command.guest("idle").pid
        point = self.command.root / "checkpointer.storing"
        with subprocess.Popen([os.environ["TEST_VGPU"], "checkpoint", "suspend", str(pid)],
                              env=self.command.environment |
                              {"OPENVGPU_FAULT": "checkpointer.storing=pause"}) as suspending:
            self.command.wait(suspending, point.exists, "the fault point")
            self.block_the_note()
            point.unlink()
            self.assertEqual(suspending.wait(), 0)
        self.assertEqual(self.vgpu("state", pid)["storage"], "memory")
        self.assertEqual(self.vgpu("resume", pid)["storage"], "memory")

    def test_a_loss_is_noted_where_the_note_cannot_be_replaced(self):
        pid = self.command.guest("idle").pid
        self.vgpu("suspend", pid)
        self.block_the_note()
        self.assertEqual(self.command.vgpu("resume", pid,
                                           OPENVGPU_FAULT="checkpointer.read=fail")[0], 5)
        self.assertEqual(self.command.vgpu("unlock", pid)[0], 5)

    def start(self, point, *words):
        """A command that waits at a fault point, and the file that says so."""
        file = self.command.root / point
        command = subprocess.Popen(
            [os.environ["TEST_VGPU"], "checkpoint", *map(str, words)], stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=self.command.environment | {"OPENVGPU_FAULT": f"{point}=pause"})
        self.addCleanup(lambda: (command.kill(), command.wait()))
        self.command.wait(command, lambda: file.exists() and file.read_text(), "the fault point")
        return command, file

    def test_two_at_once(self):
        pid = self.command.guest("idle").pid
        for point, action in (("checkpointer.checkpoint", "suspend"),
                              ("checkpointer.storing", "suspend"),
                              ("checkpointer.restore", "resume"),
                              ("checkpointer.loading", "resume")):
            with self.subTest(point):
                if action == "resume":
                    self.vgpu("suspend", pid)
                first, file = self.start(point, action, pid)
                code, _, err = self.command.vgpu(action, pid)
                self.assertEqual(code, 1, err)
                self.assertIn("somebody else checkpoints or restores", err)
                file.unlink()
                self.assertEqual(first.wait(), 0)
                self.command.vgpu("resume", pid)

    def test_only_the_owner_can_read_it(self):
        pid = self.command.guest("idle").pid
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        for storage, base in (("memory", pathlib.Path("/dev/shm")), (self.folder, self.folder)):
            self.vgpu("suspend", pid, "--storage", storage)
            store, = base.glob(f"openvgpu-{pid}-*")
            self.assertGreater(len(list(store.glob("GPU-*"))), 0)
            for path in [store, *store.iterdir()]:
                self.assertEqual(path.stat().st_mode & 0o077, 0, path)
            self.vgpu("resume", pid)

    def test_nothing_is_left_when_all_have_died_in_the_end(self):
        target = self.command.guest("idle")
        other = self.command.guest("idle").pid
        command, file = self.start("checkpointer.stored", "suspend", target.pid)
        target.kill()
        target.wait()
        self.command.vgpu("state", other)  # sweeps, but not what somebody is at work on
        helper = int(file.read_text())
        command.kill()
        command.wait()
        pidfd = os.pidfd_open(helper)
        self.addCleanup(os.close, pidfd)
        os.kill(helper, signal.SIGKILL)
        select.select([pidfd], [], [])
        self.command.vgpu("state", other)
        self.assertEqual(list(pathlib.Path("/dev/shm").glob(f"openvgpu-{target.pid}-*")), [])

    def test_a_lost_process_is_told_by_the_exit_status(self):
        pid = self.command.guest("idle").pid
        code, _, err = self.command.vgpu("suspend", pid, OPENVGPU_FAULT="checkpointer.write=fail")
        self.assertEqual(code, 5, err)
        self.assertIn(f"the device memory of process {pid} could not be stored", err)
        self.assertIn("hint: the process can only be killed", err)
        code, _, err = self.command.vgpu("resume", pid)
        self.assertEqual(code, 5, err)
        self.assertIn("has lost its device memory", err)

    def test_nvidias_tool_leaves_it_in_the_process_for_criu(self):
        pid = self.command.guest("idle").pid
        self.assertEqual(self.command.tool("--toggle", "--pid", pid)[0], 0)
        self.assertEqual(self.vgpu("state", pid)["storage"], "")
        self.assertFalse((self.command.root / "run" / "checkpoint").exists() and
                         list((self.command.root / "run" / "checkpoint").glob("*.storage")))
        self.assertEqual(self.command.tool("--toggle", "--pid", pid)[0], 0)
        self.vgpu("suspend", pid)
        self.assertEqual(self.command.tool("--toggle", "--pid", pid)[0], 0)
        self.assertEqual(self.command.vgpu("state", pid), (0, "running\n", ""))


if __name__ == "__main__":
    unittest.main(defaultTest="Storage")
