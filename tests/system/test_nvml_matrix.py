#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every function of NVML with every kind of argument, as tests/conformance/compare_nvml.py lists them."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import case
import stage
from host import Host

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


class Record(unittest.TestCase):
    """What was found on a machine with a GPU: on the host, in a vGPU, and with a simulated device."""

    def replay(self, record, *more):
        explained = [part for name in ("explained-580.txt", *more) for part in ("--explained", COMPARE.with_name(name))]
        done = subprocess.run([sys.executable, COMPARE, "--replay", record, *explained], capture_output=True, text=True)
        return done.returncode, done.stdout

    def test_every_difference_has_a_reason_and_every_reason_a_difference(self):
        for record, more in (("differences-580.txt", ()),
                             ("differences-580-guest.txt", ("explained-580-guest.txt",)),
                             ("differences-580-simulated.txt", ("explained-580-simulated.txt",))):
            with self.subTest(record):
                code, output = self.replay(COMPARE.with_name(record), *more)
                self.assertEqual(code, 0, output)
                self.assertIn(" 0 open", output)

    def test_a_difference_without_a_reason_is_open(self):
        line = "nvmlDeviceGetName | good | ours SUCCESS | NVIDIA's NOT_FOUND\n"
        with tempfile.NamedTemporaryFile("w") as record:
            record.write(line)
            record.flush()
            code, output = self.replay(record.name)
        self.assertEqual(code, 1)
        self.assertTrue(output.startswith(line), output)
        self.assertIn("explains nothing: ", output)
        self.assertIn("1 differences: 0 explained, 1 open", output)


sys.path.insert(0, str(COMPARE.parent))
import compare_nvml  # noqa: E402

FACTS = json.loads(compare_nvml.FACTS.read_text())
ABI = compare_nvml.FACTS.with_name("nvml.abi")
KINDS = dict(line.split()[:2] for line in ABI.read_text().splitlines() if line.startswith("nvml"))
SCENARIOS = pathlib.Path(__file__).resolve().parents[2] / "share" / "scenarios"

# What any function may answer, whatever its documents list: see abi/nvml-vgpu.codes.
ALWAYS = {"UNINITIALIZED", "GPU_IS_LOST", "NOT_SUPPORTED", "INVALID_ARGUMENT"}
# Codes that the documents forget, and what they mean here.
UNDOCUMENTED = {
    "ARGUMENT_VERSION_MISMATCH": "of a struct with a version",
    "INSUFFICIENT_SIZE": "of a list or a text",
    "NOT_FOUND": "of an id",
    "NO_PERMISSION": "of a change",
}


LOST_DEVICE = 0x4f56470000000001  # our handle of device 0; a client cannot ask for that of a device which is lost


class Rules:
    """What the header asks of one answer. Each rule returns what is wrong, or None."""

    def __init__(self, is_lost=False):
        self.is_lost = is_lost

    def check(self, stage_name, name, call, answer):
        if re.match("crashes|hangs|absent", answer) or "writes" in answer:
            return answer
        if stage_name != "running":
            return self.check_uninitialized(name, answer)
        if call.endswith("of each size"):
            return self.check_sizes(answer)
        code = answer.split()[0]
        for rule in (self.check_documents, self.check_handle, self.check_version, self.check_pointers,
                     self.check_null, self.check_lost):
            wrong = rule(name, call, code)
            if wrong:
                return f"{answer}: {wrong}"
        return None

    def check_uninitialized(self, name, answer):
        return None if answer == "UNINITIALIZED" or KINDS[name] == "always" else answer

    def check_sizes(self, answer):
        """Too small, then large enough; or the same for every size, but perhaps not for none."""
        codes = [part.split()[2] for part in answer.split(", ")]
        if len(codes) == 1 and codes != ["SUCCESS"] or codes == ["INSUFFICIENT_SIZE", "SUCCESS"]:
            return None
        return None if codes[0] == "INVALID_ARGUMENT" and "SUCCESS" not in codes else answer

    def check_documents(self, name, call, code):
        documented = set(FACTS["codes"].get(name, ()))
        if not documented or code in documented | ALWAYS | set(UNDOCUMENTED):
            return None
        return "not in its documents"

    def check_handle(self, name, call, code):
        if call == "no handle" or re.search(r"(device|unit|gpuInstance|computeInstance) (NULL|wrong)$", call):
            return None if code in ("INVALID_ARGUMENT", "NOT_SUPPORTED", "IN_USE") else "no handle"
        return None

    def check_version(self, name, call, code):
        return "a wrong version" if " version " in call and code == "SUCCESS" else None

    def check_pointers(self, name, call, code):
        return "every pointer is NULL" if call in ("every pointer NULL", "all 0") and code == "SUCCESS" else None

    def check_null(self, name, call, code):
        """A NULL is a question for the size where a count goes with it."""
        if not call.endswith(" NULL") or code != "SUCCESS" or "," in call:
            return None
        counts = any(compare_nvml.COUNT.search(argument[0]) for argument in FACTS["functions"][name])
        return None if counts else "a NULL"

    def check_lost(self, name, call, code):
        lost = self.is_lost and code == "SUCCESS" and FACTS["functions"][name][0][1] == "nvmlDevice_t"
        return "the GPU is lost" if lost else None


class Names(unittest.TestCase):
    def test_each_vgpu_function_is_in_the_documents(self):
        root = ABI.parents[1]
        words = (root / "docs" / "nvml.md").read_text()
        lines = (root / "abi" / "nvml-vgpu.codes").read_text().splitlines()
        names = {line.split()[0] for line in lines if line.startswith("nvml")}
        self.assertEqual(sorted(name for name in names if f"`{name}`" not in words), [])

    def test_names_that_came_after_the_header_wait_for_init_too(self):
        """What they take is not known here; before nvmlInit() nothing looks at it."""
        names = [name for name, kind in KINDS.items() if name not in FACTS["functions"] and kind != "always"]
        program = ("import ctypes, sys\nlibrary = ctypes.CDLL(sys.argv[1])\n"
                   "print(*(getattr(library, name)(0, 0, 0, 0, 0, 0) for name in sys.argv[2:]))")
        done = subprocess.run([sys.executable, "-c", program, LIBRARY, *names], check=True, capture_output=True, text=True)
        self.assertEqual(done.stdout.split(), ["1"] * len(names))


class Matrix(unittest.TestCase):
    def begin(self, *options):
        host = Host()
        if options:
            host.options = list(options)
        self.addCleanup(host.close, expect_clean=not options)
        host.start()
        return host

    def check(self, host, rules=None, device=0, **environment):
        options = argparse.Namespace(facts=str(compare_nvml.FACTS), only="*", device=device)
        calls = list(compare_nvml.list_all(FACTS["functions"]))
        wrong, given = [], []
        with open(os.devnull, "w") as log:
            answers = compare_nvml.ask(LIBRARY, options, host.environment(**environment), log)
            for (stage_name, name, call, _), answer in zip(calls, answers):
                given.append(answer)
                found = (rules or Rules()).check(stage_name, name, call, answer)
                if found:
                    wrong.append(f"{name} | {stage_name} | {call} | {found}")
        self.assertEqual(wrong, [], "\n".join(wrong))
        self.assertEqual(len(given), len(calls))
        return given

    def test_a_host_with_a_vgpu(self):
        host = self.begin()
        host.create("train", "512M")
        self.check(host)

    def test_a_guest(self):
        host = self.begin()
        host.create("train", "512M")
        self.check(host, OPENVGPU_VGPU="train")

    def test_gpu_instances(self):
        self.check(self.begin("--scenario", str(SCENARIOS / "mig.json")))

    def test_compute_instances(self):
        self.check(self.begin("--scenario", str(SCENARIOS / "compute-instances.json")))

    def test_a_scenario_that_states_much(self):
        self.check(self.begin("--scenario", str(SCENARIOS / "load.json")))

    def test_a_lost_device(self):
        path = pathlib.Path(stage.DESTDIR) / "nvml-matrix-lost.json"
        path.write_text(json.dumps({"openvgpu_scenario": 1, "devices": [{"board": "H100", "lost_at": 0}]}))
        given = self.check(self.begin("--scenario", str(path)), Rules(is_lost=True), LOST_DEVICE)
        self.assertGreater(given.count("GPU_IS_LOST"), 100)


if __name__ == "__main__":
    case.main()
