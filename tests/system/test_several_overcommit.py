#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vGPUs of several devices that are overcommitted: as those of one, but on all of their devices at once."""
import contextlib
import os
import re
import signal

import case
import several
from host import Host
from wait import until
from wire import Refused

MIB = 1 << 20

# Beside its context, and that of the mover, no two of these fit on a device of 256 MiB.
SIZE = 150
QUOTA = 200


class Case(several.Case):
    HOST = {"devices": "3xH200:256M", "pool": "3G", "options": ("--overcommit", "all", "--swap-time", "50")}

    def tearDown(self):
        """While there are vGPUs on them, the movers of these devices stay."""
        for guest in self.host.guests:
            guest.kill()
        if self.host.manager.poll() is None:
            for name in self.host.names():
                self.host.wait_state(name, "idle")
                self.host.vgpu("rm", name)
        super().tearDown()

    def begin(self, name, devices, size=SIZE, quota=QUOTA, **parameters):
        """A guest that holds that much on each of its devices, each with contents of its own."""
        self.make(name, devices, quota, **parameters)
        guest = self.guest(name)
        guest.name, guest.n_devices = name, len(devices.split(","))
        guest.seed = 40 * len(self.host.guests)
        for device in range(guest.n_devices):
            for _ in range(3):
                self.assertEqual(self.tell(guest, f"hold {device} {size // 3}M"), "held")
            self.assertEqual(self.tell(guest, f"fill {device} {guest.seed + device}"), "filled")
        return guest

    @staticmethod
    def count(guest):
        return guest.lines.count("step")

    def work(self, *guests):
        """From now on they always have some."""
        for guest in guests:
            guest.write("work 0 10")

    def wait_steps(self, *guests, n=2):
        wanted = [self.count(guest) + n for guest in guests]
        until(lambda: all(self.count(guest) >= least for guest, least in zip(guests, wanted)), f"{n} steps of each",
              context=lambda: self.describe(*guests))

    def wait_turns(self, *guests, n=3):
        """So often each of them gets on."""
        for _ in range(n):
            self.wait_steps(*guests)

    def stop(self, *guests):
        for guest in guests:
            guest.write("stop 0")
        until(lambda: all("worked" in guest.lines for guest in guests), "the end of the work",
              context=lambda: self.describe(*guests))

    def check_contents(self, *guests):
        for guest in guests:
            for device in range(guest.n_devices):
                self.assertEqual(self.tell(guest, f"check {device} {guest.seed + device}"), "right")

    def finish(self, *guests, works=True):
        if works:
            self.stop(*guests)
        self.check_contents(*guests)
        for guest in guests:
            self.end(guest)

    def ask(self, *guests):
        """They have work for a moment, each of them, whoever has to leave for it. wait_answers() is to follow."""
        for guest in guests:
            guest.n_answers = len(guest.lines) + 1
            guest.write(f"check 0 {guest.seed}")

    def wait_answers(self, *guests):
        until(lambda: all(len(guest.lines) >= guest.n_answers for guest in guests), "the work of each",
              context=lambda: self.describe(*guests))
        for guest in guests:
            self.assertEqual(guest.lines[guest.n_answers - 1], "right", guest.context())

    def touch(self, *guests):
        self.ask(*guests)
        self.wait_answers(*guests)

    def describe(self, *guests):
        return "\n".join([*(f"{guest.name}: {guest.lines[-3:]}" for guest in guests),
                          *(f"{vgpu['name']}: {vgpu['state']} {vgpu['demand']} '{vgpu['demand_reason']}'"
                            for vgpu in self.host.call("ListVgpus")["vgpus"]), self.host.log()[-8000:]])

    def swaps(self, name):
        return self.host.get(name)["swaps"]


class Sharing(Case):
    def test_beside_those_of_one_device(self):
        """It never fits beside them, nor they beside it: all get on, and all of their memory is right."""
        job, left, right = self.begin("job", "0,1"), self.begin("left", "0"), self.begin("right", "1")
        self.work(job, left, right)
        self.wait_turns(job, left, right)
        for name in ("job", "left", "right"):
            self.assertGreater(self.swaps(name), 1)
        self.finish(job, left, right)

    def test_two_that_cross(self):
        guests = [self.begin("one", "0,1"), self.begin("other", "1,0")]
        self.work(*guests)
        self.wait_turns(*guests)
        self.finish(*guests)

    def test_a_ring_of_three(self):
        guests = [self.begin(f"v{i}", f"{i},{(i + 1) % 3}") for i in range(3)]
        self.work(*guests)
        self.wait_turns(*guests)
        self.finish(*guests)

    def test_a_crowd(self):
        """Of one, two and three devices."""
        guests = [self.begin(name, devices, 90) for name, devices in (
            ("all", "2,0,1"), ("a", "0"), ("b", "1"), ("two", "1,2"), ("c", "2"), ("other", "0,2"))]
        self.work(*guests)
        self.wait_turns(*guests, n=2)
        self.finish(*guests)

    def test_it_says_where_it_waits(self):
        right, job = self.begin("right", "1"), self.begin("job", "0,1")
        self.work(right, job)
        self.host.wait_for("job", lambda v: v["demand"] == "waiting for memory" and
                           re.fullmatch("others have the memory of device 1 for now", v["demand_reason"]), "to wait")
        devices = self.host.call("ListDevices")["devices"]
        self.assertEqual([device["memory_promised"] for device in devices], [QUOTA * MIB, 2 * QUOTA * MIB, 0])
        self.assertTrue(all(device["overcommitted"] for device in devices))
        self.wait_turns(right, job)
        self.finish(right, job)

    def test_an_interactive_one(self):
        """It comes in on both devices although others always have work there; the class can be set and is kept."""
        job = self.begin("job", "0,1", swap_class="interactive")
        left, right = self.begin("left", "0"), self.begin("right", "1")
        self.assertEqual(self.host.get("job")["swap_class"], "interactive")
        self.host.vgpu("class", "left", "batch")
        self.work(left, right)
        self.wait_steps(left, right)
        for _ in range(3):
            self.touch(job)
        self.host.vgpu("class", "job", "batch")
        self.assertEqual(self.host.get("job")["swap_class"], "batch")
        self.touch(job)
        self.stop(left, right)
        self.finish(job, left, right, works=False)


class Allocations(Case):
    def test_one_on_the_second_device_waits(self):
        """For one that always has work: it is not refused, as the quota has room."""
        right, job = self.begin("right", "1"), self.begin("job", "0,1", 30)
        self.work(right)
        self.wait_steps(right)
        for size in (60, 90):
            self.assertEqual(self.tell(job, f"hold 1 {size}M"), "held")
        self.assertEqual(self.tell(job, "fill 1 7"), "filled")
        self.assertGreater(self.host.get("job")["waits"], 0)
        self.wait_steps(right)
        self.assertEqual(self.tell(job, "check 1 7"), "right")
        self.finish(right)
        self.end(job)

    def test_two_that_each_have_what_the_other_asks_for(self):
        guests = [self.begin("one", "0,1", 9), self.begin("other", "1,0", 9)]
        for guest in guests:
            self.assertEqual(self.tell(guest, f"hold 0 {SIZE}M"), "held")
            self.assertEqual(self.tell(guest, f"fill 0 {guest.seed}"), "filled")
        wanted = [len(guest.lines) + 1 for guest in guests]
        for guest in guests:
            guest.write(f"hold 1 {SIZE}M")
        until(lambda: all(len(guest.lines) >= n for guest, n in zip(guests, wanted)), "both answers",
              context=lambda: self.describe(*guests))
        for guest in guests:
            self.assertEqual(guest.lines[-1], "held")
            self.assertEqual(self.tell(guest, f"fill 1 {guest.seed + 1}"), "filled")
        self.work(*guests)
        self.wait_turns(*guests, n=2)
        self.finish(*guests)

    def test_more_than_the_second_device_has(self):
        """That would wait for ever: it is refused, and the one on the other device is not."""
        job = self.begin("job", "0,1", 30, quota=256)
        self.assertEqual(self.tell(job, "hold 1 220M"), "refused")
        self.assertIn("an allocation is refused vgpu=job device=1", self.host.log())
        self.assertEqual(self.tell(job, "hold 0 100M"), "held")
        self.end(job)


class Promises(Case):
    """The pool has room for all parts of all vGPUs at once, or they are not created."""

    HOST = {"devices": "3xH200:256M", "pool": "900M", "options": ("--overcommit", "all", "--swap-time", "50")}

    def test_the_sum_of_the_parts(self):
        self.make("one", "0,1", 200)
        self.make("other", "1,0", 200)
        refused = self.refused("create", "third", "--fb", "100M", "--device", "0,1")
        self.assertRegex(refused, "devices 0,1 are overcommitted as far as the pool has room for all of their vGPUs at "
                         "once: each has 48 MiB left to promise, not 100 MiB")
        self.assertIn("--pool-limit", refused)
        self.assertEqual([self.host.device(i)["memory_left"] // MIB for i in range(3)], [96, 96, 256])
        self.make("single", "0", 96)
        self.assertIn("left to promise", self.refused("create", "third", "--fb", "8M", "--device", "1,0"))
        self.make("elsewhere", "2", 256)  # that one fits on its device
        self.assertIn("when others need the GPU", self.host.vgpu("ls", "-l", "single").output)
        self.assertRegex(self.host.vgpu("show", "single").output, r"leaves by itself +when others need the GPU\n")
        self.host.vgpu("rm", "other")
        self.make("third", "0,1", 200)

    def test_a_larger_quota(self):
        self.make("one", "0,1", 200)
        self.make("other", "0,1", 200)
        self.host.vgpu("resize", "one", "--fb", "248M")
        self.assertRegex(self.refused("resize", "other", "--fb", "208M"), "has [0-9.]+ [KM]iB left to promise")
        self.host.vgpu("resize", "one", "--fb", "240M")
        self.host.vgpu("resize", "other", "--fb", "208M")

    def test_another_manager_promises_the_same(self):
        guests = [self.begin("one", "0,1"), self.begin("other", "1,0")]
        for _ in range(2):
            self.assertIn("each has 48 MiB left", self.refused("create", "third", "--fb", "100M", "--device", "0,1"))
            self.host.kill()
            self.host.start()
        self.work(*guests)
        self.wait_turns(*guests)
        self.finish(*guests)

    def test_what_it_left_by_hand_takes_no_room_of_others(self):
        """All of both devices' memory is in the pool, and the others still can leave."""
        guests = [self.begin("one", "0,1", quota=200), self.begin("other", "0,1", quota=200)]
        self.host.call("SuspendVgpu", name="one")
        self.host.call("SuspendVgpu", name="other")
        self.host.call("ResumeVgpu", name="one")
        self.host.call("ResumeVgpu", name="other")
        self.work(*guests)
        self.wait_turns(*guests, n=1)
        self.finish(*guests)


class ByHand(Case):
    def test_a_resume_has_its_turn_on_all_devices(self):
        job, left, right = self.begin("job", "0,1"), self.begin("left", "0"), self.begin("right", "1")
        self.touch(job)
        self.host.call("SuspendVgpu", name="job")
        self.work(left, right)
        self.wait_steps(left, right)
        self.host.call("ResumeVgpu", name="job", timeout=60)
        self.check_contents(job)
        self.assertGreaterEqual(self.host.get("job")["waits"], 1)
        self.wait_steps(left, right)
        self.stop(left, right)
        self.finish(job, left, right, works=False)

    def test_all_are_resumed_at_once(self):
        guests = [self.begin(f"v{i}", f"{i},{(i + 1) % 3}") for i in range(3)]
        for guest in guests:
            self.touch(guest)
            self.host.call("SuspendVgpu", name=guest.name)
        with contextlib.ExitStack() as stack:
            calls = [stack.enter_context(self.host.connect()) for _ in guests]
            for guest, control in zip(guests, calls):
                control.send("ResumeVgpu", name=guest.name, timeout=60)
            for control in calls:
                control.answer()
        self.finish(*guests, works=False)

    def test_nobody_can_leave_its_second_device(self):
        """The resume is refused, and names that device and what it has."""
        job = self.begin("job", "0,1")
        self.host.call("SuspendVgpu", name="job")
        self.make("held", "1", QUOTA)
        held = self.host.run("held", "guest-train", "--size", f"{SIZE}M", "--piece", "15M", "--managed").wait_ready()
        left = self.begin("left", "0")
        self.work(left)
        self.wait_steps(left)
        with self.assertRaisesRegex(Refused, r"device 1 has \d+ MiB free, 1[5-9]\d MiB are needed"):
            self.host.call("ResumeVgpu", name="job", timeout=100)
        self.assertIn("vGPU held stays on the device", self.host.get("job")["demand_reason"])
        self.wait_steps(left)
        held.kill()
        self.host.call("ResumeVgpu", name="job", timeout=60)
        self.stop(left)
        self.finish(job, left, works=False)

    def test_it_moves_to_other_devices(self):
        job, left = self.begin("job", "0,1", 60), self.begin("left", "0")
        self.touch(job)
        self.host.call("MigrateVgpu", name="job", device="1,2")
        self.work(job, left)
        self.wait_steps(job, left)
        self.finish(job, left)


class Faults(Case):
    """Whoever dies, the memory of the others is right, and those that waited come in."""

    def crowd(self):
        return [self.begin("job", "0,1"), self.begin("left", "0"), self.begin("cross", "1,0"), self.begin("right", "1")]

    def test_the_manager_is_killed(self):
        guests = self.crowd()
        for point in ("suspend.released", "resume.restored", "suspend.exported", "resume.created", "suspend.moved"):
            with self.subTest(point=point):
                self.host.arm(point, "kill")
                self.ask(*guests)
                self.host.wait_manager()
                self.host.start()
                self.wait_answers(*guests)
        self.host.kill()
        self.host.start()
        self.work(*guests)
        self.wait_steps(*guests)
        self.finish(*guests)

    def test_the_mover_of_one_device_is_killed(self):
        guests = self.crowd()
        for device, point in enumerate(("suspend.released", "resume.restored")):
            mover = self.mover_of(device)
            self.host.arm(point, "pause")
            self.ask(*guests)
            self.host.wait_paused(point)
            os.kill(mover, signal.SIGKILL)
            self.host.remove_pause(point)
            self.wait_answers(*guests)
        self.work(*guests)
        self.wait_steps(*guests)
        self.finish(*guests)

    def test_one_of_its_devices_falls_off_the_bus(self):
        """It is told so; on the other device those of one go on; it comes in elsewhere."""
        job = self.begin("job", "1,2")
        others = [self.begin(f"v{i}", "2") for i in range(2)]
        self.host.wait_state("job", "suspended")
        self.host.arm("device.lost", "fail")
        n = len(job.lines)
        job.write(f"check 1 {job.seed + 1}")
        self.host.wait_for("job", lambda v: "device 1 fell off the bus" in v["demand_reason"], "to be told")
        self.work(*others)
        self.wait_turns(*others)
        self.finish(*others)
        self.host.call("ResumeVgpu", name="job", device="0,2")
        until(lambda: len(job.lines) > n, "its work", context=self.host.log)
        self.assertEqual(job.lines[n], "right")
        self.finish(job, works=False)
        self.host.kill()
        self.host.start()

    def away(self, *guests):
        """One that is, and has several devices."""
        def look():
            names = [guest for guest in guests if self.host.get(guest.name)["state"] == "suspended"]
            return names and names[0]
        return until(look, "one to be away")

    def test_what_was_handed_over_is_no_context(self):
        """It becomes free beside the context: taken for a part of it, it would keep the vGPU away for ever."""
        job, left = self.begin("job", "0,1"), self.begin("left", "0")
        self.host.wait_state("job", "suspended")
        self.host.arm("mover.checkpointing", "pause")
        self.ask(job)
        self.host.wait_paused("mover.checkpointing")
        until(lambda: self.host.driver_memory()[0] > SIZE * MIB, "its memory to be handed over")
        self.host.remove_pause("mover.checkpointing")
        self.wait_answers(job)
        self.touch(left)
        self.finish(job, left, works=False)

    def test_a_process_that_is_half_in_is_killed(self):
        job, left, cross, right = guests = self.crowd()
        self.touch(left)
        self.touch(right)
        gone = self.away(job, cross)
        self.host.arm("resume.created", "pause")
        gone.write(f"check 0 {gone.seed}")
        self.host.wait_paused("resume.created")
        gone.kill()
        self.host.remove_pause("resume.created")
        self.host.wait_state(gone.name, "idle")
        self.assertEqual(self.host.get(gone.name)["demand_reason"], "", "nobody waits any more")
        self.host.vgpu("rm", gone.name)
        others = [guest for guest in guests if guest is not gone]
        self.work(*others)
        self.wait_steps(*others)
        self.finish(*others)

    def test_one_that_waits_is_removed(self):
        """While its process lives it is not; then what was kept for it on the other device is the others'."""
        held = self.host.run("right" if self.make("right", "1", QUOTA) else "", "guest-train", "--size", f"{SIZE}M",
                             "--piece", "15M", "--managed").wait_ready()
        left = self.begin("left", "0")
        self.make("job", "0,1", QUOTA)
        job = self.guest("job")
        self.assertEqual(self.tell(job, f"hold 0 {SIZE}M"), "held")  # others left for it there
        job.write(f"hold 1 {SIZE}M")
        self.host.wait_for("job", lambda v: "vGPU right stays on the device" in v["demand_reason"], "to say why")
        self.assertEqual(self.host.get("job")["demand"], "waiting for memory")
        self.assertIn("process", self.refused("rm", "job"))
        self.touch(left)
        job.kill()
        self.host.wait_state("job", "idle")
        self.assertEqual((self.host.get("job")["demand"], self.host.get("job")["demand_reason"]), ("", ""))
        self.host.vgpu("rm", "job")
        self.assertEqual([self.host.device(i)["memory_promised"] for i in range(2)], [QUOTA * MIB] * 2)
        self.finish(left, works=False)
        held.kill()

    def test_one_that_can_never_come_in_is_in_nobodys_way(self):
        """A stranger has its second device: it waits, and on the first one the others go on."""
        job = self.begin("job", "0,1")
        left = [self.begin(f"left{i}", "0") for i in range(2)]
        self.host.wait_state("job", "suspended")
        right = self.begin("right", "1")
        self.touch(right)
        self.make("rest", "1", QUOTA)
        held = self.host.run("rest", "guest-train", "--size", f"{SIZE}M", "--piece", "15M", "--managed").wait_ready()
        n = len(job.lines)
        job.write(f"check 1 {job.seed + 1}")
        self.host.wait_for("job", lambda v: "vGPU rest stays on the device" in v["demand_reason"], "to say why")
        self.work(*left)
        self.wait_turns(*left)
        self.assertEqual(len(job.lines), n)
        held.kill()
        until(lambda: len(job.lines) > n, "its work", context=self.host.log)
        self.assertEqual(job.lines[n], "right")
        self.stop(*left)
        self.finish(job, *left, right, works=False)


class Disk(Case):
    """The pool has room for one of them, and its place on the disk is as large as all of its parts."""

    @classmethod
    def setUpClass(cls):
        cls.host = Host("3xH200:256M", "420M", options=("--overcommit", "all", "--swap-time", "50"))
        cls.addClassCleanup(cls.host.close)
        folder = os.path.join(cls.host.directory, "spill")
        os.mkdir(folder, 0o700)
        with open(os.path.join(folder, "room"), "wb") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, MIB)
            except OSError:
                cls.skipTest(cls, "the file system here cannot hold room")
        cls.host.options += ["--spill", folder, "--spill-limit", "1300M"]
        cls.host.start()

    def test_they_go_to_the_disk_and_come_back(self):
        guests = [self.begin(f"v{i}", f"{i},{(i + 1) % 3}") for i in range(3)]
        self.assertRegex(self.refused("create", "more", "--fb", "200M", "--device", "0,1"),
                         "devices 0,1 are overcommitted as far as pool and disk have room for all of their vGPUs")
        until(lambda: any(vgpu["spilled_memory"] for vgpu in self.host.call("ListVgpus")["vgpus"]),
              "what is cold to be on the disk", context=lambda: str(self.host.call("ListVgpus")) + self.host.log())
        self.host.kill()
        self.host.start()
        for _ in range(2):
            for guest in guests:
                self.touch(guest)
        self.finish(*guests, works=False)


if __name__ == "__main__":
    case.main()
