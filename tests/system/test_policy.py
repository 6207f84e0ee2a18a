#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What users who are not root may ask of a vgpud that serves them all."""
import json
import os
import subprocess
import sys
import unittest

from harness import MIB, Host
from wait import PATIENCE

NOBODY = 65534

# Calls of somebody else, one after the other; prints the list of what was answered.
SCRIPT = """
import json, os, sys
path, here, user, groups, calls = sys.argv[1:]
sys.path.insert(0, here)
from wire import Control, Refused
os.setgroups(json.loads(groups))
os.setgid(int(user))
os.setuid(int(user))
answers = []
for method, parameters in json.loads(calls):
    try:
        answers.append(Control(path).call(method, **parameters))
    except Refused as refused:
        answers.append({"error": refused.name, **refused.parameters})
    except OSError as error:
        answers.append({"error": error.errno})
print(json.dumps(answers))
"""


@unittest.skipIf(os.getuid() != 0, "needs root to be somebody else")
class Policy(unittest.TestCase):
    def start(self, *options):
        self.host = self.enterContext(Host(fake=True))
        os.chmod(self.host.root, 0o755)
        self.host.start(options=options)

    def ask(self, *calls, user=NOBODY, groups=()):
        done = subprocess.run([sys.executable, "-c", SCRIPT, self.host.run / "control.sock",
                               os.path.dirname(os.path.abspath(__file__)), str(user),
                               json.dumps(groups), json.dumps(calls)],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def names(self):
        return sorted(vgpu["name"] for vgpu in self.host.call("ListVgpus")["vgpus"])

    def test_time_is_for_root_to_promise(self):
        self.start()
        answers = self.ask(["CreateVgpu", {"name": "greedy", "frame_buffer": 64 * MIB, "share": 1}],
                           ["CreateVgpu", {"name": "none", "frame_buffer": 64 * MIB, "share": 0}],
                           ["CreateVgpu", {"name": "plain", "frame_buffer": 64 * MIB}],
                           ["SetVgpuShare", {"vgpu": "plain", "percent": 1}])
        self.assertEqual([answer.get("error") for answer in answers],
                         ["PermissionDenied", None, None, "PermissionDenied"])
        self.assertIn("root", answers[0]["message"])
        self.assertIn("vgpu share", answers[0]["hint"])
        self.assertEqual(self.names(), ["none", "plain"])
        self.host.call("SetVgpuShare", vgpu="plain", percent=60)
        self.host.call("CreateVgpu", name="ours", frame_buffer=64 * MIB, share=40)


if __name__ == "__main__":
    unittest.main(verbosity=2)
