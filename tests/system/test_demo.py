#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/demo where a node in /dev or a library looks like a GPU, and no driver works: it says so, and goes on simulated."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import case
import stage
from wait import PATIENCE

DEMO = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "demo"
DEAD_DRIVER = stage.BUILD / "tests" / "system" / "libdead-driver.so"

# In a mount namespace of its own: a /dev with the node, and what programs need.
WITH_NODE = r"""
old=$1; shift
mount --rbind /dev "$old" && mount -t tmpfs tmpfs /dev && ln -s /proc/self/fd /dev/fd || exit 77
for node in null zero full random urandom tty; do touch /dev/$node && mount --bind "$old/$node" /dev/$node || exit 77; done
mkdir /dev/shm && mount --rbind "$old/shm" /dev/shm || exit 77
touch /dev/nvidiactl
exec "$@"
"""


class WithoutDriver(unittest.TestCase):
    def run_demo(self, *preceding, library=None):
        stage.make()
        folder = pathlib.Path(tempfile.mkdtemp(prefix="vg-demo-"))
        self.addCleanup(shutil.rmtree, folder)
        for name in ("dev", "bin", "lib"):
            (folder / name).mkdir()
        (folder / "bin" / "nvidia-smi").symlink_to("/bin/true")  # none is fetched
        if library:
            (folder / "lib" / "libcuda.so.1").symlink_to(library)
        environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": f"{folder}/lib"}
        preceding = [str(folder / "dev") if word == "OLD" else word for word in preceding]
        done = subprocess.run([*preceding, DEMO, "--prefix", stage.ROOT, "--guests", stage.BUILD / "tests" / "guests"],
                              env=environment, text=True, capture_output=True, timeout=2 * PATIENCE, check=False)
        if done.returncode == 77 and preceding:
            self.skipTest("no mount namespace can be made here")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("and computed on without an error", done.stdout)
        return done.stderr

    def test_a_node_without_a_driver(self):
        unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
        if subprocess.run([*unshare, "true"], check=False, stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no mount namespace can be made here")
        said = self.run_demo(*unshare, "sh", "-c", WITH_NODE, "sh", "OLD")
        self.assertIn("no NVIDIA driver (there is no libcuda.so.1, though there is /dev/nvidiactl); on two simulated GPUs", said)

    def test_a_library_without_a_driver(self):
        said = self.run_demo(library=DEAD_DRIVER)
        self.assertIn("the NVIDIA driver does not work (it answers CUDA_ERROR_UNKNOWN, 999); on two simulated GPUs", said)


if __name__ == "__main__":
    case.main()
