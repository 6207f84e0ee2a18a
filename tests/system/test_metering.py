#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is used is metered once, told everywhere alike, and lasts: also when somebody is killed."""
import glob
import os
import resource
import sqlite3
import subprocess
import sys
import time

import case
import stage
from guest import Guest
from wait import until

HERE = os.path.dirname(os.path.abspath(__file__))
KERNEL_US = 3000
SECOND = 1.5  # between two writes, and until the second is on the disk of a busy machine


class Metering(case.Case):
    HOST = {"devices": "2xH200:512M", "pool": "64M", "slab": "4M"}

    # Asking.

    def records(self, name, **wanted):
        """The accounting of a vGPU; only the records that are as wanted."""
        found, more = [], True
        while more:
            answer = self.host.call("GetAccounting", name=name, offset=len(found))
            found += answer["records"]
            more = answer["more"]
        return [r for r in found if all(r[key] == value for key, value in wanted.items())]

    def record(self, name, pid):
        found = self.records(name, pid=pid)
        self.assertEqual(len(found), 1, found)
        return found[0]

    def rows(self, by, **parameters):
        return self.host.call("GetUsage", since=0, by=by, **parameters)["rows"]

    def row(self, by, **wanted):
        found = [r for r in self.rows(by) if all(r[key] == value for key, value in wanted.items())]
        self.assertEqual(len(found), 1, (by, wanted, found))
        return found[0]

    def vgpu_now(self, name):
        answer = self.host.call("GetUtilization")
        return [v for v in answer["vgpus"] if v["name"] == name][0]

    def busy(self, name="train", size="4M"):
        return self.host.run(name, "guest-busy", KERNEL_US, size).wait_ready()

    def wait_gpu_seconds(self, name, pid, seconds):
        def look():
            record = self.record(name, pid)
            return record if record["gpu_seconds"] >= seconds else None
        return until(look, f"{seconds} s of GPU time", context=self.host.log)

    def kernel_seconds(self, guest):
        """End the guest; the time of the kernels that it says it has run."""
        self.assertEqual(guest.end_input(), 0)
        done = [line for line in guest.lines if line.startswith("done ")]
        self.assertTrue(done and done[0].endswith(" ok"), guest.lines)
        return int(done[0].split()[1]) * KERNEL_US / 1e6

    def wait_ended(self, name, pid):
        return until(lambda: self.records(name, pid=pid, running=False),
                     "the process to have ended", context=self.host.log)[0]

    # One number for all.

    def test_all_kernels_are_metered_and_told_everywhere_alike(self):
        begin = time.monotonic()
        self.host.create("train")
        created = time.monotonic()
        guest = self.busy()
        self.wait_gpu_seconds("train", guest.pid, 0.1)
        until(lambda: self.vgpu_now("train")["gpu"] > 0, "a sample")
        now = self.vgpu_now("train")
        self.assertEqual(now["entitled"], 100)
        self.assertEqual(now["processes"][0]["pid"], guest.pid)
        self.assertEqual(now["gpu_seconds"], now["processes"][0]["gpu_seconds"])
        running = self.record("train", guest.pid)
        self.assertTrue(running["running"])
        kernels = self.kernel_seconds(guest)
        passed, there = time.monotonic() - begin, time.monotonic() - created

        ended = self.wait_ended("train", guest.pid)
        self.assertGreaterEqual(ended["gpu_seconds"], kernels)
        self.assertLessEqual(ended["gpu_seconds"], passed)
        self.assertGreater(ended["memory_seconds"], 0)
        self.assertGreaterEqual(ended["memory_peak"], 4 << 20)
        self.assertEqual((ended["name"], ended["encoder_seconds"]), ("guest-busy", 0))
        self.assertLessEqual(ended["seconds"], passed)
        self.assertAlmostEqual(ended["gpu_utilization"],
                               100 * ended["gpu_seconds"] / ended["seconds"], delta=0.51)

        vgpu = self.host.get("train")
        row = self.row("process", pid=guest.pid, vgpu_uuid=vgpu["uuid"])
        for engine in ("gpu", "memory", "encoder"):
            self.assertAlmostEqual(row[f"{engine}_seconds"], ended[f"{engine}_seconds"], places=9)
        self.assertGreater(row["used_gib_hours"], 0)
        self.assertAlmostEqual(row["ended"], time.time(), delta=60)
        row = self.row("vgpu", vgpu_uuid=vgpu["uuid"])
        self.assertAlmostEqual(row["gpu_seconds"], ended["gpu_seconds"], places=9)
        self.assertGreater(row["quota_gib_hours"], 0.9 * 0.25 * there / 3600)
        self.assertLess(row["quota_gib_hours"], 0.25 * (time.monotonic() - begin) / 3600)

    def test_usage_belongs_to_the_device_where_it_was(self):
        uuids = [self.host.device(i)["uuid"] for i in (0, 1)]

        def gpu_seconds():
            rows = {r["device_uuid"]: r["gpu_seconds"] for r in self.rows("device")}
            return [rows.get(uuid, 0) for uuid in uuids]
        before = gpu_seconds()
        guest = self.busy(self.host.create("train"))
        self.wait_gpu_seconds("train", guest.pid, 0.05)
        self.host.vgpu("migrate", "train", "--device", "1")
        now = self.record("train", guest.pid)["gpu_seconds"]
        self.wait_gpu_seconds("train", guest.pid, now + 0.05)
        guest.kill()
        ended = self.wait_ended("train", guest.pid)
        after = gpu_seconds()
        parts = [after[i] - before[i] for i in (0, 1)]
        self.assertTrue(all(part > 0 for part in parts), parts)
        self.assertAlmostEqual(sum(parts), ended["gpu_seconds"], places=6)

    def test_a_suspended_vgpu_pays_for_nothing_on_the_device(self):
        guest = self.busy(self.host.create("train"))
        self.wait_gpu_seconds("train", guest.pid, 0.05)
        self.host.vgpu("suspend", "train")
        uuid = self.host.get("train")["uuid"]
        until(lambda: self.vgpu_now("train")["gpu"] == 0, "the last sample to be 0")
        before = self.row("vgpu", vgpu_uuid=uuid)
        life = self.record("train", guest.pid)["seconds"]
        until(lambda: self.record("train", guest.pid)["seconds"] > life + 0.6, "time to pass")
        after = self.row("vgpu", vgpu_uuid=uuid)
        self.assertEqual(after, before)
        self.host.vgpu("resume", "train")
        self.wait_gpu_seconds("train", guest.pid, before["gpu_seconds"] + 0.05)

    # Deaths.

    def test_a_device_without_vgpus_is_idle(self):
        """The last vGPU goes at once after its program: nothing else is sampled that would say so."""
        def use():
            return [device["gpu"] for device in self.host.vgpu("top", "--once", "--json").json["devices"]]
        self.host.create("train", "64M")
        self.busy()
        until(lambda: use()[0] > 20, "the device to be busy", context=self.host.log)
        self.host.vgpu("rm", "train", "--force", "--yes")
        until(lambda: use() == [0, 0], "the device to be idle", context=self.host.log)

    def test_a_killed_process_leaves_its_account(self):
        guest = self.busy(self.host.create("train"))
        self.wait_gpu_seconds("train", guest.pid, 0.1)
        guest.kill()
        ended = self.wait_ended("train", guest.pid)
        self.assertGreaterEqual(ended["gpu_seconds"], 0.1)
        row = self.row("process", pid=guest.pid, vgpu=self.host.get("train")["name"],
                       vgpu_uuid=self.host.get("train")["uuid"])
        self.assertAlmostEqual(row["gpu_seconds"], ended["gpu_seconds"], places=9)

    def test_nothing_is_lost_or_doubled_when_the_manager_is_killed(self):
        begin = time.monotonic()
        guest = self.busy(self.host.create("train"))
        first = self.busy("train")
        first.kill()
        before = self.wait_ended("train", first.pid)
        self.rows("process")  # who asks has all written first
        for _ in range(3):
            seconds = self.record("train", guest.pid)["gpu_seconds"]
            self.wait_gpu_seconds("train", guest.pid, seconds + 0.05)
            self.host.restart()
        record = self.record("train", guest.pid)
        self.assertTrue(record["running"])
        kernels = self.kernel_seconds(guest)
        ended = self.wait_ended("train", guest.pid)
        self.assertGreaterEqual(ended["gpu_seconds"], kernels)
        self.assertLessEqual(ended["gpu_seconds"], time.monotonic() - begin)
        self.assertLessEqual(ended["seconds"], time.monotonic() - begin)
        uuid = self.host.get("train")["uuid"]
        row = self.row("process", pid=guest.pid, vgpu_uuid=uuid)
        self.assertAlmostEqual(row["gpu_seconds"], ended["gpu_seconds"], places=9)
        after = self.record("train", first.pid)
        self.assertAlmostEqual(after["gpu_seconds"], before["gpu_seconds"], places=9)
        quota = self.row("vgpu", vgpu_uuid=uuid)["quota_gib_hours"]
        self.assertLess(quota, 0.25 * (time.monotonic() - begin) / 3600)
        self.assertGreater(quota, 0.25 * (ended["seconds"] - 1) / 3600)

    def killed_at(self, point):
        """The manager dies at a fault point of the ledger while a guest is busy."""
        self.host.stop()
        self.host.start(f"{point}=kill@2")
        guest = self.busy(self.host.create("train"))
        until(lambda: self.host.manager.poll() is not None, f"the manager to die at {point}",
              context=self.host.log)
        self.host.wait_manager()
        self.host.start()
        self.assertTrue(self.record("train", guest.pid)["running"])
        kernels = self.kernel_seconds(guest)
        ended = self.wait_ended("train", guest.pid)
        row = self.row("process", pid=guest.pid, vgpu_uuid=self.host.get("train")["uuid"])
        self.assertGreaterEqual(row["gpu_seconds"], kernels)
        self.assertAlmostEqual(row["gpu_seconds"], ended["gpu_seconds"], places=9)

    def test_a_kill_before_the_commit(self):
        self.killed_at("ledger.written")

    def test_a_kill_after_the_commit(self):
        self.killed_at("ledger.committed")

    # Killed, and nothing else was written for long: within a second of what was.

    def pass_time(self, seconds):
        begin = time.monotonic()
        until(lambda: time.monotonic() - begin > seconds, "time to pass")

    def quota_seconds(self, name):
        row = self.row("vgpu", vgpu_uuid=self.host.get(name)["uuid"])
        return row["quota_gib_hours"] * 3600 / 0.25

    def test_a_vgpu_is_billed_from_its_creation_on(self):
        self.host.create("older")
        self.rows("vgpu")  # who asks has all written first
        self.pass_time(3)
        begin = time.monotonic()
        self.host.create("newer")
        created = time.monotonic()
        self.host.restart()
        billed, end = self.quota_seconds("newer"), time.monotonic()
        self.assertLess(billed, end - begin + 0.1)
        self.assertGreater(billed, created - begin - SECOND)

    def test_a_vgpu_that_was_just_created_is_not_forgotten(self):
        before = time.monotonic()
        self.host.create("quiet")
        begin = time.monotonic()
        self.pass_time(3)
        self.host.restart()
        billed = self.quota_seconds("quiet")
        self.assertGreater(billed, 2)
        self.assertLess(billed, time.monotonic() - before + 0.1)
        self.assertGreater(billed, time.monotonic() - begin - SECOND)

    def test_a_process_without_work_has_lived_all_the_same(self):
        guest = self.host.run(self.host.create("train"), "guest-hold").wait_ready()
        begin = time.monotonic()
        self.pass_time(3)
        self.host.restart()
        life, lived = self.record("train", guest.pid)["seconds"], time.monotonic() - begin
        self.assertGreater(life, lived - SECOND)
        self.host.kill()
        guest.kill()
        self.host.start()  # it has ended, and lived as long as is known
        self.assertGreater(self.record("train", guest.pid)["seconds"], lived - SECOND)

    def test_what_ran_in_a_vgpu_that_is_gone_has_ended(self):
        guest = self.host.run(self.host.create("train"), "guest-hold").wait_ready()
        self.rows("process")
        self.host.kill()
        with sqlite3.connect(self.ledger_path()) as ledger:  # as if its vGPU had been another one
            ledger.execute("UPDATE process SET vgpu = 4711 WHERE pid = ?", (guest.pid,))
        ledger.close()
        self.host.start()
        self.rows("process")
        with sqlite3.connect(self.ledger_path()) as ledger:
            found = ledger.execute("SELECT ended_ms >= started_ms FROM process WHERE vgpu = 4711")
            self.assertEqual(found.fetchall(), [(1,)])
        ledger.close()

    def test_a_process_that_ends_while_no_manager_is_there(self):
        guest = self.busy(self.host.create("train"))
        self.wait_gpu_seconds("train", guest.pid, 0.05)
        self.row("process", pid=guest.pid, vgpu_uuid=self.host.get("train")["uuid"])
        self.host.kill()
        guest.kill()
        self.host.start()
        ended = self.record("train", guest.pid)
        self.assertFalse(ended["running"])
        self.assertGreaterEqual(ended["gpu_seconds"], 0.05)

    # Many.

    def test_hundreds_of_short_lived_processes(self):
        count = 300
        self.host.create("train")
        crowd = Guest([sys.executable, os.path.join(HERE, "short_lived.py"),
                       self.host.run_directory, "train", count], self.host.environment())
        self.assertEqual(crowd.join(), 0, crowd.errors)
        pids = [int(line) for line in crowd.lines]
        until(lambda: len(self.records("train", running=False)) == count, "all to have ended",
              context=self.host.log)
        self.assertEqual([r["pid"] for r in self.records("train")], pids)
        uuid = self.host.get("train")["uuid"]
        self.assertEqual([r["pid"] for r in self.rows("process") if r["vgpu_uuid"] == uuid and
                          r["gpu_seconds"] > 0], [])  # they did nothing; what is known is written
        self.host.restart()
        self.assertEqual([r["pid"] for r in self.records("train")], pids)
        self.assertEqual(self.host.call("ClearVgpuAccounting", name="train")["cleared"], count)
        self.assertEqual(self.records("train"), [])
        self.rows("process")  # who asks has all written first
        self.host.restart()
        self.assertEqual(self.records("train"), [])
        self.assertGreater(self.row("vgpu", vgpu_uuid=uuid)["quota_gib_hours"], 0)

    # The ledger in trouble.

    def ledger_path(self):
        return os.path.join(self.host.state_directory, "ledger.db")

    def wait_log(self, words, after=""):
        until(lambda: words in self.host.log().split(after, 1)[-1], f"'{words}' in the log",
              context=self.host.log)

    def mark_log(self):
        """Where the log is now, for wait_log()."""
        mark = f"--- mark {time.monotonic_ns()}"
        with open(self.host.log_path, "a") as log:
            print(mark, file=log)
        return mark

    def check_complete(self, guest):
        """All that the guest has done is in the ledger."""
        kernels = self.kernel_seconds(guest)
        ended = self.wait_ended("train", guest.pid)
        row = self.row("process", pid=guest.pid, vgpu_uuid=self.host.get("train")["uuid"])
        self.assertGreaterEqual(row["gpu_seconds"], kernels)
        self.assertAlmostEqual(row["gpu_seconds"], ended["gpu_seconds"], places=9)

    def test_a_ledger_that_another_has_locked(self):
        guest = self.busy(self.host.create("train"))
        mark = self.mark_log()
        with sqlite3.connect(self.ledger_path(), isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            self.wait_log("the ledger cannot be written", mark)
            self.wait_log("locked by another process", mark)
            now = self.record("train", guest.pid)["gpu_seconds"]
            self.wait_gpu_seconds("train", guest.pid, now + 0.05)
            other.execute("COMMIT")
        other.close()
        self.wait_log("the ledger is written again", mark)
        self.check_complete(guest)

    def test_a_ledger_that_is_locked_at_the_start(self):
        guest = self.busy(self.host.create("train"))
        self.wait_gpu_seconds("train", guest.pid, 0.05)
        self.host.kill()
        mark = self.mark_log()
        other = sqlite3.connect(self.ledger_path(), isolation_level=None)
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        self.host.start()
        self.wait_log("the ledger cannot be written", mark)
        self.wait_gpu_seconds("train", guest.pid, 0.05)
        other.execute("COMMIT")
        other.close()
        self.wait_log("the ledger is written again", mark)
        guest.kill()
        self.wait_ended("train", guest.pid)

    def test_a_damaged_ledger_is_kept_and_a_new_one_begun(self):
        guest = self.busy(self.host.create("train"))
        self.wait_gpu_seconds("train", guest.pid, 0.05)
        self.host.kill()
        for path in glob.glob(self.ledger_path() + "*"):
            with open(path, "r+b") as ledger:
                ledger.write(b"\xa5" * os.path.getsize(path))
        mark = self.mark_log()
        self.host.start()
        self.wait_log("a new ledger is begun", mark)
        kept = glob.glob(self.ledger_path() + ".damaged-*")
        self.assertTrue(kept)
        self.wait_gpu_seconds("train", guest.pid, 0.05)
        row = self.row("process", pid=guest.pid, vgpu_uuid=self.host.get("train")["uuid"])
        self.assertGreater(row["gpu_seconds"], 0)
        for path in kept:
            os.unlink(path)
        guest.kill()

    def test_a_disk_that_is_full(self):
        """A limit on the size of its files stands for the disk: the writes fail in the same place."""
        guest = self.busy(self.host.create("train"))
        uuid = self.host.get("train")["uuid"]
        until(lambda: [r for r in self.rows("vgpu") if r["vgpu_uuid"] == uuid and r["gpu_seconds"]],
              "a row of usage")
        before = self.row("vgpu", vgpu_uuid=uuid)["gpu_seconds"]
        mark = self.mark_log()
        size = os.path.getsize(self.ledger_path() + "-wal")
        pid = self.host.manager.pid
        old = resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        self.wait_log("the ledger cannot be written", mark)
        now = self.record("train", guest.pid)["gpu_seconds"]
        self.wait_gpu_seconds("train", guest.pid, now + 0.05)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, old)
        self.wait_log("the ledger is written again", mark)
        self.assertGreaterEqual(self.row("vgpu", vgpu_uuid=uuid)["gpu_seconds"], before)
        self.check_complete(guest)

    # Who may ask what.

    def test_users_see_their_own_usage(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        guest = self.busy(self.host.create("train"))
        self.wait_gpu_seconds("train", guest.pid, 0.05)
        guest.kill()
        self.wait_ended("train", guest.pid)
        self.assertTrue(self.rows("tenant"))
        asked = subprocess.run([stage.SYSTEM_PYTHON, "-c", ASK_AS_STRANGER, self.host.run_directory],
                               user="nobody", capture_output=True, text=True, check=True)
        self.assertEqual(asked.stdout.strip(), "[]")


ASK_AS_STRANGER = """
import json, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1] + "/control.sock")
    call = {"method": "org.openvgpu.GetUsage", "parameters": {"since": 0, "by": "tenant"}}
    connection.sendall(json.dumps(call).encode() + b"\\0")
    print(json.loads(connection.recv(65536).split(b"\\0")[0])["parameters"]["rows"])
"""

if __name__ == "__main__":
    case.main()
