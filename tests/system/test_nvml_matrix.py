#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every function of NVML with every kind of argument, as tests/conformance/compare_nvml.py lists them."""
import pathlib
import subprocess
import sys

import case
import stage

COMPARE = pathlib.Path(__file__).resolve().parents[1] / "conformance" / "compare_nvml.py"
LIBRARY = str(stage.PRIVATE / "nvml" / "libnvidia-ml.so.1")


def compare(environment, *options):
    done = subprocess.run([sys.executable, COMPARE, "--ours", LIBRARY, "--theirs", LIBRARY, *options],
                          capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout


class Comparison(case.Case):
    """The program that compares two libraries on a machine with a GPU."""
    HOST = {"devices": "1xH100:8G"}

    def test_a_library_answers_as_itself(self):
        code, output = compare(self.host.environment(), "--only", "nvml*Vgpu*")
        self.assertEqual(code, 0, output)
        self.assertIn(" 0 explained, 0 open", output)

    def test_differences_are_found_and_may_be_explained(self):
        """Of a library without a manager."""
        explained = pathlib.Path(self.host.directory, "explained")
        explained.write_text("nvmlDeviceGetName * * 'UNINITIALIZED*' 'there is no manager'\n"
                             "nvmlDeviceGetName 'name of each size' * * 'there is no manager'\n")
        environment = dict(self.host.environment(), OPENVGPU_RUN="/nonexistent")
        vgpud = ("--manager", f"{stage.VGPUD} --simulate 1xH100:8G", "--only", "nvmlDeviceGetName")
        code, output = compare(environment, *vgpud)
        self.assertEqual(code, 1, output)
        self.assertIn("nvmlDeviceGetName | good | ours SUCCESS | NVIDIA's UNINITIALIZED", output)
        self.assertIn("from 0 INSUFFICIENT_SIZE, from 22 SUCCESS", output)
        code, output = compare(environment, *vgpud, "--explained", str(explained))
        self.assertEqual(code, 0, output)


if __name__ == "__main__":
    case.main()
