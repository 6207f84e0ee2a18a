#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What vgpud's programs may do of what root may (src/base/privilege.c), and that it is enough for guests
of other users: docs/security.md."""
import os
import re
import unittest

import case
import stage

# In the order of their numbers, capabilities(7).
NAMES = """CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE
NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE
SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE
AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF
CHECKPOINT_RESTORE""".split()

KEEPER = {"SYS_PTRACE", "SYS_NICE", "SYS_RESOURCE"}


def status(pid, field):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(rf"^{field}:\s*(\w+)", file.read(), re.M)[1], 16)


def rights(pid):
    """What it has, or could get by executing another program."""
    bits = 0
    for field in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"):
        bits |= status(pid, field)
    return {name for i, name in enumerate(NAMES) if bits >> i & 1}


def bound_of_unit():
    with open(stage.ROOT / "lib/systemd/system/vgpud.service") as unit:
        lines = "".join(line for line in unit if line.startswith("CapabilityBoundingSet="))
    return {name.removeprefix("CAP_") for name in re.findall(r"CAP_\w+", lines)}


@unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
class Rights(case.Case):
    def train_as_nobody(self, name):
        log = os.path.join(self.host.directory, f"steps-{name}")
        with open(log, "w"):
            os.chmod(log, 0o666)
        self.host.vgpu("create", name, "--fb", "64M", "--device", 0, user="nobody")
        return self.host.run(name, "guest-train", "--log", log, log=log, user="nobody").wait_ready()

    def test_each_program_has_what_it_needs_and_no_more(self):
        self.train_as_nobody("theirs")
        self.host.vgpu("suspend", "theirs")
        (keeper,), movers = self.host.processes("vgpu-keeper"), self.host.movers()
        self.assertTrue(movers)
        self.assertEqual(rights(keeper[0]), KEEPER & rights(os.getpid()))
        self.assertEqual(status(keeper[0], "NoNewPrivs"), 1)
        self.assertEqual(rights(self.host.manager.pid), bound_of_unit() & rights(os.getpid()))
        for pid in movers:
            self.assertEqual(rights(pid), rights(self.host.manager.pid) - {"SETPCAP"})
        self.host.vgpu("resume", "theirs")

    def test_it_is_enough_for_a_guest_of_another_user(self):
        guest = self.train_as_nobody("theirs")
        for command in (["suspend"], ["resume"], ["migrate", "--device", 1], ["suspend"],
                        ["resume", "--device", 0]):
            self.host.vgpu(command[0], "theirs", *command[1:], user="nobody")
        guest.wait_steps(2)


if __name__ == "__main__":
    case.main()
