#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each entry point that the gate has a hand in answers what the driver answers, but for what is listed."""
import os
import pathlib
import subprocess

import case
import compare
import stage
from wait import PATIENCE

ABI = pathlib.Path(__file__).resolve().parents[2] / "abi" / "cuda.abi"


def own_entries():
    rows = [line.split() for line in ABI.read_text().splitlines() if not line.startswith("#")]
    return {row[0] for row in rows if row and row[1] in ("own", "waited")}


class Compare(case.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.host.create("compared", "768M")
        cls.gated = cls.host.vgpu("run", "--vgpu", "compared", "--",
                                  stage.GUESTS / "guest-compare").output.splitlines()
        driver = cls.host.info()["driver_path"]
        done = subprocess.run(
            [stage.GUESTS / "guest-compare"], capture_output=True, text=True, check=True,
            timeout=PATIENCE, env=cls.host.environment(
                OPENVGPU_SIM=os.path.join(cls.host.run_directory, "sim"),
                LD_LIBRARY_PATH=os.path.dirname(driver)))
        cls.native = done.stdout.splitlines()

    def test_the_answers_are_the_drivers_but_for_those_that_are_listed(self):
        found = compare.unexpected(self.native, self.gated)
        self.assertEqual(found, [], "\n" + "\n".join(
            f"{what}\n  driver: {native}\n  gate:   {gated}" for what, native, gated in found))

    def test_each_entry_point_that_the_gate_has_a_hand_in_is_called(self):
        called = {line.split(": ")[1].split(" (")[0] for line in self.native if " (" in line}
        asked = {"cuGetProcAddress", "cuGetProcAddress_v2"}  # by entry/all, for every name
        self.assertEqual(own_entries() - called - asked, set())

    def test_no_case_ends_badly(self):
        bad = [line for line in self.native + self.gated
               if "ended by signal" in line or "exit status" in line or line.endswith("not there")]
        self.assertEqual(bad, [])

    def test_what_is_listed_is_so(self):
        found = {what for what, *_ in compare.differences(self.native, self.gated)}
        self.assertLessEqual(set(compare.expected(False)), found, "listed in docs/limits-in-detail.md, but not so")


if __name__ == "__main__":
    case.main()
