#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/chaos for what is installed: where there is no build folder it builds the programs of the vGPUs by itself."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import case
import stage
from wait import PATIENCE

CHAOS = pathlib.Path(__file__).resolve().parents[1] / "chaos" / "chaos"


class Installed(unittest.TestCase):
    def test_it_needs_no_build_folder(self):
        stage.make()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TEST_BUILD")}
        with tempfile.TemporaryDirectory(prefix="vg-") as folder:
            done = subprocess.run([CHAOS, "--prefix", stage.ROOT, "--build", f"{folder}/none", "--keep", folder, "--seconds", "2",
                                   "--clients", "2", "--users", "0", "--vgpus", "2", "--calm", "0", "--seed", "1"],
                                  cwd=folder, env=environment, text=True, capture_output=True, timeout=10 * PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("building the programs of the vGPUs", done.stdout)
        self.assertIn("seed 1: 0 complaints", done.stdout)


if __name__ == "__main__":
    case.main()
