#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu checkpoint dump of processes that are no guests, without a manager, with a CRIU that fails."""
import unittest

from commands import Case

CRIU = """#!/bin/sh
case $1 in
--version) echo Version: 4.1.1 ;;
check) echo Looks good. ;;
dump) echo "(00.1) Error (criu/x.c:1): cannot do it" >&2; exit 1 ;;
esac
"""


class FailedDumps(Case):
    def setUp(self):
        super().setUp()
        self.criu = self.root / "criu"
        self.criu.write_text(CRIU)
        self.criu.chmod(0o755)

    def fail_to_dump(self, process):
        code, _, errors = self.vgpu("dump", process.pid, self.root / "image", "--cut-pipes",
                                    "--criu", self.criu)
        self.assertEqual(code, 1, errors)
        self.assertIn("criu dump failed", errors)
        self.assertFalse(list(self.root.glob("image*")))

    def state(self, process):
        return self.tool("--get-state", "--pid", process.pid)[1].strip()

    def test_what_ran_runs(self):
        process = self.guest("idle")
        self.fail_to_dump(process)
        self.assertEqual(self.state(process), "running")

    def test_what_was_suspended_stays_so(self):
        process = self.guest("idle")
        self.assertEqual(self.vgpu("suspend", process.pid)[0], 0)
        self.fail_to_dump(process)
        self.assertEqual(self.state(process), "checkpointed")
        self.assertEqual(self.vgpu("resume", process.pid)[0], 0)


if __name__ == "__main__":
    unittest.main()
