#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a user does: create, run, list, suspend, resume elsewhere, move, remove."""
import json
import os
import pwd
import signal
import subprocess
import unittest

import case
import stage
from wait import PATIENCE, until

MIB = 1 << 20


class Story(case.Case):
    def test_a_vgpu_is_created_listed_and_removed(self):
        self.host.vgpu("create", "train", "--fb", "512M", "--device", "1")
        vgpu = self.host.get("train")
        self.assertEqual(vgpu["frame_buffer"], 512 * MIB)
        self.assertEqual((vgpu["state"], vgpu["device"]), ("idle", 1))
        self.assertEqual(self.host.device(1)["memory_promised"], 512 * MIB)

        listed = self.host.vgpu("ls").output
        self.assertRegex(listed, r"train .*512 MiB")
        self.host.vgpu("rm", "train")
        self.assertEqual(self.host.names(), [])
        self.assertEqual(self.host.device(1)["memory_promised"], 0)

    def test_a_program_is_suspended_resumed_on_another_device_and_moved_back(self):
        self.host.create("train")
        guest = self.host.train("train", "--size", "40M", "--small", "100")
        vgpu = self.host.get("train")
        self.assertEqual(vgpu["state"], "running")
        self.assertEqual([process["pid"] for process in vgpu["processes"]], [guest.pid])
        self.assertGreaterEqual(vgpu["frame_buffer_used"], 40 * MIB)

        self.host.vgpu("suspend", "train")
        steps = guest.steps()
        vgpu = self.host.get("train")
        self.assertEqual(vgpu["state"], "suspended")
        self.assertEqual([process["pid"] for process in vgpu["processes"]], [guest.pid])
        self.assertGreaterEqual(self.host.info()["pool"]["used"], 40 * MIB)
        self.assertEqual(self.host.device(0)["memory_used"], 0)

        self.host.vgpu("resume", "train", "--device", "1")
        guest.wait_steps()
        self.assertGreater(guest.steps(), steps)
        vgpu = self.host.get("train")
        self.assertEqual((vgpu["state"], vgpu["device"]), ("running", 1))
        self.assertGreaterEqual(self.host.device(1)["memory_used"], 40 * MIB)
        until(lambda: self.host.info()["pool"]["used"] == 0, "the pool to be empty")

        self.host.vgpu("migrate", "train", "--device", "0")
        guest.wait_steps()
        vgpu = self.host.get("train")
        self.assertEqual((vgpu["state"], vgpu["device"]), ("running", 0))
        guest.finish()
        self.host.wait_state("train", "idle")

    def test_nothing_of_a_suspended_vgpu_is_left_on_its_device(self):
        """The mover's own context is, so that a resume is fast: it is taken away to look."""
        self.host.create("train")
        self.host.train("train", "--size", "16M")
        self.host.vgpu("suspend", "train")
        self.host.kill_program("vgpu-mover")
        self.host.wait_driver_memory(self.host.free_at_first)
        self.host.vgpu("resume", "train")

    def test_a_suspend_that_keeps_the_context_takes_the_memory_only(self):
        self.host.create("train")
        guest = self.host.train("train", "--size", "16M")
        self.host.vgpu("suspend", "train", "--keep-context")
        self.assertEqual(self.host.get("train")["state"], "evicted")
        self.assertGreaterEqual(self.host.info()["pool"]["used"], 16 * MIB)
        self.host.vgpu("resume", "train")
        guest.wait_steps()
        guest.finish()

    def watch(self, *words):
        watcher = subprocess.Popen([stage.VGPU, "ls", *words, "--watch"], text=True,
                                   env=self.host.environment(), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        self.addCleanup(watcher.stdout.close)
        self.addCleanup(watcher.wait)
        self.addCleanup(watcher.kill)
        return watcher

    def test_ls_watches_vgpus_come_and_go_and_the_manager_too(self):
        watcher = self.watch()

        def see(what, is_there):
            """Each table ends with an empty line."""
            text = "".join(iter(watcher.stdout.readline, "\n"))
            self.assertIsNone(watcher.poll(), text)
            return (what in text) == is_there
        until(lambda: see("train", False), "a table without the vGPU", context=self.host.log)
        self.host.create("train")
        until(lambda: see("train", True), "the vGPU in it", context=self.host.log)
        one = self.watch("train")
        self.assertIn("NAME", one.stdout.readline())
        self.host.vgpu("rm", "train")
        until(lambda: see("train", False), "the vGPU to leave it", context=self.host.log)
        self.assertEqual(one.wait(PATIENCE), 3)
        self.assertIn("no vGPU 'train'", one.stdout.read())
        self.host.kill()
        until(lambda: see("trying again", True), "it to say that nobody answers")
        self.host.start()
        until(lambda: see("NAME", True), "it to go on", context=self.host.log)

    def test_several_go_in_one_command_and_a_failure_stops_none(self):
        guests = [self.host.train(self.host.create(name), "--size", "4M") for name in ("one", "two")]
        self.host.create("idle")
        done = self.host.vgpu("suspend", "one", "nobody", "two", code=3)
        self.assertIn("there is no vGPU 'nobody'", done.errors)
        self.assertEqual([self.host.get(name)["state"] for name in ("one", "two")], ["suspended"] * 2)
        self.host.vgpu("resume", "--all")
        for guest in guests:
            guest.wait_steps()
        done = self.host.vgpu("suspend", "--all", "--json").json["results"]
        self.assertEqual([report["vgpu"]["name"] for report in done], ["one", "two"])
        self.assertIn("no vGPU", self.host.vgpu("suspend", "--all").output)
        self.host.vgpu("rm", "one", "idle", "two", code=7)
        self.assertEqual(self.host.names(), ["one", "two"])

    def test_all_are_suspended_at_the_same_time(self):
        """Nobody's end is waited for before the next one begins; what is said is in their order."""
        names = ["one", "two", "three"]
        guests = [self.host.train(self.host.create(name), "--size", "4M") for name in names]
        movers = until(self.host.movers, "a mover")
        for pid in movers:
            os.kill(pid, signal.SIGSTOP)
        with subprocess.Popen([str(stage.VGPU), "suspend", "--all"], env=self.host.environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
            for name in names:
                self.host.wait_state(name, "suspending")
            for pid in movers:
                os.kill(pid, signal.SIGCONT)
            output, errors = command.communicate(timeout=PATIENCE)
        self.assertEqual((command.returncode, errors), (0, ""), self.host.log())
        self.assertEqual([line.split(":")[0] for line in output.splitlines()], [f"suspended {name}" for name in names])
        self.host.vgpu("resume", *names)
        for guest in guests:
            guest.wait_steps()

    def test_rm_with_force_ends_the_programs(self):
        """One that leaves at SIGTERM, one that stays, and one that waits in a suspended vGPU."""
        polite = self.host.train(self.host.create("polite"), "--size", "4M")
        waiting = self.host.train(self.host.create("waiting"), "--size", "4M")
        self.host.vgpu("suspend", "waiting")
        done = self.host.vgpu("rm", "polite", "waiting", "--force", code=2)
        self.assertIn("--yes", done.errors)
        self.assertTrue(polite.is_alive())
        self.host.vgpu("rm", "polite", "waiting", "--force", "--yes")
        self.assertEqual(self.host.names(), [])
        polite.join()
        waiting.join()

    def test_one_that_goes_with_its_program_is_removed(self):
        """By the end of the program, before anybody asks for it."""
        guest = self.host.train(None, "--size", "4M", options=("--fb", "64M", "--name", "brief"))
        done = self.host.vgpu("rm", "brief", "--force", "--yes")
        self.assertEqual((done.output, done.errors), ("removed brief\n", ""))
        self.assertEqual(self.host.names(), [])
        guest.join()

    def test_a_vgpu_gets_another_name_while_its_program_runs(self):
        guest = self.host.train(self.host.create("train"), "--size", "4M")
        uuid = self.host.get("train")["uuid"]
        self.host.create("other")
        self.host.vgpu("rename", "train", "other", code=1)
        self.host.vgpu("rename", "train", "no good", code=2)
        self.host.vgpu("rename", "nobody", "new", code=3)
        self.assertEqual(self.host.vgpu("rename", "train", "new").output, "renamed train to new\n")
        self.host.vgpu("suspend", "train", code=3)
        self.host.vgpu("suspend", "new")
        self.host.restart()
        self.assertEqual((self.host.get("new")["uuid"], self.host.get("new")["state"]), (uuid, "suspended"))
        self.host.vgpu("resume", "new")
        guest.wait_steps()
        until(lambda: [row["vgpu"] for row in
                       self.host.vgpu("usage", "--since", "1h", "--json").json["rows"]
                       if row["vgpu_uuid"] == uuid] == ["new"], "the ledger to have the new name")
        guest.finish()

    def test_a_device_that_is_empty_is_not_left_out(self):
        done = self.host.vgpu("migrate", "train", "--device", "", code=2)
        self.assertIn("the device is empty\nhint: 'vgpu devices' lists the GPUs", done.errors)

    def test_a_vgpu_that_finds_no_room_elsewhere_can_be_made_smaller(self):
        for name, device in (("train", "0"), ("other", "1")):
            self.host.create(name, self.host.device(0)["memory_total"] * 3 // 4, device)
        self.host.train("train", "--size", "4M")
        done = self.host.vgpu("migrate", "train", "--device", "1", code=1)
        self.assertIn("hint: make it smaller (vgpu resize), choose another device", done.errors)

    def test_a_new_name_that_is_the_old_one_is_refused_with_a_hint_that_harms_nobody(self):
        self.host.create("train")
        told = self.host.vgpu("rename", "train", "train", code=1)
        self.assertIn("has that name already", told.errors)
        self.assertNotIn("vgpu rm", told.errors)

    def test_the_policy_of_a_device_waits_for_its_programs(self):
        self.host.create("train")
        guest = self.host.train("train", "--size", "4M")
        policy = ["scheduler", "set", "--policy", "equal-share", "--device", "0"]
        self.assertIn("while processes run", self.host.vgpu(*policy, code=7).errors)
        guest.finish()
        self.host.wait_state("train", "idle")
        self.host.vgpu(*policy)
        self.host.vgpu("scheduler", "set", "--policy", "best-effort", "--device", "0")

    def apply(self, text, *options, code=0):
        path = os.path.join(self.host.directory, "declared.conf")
        with open(path, "w") as file:
            file.write(text)
        return path, self.host.vgpu("apply", *options, path, code=code)

    def test_a_dry_run_refuses_what_apply_would(self):
        text = "[big]\nfb = 400G\n[far]\nfb = 8M\ndevice = 7\n[two words]\nfb = 8M\n[good]\nfb = 8M\n"
        path, dry = self.apply(text, "--dry-run", code=1)
        self.assertEqual(dry.output, "would create good: 8 MiB\n")
        self.assertEqual(self.host.names(), [])
        _, done = self.apply(text, code=1)
        self.assertEqual(dry.errors, done.errors)
        for said in (rf"vGPU big \({path}:1\): .*400 GiB", rf"vGPU far \({path}:3\): ", rf"vGPU two words \({path}:6\): "):
            self.assertRegex(dry.errors, said)

    def test_declared_vgpus_are_made_and_compared_and_never_removed(self):
        both = "# two\n[one]\nfb = 64M\ndevice = 1\n\n[two]\nfb=32M\nshare = 30\n"
        _, done = self.apply(both)
        self.assertEqual(done.output, "created one: 64 MiB on GPU 1\ncreated two: 32 MiB on GPU 0\n")
        self.assertEqual(self.host.get("two")["share"], 30)
        _, done = self.apply(both)
        self.assertEqual(done.output, "one is there\ntwo is there\n")
        _, done = self.apply("[one]\nfb = 65M\nshare = 5\n\n[two]\nfb=32M\nshare = none\n")
        self.assertEqual(done.output, "changed one: its quota is 65 MiB and was 64 MiB, its share is 5 and was 0\n"
                                      "changed two: its share is 0 and was 30\n")
        self.assertEqual(self.host.get("one")["frame_buffer"], 65 << 20)
        self.apply("[six]\nfb = 8M\nidle-after = 1h\nidle = keep-context\nclass = interactive\n")
        six = self.host.get("six")
        self.assertEqual((six["idle_after"], six["idle_keep_context"], six["swap_class"]), (3600, True, "interactive"))
        _, done = self.apply("[six]\nfb = 8M\nidle-after = never\nclass = batch\n")
        self.assertEqual(done.output, "changed six: its idle time is never (suspend) and was 60 min (keep-context), its class is "
                                      "batch and was interactive\n")
        shown = self.host.vgpu("show", "six").output
        self.assertRegex(shown, r"leaves by itself +never\n")
        self.assertRegex(shown, r"class +batch\n")
        self.host.vgpu("rm", "six")
        path, done = self.apply("[two]\nfb = 32M\n[three]\nfb = 9G\n[four]\nfb = 16M\n", code=1)
        self.assertRegex(done.errors, rf"vGPU three \({path}:3\): .*not 9 GiB")
        self.assertEqual(sorted(self.host.names()), ["four", "one", "two"])

    def test_what_is_wrong_in_a_declaration_is_said_and_nothing_is_made(self):
        for text, said in (("fb = 1G\n", ":1: fb: of which vGPU?"),
                           ("[a]\nfb = 1G\n[a]\nfb = 1G\n", "declared twice, first in"),
                           ("[a]\nfb = 64M\n[b]\n", ":3: vGPU b has no fb"),
                           ("[a]\nfb = much\n", ":2: fb: 'much' is not a size"),
                           ("[a]\nfb = 64M\nowner = nobody-here\n", ":3: owner: 'nobody-here' is not a user"),
                           ("[a]\nfb = 64M\nidle-after = soon\n", ":3: idle-after: 'soon' is not a time"),
                           ("[a]\nfb = 64M\nidle = away\n", ":3: idle: 'away' is not a way to leave"),
                           ("[a]\nfb = 64M\nclass = best\n", ":3: class: 'best' is not a class"),
                           ("[a]\nfb = 64M\ncolour = red\n", ":3: colour: unknown key")):
            path, done = self.apply(text, code=2)
            self.assertIn(said, done.errors)
            self.assertIn(f"vgpu: apply: {path}:", done.errors)
        self.assertEqual(self.host.names(), [])

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
    def test_a_declared_vgpu_belongs_to_its_owner(self):
        self.apply("[theirs]\nfb = 64M\nowner = nobody\n")
        self.assertEqual(self.host.get("theirs")["owner"], pwd.getpwnam("nobody").pw_uid)
        self.host.vgpu("create", "mine", "--fb", "64M", "--owner", "root", user="nobody", code=6)
        self.host.vgpu("rm", "theirs", user="nobody")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
    def test_who_took_the_name_of_a_declared_vgpu_gets_nothing_of_it(self):
        self.host.vgpu("create", "infer", "--fb", "64M", user="nobody")
        _, done = self.apply("[infer]\nfb = 64M\nshare = 50\n", code=7)
        self.assertIn("and not to user 0", done.errors)
        self.assertEqual(self.host.get("infer")["share"], 0)

    def test_a_vgpu_made_for_a_program_goes_with_it(self):
        guest = self.host.run(None, "guest-none", options=["--fb", "64M"])
        self.assertEqual(guest.join(), 0, guest.context())
        until(lambda: not self.host.names(), "the transient vGPU to go", context=self.host.log)

    def test_a_vgpu_made_for_a_program_can_be_suspended_too(self):
        self.host.n_guests += 1
        log = f"{self.host.directory}/transient"
        guest = self.host.run(None, "guest-train", "--size", "8M", "--log", log, log=log,
                              options=["--fb", "64M", "--device", "1"]).wait_ready()
        [name] = self.host.names()
        self.assertTrue(self.host.get(name)["transient"])
        self.host.vgpu("suspend", name)
        self.host.vgpu("resume", name)
        guest.wait_steps()
        guest.finish()
        until(lambda: not self.host.names(), "the transient vGPU to go", context=self.host.log)

    def test_a_program_keeps_its_exit_status_and_its_words(self):
        guest = self.host.run(self.host.create("train"), "guest-alloc")
        self.assertEqual(guest.join(), 2)
        self.assertIn("usage: guest-alloc", guest.errors[0])

    def test_a_program_without_cuda_has_no_thread_and_no_socket_of_ours(self):
        self.host.create("train")
        guest = self.host.run("train", "guest-none")
        self.assertEqual(guest.join(), 0)
        self.assertEqual(guest.lines, ["threads 1 sockets 0"])
        self.assertEqual(self.host.get("train")["state"], "idle")

    def test_many_vgpus_share_a_device(self):
        guests = {}
        for i in range(4):
            name = self.host.create(f"share-{i}", "64M")
            guests[name] = self.host.train(name, "--size", "12M")
        self.host.vgpu("suspend", "share-1")
        self.host.vgpu("migrate", "share-2", "--device", "1")
        for name, guest in guests.items():
            if name != "share-1":
                guest.wait_steps()
        self.host.vgpu("resume", "share-1", "--device", "1")
        for guest in guests.values():
            guest.wait_steps()
            guest.finish()


class Words(case.Case):
    """Every command takes --json and answers with one JSON object."""

    def test_every_command_answers_in_json(self):
        host = self.host
        self.assertEqual(len(host.vgpu("devices", "--json").json["devices"]), 2)
        self.assertIn("pool", host.vgpu("info", "--json").json)
        self.assertEqual(host.vgpu("create", "train", "--fb", "128M", "--json").json["vgpu"]["name"],
                         "train")
        guest = host.train("train", "--size", "8M")
        report = host.vgpu("suspend", "train", "--json").json
        self.assertGreaterEqual(report["bytes"], 8 * MIB)
        self.assertEqual(report["vgpu"]["state"], "suspended")
        report = host.vgpu("resume", "train", "--device", "1", "--json").json
        self.assertEqual((report["from_device"], report["to_device"]), (0, 1))
        report = host.vgpu("migrate", "train", "--device", "0", "--json").json
        self.assertEqual(report["processes"], 1)
        guest.finish()
        host.wait_state("train", "idle")
        self.assertEqual(host.vgpu("ls", "--json").json["vgpus"][0]["name"], "train")
        self.assertEqual(host.vgpu("rm", "train", "--json").json["vgpu"]["name"], "train")

    def test_an_error_is_json_too(self):
        result = self.host.vgpu("suspend", "nobody", "--json", code=3)
        self.assertEqual(json.loads(result.output or result.errors)["error"]["name"], "NoSuchVgpu")

    def test_the_report_of_a_suspend_is_one_line_for_people(self):
        self.host.create("train")
        self.host.train("train", "--size", "16M")
        result = self.host.vgpu("suspend", "train")
        self.assertRegex(result.output, r"^suspended train: .* MiB out in .*\n$")
        self.host.vgpu("resume", "train")


if __name__ == "__main__":
    case.main()
