#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What users who are not root may ask of a vgpud that serves them all."""
import errno
import grp
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

from harness import MIB, Host, expect_error
from wait import PATIENCE, until

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

    def reload(self, said):
        """SIGHUP, and what the log then says."""
        log = self.host.root / "log"
        before = log.read_text(errors="replace").count(said)
        self.host.manager.send_signal(signal.SIGHUP)
        until(lambda: log.read_text(errors="replace").count(said) > before, said)

    def test_limits_change_with_the_configuration_while_it_runs(self):
        create = ["CreateVgpu", {"frame_buffer": 64 * MIB}]
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            def write(text):
                file.seek(0)
                file.truncate()
                file.write(text)
                file.flush()

            write("# of this test\nuser-vgpus = 1\n")
            self.start("--config", file.name)
            self.assertEqual([answer.get("error") for answer in self.ask(create, create)], [None, "NoRoom"])
            write("user-vgpus = 2\nkeep-usage = 7\n")
            self.reload("the configuration was read again")
            self.assertIn("a changed setting waits for the next start key=keep-usage",
                          (self.host.root / "log").read_text())
            self.assertEqual([answer.get("error") for answer in self.ask(create, create)], [None, "NoRoom"])
            write("user-vgpus = many\n")
            self.reload("the configuration is wrong: nothing is changed")
            self.assertIn(f"vgpud: {file.name}:1: user-vgpus: 'many' is not",
                          (self.host.root / "log").read_text())
            self.assertEqual(len(self.names()), 2)
            self.assertEqual(self.ask(create)[0].get("error"), "NoRoom")
            self.host.stop_manager()
            self.host.start_only(options=("--config", file.name))
            self.assertEqual(self.host.manager.wait(PATIENCE), 2)

    def test_time_is_for_root_to_promise(self):
        self.start()
        answers = self.ask(["CreateVgpu", {"name": "greedy", "frame_buffer": 64 * MIB, "share": 1}],
                           ["CreateVgpu", {"name": "none", "frame_buffer": 64 * MIB, "share": 0}],
                           ["CreateVgpu", {"name": "plain", "frame_buffer": 64 * MIB}],
                           ["SetVgpuShare", {"name": "plain", "percent": 1}])
        self.assertEqual([answer.get("error") for answer in answers],
                         ["PermissionDenied", None, None, "PermissionDenied"])
        self.assertIn("root", answers[0]["message"])
        self.assertIn("vgpu share", answers[0]["hint"])
        self.assertEqual(self.names(), ["none", "plain"])
        self.host.call("SetVgpuShare", name="plain", percent=60)
        self.host.call("CreateVgpu", name="ours", frame_buffer=64 * MIB, share=40)


    def test_who_may_know_what_others_have_is_for_root_to_say(self):
        self.start()
        answers = self.ask(["CreateVgpu", {"name": "curious", "frame_buffer": 64 * MIB, "pool_group": "models"}])
        self.assertEqual([answer.get("error") for answer in answers], ["PermissionDenied"])
        self.assertEqual(self.names(), [])
        self.host.call("CreateVgpu", name="theirs", frame_buffer=64 * MIB, owner=NOBODY, pool_group="models")

    def test_names_of_jobs_are_for_root_to_give(self):
        """By such a name the ledger knows whose use is that of a job of Slurm."""
        self.start()
        self.host.call("CreateVgpu", name="job-7-0", frame_buffer=64 * MIB, owner=NOBODY)
        answers = self.ask(["CreateVgpu", {"name": "job-8-0", "frame_buffer": 64 * MIB}],
                           ["CreateVgpu", {"name": "jobs", "frame_buffer": 64 * MIB}],
                           ["RenameVgpu", {"name": "jobs", "to": "job-8-0"}],
                           ["RenameVgpu", {"name": "job-7-0", "to": "mine"}],
                           ["RenameVgpu", {"name": "jobs", "to": "mine"}])
        self.assertEqual([answer.get("error") for answer in answers],
                         ["PermissionDenied", None, "PermissionDenied", "PermissionDenied", None])
        self.assertIn("Slurm", answers[0]["message"])
        self.assertEqual(self.names(), ["job-7-0", "mine"])
        self.host.call("RenameVgpu", name="job-7-0", to="job-9-0")

    def test_what_others_ran_is_seen_by_root_only(self):
        self.start()
        self.host.call("CreateVgpu", name="ours", frame_buffer=64 * MIB)
        answers = self.ask(["CreateVgpu", {"name": "theirs", "frame_buffer": 64 * MIB}],
                           ["GetAccounting", {"name": "theirs"}],
                           ["GetAccounting", {"name": "ours"}],
                           ["GetAccounting", {"name": "nobody"}])
        self.assertEqual([answer.get("error") for answer in answers],
                         [None, None, "PermissionDenied", "NoSuchVgpu"])
        self.assertEqual(answers[1]["records"], [])
        self.assertEqual(self.host.call("GetAccounting", name="theirs")["records"], [])

    def test_one_user_cannot_have_all_vgpus(self):
        self.start("--user-vgpus", "2")
        create = ["CreateVgpu", {"frame_buffer": 2 * MIB}]
        answers = self.ask(create, create, create, ["RemoveVgpu", {"name": "vgpu-1"}], create,
                           ["CreateVgpu", {"frame_buffer": 2 * MIB, "transient": True}])
        self.assertEqual([answer.get("error") for answer in answers],
                         [None, None, "NoRoom", None, None, "NoRoom"])
        self.assertIn("may have 2 vGPUs", answers[2]["message"])
        self.assertIn("--user-vgpus", answers[2]["hint"])
        self.assertNotIn("error", self.ask(create, user=NOBODY - 1)[0], "a limit for each")
        for _ in range(3):
            self.host.call("CreateVgpu", frame_buffer=2 * MIB)

    def test_a_quarter_of_all_vgpus_is_for_one_user(self):
        self.start()
        create = ["CreateVgpu", {"frame_buffer": 2 * MIB}]
        answers = self.ask(*[create] * 65)
        self.assertEqual([answer.get("error") for answer in answers], [None] * 64 + ["NoRoom"])
        self.host.kill_manager()
        self.host.start(options=["--user-vgpus", "0"])
        self.assertNotIn("error", self.ask(create)[0])

    def test_one_user_cannot_have_all_memory(self):
        self.start("--user-frame-buffer", "100M")
        answers = self.ask(["CreateVgpu", {"name": "a", "device": "0", "frame_buffer": 64 * MIB}],
                           ["CreateVgpu", {"name": "b", "device": "1", "frame_buffer": 37 * MIB}],
                           ["CreateVgpu", {"name": "c", "device": "1", "frame_buffer": 36 * MIB}])
        self.assertEqual([answer.get("error") for answer in answers], [None, "NoRoom", None])
        for size in ("100 MiB", "64 MiB", "37 MiB"):
            self.assertIn(size, answers[1]["message"])
        self.assertIn("--user-frame-buffer", answers[1]["hint"])
        self.host.call("CreateVgpu", name="ours", frame_buffer=512 * MIB)
        answers = self.ask(["ResizeVgpu", {"name": "a", "frame_buffer": 65 * MIB}],
                           ["ResizeVgpu", {"name": "a", "frame_buffer": 60 * MIB}],
                           ["ResizeVgpu", {"name": "c", "frame_buffer": 40 * MIB}],
                           ["ResizeVgpu", {"name": "ours", "frame_buffer": 256 * MIB}])
        self.assertEqual([answer.get("error") for answer in answers], ["NoRoom", None, None, "PermissionDenied"])

    def test_only_a_group_may_ask(self):
        group = next(one for one in grp.getgrall() if one.gr_gid not in (0, NOBODY))
        self.start("--group", group.gr_name)
        ask = ["ListVgpus", {}]
        with self.assertRaises(AssertionError) as refused:
            self.ask(ask)
        self.assertIn(os.strerror(errno.EACCES), str(refused.exception))
        self.assertEqual(self.ask(ask, groups=[group.gr_gid]), [{"vgpus": []}])
        self.assertEqual(self.host.call("ListVgpus"), {"vgpus": []}, "root may")
        for name, mode in (("control.sock", 0o660), ("gate.sock", 0o660), ("state-page", 0o640)):
            status = os.stat(self.host.run / name)
            self.assertEqual((status.st_mode & 0o777, status.st_gid), (mode, group.gr_gid), name)
        self.host.kill_manager()
        self.host.start()
        self.assertEqual(self.ask(ask), [{"vgpus": []}], "without --group, everybody")

    def test_watchers_see_and_stewards_move_what_is_others(self):
        groups = [one for one in grp.getgrall() if one.gr_gid not in (0, NOBODY)][:2]
        watchers, stewards = (group.gr_gid for group in groups)
        self.start("--watchers", groups[0].gr_name, "--stewards", groups[1].gr_name)
        self.host.call("CreateVgpu", name="ours", frame_buffer=64 * MIB)
        calls = [["ListEvents", {}], ["ListEvents", {"name": "ours"}], ["GetUsage", {"since": 0, "by": "tenant"}],
                 ["SetVgpuShare", {"name": "ours", "percent": 30}], ["SuspendVgpu", {"name": "ours"}],
                 ["MigrateVgpu", {"name": "nothing", "device": "0"}], ["RemoveVgpu", {"name": "ours"}],
                 ["ResizeVgpu", {"name": "ours", "frame_buffer": 32 * MIB}],
                 ["CreateVgpu", {"name": "theirs", "frame_buffer": 64 * MIB, "share": 10}],
                 ["SetVgpuEncoderCapacity", {"name": "ours", "percent": 30}]]

        def ask(*its_groups):
            answers = self.ask(*calls, groups=list(its_groups))
            return [len(answers[0]["events"]), *(answer.get("error") for answer in answers[1:])]
        denied = "PermissionDenied"
        self.assertEqual(ask(), [0, denied, None, denied, denied, "NoSuchVgpu"] + [denied] * 4)
        self.assertEqual(ask(watchers), [1, None, None, denied, denied, "NoSuchVgpu"] + [denied] * 4)
        self.assertEqual(ask(stewards), [1, None, None, None, "WrongState", "NoSuchVgpu"] + [denied] * 4)
        self.assertEqual(self.host.call("ListVgpus")["vgpus"][0]["share"], 30)
        events = self.host.call("ListEvents", name="ours")["events"]
        self.assertEqual([event["event"] for event in events], ["created", "share"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
