#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu checkpoint and cuda-checkpoint of a guest: its manager looks after it, as long as it answers."""
import os
import subprocess

import case
import stage

FAILED = 1
TOOL = stage.PRIVATE / "bin" / "cuda-checkpoint"
CHANGING = ["lock", "checkpoint", "restore", "unlock", "suspend", "resume", "toggle"]


class Guests(case.Case):
    HOST = {"devices": "2xH200:512M", "pool": "160M", "slab": "8M"}

    def setUp(self):
        self.guest = self.host.train(self.host.create("train"), "--size", "4M")
        driver = self.host.info()["driver_path"]
        self.environment = self.host.environment(
            OPENVGPU_SIM=os.path.join(self.host.run_directory, "sim"), OPENVGPU_DRIVER=driver,
            LD_LIBRARY_PATH=os.path.dirname(driver))

    def checkpoint(self, *words, code=0):
        return self.host.vgpu("checkpoint", *words, code=code, environment=self.environment)

    def tool(self, *words):
        done = subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True,
                              env=self.environment, check=False)
        return done.returncode, done.stdout, done.stderr

    def check_cycle(self, *options):
        for action, state in (("suspend", "checkpointed"), ("resume", "running")):
            self.checkpoint(action, self.guest.pid, *options)
            self.assertEqual(self.checkpoint("state", self.guest.pid).output, state + "\n")

    def check_goes_on(self):
        self.guest.wait_steps()
        self.guest.finish()

    def test_a_guest_is_refused_while_its_manager_answers(self):
        for action in CHANGING:
            errors = self.checkpoint(action, self.guest.pid, code=FAILED).errors
            self.assertIn(f"process {self.guest.pid} is a program of the vGPU train", errors)
            self.assertIn("hint: use 'vgpu suspend train' and 'vgpu resume train'", errors)
        self.assertEqual(self.checkpoint("state", self.guest.pid).output, "running\n")
        self.check_goes_on()

    def test_a_guest_below_another_process_is_refused(self):
        shell = subprocess.Popen(["/bin/sh", "-c", f"{stage.VGPU} run --vgpu train -- {stage.GUESTS}/guest-train "
                                  "--size 4M --on-demand; exit 0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 env=self.host.environment())
        try:
            self.assertEqual(shell.stdout.readline(), b"ready\n")
            for action in CHANGING:
                errors = self.checkpoint(action, "--tree", shell.pid, code=FAILED).errors
                self.assertIn("is a program of the vGPU train", errors)
            self.assertIn("running", self.checkpoint("state", "--tree", shell.pid).output)
        finally:
            shell.stdin.close()
            shell.wait()
            shell.stdout.close()
        self.check_goes_on()

    def test_the_plugin_of_criu_sees_that_it_has_cuda_and_is_refused_at_the_lock(self):
        """If the first of these failed, it would dump the guest as a process without CUDA."""
        code, thread, _ = self.tool("--get-restore-tid", "--pid", self.guest.pid)
        self.assertEqual(code, 0)
        self.assertEqual(self.tool("--get-state", "--pid", thread.strip()), (0, "running\n", ""))
        code, _, errors = self.tool("--action", "lock", "--pid", self.guest.pid)
        self.assertEqual(code, 1)
        self.assertIn("is a program of the vGPU train", errors)
        self.check_goes_on()

    def test_forced_it_is_done(self):
        self.check_cycle("--force")
        self.check_goes_on()

    def test_without_its_manager_it_is_a_process_like_any_other(self):
        self.host.kill()
        self.check_cycle()
        self.host.start()
        self.check_goes_on()


if __name__ == "__main__":
    case.main()
