# SPDX-License-Identifier: Apache-2.0
"""vgpu checkpoint and cuda-checkpoint on simulated GPUs of their own, for the tests of this folder.

TEST_VGPU, TEST_CUDA_CHECKPOINT, TEST_SIMHOST, TEST_SIM and TEST_GUEST are the programs.
"""
import os
import pathlib
import subprocess
import tempfile
import unittest

import reach
from wait import until

reach.set_environment("TEST_VGPU", "TEST_CUDA_CHECKPOINT", "TEST_SIM", "TEST_GUEST", "TEST_LIBRARY", "OPENVGPU_LIB")


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        root = pathlib.Path(self.directory.name)
        subprocess.run([os.environ["TEST_SIMHOST"], root / "host", "2xH200:1G"], check=True)
        self.environment = dict(os.environ, OPENVGPU_SIM=str(root / "host"),
                                OPENVGPU_RUN=str(root / "run"), OPENVGPU_FAULT_DIR=str(root),
                                LD_LIBRARY_PATH=str(pathlib.Path(os.environ["TEST_SIM"]).parent))
        self.root = root

    def guest(self, kind, user=None, **variables):
        counter = self.root / f"counter-{len(list(self.root.glob('counter-*')))}"
        process = subprocess.Popen([os.environ["TEST_GUEST"], kind, str(counter)], user=user,
                                   stdout=subprocess.DEVNULL, env=self.environment | variables)
        self.addCleanup(lambda: (process.kill(), process.wait()))
        self.wait(process, lambda: counter.exists() and any(counter.read_bytes()), "its first round")
        return process

    def wait(self, process, condition, what):
        def look():
            self.assertIsNone(process.poll(), f"it ended before {what}")
            return condition()

        until(look, what)

    def run_program(self, program, *words, user=None, **variables):
        done = subprocess.run([os.environ[program], *map(str, words)], text=True, user=user,
                              capture_output=True, env=dict(self.environment, **variables))
        return done.returncode, done.stdout, done.stderr

    def vgpu(self, *words, **variables):
        return self.run_program("TEST_VGPU", "checkpoint", *words, **variables)

    def tool(self, *words, **variables):
        return self.run_program("TEST_CUDA_CHECKPOINT", *words, **variables)
