#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operations on vGPUs of several devices: as of one, with a mover for each device and one step for the contexts."""
import contextlib
import os
import signal

import case
from several import Case
from wait import until
from wire import Refused

MIB = 1 << 20


class Operations(Case):
    HOST = {"devices": "4xH200:1G"}

    def test_it_is_suspended_and_resumed(self):
        self.make("job", "0,1", 256)
        guests = [self.start(), self.start()]
        used = self.used("job")
        report = self.call("SuspendVgpu")
        self.assertGreaterEqual(report["bytes"], 2 * 20 * MIB)
        self.assertEqual((self.host.get("job")["state"], self.memory()), ("suspended", [0] * 4))
        self.call("ResumeVgpu")
        self.assertEqual(self.used("job"), used)
        for guest in guests:
            self.check(guest)
            self.end(guest)

    def test_it_is_told_with_all_of_its_devices(self):
        self.make("job", "0,1", 256)
        guest = self.start()
        for words, said in ((("suspend", "--keep-context", "job"), "its context stays on GPUs 0,1"),
                            (("resume", "job"), "on GPUs 0,1"),
                            (("suspend", "--group", "job"), "GPUs 0,1 are free of it"),
                            (("resume", "job", "--device", "2,3"), "on GPUs 2,3"),
                            (("migrate", "job", "--device", "1,0"), "migrated job to GPUs 1,0 in"),
                            (("suspend", "--all"), "GPUs 1,0 are free of it"), (("resume", "--all"), "on GPUs 1,0")):
            self.assertIn(said, self.host.vgpu(*words).output)
        events = self.host.vgpu("logs", "job").output
        for text in ("64 MiB on each of GPUs 0,1", "from GPUs 0,1", "from GPUs 2,3 to GPUs 1,0"):
            self.assertIn(text.replace("64", "256"), events)
        self.check(guest)
        self.end(guest)

    def test_devices_that_are_full_to_the_last(self):
        """For its checkpoint the driver needs some memory of each device that a process is on."""
        self.make("job", "0,1", 256)
        guest = self.start()
        self.call("SuspendVgpu")  # movers have contexts now, and keep some memory
        self.call("ResumeVgpu")
        stranger = self.host.crowd("0M", "1M")
        self.call("SuspendVgpu")
        stranger.end_input()
        self.call("ResumeVgpu")
        self.check(guest)
        self.end(guest)

    def test_the_context_may_stay(self):
        self.make("job", "2,0", 256)
        guest = self.start()
        for _ in range(2):
            self.call("SuspendVgpu", keep_context=True)
            self.assertEqual((self.host.get("job")["state"], self.memory()), ("evicted", [0] * 4))
            self.call("ResumeVgpu")
            self.check(guest)
        self.end(guest)

    def test_it_is_copied_while_it_runs(self):
        self.make("job", "0,1", 256)
        guest = self.start()
        report = self.call("SuspendVgpu", pre_copy=True)
        self.assertEqual((report["bytes_unchanged"], report["pre_copy_bytes"]), (report["bytes"], report["bytes"]))
        self.call("ResumeVgpu")
        self.check(guest)
        self.assertRegex(self.host.vgpu("suspend", "job", "--pre-copy").output,
                         r"suspended job: [\d.]+ MiB out in .* while its programs ran, then .* in .*, "
                         r"its programs stood still for .*, GPUs 0,1 are free of it")
        self.call("ResumeVgpu")
        self.check(guest)
        self.end(guest)

    def test_what_has_not_changed_is_not_copied_again(self):
        self.make("job", "0,1", 256)
        guest = self.guest("job")
        for device in range(2):
            for size in (8 * (device + 1), 4):  # their addresses alternate
                self.assertEqual(self.tell(guest, f"hold {device} {size}M"), "held")
            self.assertEqual(self.tell(guest, f"fill {device} {device + 17}"), "filled")
        report = self.call("SuspendVgpu")
        self.assertEqual((report["bytes"], report["bytes_unchanged"]), (32 * MIB, 0))
        self.call("ResumeVgpu")
        report = self.call("SuspendVgpu")
        self.assertEqual((report["bytes"], report["bytes_unchanged"]), (32 * MIB, 32 * MIB))
        self.call("ResumeVgpu", device="2,3")
        self.assertEqual(self.tell(guest, "fill 1 99"), "filled")
        report = self.call("SuspendVgpu")
        self.assertEqual((report["bytes"], report["bytes_unchanged"]), (32 * MIB, 12 * MIB))
        self.call("ResumeVgpu")
        for device, value in ((0, 17), (1, 99)):
            self.assertEqual(self.tell(guest, f"check {device} {value}"), "right")
        self.end(guest)

    def test_blocks_of_others_stay_when_the_other_device_cannot_tell(self):
        """What has not changed is copied nowhere where another vGPU has it too: each device says that for itself."""
        guests = {}
        for name in ("job", "twin"):
            self.make(name, "0,1", 128)
            guests[name] = self.guest(name)
            for device in range(2):
                self.assertEqual(self.tell(guests[name], f"hold {device} 8M"), "held")
                self.assertEqual(self.tell(guests[name], f"fill {device} {device + 17}"), "filled")
            self.host.call("SuspendVgpu", name=name)
        for _ in range(2):
            self.call("ResumeVgpu")
            self.host.arm("mover.hashing", "fail")  # of one of the two
            self.call("SuspendVgpu")
        for name, guest in guests.items():
            self.host.call("ResumeVgpu", name=name)
            for device in range(2):
                self.assertEqual(self.tell(guest, f"check {device} {device + 17}"), "right")
            self.end(guest)

    def test_a_process_that_uses_one_of_the_devices(self):
        for device in range(2):
            with self.subTest(device=device):
                self.make(f"job{device}", "0,1", 64)
                guest = self.guest(f"job{device}")
                self.assertEqual(self.tell(guest, f"hold {device} 8M"), "held")
                self.assertEqual(self.tell(guest, f"fill {device} 5"), "filled")
                self.host.call("SuspendVgpu", name=f"job{device}")
                self.host.call("ResumeVgpu", name=f"job{device}")
                self.assertEqual(self.tell(guest, f"check {device} 5"), "right")
                self.end(guest)

    def test_a_process_without_memory(self):
        self.make("job", "0,1", 64)
        guest = self.guest("job")
        self.call("SuspendVgpu")
        self.call("ResumeVgpu")
        self.assertEqual(self.tell(guest, "copy 0 1"), "copied")
        self.end(guest)

    def test_peers_reach_each_other_afterwards(self):
        self.make("job", "0,1", 256)
        guest = self.start()
        for line in ("access 0 1", "access 1 0"):
            self.assertEqual(self.tell(guest, line), "accessed")
        for method, device in (("ResumeVgpu", None), ("ResumeVgpu", "2,3"), ("MigrateVgpu", "1,0")):
            if method == "ResumeVgpu":
                self.call("SuspendVgpu")
            self.call(method, **({"device": device} if device else {}))
            for line in ("reach 0 1", "reach 1 0"):
                self.assertEqual(self.tell(guest, line), "filled")
            for line in ("check 0 1", "check 1 0"):
                self.assertEqual(self.tell(guest, line), "right")
        self.end(guest)


# After which step an operation has happened.
STEPS = {"suspend": ("SuspendVgpu", {}), "resume": ("ResumeVgpu", {"device": "2,3"}),
         "migrate": ("MigrateVgpu", {"device": "2,3"})}


class Faults(Case):
    """Who dies or fails at a step: the whole is undone or done, and no byte is lost."""

    HOST = {"devices": "4xH200:1G"}

    def begin(self, kind):
        self.make("job", "0,1", 256)
        self.guests_of_job = [self.start(), self.start()]
        if kind == "resume":
            self.call("SuspendVgpu")

    def run_it(self, kind):
        method, parameters = STEPS[kind]
        return self.call(method, **parameters)

    def devices(self):
        return [part["device"] for part in self.host.get("job")["parts"]]

    def finish(self, kind, has_happened):
        """It is where it is to be; the next commands work; the guests have all of their memory."""
        moved = has_happened and kind != "suspend"
        state = "suspended" if kind == ("suspend" if has_happened else "resume") else "running"
        self.host.wait_for("job", lambda v: v["state"] == state, f"to be {state}")
        self.assertEqual(self.devices(), [2, 3] if moved else [0, 1])
        if state == "suspended":
            self.call("ResumeVgpu")
        for guest in self.guests_of_job:
            if guest.is_alive():
                self.check(guest)
        self.call("MigrateVgpu", device="0,1" if moved else "2,3")
        self.call("SuspendVgpu")
        self.call("ResumeVgpu")
        for guest in self.guests_of_job:
            if guest.is_alive():
                self.check(guest)
                self.end(guest)
        self.host.wait_for("job", lambda v: v["state"] == "idle", "to be idle")
        self.host.vgpu("rm", "job")
        self.guests_of_job = []

    def check_each(self, action, steps):
        for kind, step, has_happened in steps:
            with self.subTest(step=f"{kind}.{step}"):
                self.begin(kind)
                action(kind, step)
                self.finish(kind, has_happened)

    def kill_manager_at(self, kind, step):
        self.host.arm(f"{kind}.{step}", "kill")
        with contextlib.suppress(Refused, ConnectionError):
            self.run_it(kind)
        self.host.wait_manager()
        self.host.start()

    def test_the_manager_is_killed(self):
        self.check_each(self.kill_manager_at, (
            ("suspend", "exported", False), ("suspend", "released", False), ("suspend", "checkpointed", False),
            ("suspend", "moved", False), ("suspend", "recorded", True), ("resume", "checked", False),
            ("resume", "restored", False), ("resume", "copied", False), ("resume", "recorded", True),
            ("migrate", "released", False), ("migrate", "left", False), ("migrate", "restored", False),
            ("migrate", "copied", False), ("migrate", "recorded", True), ("migrate", "opened", True)))

    def test_the_manager_is_killed_on_the_way_to_others_with_a_pre_copy(self):
        for kind, step in (("suspend", "round"), ("suspend", "ahead"), ("resume", "restored"), ("resume", "copied")):
            with self.subTest(step=f"{kind}.{step}"):
                self.begin("suspend")
                if kind == "resume":
                    self.call("SuspendVgpu", pre_copy=True)
                self.host.arm(f"{kind}.{step}", "kill")
                method, parameters = ("SuspendVgpu", {"pre_copy": True}) if kind == "suspend" else STEPS[kind]
                with contextlib.suppress(Refused, ConnectionError):
                    self.call(method, **parameters)
                self.host.wait_manager()
                self.host.start()
                self.finish(kind, False)

    def fail_at(self, kind, step):
        self.host.arm(f"{kind}.{step}", "fail")
        with self.assertRaises(Refused):
            self.run_it(kind)

    def test_a_step_fails(self):
        self.check_each(self.fail_at, (
            ("suspend", "released", False), ("suspend", "copied", False), ("suspend", "checkpointed", False),
            ("suspend", "moved", False), ("resume", "restored", False), ("resume", "copied", False),
            ("migrate", "left", False), ("migrate", "restored", False), ("migrate", "copied", False)))

    def start_paused(self, kind, point):
        self.host.arm(point, "pause")
        method, parameters = STEPS[kind]
        control = self.host.connect()
        self.addCleanup(control.close)
        control.send(method, name="job", **parameters)
        self.host.wait_paused(point)
        return control

    def kill_mover_at(self, kind, point):
        """While one of the two is at @point; another one does it again."""
        control = self.start_paused(kind, f"mover.{point}")
        os.kill(self.mover_of(1 if kind == "suspend" else 3), signal.SIGKILL)
        self.host.remove_pause(f"mover.{point}")
        control.answer()

    def test_the_mover_of_the_second_device_dies(self):
        self.check_each(self.kill_mover_at, (
            ("suspend", "job-imported", True), ("suspend", "copy-half", True), ("suspend", "checkpointed", True),
            ("resume", "restoring", True), ("resume", "job-copied", True), ("migrate", "restored", True),
            ("migrate", "job-copied", True)))

    def break_mover_at(self, kind, point):
        self.host.arm(f"mover.{point}", "fail")
        with self.assertRaisesRegex(Refused, "DriverFailed"):
            self.run_it(kind)

    def test_a_mover_fails(self):
        self.check_each(self.break_mover_at, (
            ("suspend", "job-copied", False), ("suspend", "checkpointed", False), ("resume", "job-copied", False),
            ("migrate", "job-copied", False)))

    def kill_guest_at(self, kind, step):
        control = self.start_paused(kind, f"{kind}.{step}")
        self.guests_of_job[0].kill()
        self.host.remove_pause(f"{kind}.{step}")
        control.answer()

    def test_a_process_is_killed(self):
        self.check_each(self.kill_guest_at, (
            ("suspend", "exported", True), ("suspend", "moved", True), ("resume", "restored", True),
            ("resume", "created", True), ("migrate", "released", True), ("migrate", "restored", True)))

    def test_another_manager_resumes_it(self):
        for keep_context in (False, True):
            with self.subTest(keep_context=keep_context):
                self.begin("suspend")
                self.call("SuspendVgpu", keep_context=keep_context)
                self.host.kill()
                self.host.start()
                self.assertEqual(self.host.get("job")["state"], "evicted" if keep_context else "suspended")
                self.call("ResumeVgpu", device="2,3")
                self.host.kill()
                self.host.start()
                self.finish("resume", True)


class Rooms(Case):
    """Each device has room for its own part, or nothing happens."""

    HOST = {"devices": "4xH200:256M", "pool": "512M"}

    def fill_up(self, device):
        """A stranger in another vGPU."""
        self.make(f"other{device}", str(device), 192)
        guest = self.guest(f"other{device}")
        self.assertEqual(self.tell(guest, "hold 0 160M"), "held")
        return guest

    def test_no_room_on_the_second_device(self):
        self.make("job", "0,1", 128)
        guest = self.start()
        self.assertEqual(self.tell(guest, "hold 1 64M"), "held")
        self.assertEqual(self.tell(guest, "fill 1 34"), "filled")
        self.call("SuspendVgpu")
        other = self.fill_up(1)
        for _ in range(2):
            with self.assertRaisesRegex(Refused, "device 1 has .* left to promise"):
                self.call("ResumeVgpu")
            self.assertEqual((self.host.get("job")["state"], self.memory()[0]), ("suspended", 0))
        self.call("ResumeVgpu", device="0,2")
        self.check(guest)
        with self.assertRaisesRegex(Refused, "device 1 has .* left to promise"):
            self.call("MigrateVgpu", device="0,1")
        self.check(guest)
        self.end(other)
        self.end(guest)

    def test_a_stranger_has_taken_the_second_device(self):
        self.make("job", "0,1", 128)
        guest = self.start()
        self.assertEqual(self.tell(guest, "hold 1 64M"), "held")
        self.assertEqual(self.tell(guest, "fill 1 34"), "filled")
        self.call("SuspendVgpu")
        stranger = self.host.crowd("32M")
        with self.assertRaisesRegex(Refused, "device [01] has .* free"):
            self.call("ResumeVgpu", timeout=1)
        self.assertEqual(self.host.get("job")["state"], "suspended")
        stranger.kill()
        self.call("ResumeVgpu")
        self.check(guest)
        self.end(guest)

    def test_what_it_was_promised_itself_is_not_said_to_be_others(self):
        """It has more memory when it stands still than when the move began, and the device has less."""
        self.make("job", "0", 200)
        guest = self.guest("job")
        self.assertEqual(self.tell(guest, "hold 0 80M"), "held")
        self.host.arm("migrate.checked", "pause")
        with self.host.connect() as control:
            control.send("MigrateVgpu", name="job", device="2")
            self.host.wait_paused("migrate.checked")
            for line, answer in (("hold 0 8M", "held"), ("fill 0 17", "filled")):
                self.assertEqual(self.tell(guest, line), answer)
            stranger = self.host.crowd("32M")
            self.host.remove_pause("migrate.checked")
            with self.assertRaisesRegex(Refused, "device 2 has [0-9]+ MiB free, [1-9][0-9]+ MiB are needed$"):
                control.answer()
        self.assertEqual(self.tell(guest, "check 0 17"), "right")
        stranger.kill()
        self.end(guest)

    def test_the_devices_change_places(self):
        self.make("job", "0,1", 64)
        guest = self.start()
        used = self.used("job")
        self.call("MigrateVgpu", device="1,0")
        self.assertEqual([part["device"] for part in self.host.get("job")["parts"]], [1, 0])
        self.assertEqual((self.used("job"), self.memory()[:2]), (used, used[::-1]))
        self.check(guest)
        self.call("MigrateVgpu", device="1,3")
        self.check(guest)
        self.call("MigrateVgpu", device="3,0")
        self.check(guest)
        self.end(guest)

    def test_what_cannot_be_is_refused(self):
        self.make("job", "0,1", 64)
        guest = self.start()
        for device, words in (("2", "has 2 devices, and 1 is named"), ("2,2", "named twice"),
                              ("0,1", "is on devices 0,1 already"), ("2,9", "no device '9'"),
                              ("1,2,3", "has 2 devices, and 3 are named")):
            with self.assertRaisesRegex(Refused, words):
                self.call("MigrateVgpu", device=device)
        self.make("one", "2", 64)
        with self.assertRaisesRegex(Refused, "has 1 device, and 2 are named"):
            self.host.call("MigrateVgpu", name="one", device="2,3")
        self.check(guest)
        self.end(guest)


class Idle(Case):
    """It leaves both of its devices by itself, and comes back to both."""

    HOST = {"devices": "3xH200:256M"}

    def begin(self):
        self.make("job", "0,1", 128, idle_after=0.2)
        guest = self.start()
        self.wait_away()
        return guest

    def wait_away(self):
        self.host.wait_for("job", lambda v: v["state"] == "suspended", "to have left by itself")

    def test_it_comes_back_by_demand(self):
        guest = self.begin()
        self.assertEqual(self.memory(), [0] * 3)
        self.check(guest)
        self.wait_away()
        self.host.kill()
        self.host.start()
        self.check(guest)
        self.end(guest)

    def test_it_waits_for_room_on_the_second_device(self):
        guest = self.begin()
        self.make("other", "1", 192)
        guest.write("check 1 34")
        self.host.wait_for("job", lambda v: "device 1 has" in v["demand_reason"], "to lack room")
        self.assertEqual(self.host.get("job")["state"], "suspended")
        n = len(guest.lines)
        self.host.vgpu("rm", "other")
        until(lambda: len(guest.lines) > n, "an answer", context=self.host.log)
        self.assertEqual(guest.lines[n], "right")
        self.end(guest)

    def test_it_can_be_told_to_and_told_not_to(self):
        self.make("job", "0,1", 128)
        guest = self.start()
        self.host.vgpu("idle", "job", "1s")
        self.wait_away()
        self.check(guest)
        self.host.vgpu("idle", "job", "never")
        if self.host.get("job")["state"] == "suspended":  # it has just left again
            self.call("ResumeVgpu")
        self.check(guest)
        self.assertEqual(self.host.get("job")["state"], "running")
        self.end(guest)


if __name__ == "__main__":
    case.main()
