#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever a user gets wrong: one clear line, the documented exit code, and nothing changed."""
import contextlib
import os
import pathlib
import select
import socket
import subprocess
import tempfile
import unittest

import case
import stage
import state_page
from host import Host
from wait import PATIENCE, until

FAILED, USAGE, NOT_FOUND, TIMED_OUT, NO_MANAGER, PERMISSION, WRONG_STATE = 1, 2, 3, 4, 5, 6, 7
CANNOT_EXECUTE = 126

BAD_SIZES = ["", "abc", "-1", "-5G", "0", "1X", "1.5.2G", "G", "1 2G", "inf", "nan", "0x10", "1e9",
             "99999999999999999999", "9999999999T", "1G\n", "1Gx"]

BAD_NAMES = ["", "a b", "a/b", "..", ".hidden", "_x", "x" * 64, "ä", "a\nb", "a\x1b[31m", "%s%n"]

# (arguments, exit code, what the message must name); `idle`, `busy` and `off` are vGPUs of that kind.
REFUSED = [
    (["frobnicate"], USAGE, "frobnicate"),
    (["create"], USAGE, ""),
    (["create", "new"], USAGE, "fb"),
    (["create", "new", "--fb"], USAGE, "fb"),
    (["create", "new", "--fb", "2M", "extra"], USAGE, "extra"),
    (["create", "new", "--fb", "2M", "--colour", "red"], USAGE, "colour"),
    (["create", "new", "--fb", "2M", "--device", "7"], NOT_FOUND, "7"),
    (["create", "new", "--fb", "2M", "--device", "GPU-ffffffff"], NOT_FOUND, "GPU-ffffffff"),
    (["create", "new", "--fb", "2M", "--device", "-1"], NOT_FOUND, "-1"),
    (["create", "idle", "--fb", "2M"], FAILED, "idle"),
    (["create", "new", "--fb", "20"], USAGE, "has no unit"),
    (["create", "new", "--fb", "2G"], FAILED, "2 GiB"),
    (["create", "new", "--fb", "1000M", "--device", "0"], FAILED, "1000 MiB"),
    (["suspend"], USAGE, ""),
    (["suspend", "nobody"], NOT_FOUND, "nobody"),
    (["suspend", "off"], WRONG_STATE, "off"),
    (["suspend", "busy", "--timeout", "0"], USAGE, "timeout"),
    (["suspend", "busy", "--timeout", "-1"], USAGE, "timeout"),
    (["suspend", "busy", "--timeout", "soon"], USAGE, "soon"),
    (["suspend", "busy", "--timeout", "nan"], USAGE, "timeout"),
    (["resume", "nobody"], NOT_FOUND, "nobody"),
    (["resume", "idle"], WRONG_STATE, "idle"),
    (["resume", "busy"], WRONG_STATE, "busy"),
    (["resume", "off", "--device", "9"], NOT_FOUND, "9"),
    (["resume", "off", "--device", "0,1"], USAGE, "name 1 device, for example --device 0"),
    (["resize", "idle", "--fb", "1K"], USAGE, "the smallest is 2M"),
    (["resize", "idle", "--fb", "40"], USAGE, "has no unit"),
    (["migrate", "nobody", "--device", "1"], NOT_FOUND, "nobody"),
    (["migrate", "busy"], USAGE, "device"),
    (["migrate", "busy", "--device", "9"], NOT_FOUND, "9"),
    (["migrate", "off", "--device", "9"], NOT_FOUND, "9"),
    (["rm"], USAGE, ""),
    (["rm", "nobody"], NOT_FOUND, "nobody"),
    (["rm", "busy"], WRONG_STATE, "busy"),
    (["rm", "off"], WRONG_STATE, "off"),
    (["share", "idle"], USAGE, "percentage"),
    (["run"], USAGE, ""),
    (["run", "--vgpu", "nobody", "--", "true"], NOT_FOUND, "nobody"),
    (["run", "--vgpu", "off", "--no-wait", "--", "true"], WRONG_STATE, "off"),
    (["run", "--vgpu", "idle", "--fb", "2M", "--", "true"], USAGE, ""),
    (["run", "--vgpu", "idle"], USAGE, ""),
    (["run", "--vgpu", "idle", "--", "/nonexistent/program"], None, "/nonexistent/program"),
    (["run", "--fb", "much", "--", "true"], USAGE, "much"),
    (["run", "--fb", "20", "--", "true"], USAGE, "has no unit"),
    (["run", "--fb", "2G", "--", "true"], FAILED, "2 GiB"),
]


def described(host):
    """Everything that a refused command must leave as it was."""
    vgpus = host.call("ListVgpus")["vgpus"]
    for vgpu in vgpus:
        del vgpu["resident_seconds"]
        for process in vgpu["processes"]:
            del process["launches"]
        for part in vgpu["parts"]:
            del part["gpu_seconds_total"]
    return vgpus, host.call("ListDevices")["devices"], host.info()["pool"]["used"]


class BadInput(case.Case):
    def setUp(self):
        self.host.create("idle", "64M")
        self.host.create("busy", "64M")
        self.host.create("off", "64M")
        self.guests = [self.host.train("busy", "--size", "4M"),
                       self.host.train("off", "--size", "4M")]
        self.host.vgpu("suspend", "off")

    def tearDown(self):
        try:
            self.guests[0].wait_steps()
            self.host.vgpu("resume", "off")
            for guest in self.guests:
                guest.finish()
        finally:
            super().tearDown()

    def refuse(self, arguments, code, word):
        before = described(self.host)
        result = self.host.vgpu(*arguments, code=None)
        with self.subTest(vgpu=arguments):
            if code is None:
                self.assertNotEqual(result.code, 0, result)
            else:
                self.assertEqual(result.code, code, result)
            self.assertEqual(result.output, "", result)
            self.assertIn(word, result.errors)
            lines = result.errors.splitlines()
            self.assertTrue(1 <= len(lines) <= 2, f"not one line and at most a hint: {result}")
            self.assertRegex(lines[0], r"^vgpu: \S", result)
            self.assertFalse(set(result.errors) & set("\x1b\r"), "control characters pass through")
            self.assertEqual(described(self.host), before, "something has changed")

    def test_a_refused_command_says_why_and_changes_nothing(self):
        for arguments, code, word in REFUSED:
            self.refuse(arguments, code, word)

    def test_a_program_of_musl_is_refused(self):
        program = stage.GUESTS / "guest-musl"
        if not program.exists():
            self.skipTest("needs a compiler for musl: apt-get install musl-tools")
        path = {**self.host.environment(), "PATH": f"/nonexistent:{program.parent}"}
        for words, environment in (([program], None), (["guest-musl"], path)):
            done = subprocess.run([stage.VGPU, "run", "--vgpu", "idle", "--", *words], text=True, capture_output=True,
                                  env=environment or self.host.environment(), timeout=PATIENCE)
            self.assertEqual(done.returncode, CANNOT_EXECUTE, done.stderr)
            self.assertIn("is linked with musl", done.stderr)

    def test_what_is_not_a_size_is_refused(self):
        for size in BAD_SIZES:
            self.refuse(["create", "new", "--fb", size], USAGE, "")

    def test_what_cannot_be_a_name_is_refused(self):
        for name in BAD_NAMES:
            self.refuse(["create", "--fb", "2M", "--", name], USAGE, "")

    def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(self):
        self.host.create("train")
        self.assertIn("did you mean 'train'?", self.host.vgpu("rm", "trian", code=3).errors)
        self.assertIn("vgpu ls lists", self.host.vgpu("rm", "quite-another", code=3).errors)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
    def test_what_is_for_root_is_refused_in_words(self):
        self.host.vgpu("create", "theirs", "--fb", "64M", user="nobody")
        errors = self.host.vgpu("share", "theirs", "50", user="nobody", code=6).errors
        self.assertRegex(errors, "only root .*may do this")
        self.assertNotIn("SetVgpuShare", errors)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
    def test_who_is_not_the_owner_is_refused(self):
        before = described(self.host)
        for arguments in (["suspend", "busy"], ["resume", "off"], ["rm", "idle"],
                          ["migrate", "busy", "--device", "1"], ["run", "--vgpu", "idle", "--", "true"]):
            with self.subTest(vgpu=arguments):
                result = self.host.vgpu(*arguments, code=PERMISSION, user="nobody")
                self.assertRegex(result.errors, r"belongs to user 0")
                self.assertEqual(described(self.host), before)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
    def test_somebody_else_may_look_and_have_vgpus_of_their_own(self):
        self.host.vgpu("ls", user="nobody")
        self.host.vgpu("create", "theirs", "--fb", "2M", user="nobody")
        self.host.vgpu("rm", "theirs", user="nobody")


class Elsewhere(case.Case):
    """Other tests have managers, too: which of them is named cannot be known."""

    def ask(self, user=None):
        environment = {**self.host.environment(), "OPENVGPU_RUN": "/nonexistent"}
        return self.host.vgpu("ls", code=NO_MANAGER, user=user, environment=environment).errors

    def test_a_manager_that_runs_elsewhere_is_named(self):
        self.assertRegex(self.ask(), r"(?m)^vgpu: ls: no vgpud answers at /nonexistent/control.sock\n"
                                     r"hint: start vgpud there \(your other vgpud, with other vGPUs, is in \S+\)$")

    @unittest.skipIf(os.geteuid() != 0, "needs root to mount")
    def test_none_is_looked_for_without_proc(self):
        """As in a root that somebody has only unpacked."""
        done = subprocess.run(["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh", stage.VGPU, "ls"],
                              env={**self.host.environment(), "OPENVGPU_RUN": "/nonexistent",
                                   "LD_LIBRARY_PATH": str(stage.ROOT / "lib")}, capture_output=True, text=True)
        self.assertEqual(done.returncode, NO_MANAGER, done)
        self.assertIn("hint: start vgpud", done.stderr)

    def test_not_everybody_who_hangs_is_waited_for(self):
        with contextlib.ExitStack() as stack:
            silent = []
            for _ in range(40):
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="-first"))
                silent.append(stack.enter_context(socket.socket(socket.AF_UNIX)))
                silent[-1].bind(f"{folder}/control.sock")
                silent[-1].listen()
            self.ask()
            asked = select.select(silent, [], [], 0)[0]
        self.assertLess(len(asked), 20)

    @unittest.skipIf(os.geteuid() != 0, "needs root to be somebody else")
    def test_that_of_another_user_is_not_asked(self):
        """Root is shown none that a user could have put there, and nobody connects to it."""
        with tempfile.TemporaryDirectory(prefix="-first") as folder, socket.socket(socket.AF_UNIX) as silent:
            silent.bind(f"{folder}/control.sock")
            silent.listen()
            os.chown(f"{folder}/control.sock", 65534, 65534)
            self.assertNotIn(folder, self.ask())
            self.assertFalse(select.select([silent], [], [], 0)[0])

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
    def test_another_user_is_told_whose_it_is(self):
        self.assertRegex(self.ask("nobody"), r"hint: start vgpud there \((your|root's) other vgpud, ")

    @unittest.skipIf(os.path.exists("/run/openvgpu/control.sock"), "a vgpud runs on this machine")
    def test_who_has_chosen_none_is_told_how(self):
        environment = {**self.host.environment(), "XDG_RUNTIME_DIR": "/nonexistent"}
        del environment["OPENVGPU_RUN"]
        errors = self.host.vgpu("ls", code=NO_MANAGER, environment=environment).errors
        self.assertRegex(errors, r"hint: your vgpud answers in (\S+): set OPENVGPU_RUN=\1$")


class Shares(case.Case):
    def test_a_share_that_changes_nothing_says_so(self):
        self.host.create("one", device=0)
        self.host.create("other", device=1)
        errors = self.host.vgpu("share", "one", "60").errors
        self.assertIn("no other vGPU is on GPU 0", errors)
        self.assertIn("--device 0", errors)
        self.host.create("third", device=0)
        self.assertEqual(self.host.vgpu("share", "third", "40").errors, "")

    def test_the_scheduler_of_every_device_is_shown(self):
        shown = self.host.vgpu("scheduler", "show").output
        self.assertIn("GPU 0: ", shown)
        self.assertIn("GPU 1: ", shown)
        document = self.host.vgpu("scheduler", "show", "--json").json
        self.assertEqual([one["device"] for one in document["devices"]], [0, 1])
        self.assertEqual(self.host.vgpu("scheduler", "show", "--device", "1", "--json").json["device"],
                         1)

    def test_what_is_shown_while_no_turns_are_taken_is_what_the_meter_knows(self):
        guest = self.host.train(self.host.create("train"), "--size", "16M")

        def received():
            return self.host.call("GetScheduler", device="0")["vgpus"][0]["received"]
        until(lambda: received() > 0, "the meter to have seen it", context=self.host.log)
        self.assertEqual(self.host.call("GetScheduler", device="0")["mode"], "off")
        guest.finish()


class Impostor(unittest.TestCase):
    """Somebody else is where nobody has told the user to look."""

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
    def test_only_root_and_oneself_are_believed_where_nobody_said_to_look(self):
        with tempfile.TemporaryDirectory(prefix="vg-") as session:
            os.chmod(session, 0o755)
            os.mkdir(os.path.join(session, "openvgpu"))
            path = os.path.join(session, "openvgpu", "control.sock")
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path)
                os.chmod(path, 0o666)
                os.seteuid(12345)  # it is this one's from here on
                listener.listen()
                os.seteuid(0)
                for arguments in (["run", "--vgpu", "x", "--", "true"], ["env"], ["ls"]):
                    with self.subTest(vgpu=arguments):
                        done = subprocess.run(
                            [str(stage.VGPU), *arguments], user="nobody", capture_output=True,
                            text=True, timeout=PATIENCE, env={"XDG_RUNTIME_DIR": session})
                        self.assertEqual(done.returncode, PERMISSION, done.stderr)
                        self.assertIn(path, done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_vgpud_does_not_run_in_a_folder_of_somebody_else(self):
        host = Host()
        self.addCleanup(host.close)
        os.mkdir(host.run_directory)
        os.chown(host.run_directory, 12345, -1)
        done = subprocess.run([str(stage.VGPUD), *host.options], capture_output=True, text=True,
                              timeout=PATIENCE, env=host.environment())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("belongs to user 12345", done.stderr)


class NoManager(unittest.TestCase):
    def test_without_vgpud_every_command_says_so(self):
        host = Host()
        self.addCleanup(host.close)
        for arguments in (["ls"], ["devices"], ["info"], ["create", "new", "--fb", "2M"],
                          ["suspend", "x"], ["resume", "x"], ["migrate", "x", "--device", "0"],
                          ["rm", "x"], ["run", "--vgpu", "x", "--", "true"]):
            with self.subTest(vgpu=arguments):
                result = host.vgpu(*arguments, code=NO_MANAGER)
                self.assertRegex(result.errors, r"vgpud")
                self.assertIn(host.run_directory, result.errors)

    def test_a_vgpud_that_was_killed_is_not_there_either(self):
        host = Host().start()
        self.addCleanup(host.close)
        host.kill()
        errors = host.vgpu("ls", code=NO_MANAGER).errors
        self.assertIn("has ended\nhint: ", errors)
        self.assertNotIn("its vGPUs are kept", errors)
        host.start()
        host.create("kept")
        page = pathlib.Path(host.run_directory, "state-page")
        until(lambda: any(key.startswith("instance ") for key in state_page.read(page)), "the state page to have it")
        host.kill()
        self.assertIn("has ended\nhint: its vGPUs are kept", host.vgpu("ls", code=NO_MANAGER).errors)
        host.start().vgpu("rm", "kept")

    def test_a_vgpud_with_other_gpus_says_what_is_missing(self):
        host = Host(devices="2xH200:1G").start()
        self.addCleanup(host.close)
        host.create("moved", device=1)
        uuid = host.device(1)["uuid"]
        host.stop()
        host.options[1] = "1xH100:1G"
        host.start()
        self.assertIn(f"moved: this vgpud has no {uuid}, where it was\n", host.vgpu("ls").output)
        self.assertIn(f"vgpud began on GPU 0: {uuid} is not there", host.vgpu("logs", "moved").output)
        host.stop()
        host.options[1] = "2xH200:1G"
        host.start()
        self.assertEqual((host.get("moved")["device"], host.get("moved")["gone"]), (1, ""))
        host.vgpu("rm", "moved")

    def test_help_is_a_document_as_well(self):
        host = Host()
        self.addCleanup(host.close)
        names = [one["name"] for one in host.vgpu("help", "--json").json["commands"]]
        self.assertIn("scheduler set", names)
        self.assertEqual(host.vgpu("help", "ls", "--json").json["name"], "ls")
        self.assertIn("What NVML says:", host.vgpu("help", "--help").output)
        self.assertEqual(host.vgpu("-V").output, host.vgpu("--version").output)

    def test_help_needs_no_vgpud(self):
        host = Host()
        self.addCleanup(host.close)
        self.assertIn("suspend", host.vgpu("help").output)
        self.assertIn("--keep-context", host.vgpu("help", "suspend").output)


class Starting(unittest.TestCase):
    """vgpud itself is given nonsense."""

    def start(self, *options):
        host = Host()
        self.addCleanup(host.close)
        host.options = list(options)
        host.spawn()
        return host.wait_manager(), host.log()

    def test_bad_options_are_named(self):
        for options, word in ((["--simulate", "nonsense"], "nonsense"),
                              (["--simulate", "0xH200"], "0xH200"),
                              (["--simulate", "2xH200:1Q"], "1Q"),
                              (["--simulate", "99xH200"], "99"),
                              (["--simulate", "2xH200", "--slab-size", "3"], "slab-size"),
                              (["--simulate", "2xH200", "--pool-limit", "-1"], "pool-limit"),
                              (["--simulate", "2xH200", "--run-dir", "/tmp/" + "x" * 100], "--run-dir"),
                              (["--frobnicate"], "frobnicate"),
                              (["--driver", "/nonexistent.so"], "/nonexistent.so")):
            with self.subTest(options=options):
                code, log = self.start(*options)
                self.assertIn(code, (1, 2), log)
                self.assertIn(word, log)

    def test_a_simulated_machine_without_vgpus_ends_with_its_vgpud(self):
        """With what its devices' memory has left in /dev/shm; one with vGPUs stays for the next vgpud."""
        host = Host().start()
        self.addCleanup(host.close)
        machine = os.path.join(host.run_directory, "sim", "host")
        host.train(host.create("train"), "--size", "4M").finish()
        host.stop()
        self.assertTrue(os.path.exists(machine))
        host.start()
        host.vgpu("rm", "train")
        host.stop()
        self.assertFalse(os.path.exists(machine))

    def test_a_second_vgpud_for_the_same_directory_is_refused(self):
        host = Host().start()
        self.addCleanup(host.close)
        first = host.manager
        host.manager = None
        host.spawn()
        code = host.wait_manager()
        log = host.log()
        host.manager = first
        self.assertEqual(code, 1, log)
        host.vgpu("ls")

    def test_a_state_file_that_is_garbage_is_neither_used_nor_lost(self):
        host = Host()
        self.addCleanup(host.close)
        os.mkdir(host.state_directory)
        path = os.path.join(host.state_directory, "state.db")
        with open(path, "wb") as file:
            file.write(b"garbage" * 1000)
        host.spawn()
        self.assertEqual(host.wait_manager(), 1)
        self.assertIn(path, host.log())
        with open(path, "rb") as file:
            self.assertEqual(file.read(), b"garbage" * 1000)


if __name__ == "__main__":
    case.main()
