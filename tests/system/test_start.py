#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starting vgpud: what it needs, what it finds, and what it says when something is in the way."""
import contextlib
import json
import os
import resource
import socket
import sqlite3
import subprocess
import unittest

import state_page
from harness import MIB, Host
from wait import PATIENCE, until

N_VGPUS = 40  # their records are several pages


class Start(unittest.TestCase):
    def setUp(self):
        self.host = self.enterContext(Host(fake=True))

    def fails(self):
        """The words of a vgpud that cannot start."""
        self.host.start_only()
        self.assertEqual(self.host.manager.wait(PATIENCE), 1)
        return (self.host.root / "log").read_text()

    def test_a_second_one_is_refused_and_told_of_the_first(self):
        self.host.start()
        first = self.host.manager
        text = self.fails()
        self.assertIn(f"process {first.pid}", text)
        self.assertTrue(self.host.call("GetInfo"), "the first is not disturbed")
        self.host.manager = first

    def test_without_a_driver_it_says_what_to_do(self):
        environment = dict(self.host.environment(), LD_LIBRARY_PATH="")
        result = subprocess.run([os.environ["TEST_VGPUD"], "--run-dir", self.host.run,
                                 "--state-dir", self.host.state], env=environment,
                                capture_output=True, text=True, timeout=PATIENCE)
        if "ready" in result.stderr:
            self.skipTest("there is a driver here")
        self.assertEqual(result.returncode, 1)
        self.assertIn("vgpud --simulate 2xH200", result.stderr)

    def test_without_a_device_it_says_what_to_do(self):
        mover = self.host.lib / "vgpu-mover"
        mover.unlink()
        mover.write_text("#!/bin/sh\nexit 0\n")
        mover.chmod(0o755)
        self.assertIn("vgpud --simulate 2xH200", self.fails())

    def check(self, text):
        """What --check-config says of a configuration."""
        path = self.host.root / "vgpud.conf"
        path.write_text(text)
        return subprocess.run([os.environ["TEST_VGPUD"], "--config", path, "--check-config"], capture_output=True,
                              text=True, timeout=PATIENCE, env=self.host.environment())

    def test_a_configuration_is_checked_with_the_gpus_that_it_names(self):
        good = self.check("simulate = 2xH200:1G\n")
        self.assertEqual((good.returncode, good.stderr), (0, ""))
        self.assertIn("all is right", good.stdout)
        bad = self.check("simulate = 2xH2000\n")
        self.assertEqual((bad.returncode, bad.stdout), (2, ""))
        self.assertIn("vgpud.conf: '2xH2000' is no simulated machine", bad.stderr)
        self.assertEqual(self.check("simulate = 1xH200:1M\n").returncode, 2)
        for key in ("overcommit", "pin-ahead", "leave-out"):
            bad = self.check(f"simulate = 2xH200:1G\n{key} = 1,7\n")
            self.assertEqual(bad.returncode, 2)
            self.assertIn(f"{key} names GPU 7, and there are 2", bad.stderr)
        self.assertEqual(self.check("simulate = 2xH200:1G\novercommit = 0,1\npin-ahead = all\n").returncode, 0)
        if not os.path.exists("/proc/driver/nvidia/gpus"):
            self.assertIn("overcommit names GPU 7, and no driver is here to ask", self.check("overcommit = 0,7\n").stdout)
        self.assertIn("not a size", self.check("pool-limit = 64\n").stderr)
        bad = self.check("scenario = /nonexistent\n")
        self.assertEqual(bad.returncode, 2)
        self.assertIn("/nonexistent", bad.stderr)

    def test_the_log_can_be_read_by_machines(self):
        self.host.start(options=["--log-format", "json"])
        self.host.call("CreateVgpu", name="told", frame_buffer=2 * MIB)
        self.host.stop_manager()
        events = [json.loads(line) for line in (self.host.root / "log").read_text().splitlines()]
        (created,) = [event for event in events if event["event"] == "created"]
        self.assertEqual((created["vgpu"], created["frame_buffer"], created["level"]), ("told", 2 * MIB, "info"))
        self.assertGreater(created["time"], 1e9)

    def test_bad_options_are_named(self):
        for options, word in ((["--slab-size", "3M"], "3M"), (["--pool-limit", "much"], "much"),
                              (["--log-level", "loud"], "loud"), (["--frobnicate"], "frobnicate"),
                              (["--user-vgpus", "4097"], "4097"), (["--user-vgpus", "-1"], "-1"),
                              (["--user-frame-buffer", "lots"], "lots"),
                              (["--group", "no-such-group"], "no-such-group"),
                              (["extra"], "extra"), (["--simulate", "x", "--driver", "y"], "exclude")):
            result = subprocess.run([os.environ["TEST_VGPUD"], *options], capture_output=True,
                                    text=True, timeout=PATIENCE)
            self.assertEqual(result.returncode, 2)
            self.assertIn(word, result.stderr)

    def test_it_starts_with_everything_that_can_be_asked_for(self):
        """Each part that listens to events has room among the others."""
        host, disk = self.host, self.host.root / "disk"
        disk.mkdir(mode=0o700)
        host.start(options=["--cdi", host.root / "cdi.json", "--cdi-new", "64M",
                            "--spill", disk, "--overcommit", "all", "--pin-ahead", "all", "--clean-copies", "verify",
                            "--refresh", "1G", "--swap-time", "20", "--turns", "gate", "--log-format", "json"])
        host.call("CreateVgpu", name="train", frame_buffer=128 * MIB, device="0")
        guest = host.fake_guest("train", 4 * MIB)
        host.call("SuspendVgpu", name="train")
        host.call("ResumeVgpu", name="train")
        guest.wait_for("opened")
        self.assertIn("train", (host.root / "cdi.json").read_text())

    def test_there_is_room_for_the_descriptors_of_large_guests(self):
        """Where the kernel makes it later, all of vgpud waits for that."""
        self.host.start()
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self.assertGreaterEqual(self.host.room_for_descriptors(self.host.manager.pid),
                                min(limit, 65536))

    def test_a_damaged_database_stays_where_it_is(self):
        self.host.start()
        self.host.call("CreateVgpu", name="train", frame_buffer=2 * MIB)
        self.host.stop_manager()
        database = self.host.state / "state.db"
        data = bytearray(database.read_bytes())
        data[4096:] = b"\x5a" * (len(data) - 4096)
        database.write_bytes(data)
        text = self.fails()
        self.assertIn("damaged", text)
        self.assertIn(str(database), text)
        self.assertEqual(database.read_bytes(), bytes(data))

    def test_what_is_no_database_stays_where_it_is(self):
        self.host.state.mkdir()
        (self.host.state / "state.db").write_text("precious")
        self.assertIn("state.db", self.fails())
        self.assertEqual((self.host.state / "state.db").read_text(), "precious")

    def test_a_locked_database_is_named(self):
        self.host.start()
        self.host.stop_manager()
        other = sqlite3.connect(self.host.state / "state.db")
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        self.assertIn("locked", self.fails())
        other.close()

    def test_a_database_of_a_newer_version_is_refused(self):
        self.host.start()
        self.host.stop_manager()
        with sqlite3.connect(self.host.state / "state.db") as database:
            database.execute("PRAGMA user_version=99")
        database.close()
        self.assertIn("newer", self.fails())

    def test_vgpus_last_over_a_restart_and_over_a_boot(self):
        self.host.start()
        kept = self.host.call("CreateVgpu", name="kept", frame_buffer=2 * MIB, device="1")["vgpu"]
        self.host.call("CreateVgpu", name="brief", frame_buffer=2 * MIB, transient=True)
        self.host.stop_manager()
        self.host.start()
        after = self.host.vgpu("kept")
        self.assertEqual({k: after[k] for k in ("id", "uuid", "device", "frame_buffer", "owner")},
                         {k: kept[k] for k in ("id", "uuid", "device", "frame_buffer", "owner")})
        self.host.stop_manager()
        database = sqlite3.connect(self.host.state / "state.db")
        with database:
            database.execute("UPDATE boot SET id = 'another'")
            database.execute("UPDATE instance SET state = 3")
        database.close()
        self.host.start()
        self.assertEqual([(v["name"], v["state"]) for v in self.host.call("ListVgpus")["vgpus"]],
                         [("kept", "idle")])
        new = self.host.call("CreateVgpu", frame_buffer=2 * MIB)["vgpu"]
        self.assertGreater(new["id"], kept["id"] + 1, "an id is never used again")

    def fill_run_directory(self):
        """The file that has all of its room; it is a file system of its own."""
        filler = self.host.run / "filler"
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        return filler

    def mount_run_directory(self):
        self.host.run.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16M", "none", self.host.run],
                                 capture_output=True, text=True)
        if mounted.returncode:
            self.skipTest(f"cannot mount: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "--lazy", self.host.run], check=True)

    def test_a_full_run_directory_is_called_full(self):
        self.mount_run_directory()
        self.fill_run_directory()
        self.assertIn(f"no room is left in the run directory {self.host.run}", self.fails())

    def test_what_had_no_room_in_the_run_directory_is_shown_when_there_is_some(self):
        self.mount_run_directory()
        self.host.start()
        filler = self.fill_run_directory()
        for i in range(N_VGPUS):
            self.host.call("CreateVgpu", name=f"vgpu-{i}", frame_buffer=16 * MIB)
        until(lambda: "the run directory is full" in (self.host.root / "log").read_text(), "the log to say so")
        self.assertLess(self.count_shown(), N_VGPUS)
        filler.unlink()
        until(lambda: self.count_shown() == N_VGPUS, "all to be on the state page")

    def count_shown(self):
        return sum(key.startswith("instance ") for key in state_page.read(self.host.run / "state-page"))

    def test_readiness_is_told(self):
        path = str(self.host.root / "notify")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listener.bind(path)
        listener.settimeout(PATIENCE)
        os.environ["NOTIFY_SOCKET"] = path
        try:
            self.host.start()
        finally:
            del os.environ["NOTIFY_SOCKET"]
        self.assertIn(b"READY=1", listener.recv(4096))
        listener.close()

    def test_running_guests_go_on_without_and_with_a_new_one(self):
        self.host.start()
        self.host.call("CreateVgpu", name="train", frame_buffer=64 * MIB)
        guest = self.host.fake_guest("train", 2 * MIB)
        self.host.kill_manager()
        guest.wait_for("lost")
        self.host.start()
        guest.wait_for("joined", 2)
        self.assertTrue(guest.is_intact())
        vgpu = self.host.vgpu("train")
        self.assertEqual([p["pid"] for p in vgpu["processes"]], [guest.pid])
        self.assertEqual(vgpu["frame_buffer_used"], 2 * MIB)

    def test_a_guest_that_dies_while_no_manager_looks_is_forgotten(self):
        self.host.start()
        self.host.call("CreateVgpu", name="train", frame_buffer=64 * MIB)
        dead, alive = [self.host.fake_guest("train", 2 * MIB) for _ in range(2)]
        self.host.call("SuspendVgpu", name="train")
        self.host.kill_manager()
        dead.kill()
        self.host.start()
        until(lambda: len(self.host.vgpu("train")["processes"]) == 1, "one process")
        self.assertEqual(self.host.call("GetInfo")["pool"]["used"], 2 * MIB)
        self.host.call("ResumeVgpu", name="train")
        alive.wait_for("opened")
        self.assertTrue(alive.is_intact())
        self.assertEqual(self.host.vgpu("train")["frame_buffer_used"], 2 * MIB)


if __name__ == "__main__":
    unittest.main(verbosity=2)
