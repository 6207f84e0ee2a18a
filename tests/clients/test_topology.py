#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Debian's hwloc and Slurm look for GPUs through NVML: do they find the devices of a scenario?"""
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "system"))

import case  # noqa: E402
import packages  # noqa: E402
import stage  # noqa: E402
from wait import PATIENCE  # noqa: E402

SCENARIO = {
    "openvgpu_scenario": 1,
    "devices": [{"board": "H200", "serial": "1651922013945"}, {"board": "H200"}],
}

SLURM = """ClusterName=test
SlurmctldHost=localhost
SlurmUser=root
NodeName={node} Gres=gpu:2
PartitionName=all Nodes=ALL Default=YES
GresTypes=gpu
PluginDir={plugins}
"""


class Topology(unittest.TestCase):
    PACKAGES = ()

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="vg-")
        cls.addClassCleanup(directory.cleanup)
        cls.directory = pathlib.Path(directory.name)
        cls.scenario = cls.directory / "scenario.json"
        cls.scenario.write_text(json.dumps(SCENARIO))
        try:
            cls.root = packages.fetch(f"{os.environ['TEST_PACKAGES']}-{cls.__name__.lower()}", *cls.PACKAGES)
        except packages.Missing as missing:
            raise unittest.SkipTest(str(missing)) from None

    def run_in(self, script):
        """What @script prints, on both streams, in the scenario."""
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("OPENVGPU_", "TEST_")) and name != "LD_LIBRARY_PATH"}
        done = subprocess.run([str(stage.VGPU), "simulate", str(self.scenario), "--", "sh", "-c", script],
                              env={**kept, "HOME": str(self.directory)}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=2 * PATIENCE)
        self.assertEqual(done.returncode, 0, f"{script}: {done.stdout}")
        return done.stdout


class Hwloc(Topology):
    PACKAGES = ("hwloc-nox", "libhwloc15", "libhwloc-contrib-plugins")

    def test_each_device_is_an_object_with_its_facts(self):
        plugins = next(self.root.rglob("hwloc_nvml.so")).parent
        libraries = next(self.root.rglob("libhwloc.so.15")).parent
        program = next(path for path in self.root.rglob("lstopo-no-graphics") if "bin" in path.parts)
        needs = subprocess.run(["ldd", program, libraries / "libhwloc.so.15"], capture_output=True, text=True,
                               env={**os.environ, "LD_LIBRARY_PATH": str(libraries)})
        if "not found" in needs.stdout:
            self.skipTest("libraries that hwloc needs are not installed")
        seen = self.run_in(f"LD_LIBRARY_PATH=$LD_LIBRARY_PATH:{libraries} HWLOC_PLUGINS_PATH={plugins} "
                           f"{program} --of console --whole-io -v")
        lines = [line for line in seen.splitlines() if re.search('"nvml[0-9]+"', line)]
        self.assertEqual([re.search('nvml[0-9]+', line)[0] for line in lines], ["nvml0", "nvml1"], seen)
        self.assertIn('GPUModel="NVIDIA H200"', lines[0])
        self.assertIn("NVIDIASerial=1651922013945", lines[0])


def has_slurmd():
    """Of the release that was tried: others may want more than a configuration before they look."""
    if not shutil.which("slurmd"):
        return False
    return " 22.05" in subprocess.run(["slurmd", "-V"], capture_output=True, text=True).stdout


@unittest.skipUnless(has_slurmd(), "slurmd 22.05, of Debian 12, is not installed")
class Slurm(Topology):
    PACKAGES = ("slurm-wlm-nvml-plugin",)

    def test_slurmd_finds_the_devices(self):
        plugins = [*glob.glob("/usr/lib/*/slurm-wlm"), str(next(self.root.rglob("gpu_nvml.so")).parent)]
        configuration = self.directory / "slurm.conf"
        configuration.write_text(SLURM.format(node=os.uname().nodename.split(".")[0], plugins=":".join(plugins)))
        (self.directory / "gres.conf").write_text("AutoDetect=nvml\n")
        seen = self.run_in(f"slurmd -C && slurmd -G -f {configuration}")
        self.assertIn("NodeName=", seen)
        self.assertEqual(re.findall(r"Gres Name=gpu .*Index=(\d) .*File=/dev/nvidia(\d)", seen),
                         [("0", "0"), ("1", "1")], seen)


if __name__ == "__main__":
    stage.make()
    case.main()
