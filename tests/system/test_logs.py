#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu logs: what happened to a vGPU, for its owner, also when it is gone and after vgpud was started again."""
import json
import os
import pwd
import signal
import subprocess
import unittest

import case
import stage
from guest import Guest
from wait import until


class Logs(case.Case):
    def events(self, *arguments, user=None):
        return self.host.vgpu("logs", *arguments, "--json", user=user).json["events"]

    def words(self, *arguments, user=None):
        return [event["event"] for event in self.events(*arguments, user=user)]

    def test_the_log_of_vgpud_says_whose_share_was_set(self):
        self.host.create("train")
        self.host.vgpu("share", "train", "40")
        self.assertIn('set vgpu=train share="40"', self.host.log())

    def test_what_happens_is_told_in_its_order(self):
        self.host.create("told")
        guest = self.host.train("told", "--size", "4M")
        self.host.vgpu("suspend", "told")
        self.host.vgpu("resume", "told", "--device", 1)
        self.host.vgpu("migrate", "told", "--device", 0)
        guest.finish()
        self.host.wait_state("told", "idle")
        events = self.events("told")
        self.assertEqual([event["event"] for event in events],
                         ["created", "process-began", "suspended", "resumed", "migrated", "process-ended"])
        self.assertEqual([event["device"] for event in events], [0, 0, 0, 1, 0, 0])
        self.assertEqual([event["pid"] for event in events], [0, guest.pid, 0, 0, 0, guest.pid])
        self.assertEqual(events[0]["bytes"], 256 << 20)
        self.assertGreaterEqual(events[2]["bytes"], 4 << 20)
        self.assertGreater(events[2]["seconds"], 0)
        parts = ("drain_seconds", "copy_seconds", "context_seconds")
        for event in events[2:5]:
            for part in parts:
                self.assertLessEqual(event[part], event["seconds"], event)
        self.assertGreater(sum(event[part] for event in events[2:5] for part in parts), 0)
        self.assertEqual([events[0][part] for part in parts], [0, 0, 0])
        self.assertEqual(events[3]["message"].split(":")[0], "resumed")
        self.assertIn("to GPU 1", events[3]["message"])
        self.assertIn("from GPU 1 to GPU 0", events[4]["message"])
        self.assertEqual({event["vgpu_uuid"] for event in events}, {self.host.get("told")["uuid"]})
        times = [event["time"] for event in events]
        self.assertEqual(times, sorted(times))
        followed = subprocess.Popen([stage.VGPU, "logs", "told", "--follow", "--json"], text=True,
                                    env=self.host.environment(), stdout=subprocess.PIPE)
        with followed:
            line = json.loads(followed.stdout.readline())
            followed.terminate()
        self.assertAlmostEqual(line["time"], times[0], places=3)  # another way to print it

        text = self.host.vgpu("logs", "told").output.splitlines()
        self.assertRegex(text[0], r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  created: 256 MiB on GPU 0$")
        self.assertEqual(len(text), len(events))
        self.assertRegex(self.host.vgpu("logs").output, r"(?m)^\S+ \S+  told +created")

    def test_memory_beyond_the_quota_is_told(self):
        self.host.create("told", "16M")
        guest = self.host.run("told", "guest-alloc", 1, 300, "16M", 1)
        guest.wait_ready()
        refused = int(guest.wait_line("refused ").split()[1])
        self.assertGreater(refused, 0)
        until(lambda: "out-of-memory" in self.words("told"), "the event of a program that goes on")
        self.assertEqual(guest.end_input(), 0)
        self.host.wait_state("told", "idle")
        events = [event for event in self.events("told") if event["event"] == "out-of-memory"]
        self.assertEqual({event["pid"] for event in events}, {guest.pid})
        self.assertRegex(events[0]["message"], r"asked for more than the quota of 16 MiB: it was refused")
        self.assertLessEqual(len(events), refused.bit_length())

    def test_what_failed_is_told_with_its_reason(self):
        self.host.create("told")
        guest = self.host.train("told", "--size", "4M")
        self.host.arm("suspend.closed", "fail")
        self.host.vgpu("suspend", "told", code=None)
        self.host.wait_state("told", "running")
        (event,) = [event for event in self.events("told") if event["event"] == "undone"]
        self.assertRegex(event["message"], "^suspend failed and was undone: .")
        guest.wait_steps()

    def test_it_survives_vgpud_and_the_vgpu(self):
        self.host.create("told")
        uuid = self.host.get("told")["uuid"]
        self.host.vgpu("rename", "told", "other")
        before = self.words("other")
        self.assertEqual(before, ["created", "renamed"])
        self.host.restart()
        self.assertEqual(self.words("other"), before)
        self.host.vgpu("rm", "other")
        for name in (uuid, "other"):
            self.assertEqual(self.words(name), ["created", "renamed", "removed"])
        self.host.stop()
        self.host.start()
        self.assertEqual(self.words(uuid), ["created", "renamed", "removed"])

        self.host.create("other")  # a name is that of the vGPU that has it now
        self.assertEqual(self.words("other"), ["created"])

    def test_what_was_answered_is_told_of_after_a_death(self):
        self.host.create("told")
        guest = self.host.train("told", "--size", "4M")
        self.host.arm("history.write", "kill")  # after the answer
        self.host.vgpu("suspend", "told")
        self.host.kill()
        self.host.disarm("history.write")
        self.host.start()
        self.assertIn("suspended", self.words("told"))
        self.host.vgpu("resume", "told")
        guest.finish()

    def test_a_vgpu_that_never_was_is_none(self):
        self.assertIn("never", self.host.vgpu("logs", "never", code=3).errors)
        self.host.vgpu("logs", "--since", "nonsense", code=2)
        self.assertEqual(self.words("--since", "2100-01-01"), [])

    def test_it_is_followed(self):
        self.host.create("told")
        with subprocess.Popen([stage.VGPU, "logs", "told", "--follow", "--json"], text=True,
                              stdout=subprocess.PIPE, env=self.host.environment()) as follower:
            try:
                self.assertEqual(json.loads(follower.stdout.readline())["event"], "created")
                self.host.vgpu("rm", "told")
                self.host.create("told")  # another one
                self.assertEqual(json.loads(follower.stdout.readline())["event"], "removed")
            finally:
                follower.kill()

    def test_a_page_is_followed_by_the_next(self):
        """More events than one answer has."""
        self.host.create("told")
        with self.host.connect() as control:
            for i in range(600):
                control.call("RenameVgpu", name=f"told{i - 1}" if i else "told", to=f"told{i}")
            first = control.call("ListEvents")
            self.assertTrue(first["more"])
            last = first["events"][-1]["id"]
            self.assertGreater(control.call("ListEvents", after=last)["events"][0]["id"], last)
        events = self.events("told599")
        self.assertEqual([event["vgpu"] for event in events], ["told"] + [f"told{i}" for i in range(600)])

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
    def test_users_learn_of_their_own(self):
        self.host.create("roots")
        self.host.vgpu("create", "theirs", "--fb", "64M", user="nobody")
        self.assertEqual({event["vgpu"] for event in self.events(user="nobody")}, {"theirs"})
        self.assertEqual(self.words("theirs"), ["created"])
        self.assertEqual(self.events("theirs")[0]["owner"], pwd.getpwnam("nobody").pw_uid)
        self.host.vgpu("logs", "roots", user="nobody", code=6)
        roots = self.host.get("roots")["uuid"]
        self.host.vgpu("rm", "roots")
        self.host.vgpu("logs", "roots", user="nobody", code=3)
        self.host.vgpu("logs", roots, user="nobody", code=3)

    def test_a_new_vgpud_is_told_where_programs_were(self):
        self.host.create("empty")
        self.host.create("told")
        guest = self.host.train("told", "--size", "4M")
        self.host.restart()
        self.assertEqual(self.words("empty"), ["created"])
        self.assertEqual(self.words("told"), ["created", "process-began", "vgpud-began"])
        guest.wait_steps()


def past_the_gate(host, name):
    """A program of the vGPU, as by `vgpu run`, that loads the driver itself."""
    guest = host.spawn_guest(["guest-hold", str(4 << 20)], {
        "OPENVGPU_VGPU": host.get(name)["uuid"], "OPENVGPU_SIM": os.path.join(host.run_directory, "sim"),
        "LD_LIBRARY_PATH": os.path.dirname(host.info()["driver_path"])})
    guest.wait_ready().hold("device")
    return guest


class PastTheGate(case.Case):
    HOST = {"devices": "1xH200:512M"}

    def test_a_program_past_the_gate_is_told_of_while_it_is_there(self):
        self.host.create("past")
        guest = past_the_gate(self.host, "past")
        note = f"past: process {guest.pid} (guest-hold) uses the GPU past the gate"
        until(lambda: note in self.host.vgpu("ls").output, "vgpu ls to name it")
        self.assertEqual(self.host.log().count("uses the GPU past the gate"), 1)
        events = self.host.vgpu("logs", "past", "--json").json["events"]
        self.assertEqual([event["event"] for event in events], ["created", "outside"])
        self.assertTrue(guest.is_alive())
        guest.kill()
        until(lambda: "past the gate" not in self.host.vgpu("ls").output, "it to be forgotten")


MANY = """
import ctypes, os, signal, sys
for _ in range(int(sys.argv[2])):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG
        ctypes.CDLL(sys.argv[1]).cuInit(0)
        signal.pause()
print("ready", flush=True)
sys.stdin.read()
"""


@unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
class Flood(case.Case):
    HOST = {"devices": "1xH200:512M"}

    def past_the_gate(self, vgpu, n):
        """As another user."""
        driver = self.host.info()["driver_path"]
        many = Guest([stage.SYSTEM_PYTHON, "-c", MANY, driver, str(n)], self.host.environment(
            OPENVGPU_VGPU=vgpu, OPENVGPU_SIM=os.path.join(self.host.run_directory, "sim"),
            LD_LIBRARY_PATH=os.path.dirname(driver)), user="nobody")
        self.host.guests.append(many)
        return many.wait_ready()

    def test_a_user_does_not_fill_the_log(self):
        """Nor is a vGPU of root's what a user's process says that it is in."""
        self.host.create("roots")
        self.host.vgpu("create", "theirs", "--fb", "64M", "--device", 0, user="nobody")
        self.past_the_gate("roots", 2)
        self.past_the_gate("theirs", 300)
        until(lambda: "leaving out more lines about what a user does" in self.host.log(), "lines to be left out")
        self.assertLessEqual(self.host.log().count("uses the GPU past the gate"), 250)
        self.assertNotIn("roots: process", self.host.vgpu("ls").output)


class Strict(case.Case):
    HOST = {"devices": "1xH200:512M", "options": ["--strict", "on"]}

    def test_a_program_whose_gate_does_not_come_back_yet_is_not_past_it(self):
        """As one that is frozen or stopped while a new vgpud starts."""
        self.host.create("past")
        stopped = self.host.train("past", "--size", "4M")
        stopped.signal(signal.SIGSTOP)
        self.host.restart()
        guest = past_the_gate(self.host, "past")
        self.assertEqual(guest.process.wait(60), -signal.SIGKILL)
        stopped.signal(signal.SIGCONT)
        stopped.wait_steps()

    def test_a_strict_vgpud_ends_it_and_nothing_else(self):
        self.host.create("past")
        other = self.host.train("past", "--size", "4M")
        guest = past_the_gate(self.host, "past")
        self.assertEqual(guest.process.wait(60), -signal.SIGKILL)
        self.assertIn("ended=yes", self.host.log())
        other.wait_steps()


if __name__ == "__main__":
    case.main()
