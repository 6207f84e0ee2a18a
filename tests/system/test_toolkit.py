#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What containers get of a real driver, where NVIDIA's container toolkit says what they need."""
import json
import os
import unittest

from harness import Host
from wait import until

TOOLKIT = """#!/bin/sh
[ "$*" = "cdi generate --format=json" ] || exit 2
cat <<'END'
%s
END
"""

# As 'nvidia-ctk cdi generate' 1.18 says it, of a machine with two GPUs.
NVIDIA = {
    "cdiVersion": "0.5.0", "kind": "nvidia.com/gpu",
    "devices": [{"name": name, "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{i}"} for i in gpus]}}
                for name, gpus in (("0", [0]), ("1", [1]), ("all", [0, 1]))],
    "containerEdits": {
        "env": ["NVIDIA_VISIBLE_DEVICES=void"],
        "deviceNodes": [{"path": "/dev/nvidiactl"}],
        "hooks": [{"hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook",
                   "args": ["nvidia-cdi-hook", "update-ldcache", "--folder", "/usr/lib64"]}],
        "mounts": [{"hostPath": f"/usr/lib/x86_64-linux-gnu/{file}", "containerPath": f"/usr/lib64/{file}",
                    "options": ["ro", "nosuid", "nodev", "rbind"]} for file in ("libcuda.so.580.1", "libnvidia-ml.so.580.1")],
    },
}


class Toolkit(unittest.TestCase):
    """NVIDIA's container toolkit, here a script, knows the driver's files better than we do."""

    def start(self, said):
        host = self.enterContext(Host(fake=True))
        (host.root / "nvidia-ctk").write_text(TOOLKIT % said)
        (host.root / "nvidia-ctk").chmod(0o755)
        host.variables["PATH"] = f"/nonexistent:{host.root}:{os.environ['PATH']}"
        host.start(options=["--cdi", host.root / "cdi.json"])
        self.file = host.root / "cdi.json"
        return host

    def edits(self):
        return json.loads(self.file.read_text())["containerEdits"]

    def test_a_container_gets_what_the_toolkit_says(self):
        host = self.start(json.dumps(NVIDIA))
        until(lambda: "hooks" in self.edits(), "the toolkit to answer")
        edits, theirs = self.edits(), NVIDIA["containerEdits"]
        self.assertIn("OPENVGPU_DRIVER=/usr/lib64/libcuda.so.580.1", edits["env"])
        self.assertIn("NVIDIA_VISIBLE_DEVICES=void", edits["env"])
        self.assertEqual([node["path"] for node in edits["deviceNodes"]], ["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia1"])
        self.assertEqual(edits["hooks"], theirs["hooks"])
        self.assertEqual(edits["mounts"][-2:], theirs["mounts"])
        self.assertEqual(json.loads(self.file.read_text())["cdiVersion"], "0.5.0")
        host.call("CreateVgpu", name="train", frame_buffer=4 << 20, device="0")
        self.assertEqual(self.edits(), edits)

    def test_what_is_no_answer_changes_nothing(self):
        for said in ("", "no JSON", "[]", '{"containerEdits": 3}', json.dumps({**NVIDIA, "devices": []}),
                     json.dumps({**NVIDIA, "containerEdits": {"mounts": [{"containerPath": "/lib"}, 3]}})):
            with self.subTest(said=said):
                host = self.start(said)
                until(lambda host=host: (host.run / "nvidia-cdi.json").exists(), "the toolkit to be asked")
                host.call("CreateVgpu", name="train", frame_buffer=4 << 20, device="0")
                self.assertIn(f"OPENVGPU_DRIVER={host.lib}/none", self.edits()["env"])
                self.assertNotIn("hooks", self.edits())


if __name__ == "__main__":
    unittest.main(verbosity=2)
