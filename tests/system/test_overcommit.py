#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An overcommitted device: vGPUs that do not fit on it together come in by demand, and lose nothing."""
import concurrent.futures
import mmap
import os
import re
import select
import signal
import struct
import time
import unittest
import unittest.mock

from guest import Guest
from harness import MIB, Host, crowd_out, expect_error
from wait import until
from wire import Gate

# Two of these fit on a device of 256 MiB beside their contexts of 16 MiB, three do not.
SIZE = ("--size", "80M", "--piece", "10M")
QUOTA = 200 * MIB
OPTIONS = ("--simulate", "1xH200:256M", "--overcommit", "all", "--pool-limit", "1G")


class Overcommitted(unittest.TestCase):
    """A stay lasts as long as a swap took, at least: a busy machine swaps slowly."""

    def setUp(self):
        self.host = self.enterContext(Host(options=(*OPTIONS, "--swap-time", "50")))
        self.host.start()

    def create(self, name, size=QUOTA, **parameters):
        self.host.call("CreateVgpu", name=name, frame_buffer=size, **parameters)
        return name

    def guest(self, name, *options, size=SIZE):
        """Saturated, unless it works --on-demand."""
        return self.host.guest(name, *size, "--seed", 1000 * len(self.host.guests), *options)

    def finish(self, *guests):
        """All of their memory is right."""
        for guest in guests:
            guest.signal(signal.SIGTERM)
            guest.process.stdin.close()
        for guest in guests:
            self.assertEqual(guest.join(), 0, guest.context())
            self.assertTrue(guest.lines[-1].endswith("ok"), guest.lines)


class Sharing(Overcommitted):
    def test_those_that_do_not_fit_take_turns(self):
        """All four have work all the time; the third one finds the device full while it allocates."""
        device = self.host.call("ListDevices")["devices"][0]
        self.assertEqual(device["memory_left"], device["memory_total"])  # no vGPU has more, whatever the pool has
        guests = [self.guest(self.create(f"v{i}")) for i in range(4)]
        for _ in range(2):
            for guest in guests:
                guest.wait_steps(2)
        device = self.host.call("ListDevices")["devices"][0]
        self.assertEqual(device["memory_promised"], 4 * QUOTA)
        self.finish(*guests)

    def test_two_of_which_each_needs_most_of_it(self):
        """The second one's allocations wait until the first one has left; nobody is refused."""
        size = ("--size", "150M", "--piece", "15M")
        guests = [self.guest(self.create(name, size=250 * MIB), size=size) for name in ("one", "two")]
        for guest in (*guests, *guests):
            guest.wait_steps(2)
        self.finish(*guests)

    def test_allocations_in_the_order_of_streams_wait_as_well(self):
        guests = [self.host.ordered(self.create(name, size=250 * MIB), "--size", "120M")
                  for name in ("one", "two")]
        for guest in (*guests, *guests):
            guest.wait_steps(2)
        self.finish(*guests)

    def test_what_may_be_promised(self):
        """As much as the pool has room for all of them at once, and the pool holds it for them."""
        for i in range(5):
            self.create(f"v{i}")
        refused = expect_error("NoRoom", self.create, "v5")
        self.assertIn("24 MiB left to promise", refused.parameters["message"])
        self.create("v5", size=24 * MIB)
        expect_error("NoRoom", self.create, "v6", size=4 * MIB)
        self.host.call("RemoveVgpu", name="v0")
        self.create("v6")

    def test_the_next_vgpud_promises_the_same(self):
        """What is in the pool counts once: as what its vGPU was promised."""
        names = [self.create(f"v{i}") for i in range(5)]
        guest = self.guest(names[0], "--on-demand")
        self.host.call("SuspendVgpu", name=names[0])
        for _ in range(2):
            refused = expect_error("NoRoom", self.create, "v5")
            self.assertIn("24 MiB left to promise", refused.parameters["message"])
            self.host.kill_manager()
            self.host.start()
        self.host.call("ResumeVgpu", name=names[0])
        guest.step()
        self.finish(guest)

    def test_an_allocation_waits(self):
        """Within its quota nobody gets 'out of memory' for the others' sake: it waits for one that is busy."""
        first = self.guest(self.create("first"), "--on-demand")
        second = self.guest(self.create("second"), "--on-demand")
        third = self.guest(self.create("third"), "--on-demand")
        states = sorted(self.host.vgpu(name)["state"] for name in ("first", "second", "third"))
        self.assertIn("suspended", states)
        for guest in (first, second, third, first):
            guest.step()
        # More than the device has without anybody else: that would wait for ever.
        log = (self.host.root / "log").read_text(errors="replace")
        self.assertNotIn("an allocation is refused", log)
        self.create("large", size=256 * MIB)
        with self.assertRaises(AssertionError):
            self.guest("large", size=("--size", "250M", "--piece", "125M"))
        for guest in (second, third, first):
            guest.step()
        self.finish(first, second, third)

    def test_arrays_wait_as_well(self):
        """They are the driver's, and go with the context; whoever makes one waits until somebody has left."""
        large = ("--size", "150M", "--piece", "15M")
        train = self.guest(self.create("train"), "--on-demand", size=large)
        held = self.host.start_guest(self.create("held"), "guest-hold", "100M").wait_ready()
        for word in ("array", "mipmapped"):
            with self.subTest(word):
                held.hold(word)
                until(lambda: self.host.vgpu("train")["state"] == "suspended", "the other one to have left")
                train.step()
                until(lambda: self.host.vgpu("held")["state"] == "suspended", "who has the array to have left")
                held.hold("nothing")
                train.step()
        self.assertEqual(held.end_input(), 0, held.context())
        self.finish(train)

    def test_code_of_kernels_waits_as_well(self):
        """The driver has no room for it once: it is loaded after others could have left. If it never has, that is said."""
        self.create("first")
        with unittest.mock.patch.dict(os.environ, OPENVGPU_SIM_FAIL="cuModuleLoadData@1=2,cuModuleLoadData@2=2"):
            guest = self.guest("first", "--on-demand")
        with unittest.mock.patch.dict(os.environ, OPENVGPU_SIM_FAIL="cuModuleLoadData@0=2"):
            environment = dict(os.environ, **self.host.call("PrepareRun", name=self.create("second"))["environment"])
            other = Guest([os.environ["TEST_GUESTS"] + "/guest-train", *SIZE], environment)
        self.host.guests.append(other)
        self.assertNotEqual(other.join(), 0)
        self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", other.context())
        guest.step()
        self.finish(guest)

    def expect_to_wait(self, word, **environment):
        """The device is full when the driver takes memory in a call: another one leaves for it."""
        train = self.guest(self.create("train"), "--on-demand", size=("--size", "150M", "--piece", "15M"))
        held = self.host.start_guest(self.create("held"), "guest-hold", "2M", **environment).wait_ready()
        held.hold("device")
        stranger = crowd_out(self.host, "train", "0", piece="2M")
        self.assertEqual(self.host.vgpu("train")["state"], "running")
        held.hold(word)
        self.host.wait_state("train", "suspended")  # the last of it may still be on its way
        self.assertEqual(self.host.vgpu("held")["waits"], 1)
        train.step()
        self.host.wait_state("held", "suspended")
        held.hold("nothing")
        self.assertEqual(held.end_input(), 0, held.context())
        stranger.end_input()
        self.finish(train)

    def test_a_graph_waits_as_well(self):
        self.expect_to_wait("graph")

    def test_a_launch_waits_for_the_code_of_its_kernel(self):
        self.expect_to_wait("code", OPENVGPU_SIM_CODE="2M")

    def test_graphs_and_code_under_constant_demand(self):
        """Two have work all the time; two others make graphs and load code beside them, in captures, too."""
        trains = [self.guest(self.create(name)) for name in ("one", "two")]
        names = [self.create(name) for name in ("three", "four")]
        makers = [self.host.start_guest(name, "guest-hold", "64M", OPENVGPU_SIM_CODE="32M").wait_ready() for name in names]
        words = ("device", "graph", "nothing", "device", "code", "nothing")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            while min(self.host.vgpu(name)["swaps"] for name in names) < 3:
                list(pool.map(lambda maker: [maker.hold(word) for word in words], makers))
        self.finish(*trains)

    def test_a_launch_that_will_never_fit(self):
        """More than there is without all others: it is refused, and who has left comes back."""
        train = self.guest(self.create("train"), "--on-demand")
        held = self.host.start_guest(self.create("held"), "guest-hold", OPENVGPU_SIM_CODE="300M").wait_ready()
        held.hold("device")
        held.write("code")
        self.assertNotEqual(held.join(), 0)
        self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", held.context())
        train.step()
        self.finish(train)

    def test_an_array_that_will_never_fit(self):
        """Above the quota, and above what the device has without anybody else: both are refused, and not by waiting."""
        train = self.guest(self.create("train"), "--on-demand")
        for name, size, quota in (("much", "210M", QUOTA), ("more", "245M", 256 * MIB)):
            held = self.host.start_guest(self.create(name, size=quota), "guest-hold", size).wait_ready()
            held.write("array")
            self.assertNotEqual(held.join(), 0, "it has no memory")
            train.step()
        self.finish(train)

    def test_equal_processes_of_one(self):
        """What two of its processes have the same is kept once; the next manager gives it back to both."""
        self.create("pair")
        guests = [self.host.guest("pair", *SIZE, "--seed", 7, "--on-demand") for _ in range(2)]
        self.host.call("SuspendVgpu", name="pair")
        self.assertGreater(self.host.call("GetInfo")["pool"]["saved"], 0)
        self.host.kill_manager()
        self.host.start()
        self.host.call("ResumeVgpu", name="pair")
        for guest in guests:
            guest.step()
        self.finish(*guests)

    def test_all_start_at_once(self):
        """They fill the device before anybody has had to leave, and yet the mover has its context there."""
        self.host.kill_manager()
        self.host.start(options=("--simulate", "1xH200:1G", "--pool-limit", "3G"))
        names = [self.create(f"v{i}", size=700 * MIB) for i in range(2)]
        environments = [dict(os.environ, **self.host.call("PrepareRun", name=name)["environment"]) for name in names]
        logs = [self.host.root / f"train-{name}" for name in names]
        guests = [Guest([os.environ["TEST_GUESTS"] + "/guest-train", "--size", "512M", "--seed", str(1000 * i),
                         "--on-demand", "--log", logs[i]], environments[i], logs[i]) for i in range(2)]
        self.host.guests += guests
        for guest in guests:
            guest.wait_ready()
        for guest in (*guests, *guests):
            guest.step()
        self.finish(*guests)

    def test_contexts_alone_fill_it(self):
        """The driver needs some of the device for each checkpoint, and one that fails is the last of its process."""
        logs = [self.host.root / f"train-v{i}" for i in range(20)]
        environments = [dict(os.environ, **self.host.call("PrepareRun", name=self.create(f"v{i}", size=40 * MIB))["environment"])
                        for i in range(len(logs))]
        guests = [Guest([os.environ["TEST_GUESTS"] + "/guest-train", "--size", "9M", "--piece", "1M", "--seed", str(1000 * i),
                         "--log", logs[i]], environments[i], logs[i]) for i in range(len(logs))]
        self.host.guests += guests
        for guest in guests:
            guest.wait_ready()
        for guest in guests:
            guest.wait_steps(2)
        log = (self.host.root / "log").read_text(errors="replace")
        self.assertNotIn("cuCheckpointProcessCheckpoint failed", log)
        self.finish(*guests)

    def test_nobody_takes_the_room_of_the_movers_context(self):
        """Without it, no vGPU could leave a device that is full."""
        self.host.kill_manager()
        (self.host.faults / "mover.entering=pause").touch()
        self.host.start(options=("--simulate", "1xH200:1G", "--pool-limit", "3G"))
        names = [self.create(f"v{i}", size=700 * MIB) for i in range(2)]
        environments = [dict(os.environ, **self.host.call("PrepareRun", name=name)["environment"]) for name in names]
        logs = [self.host.root / f"train-{name}" for name in names]
        guests = [Guest([os.environ["TEST_GUESTS"] + "/guest-train", "--size", "512M", "--piece", "8M", "--seed",
                         str(1000 * i), "--on-demand", "--log", logs[i]], environments[i], logs[i]) for i in range(2)]
        self.host.guests += guests
        self.host.wait_paused("mover.entering")
        until(lambda: all(self.host.vgpu(name)["processes"] for name in names), "both to be there")
        for _ in range(100):  # looks
            self.assertEqual([self.host.vgpu(name)["frame_buffer_used"] // (8 * MIB) for name in names], [0, 0])
        self.host.go_on("mover.entering")
        for guest in guests:
            guest.wait_ready()
        self.finish(*guests)


class ByHand(Overcommitted):
    """Who is resumed by hand has a turn as by demand: others leave for it, also those that have work."""

    def test_a_resume_waits_for_its_turn(self):
        first = self.guest(self.create("first"), "--on-demand")
        first.step()
        self.host.call("SuspendVgpu", name="first")
        others = [self.guest(self.create(name)) for name in ("second", "third")]
        for guest in others:
            guest.wait_steps(2)
        self.assertEqual(self.host.vgpu("first")["state"], "suspended")
        self.host.call("ResumeVgpu", name="first", timeout=60)
        first.step()
        self.assertEqual(self.host.vgpu("first")["waits"], 1)
        for guest in others:  # and they go on, too
            guest.wait_steps(guest.steps() + 1)
        self.finish(first, *others)

    def test_all_are_resumed_at_once(self):
        """Each has been on the device; who comes later makes others leave, by demand or not."""
        guests = [self.guest(self.create(f"v{i}"), "--on-demand") for i in range(4)]
        for i, guest in enumerate(guests):
            guest.step()
            self.host.call("SuspendVgpu", name=f"v{i}")
        calls = []
        for i in range(4):
            calls.append(self.host.client())
            calls[-1].send("ResumeVgpu", name=f"v{i}", timeout=60)
        for call in calls:
            call.receive()
        for guest in guests:
            guest.step()
        self.finish(*guests)

    def test_nobody_can_leave(self):
        """A resume for which there will be no room is refused, says who has the memory, and the vGPU is as before."""
        guest = self.guest(self.create("first"), "--on-demand")
        self.host.call("SuspendVgpu", name="first")
        stranger = crowd_out(self.host, "first", "40M")
        refused = expect_error("NoRoom", self.host.call, "ResumeVgpu", name="first", timeout=60)
        self.assertIn("are needed", refused.parameters["message"])
        outside = re.search(r"outside of all vGPUs have about (\d+) MiB", self.host.vgpu("first")["demand_reason"])
        self.assertAlmostEqual(int(outside[1]), 256 - 40, delta=40)  # contexts are known roughly
        self.assertEqual(self.host.vgpu("first")["waits"], 1)
        self.assertEqual((self.host.vgpu("first")["state"], self.host.vgpu("first")["demand"]), ("suspended", ""))
        stranger.end_input()
        self.host.call("ResumeVgpu", name="first")
        guest.step()
        self.finish(guest)

    def test_a_long_wait_makes_no_long_turns(self):
        """What it waited for its turn is no part of what its swap took, by which all turns are measured."""
        self.host.kill_manager()
        self.host.start(options=("--swap-time", "10"))
        first = self.guest(self.create("first"))
        self.host.call("SuspendVgpu", name="first")
        with unittest.mock.patch.dict(os.environ, OPENVGPU_FAULT_DIR=str(self.host.faults)):  # for their gates
            others = [self.guest(self.create(name)) for name in ("second", "third")]
        (self.host.faults / "gate-export=pause").touch()
        resume = self.host.client()
        resume.send("ResumeVgpu", name="first", timeout=100)
        self.host.wait_paused("gate-export")
        leaver = int((self.host.faults / "gate-export").read_text())
        time.sleep(6)  # this is how long it waits: nine times that would be a turn
        gone = next(guest for guest in others if guest.process.pid == leaver)
        others.remove(gone)
        gone.kill()
        resume.answer()
        begin = time.monotonic()
        self.finish(first, *others, self.guest(self.create("fourth")))
        self.assertLess(time.monotonic() - begin, 40)

    def test_the_device_falls_off_the_bus(self):
        """Whoever waits for a turn there is told so, and the vGPU comes in on another device."""
        self.host.kill_manager()
        self.host.start(options=("--simulate", "2xH200:256M"))
        first = self.guest(self.create("first", device="0"), "--on-demand")
        self.host.call("SuspendVgpu", name="first")
        with unittest.mock.patch.dict(os.environ, OPENVGPU_FAULT_DIR=str(self.host.faults)):  # for their gates
            for name in ("second", "third"):
                self.guest(self.create(name, device="0"))
        (self.host.faults / "gate-export=pause").touch()
        resume = self.host.client()
        resume.send("ResumeVgpu", name="first", timeout=600)
        self.host.wait_paused("gate-export")
        (self.host.faults / "device.lost=fail").touch()
        self.assertIn("fell off the bus", expect_error("DriverFailed", resume.answer).parameters["message"])
        self.host.call("ResumeVgpu", name="first", device="1")
        first.step()
        self.finish(first)

    def test_another_one_is_suspended_by_hand(self):
        """Who is about to leave is waited for, whoever told it to."""
        size = ("--size", "150M", "--piece", "15M")
        first = self.guest(self.create("first"), "--on-demand", size=size)
        self.host.call("SuspendVgpu", name="first")
        with unittest.mock.patch.dict(os.environ, OPENVGPU_FAULT_DIR=str(self.host.faults)):  # for its gate
            second = self.guest(self.create("second"), "--on-demand", size=size)
        (self.host.faults / "gate-export=pause").touch()
        suspend, resume = self.host.client(), self.host.client()
        suspend.send("SuspendVgpu", name="second")
        self.host.wait_paused("gate-export")
        resume.send("ResumeVgpu", name="first", timeout=60)
        until(lambda: self.host.vgpu("first")["demand_reason"], "the reason why it waits")
        self.assertFalse(select.select([resume.socket], [], [], 2)[0], "it waits on")
        self.host.go_on("gate-export")
        suspend.receive()
        resume.receive()
        first.step()
        self.finish(first)
        self.host.call("ResumeVgpu", name="second")
        self.finish(second)

    def test_those_that_wait_do_not_wait_for_each_other(self):
        """For two that a stranger keeps from a device there will be no room: both are told so at once."""
        self.host.kill_manager()
        self.host.start(options=("--simulate", "2xH200:256M"))
        guests = [self.guest(self.create(name, device=device), "--on-demand")
                  for name, device in (("first", "0"), ("second", "1"))]
        for name in ("first", "second"):
            self.host.call("SuspendVgpu", name=name)
        stranger = crowd_out(self.host, "first", "40M")
        resume = self.host.client()
        resume.send("ResumeVgpu", name="first", timeout=600)
        until(lambda: self.host.vgpu("first")["demand"] == "waiting for memory", "it to wait")
        expect_error("NoRoom", self.host.call, "ResumeVgpu", name="second", device="0", timeout=600)
        expect_error("NoRoom", resume.answer)
        stranger.end_input()
        for name in ("first", "second"):
            self.host.call("ResumeVgpu", name=name)
        self.finish(*guests)

    def test_the_time_is_over(self):
        """Who may not leave yet has its turn first."""
        guest = self.guest(self.create("first"), "--on-demand")
        self.host.call("SuspendVgpu", name="first")
        others = [self.guest(self.create(name)) for name in ("second", "third")]
        refused = expect_error("NoRoom", self.host.call, "ResumeVgpu", name="first", timeout=0.05)
        self.assertRegex(refused.parameters["message"], r"^vGPU first waited \d+\.\d s in vain for [\d.]+ MiB of device 0, "
                         "where vGPUs second and third are")
        self.assertIn("--timeout", refused.parameters["hint"])
        self.assertEqual(self.host.vgpu("first")["state"], "suspended")
        self.host.call("ResumeVgpu", name="first", timeout=60)
        guest.step()
        self.finish(guest, *others)


class Classes(Overcommitted):
    def test_classes(self):
        """Who is interactive comes in although others always have work; what each had is counted."""
        batch = [self.guest(self.create(f"b{i}")) for i in range(2)]
        self.create("i", swap_class="interactive")
        guest = self.guest("i", "--on-demand")
        for _ in range(2):
            guest.step()
        for one in batch:
            one.wait_steps(2)
        vgpu = self.host.call("SetVgpuClass", name="i", swap_class="batch")["vgpu"]
        self.assertEqual(vgpu["swap_class"], "batch")
        self.assertGreater(vgpu["resident_seconds"], 0)
        swapped = [v for v in self.host.call("ListVgpus")["vgpus"] if v["swapped_bytes"]]
        self.assertTrue(any(v["waits"] and v["waited_seconds"] for v in swapped), swapped)
        self.assertTrue(any(v["swaps"] for v in swapped), swapped)
        expect_error("InvalidParameter", self.host.call, "SetVgpuClass", name="i", swap_class="best")
        self.host.call("SetVgpuClass", name="i", swap_class="interactive")
        before = self.host.vgpu("i")["resident_seconds"]
        self.finish(guest, *batch)
        self.host.wait_state("i", "idle")
        self.assertGreaterEqual(self.host.vgpu("i")["resident_seconds"], before)
        self.host.kill_manager()
        self.host.start()
        self.assertEqual(self.host.vgpu("i")["swap_class"], "interactive")

    def test_what_is_counted_is_what_happened(self):
        """By demand: swaps and bytes are those of the events, and the times fit between what the events say."""
        guests = [self.guest(self.create(f"v{i}"), "--on-demand") for i in range(3)]
        for _ in range(4):
            for guest in guests:
                guest.step()
        until(lambda: all(vgpu["state"] in ("running", "suspended") for vgpu in self.host.call("ListVgpus")["vgpus"]),
              "the swaps to end")
        now, vgpus = time.time(), self.host.call("ListVgpus")["vgpus"]
        for vgpu in vgpus:
            with self.subTest(vgpu["name"]):
                self.check_counts(vgpu, now, self.host.call("ListEvents", name=vgpu["name"])["events"])
        self.assertGreaterEqual(sum(vgpu["swaps"] for vgpu in vgpus), 6, vgpus)
        self.finish(*guests)

    def check_counts(self, vgpu, now, events):
        leaves, returns = ([e for e in events if e["event"] == kind] for kind in ("suspended", "resumed"))
        self.assertEqual(vgpu["swaps"], len(leaves) + len(returns), events)
        self.assertEqual(vgpu["swapped_bytes"], sum(e["bytes"] for e in leaves + returns), events)
        self.assertEqual(max(e["bytes"] for e in leaves), 80 * MIB, events)
        self.assertGreaterEqual(vgpu["waits"], len(returns), events)
        # An event has the time of the end: how much of a swap itself was away is for the ledger to say.
        slack = 0.5
        leaving, coming = (sum(e["seconds"] for e in swaps) for swaps in (leaves, returns))
        back = [e["time"] for e in returns] + [now] * (len(leaves) - len(returns))
        life = now - next(e["time"] for e in events if e["event"] == "process-began")
        away = sum(back) - sum(e["time"] for e in leaves)
        self.assertGreater(vgpu["resident_seconds"], life - away - leaving - slack, events)
        self.assertLess(vgpu["resident_seconds"], life - away + coming + slack, events)
        self.assertGreater(vgpu["waited_seconds"], coming - slack, events)
        self.assertLess(vgpu["waited_seconds"], life, events)

    def test_contexts_stay(self):
        """How one leaves for others may be said without a time after which it leaves for nothing."""
        guests = [self.guest(self.create(f"k{i}", idle_keep_context=True), "--on-demand") for i in range(3)]
        for guest in (*guests, *guests):
            guest.step()
        states = {v["state"] for v in self.host.call("ListVgpus")["vgpus"]}
        self.assertIn("evicted", states)
        self.assertNotIn("suspended", states)
        self.finish(*guests)

    def test_a_driver_that_is_late(self):
        """It says only a moment later that what one had is free: whoever has work comes in all the same."""
        self.host.variables["OPENVGPU_SIM_LATE_FREE"] = "100"
        self.host.kill_manager()
        self.host.start()
        guests = {name: self.guest(self.create(name, swap_class="interactive"), "--on-demand") for name in "abc"}
        for _ in range(4):
            away = [v["name"] for v in self.host.call("ListVgpus")["vgpus"] if v["state"] == "suspended"]
            guests[away[0]].step()
        self.finish(*guests.values())


class Shares(Overcommitted):
    SIZE = ("--size", "150M", "--piece", "15M")  # one fits at a time
    SWAPS = 16

    def test_the_device_is_shared_out_across_swaps(self):
        """Two always have work, with shares of 75 and 25: so long is each on the device, and so long do its kernels run."""
        names = [self.create("much"), self.create("little")]
        for name, percent in zip(names, (75, 25)):
            self.host.call("SetVgpuShare", name=name, percent=percent)
        guests = [self.guest(name, "--pause", "0", size=self.SIZE) for name in names]

        def look():
            """Of each: ways out and in, seconds on the device, of kernels, and steps."""
            used = {vgpu["name"]: vgpu["gpu_seconds"] for vgpu in self.host.call("GetUtilization")["vgpus"]}
            return [(self.host.vgpu(name)["swaps"], self.host.vgpu(name)["resident_seconds"], used[name], guest.steps())
                    for name, guest in zip(names, guests)]

        # From the end of a turn to the end of another one.
        until(lambda: look()[0][0] >= 4, "a few turns")
        first, began, before = look()[0][0], time.monotonic(), look()
        until(lambda: look()[0][0] >= first + self.SWAPS, "many turns", seconds=600)
        took, after = time.monotonic() - began, look()
        much, little = ([now - then for now, then in zip(*of)] for of in zip(after, before))
        for part in (much[i] / (much[i] + little[i]) for i in (1, 2)):
            self.assertGreater(part, 0.6, (before, after))
            self.assertLess(part, 0.85, (before, after))
        self.assertLess(much[2] + little[2], took, "no more than there is")
        for _, resident, kernels, steps in (much, little):
            self.assertLessEqual(kernels, resident + 0.5, (before, after))
            self.assertGreater(steps, 0)
        self.finish(*guests)


class Places(unittest.TestCase):
    """Where a vGPU comes that may be on any device."""

    def test_the_device_that_has_promised_least_is_chosen(self):
        host = self.enterContext(Host(options=("--simulate", "4xH200:512M", "--overcommit", "all", "--pool-limit", "4G")))
        host.start()
        for name in ("first", "second"):
            host.call("CreateVgpu", name=name, frame_buffer=300 * MIB, device="0")
        made = [host.call("CreateVgpu", name=f"v{i}", frame_buffer=400 * MIB)["vgpu"] for i in range(4)]
        self.assertEqual([vgpu["device"] for vgpu in made], [1, 2, 3, 1])
        made = host.call("CreateVgpu", name="both", frame_buffer=50 * MIB, devices=2)["vgpu"]
        self.assertEqual([part["device"] for part in made["parts"]], [2, 3])


class Sharers(Overcommitted):
    """Processes that share memory, started anew all the time, beside two that always have work."""

    ROUNDS = 12

    def start_half(self, word, way, path):
        environment = dict(os.environ, **self.host.call("PrepareRun", name="pairs")["environment"])
        half = Guest([os.environ["TEST_GUESTS"] + "/guest-share", word, way, path, "20M", "2"], environment)
        self.host.guests.append(half)
        return half

    def one_pair(self, way, number):
        """The first calls of the two come at any moment of their vGPU's ways out and in."""
        path = self.host.root / f"pair-{number}"
        maker = self.start_half("make", way, path)
        until(path.exists, "the maker to offer its memory", seconds=60)
        time.sleep(0.05 * (number % 4))
        user = self.start_half("use", way, path)
        for half in (maker, user):
            half.wait_line("ready", seconds=60)
        for half, words in ((maker, f"fill={number}"), (user, f"check={number}"), (user, f"fill={100 + number}"),
                            (maker, f"check={100 + number}")):
            half.write(words)
            half.wait_line(words, seconds=60)
        for half in (user, maker):
            half.process.stdin.close()
            self.assertEqual(half.join(), 0, half.context())

    def test_pairs_come_and_go_beside_those_who_always_have_work(self):
        self.create("pairs")
        guests = [self.guest(self.create(f"v{i}")) for i in range(2)]
        for number in range(self.ROUNDS):
            way = ("descriptor", "ipc", "pool")[number % 3]
            with self.subTest(way=way, number=number):
                self.one_pair(way, number)
        self.assertGreater(self.host.vgpu("pairs")["swaps"], 2)
        self.finish(*guests)


class Liars(Overcommitted):
    """Processes that say what is not so."""

    PENDING_AT = 8 * 6 + 4 * 4  # in a slot of the instance page (src/state/instance-page.h)
    WANTED_AT = PENDING_AT + 8 + 8
    ASKS_AT = WANTED_AT + 8

    def lie(self, vgpu, at, size, told):
        gate = Gate(str(self.host.run / "gate.sock"))
        gate.join(vgpu)
        _, body, fds = gate.receive_message()
        page = mmap.mmap(fds[0], os.fstat(fds[0]).st_size)
        slot = 64 + 128 * struct.unpack_from("<I", body)[0]
        struct.pack_into("<Q", page, slot + at, size)
        os.write(told, b"y")
        for n in range(1, 10000):
            if at == self.WANTED_AT:
                struct.pack_into("<I", page, slot + self.ASKS_AT, n)
            select.select([], [], [], 0.2)

    def start_liar(self, vgpu, at=WANTED_AT, size=2 * MIB):
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                self.lie(vgpu, at, size, write_end)
            finally:
                os._exit(1)
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        os.close(write_end)
        self.assertEqual(os.read(read_end, 1), b"y", "it has lied")
        os.close(read_end)

    def test_small_quotas_hold_back_little(self):
        """Twelve of 2 MiB; the others have half of the device, and go on."""
        self.host.kill_manager()
        self.host.start(options=("--simulate", "1xH200:2G", "--pool-limit", "6G"))
        for i in range(2):
            self.create(f"v{i}", 600 * MIB)
        guests = [self.guest(f"v{i}", size=("--size", "500M", "--piece", "50M")) for i in range(2)]
        for i in range(12):
            self.start_liar(self.host.call("CreateVgpu", name=f"liar{i}", frame_buffer=2 * MIB)["vgpu"]["uuid"])
        until(lambda: (self.host.root / "log").read_text().count("process joined") >= 14, "all to have joined")
        for guest in guests:
            wanted = guest.steps() + 40  # it takes the liars some rounds
            until(lambda guest=guest, wanted=wanted: guest.steps() >= wanted, "the steps", seconds=60)
        self.finish(*guests)

    def start_pending(self, name, size):
        """It says that the driver is being asked for so much, for ever."""
        self.start_liar(self.host.call("CreateVgpu", name=name, frame_buffer=size)["vgpu"]["uuid"],
                        self.PENDING_AT, size)
        until(lambda: f"process joined vgpu={name}" in (self.host.root / "log").read_text(), "it to have joined")

    def test_the_driver_is_asked_for_the_whole_quota_for_ever(self):
        """Nor does it leave; the others go on."""
        guests = [self.guest(self.create(f"v{i}")) for i in range(3)]
        self.start_pending("liar", QUOTA)
        for guest in guests:
            wanted = guest.steps() + 20
            until(lambda guest=guest, wanted=wanted: guest.steps() >= wanted, "the steps", seconds=60)
        self.finish(*guests)

    def test_what_is_promised_by_quota_comes_back(self):
        """Without overcommit, too; and who does not wait for it is told why."""
        self.host.kill_manager()
        self.host.options = ["--simulate", "1xH200:256M", "--pool-limit", "1G"]
        self.host.start()
        guest = self.guest(self.create("own", size=100 * MIB), "--on-demand")
        self.host.call("SuspendVgpu", name="own")
        self.start_pending("liar", 150 * MIB)
        refused = expect_error("NoRoom", self.host.call, "ResumeVgpu", name="own", timeout=1)
        self.assertIn("150 MiB are being allocated and", refused.parameters["message"])
        self.host.call("ResumeVgpu", name="own", timeout=30)
        guest.step()
        self.finish(guest)

    def test_one_that_is_stopped_while_it_allocates(self):
        """The driver is not asked for anything as long as it is stopped."""
        self.create("stopped")
        environment = dict(os.environ, **self.host.call("PrepareRun", name="stopped")["environment"],
                           OPENVGPU_FAULT_DIR=str(self.host.faults))
        (self.host.faults / "gate-asking=pause").touch()
        stopped = Guest([os.environ["TEST_GUESTS"] + "/guest-train", "--size", "150M", "--piece", "150M"], environment)
        self.host.guests.append(stopped)
        self.host.wait_paused("gate-asking")
        stopped.signal(signal.SIGSTOP)
        guests = [self.guest(self.create(f"v{i}")) for i in range(3)]
        for guest in guests:
            wanted = guest.steps() + 20
            until(lambda guest=guest, wanted=wanted: guest.steps() >= wanted, "the steps", seconds=60)
        stopped.signal(signal.SIGCONT)
        self.host.go_on("gate-asking")
        self.finish(*guests, stopped.wait_ready())


class Stopped(Overcommitted):
    """A process that is stopped keeps nobody waiting: another vGPU leaves, and this one when it runs again."""

    SOON = 3  # seconds; a turn's time to come to rest is 5

    def crowd(self):
        """Two that always have work, and one that waits for one of them to leave."""
        with unittest.mock.patch.dict(os.environ, OPENVGPU_FAULT_DIR=str(self.host.faults)):  # for their gates
            guests = [self.guest(self.create(name)) for name in ("one", "two")]
        environment = dict(os.environ, **self.host.call("PrepareRun", name=self.create("third"))["environment"])
        third = Guest([os.environ["TEST_GUESTS"] + "/guest-train", *SIZE], environment)
        self.host.guests.append(third)
        return *guests, third

    def stop_at(self, point):
        """The one that leaves first stops itself there. Returns it, its name, and all of them."""
        (self.host.faults / f"{point}=pause").touch()
        guests = self.crowd()
        self.host.wait_paused(point)
        pid = int((self.host.faults / point).read_text())
        stopped = next(guest for guest in guests if guest.pid == pid)
        stopped.signal(signal.SIGSTOP)
        self.host.go_on(point)
        return stopped, ("one", "two")[guests.index(stopped)], guests

    def check_third(self, name, guests):
        """The one that is stopped stays, and so the other one leaves."""
        until(lambda: f"undone vgpu={name} operation=suspend" in (self.host.root / "log").read_text(), "it to stay",
              seconds=self.SOON)
        guests[2].wait_ready()

    def wait_reason(self, name, text):
        until(lambda: text in self.host.vgpu(name)["demand_reason"], f"'{text}'", context=lambda: self.host.vgpu(name))

    def go_on(self, stopped, guests):
        """It makes room for the others again, too: three vGPUs change places for a while."""
        stopped.signal(signal.SIGCONT)
        names = ("one", "two", "third")
        name = names[guests.index(stopped)]
        before = self.host.vgpu(name)["swaps"]
        until(lambda: self.host.vgpu(name)["swaps"] >= before + 2, "it to leave and to come", seconds=60)
        for other in names:
            until(lambda other=other: "stopped" not in self.host.vgpu(other)["demand_reason"], "no such reason")
        self.finish(*guests)

    MOST = ("--size", "150M", "--piece", "15M")

    def test_the_only_one_that_could_leave(self):
        """Whoever waits is told for whom, and comes when that one runs again."""
        one = self.guest(self.create("one"), size=self.MOST)
        one.signal(signal.SIGSTOP)
        environment = dict(os.environ, **self.host.call("PrepareRun", name=self.create("two"))["environment"])
        two = Guest([os.environ["TEST_GUESTS"] + "/guest-train", *self.MOST], environment)
        self.host.guests.append(two)
        reason = f"process {one.pid} (guest-train) is stopped"
        self.wait_reason("one", reason)
        self.wait_reason("two", f"vGPU one stays on the device: {reason}")
        self.assertEqual((self.host.root / "log").read_text().count("leaves by itself vgpu=one"), 0)
        one.signal(signal.SIGCONT)
        two.wait_ready()
        self.finish(one, two)

    def test_one_that_is_away_and_waits(self):
        """Nobody leaves for it as long as it is stopped; then it comes soon."""
        one = self.guest(self.create("one"), "--on-demand", size=self.MOST)
        two = self.guest(self.create("two"), size=self.MOST)
        self.host.wait_state("one", "suspended")
        two.wait_steps(2)
        wanted = one.steps() + 1
        one.write("")
        until(lambda: self.host.vgpu("one")["demand"], "it to wait at its gate")
        one.signal(signal.SIGSTOP)
        log = self.host.root / "log"
        two.wait_steps(20)  # it may be leaving for it already
        begin = log.read_text().count("comes in by demand vgpu=one")
        two.wait_steps(300)
        self.assertEqual(log.read_text().count("comes in by demand vgpu=one"), begin)
        one.signal(signal.SIGCONT)
        until(lambda: one.steps() >= wanted, "its step")
        self.finish(one, two)

    def test_a_resume_by_hand_waits_for_it(self):
        one = self.guest(self.create("one"), "--on-demand", size=self.MOST)
        self.host.call("SuspendVgpu", name="one")
        two = self.guest(self.create("two"), size=self.MOST)
        two.signal(signal.SIGSTOP)
        resume = self.host.client()
        resume.send("ResumeVgpu", name="one", timeout=60)
        self.wait_reason("one", f"vGPU two stays on the device: process {two.pid} (guest-train) is stopped")
        self.assertFalse(select.select([resume.socket], [], [], 1)[0], "it waits on")
        self.assertEqual(self.host.vgpu("one")["demand"], "waiting for memory")
        (self.host.faults / "mover.restoring=pause").touch()
        two.signal(signal.SIGCONT)
        self.host.wait_paused("mover.restoring")  # the room is there, and it waits for nobody any more
        vgpu = self.host.vgpu("one")
        self.assertEqual((vgpu["state"], vgpu["demand"], vgpu["demand_reason"]), ("resuming", "coming in", ""))
        self.host.go_on("mover.restoring")
        resume.answer()
        one.step()
        self.finish(one, two)

    def test_a_resume_by_hand_waits_for_it_in_vain(self):
        one = self.guest(self.create("one"), "--on-demand", size=self.MOST)
        self.host.call("SuspendVgpu", name="one")
        two = self.guest(self.create("two"), size=self.MOST)
        two.signal(signal.SIGSTOP)
        refused = expect_error("NoRoom", self.host.call, "ResumeVgpu", name="one", timeout=2)
        self.assertRegex(refused.parameters["message"],
                         rf"waited [2-9]\.\d s in vain .* of device 0, where vGPU two is: vGPU two stays on the device: "
                         rf"process {two.pid} \(guest-train\) is stopped")
        two.signal(signal.SIGCONT)
        self.host.call("ResumeVgpu", name="one", timeout=60)
        one.step()
        self.finish(one, two)

    def test_while_its_gate_closes(self):
        self.check_open("gate-close")

    def test_while_it_exports(self):
        self.check_open("gate-export")

    def check_open(self, point):
        stopped, name, guests = self.stop_at(point)
        self.check_third(name, guests)
        self.assertEqual(self.host.vgpu(name)["state"], "running")
        self.wait_reason(name, f"process {stopped.pid} (guest-train) is stopped")
        self.go_on(stopped, guests)

    def test_while_it_lets_its_memory_go(self):
        """What it was asked cannot be undone without it: it has failed, until it runs again."""
        stopped, name, guests = self.stop_at("gate-release")
        self.check_third(name, guests)
        self.assertEqual(self.host.vgpu(name)["state"], "failed")
        self.wait_reason(name, f"process {stopped.pid} (guest-train) is stopped")
        self.go_on(stopped, guests)

    def test_nobody_is_refused_memory_for_its_sake(self):
        """It has failed, and has most of the device: who allocates waits until it runs again."""
        with unittest.mock.patch.dict(os.environ, OPENVGPU_FAULT_DIR=str(self.host.faults)):  # for its gate
            one = self.guest(self.create("one"), size=self.MOST)
        (self.host.faults / "gate-release=pause").touch()
        environment = dict(os.environ, **self.host.call("PrepareRun", name=self.create("two"))["environment"])
        two = Guest([os.environ["TEST_GUESTS"] + "/guest-train", *self.MOST], environment)
        self.host.guests.append(two)
        self.host.wait_paused("gate-release")
        one.signal(signal.SIGSTOP)
        self.host.go_on("gate-release")
        until(lambda: self.host.vgpu("one")["state"] == "failed", "it to fail")
        time.sleep(2)  # four times as long as it would be before a refusal
        self.assertTrue(two.is_alive(), two.context())
        one.signal(signal.SIGCONT)
        two.wait_ready()
        self.finish(one, two)

    def test_before_its_checkpoint(self):
        """The driver would wait for it, however long that is."""
        (self.host.faults / "suspend.released=pause").touch()
        guests = self.crowd()
        self.host.wait_paused("suspend.released")
        for guest in guests[:2]:
            guest.signal(signal.SIGSTOP)
        self.host.go_on("suspend.released")
        until(lambda: [i for i in (0, 1) if self.host.vgpu(("one", "two")[i])["state"] == "failed"], "it to fail",
              seconds=self.SOON)
        for guest in guests[:2]:
            guest.signal(signal.SIGCONT)
        guests[2].wait_ready()
        self.finish(*guests)


class Faults(Overcommitted):
    """Whoever dies, the memory of the others is right, and those that waited come in."""

    def crowd(self):
        """Three that have work when they are told to: at least one is away, or waits."""
        return [self.guest(self.create(f"v{i}"), "--on-demand") for i in range(3)]

    def away(self):
        """The number of one that is not on the device."""
        return int(until(lambda: [i for i in "012" if self.host.vgpu(f"v{i}")["state"] == "suspended"],
                         "one to be away")[0])

    def begin(self, name, *options):
        """A guest that is not ready yet."""
        environment = dict(os.environ, **self.host.call("PrepareRun", name=name)["environment"])
        guest = Guest([os.environ["TEST_GUESTS"] + "/guest-train", *SIZE, *options], environment)
        self.host.guests.append(guest)
        return guest

    @staticmethod
    def ask_all(guests):
        """All want a step. As they do not fit together, some have to leave and to come in for that."""
        wanted = [guest.steps() + 1 for guest in guests]
        for guest in guests:
            guest.write("")
        return lambda: all(guest.steps() >= n for guest, n in zip(guests, wanted))

    def test_the_manager_is_killed(self):
        """While one waits, while one leaves for it, while it comes in, and while an allocation waits."""
        guests = self.crowd()
        for fault in ("suspend.released=kill", "resume.restored=kill", "suspend.exported=kill", "resume.created=kill"):
            self.host.kill_manager()
            self.host.start(fault=fault)
            have_all = self.ask_all(guests)
            self.host.wait_killed()
            self.host.start()
            until(have_all, "a step of each")
        self.host.kill_manager()
        self.host.start()
        for guest in guests:
            guest.step()
        self.finish(*guests)

    def test_the_mover_is_killed(self):
        guests = self.crowd()
        for point in ("suspend.released", "resume.restored"):
            (self.host.faults / f"{point}=pause").touch()
            have_all = self.ask_all(guests)
            self.host.wait_paused(point)
            for pid in self.host.movers():
                os.kill(pid, signal.SIGKILL)
            self.host.go_on(point)
            until(have_all, "a step of each")
        self.finish(*guests)

    def test_a_guest_that_is_half_in_is_killed(self):
        guests = self.crowd()
        i = self.away()
        (self.host.faults / "resume.created=pause").touch()
        guests[i].write("")
        self.host.wait_paused("resume.created")
        guests[i].process.kill()
        self.host.go_on("resume.created")
        self.host.wait_state(f"v{i}", "idle")
        self.assertEqual(self.host.vgpu(f"v{i}")["demand_reason"], "", "nobody waits any more")
        self.host.call("RemoveVgpu", name=f"v{i}")
        others = [guest for guest in guests if guest is not guests[i]]
        for guest in others:
            guest.step()
        self.finish(*others)

    def test_one_that_waits_for_room_is_killed(self):
        """What was held for it is free again."""
        held = self.guest(self.create("held"), "--managed", size=("--size", "150M", "--piece", "15M"))
        waits = self.begin(self.create("waits"), "--on-demand")
        until(lambda: "managed memory" in self.host.vgpu("waits")["demand_reason"], "the reason")
        self.assertIn("managed memory", self.host.vgpu("held")["demand_reason"])
        held.wait_steps(2)
        waits.process.kill()
        self.host.wait_state("waits", "idle")
        self.assertEqual((self.host.vgpu("waits")["demand"], self.host.vgpu("waits")["demand_reason"]), ("", ""))
        self.finish(held)
        self.finish(self.guest("waits"))

    def test_remove_of_one_that_is_half_in(self):
        """It is refused, as its program runs, and the vGPU comes in."""
        guests = self.crowd()
        i = self.away()
        (self.host.faults / "resume.created=pause").touch()
        wanted = guests[i].steps() + 1
        guests[i].write("")
        self.host.wait_paused("resume.created")
        client = self.host.client()
        client.send("RemoveVgpu", name=f"v{i}")
        self.host.go_on("resume.created")
        expect_error("Busy", client.answer)
        until(lambda: guests[i].steps() >= wanted, "the step")
        self.finish(*guests)

    def test_the_pool_is_too_small(self):
        """A smaller one after a restart: nobody can leave, so one waits; all others go on, and then it does, too."""
        guests = self.crowd()
        i = self.away()
        others = [guest for guest in guests if guest is not guests[i]]
        for guest in others:  # so these two are on the device
            guest.step()
        self.host.kill_manager()
        self.host.start(options=("--pool-limit", "88M"))
        wanted = guests[i].steps() + 1
        guests[i].write("")
        until(lambda: any("pool" in vgpu["demand_reason"] for vgpu in self.host.call("ListVgpus")["vgpus"]), "the reason")
        for guest in others:
            guest.step()
        self.assertLess(guests[i].steps(), wanted)
        self.assertEqual(self.host.vgpu(f"v{i}")["demand"], "waiting for memory")
        self.host.kill_manager()
        self.host.start()
        until(lambda: guests[i].steps() >= wanted, "the step")
        self.finish(*guests)

    def test_the_device_falls_off_the_bus(self):
        """Who is away is whole and comes in on another device; who waits is told so, and vgpud goes on."""
        self.host.kill_manager()
        self.host.start(options=("--simulate", "2xH200:256M"))
        for i in range(3):
            self.create(f"v{i}", device="0")
        guests = [self.guest(f"v{i}", "--on-demand") for i in range(3)]
        away = self.away()
        (self.host.faults / "device.lost=fail").touch()
        wanted = guests[away].steps() + 1
        guests[away].write("")
        until(lambda: "fell off the bus" in self.host.vgpu(f"v{away}")["demand_reason"], "the reason")
        expect_error("NoRoom", self.create, "more", device="0")
        self.host.call("ResumeVgpu", name=f"v{away}", device="1")
        until(lambda: guests[away].steps() >= wanted, "the step")
        self.assertEqual(self.host.vgpu(f"v{away}")["device"], 1)
        self.finish(*guests)

    def test_programs_outside_of_all_vgpus(self):
        """Nothing makes them leave: who waits for their memory is told so, and comes in when they have ended."""
        guests = self.crowd()
        waits = guests[self.away()]
        name = f"v{guests.index(waits)}"
        self.finish(*(guest for guest in guests if guest is not waits))
        stranger = crowd_out(self.host, name, "40M")
        wanted = waits.steps() + 1
        waits.write("")
        until(lambda: "programs outside of all vGPUs have about" in self.host.vgpu(name)["demand_reason"], "the reason")
        self.assertEqual(self.host.vgpu(name)["demand"], "waiting for memory")
        stranger.end_input()
        until(lambda: waits.steps() >= wanted, "the step")
        self.assertEqual(self.host.vgpu(name)["demand_reason"], "")
        self.finish(waits)

    def test_one_that_is_never_idle(self):
        """Kernels of a second and a half, one after another: it leaves between two of them, and comes back."""
        busy = self.host.start_guest(self.create("busy"), "guest-busy", 1500000, "175M")
        waits = self.guest(self.create("waits"), size=("--size", "125M", "--piece", "12M"))
        waits.wait_steps(2)
        self.finish(waits)
        self.assertEqual(busy.end_input(), 0, busy.context())
        self.assertTrue(busy.lines[-1].endswith("ok"), busy.lines)

    def test_memory_of_others_keeps_it_there(self):
        """A pool that is imported is refused nobody: its vGPU stays, and says why, until it is given back."""
        held = self.host.start_guest(self.create("held"), "guest-hold", "150M").wait_ready()
        held.hold("device")
        held.hold("imported")
        waits = self.begin(self.create("waits"), "--on-demand")
        until(lambda: "without a gate" in self.host.vgpu("held")["demand_reason"], "the reason")
        until(lambda: "without a gate" in self.host.vgpu("waits")["demand_reason"],
              "the reason of the other one")
        self.assertEqual(self.host.vgpu("waits")["demand"], "waiting for memory")
        self.assertEqual(self.host.vgpu("held")["state"], "running")
        held.hold("nothing")
        waits.wait_ready()
        until(lambda: self.host.vgpu("waits")["demand_reason"] == "", "the reason to be gone")
        self.finish(waits)
        self.assertEqual(held.end_input(), 0, held.context())

    def take_the_way_back(self, *options):
        """
        Of vGPU one, whose suspend fails: what it gives up for a moment gets one of "busy", which allocates.

        Returns who is in "one", and those in "busy", of whom the first has the options.
        """
        self.host.kill_manager()
        self.host.start(options=("--simulate", "2xH200:256M"))
        self.create("one", device="0")
        self.create("busy", device="1")
        guest = self.guest("one", "--on-demand", size=("--size", "100M", "--piece", "100M"))
        self.host.call("MigrateVgpu", name="one", device="1")  # its memory has to be made anew from now on
        works = self.guest("busy", *options, size=("--size", "60M", "--piece", "10M"))
        (self.host.faults / "gate-asking=pause").touch()
        with unittest.mock.patch.dict(os.environ, OPENVGPU_FAULT_DIR=str(self.host.faults)):
            late = self.begin("busy", "--size", "50M", "--piece", "50M")
        self.host.wait_paused("gate-asking")  # let through, and about to ask the driver
        for fault in ("suspend.moved=fail", "suspend.parked=pause"):
            (self.host.faults / fault).touch()
        client = self.host.client()
        client.send("SuspendVgpu", name="one")
        self.host.wait_paused("suspend.parked")
        self.host.go_on("gate-asking")
        late.wait_ready()
        self.host.go_on("suspend.parked")
        expect_error("Failed", client.answer)
        return guest, works, late

    def test_others_leave_for_an_undo(self):
        guest, *others = self.take_the_way_back()
        self.host.wait_state("one", "running")
        guest.step()
        others[0].wait_steps(2)
        self.finish(guest, *others)

    def test_nobody_can_leave_for_an_undo(self):
        """It waits like one that is away, and says for whom."""
        guest, *others = self.take_the_way_back("--managed")
        until(lambda: "managed memory" in self.host.vgpu("one")["demand_reason"], "the reason")
        one = self.host.vgpu("one")
        self.assertEqual((one["state"], one["demand"]), ("failed", "waiting for memory"))
        others[0].wait_steps(2)
        self.finish(*others)
        self.host.wait_state("one", "running")
        self.assertEqual(self.host.vgpu("one")["demand_reason"], "")
        guest.step()
        self.finish(guest)

    def test_no_hashes(self):
        """What a swap cannot tell to be unchanged is copied, and the log says so."""
        guests = self.crowd()
        log = self.host.root / "log"
        for point in ("mover.hashing", "mover.hashed"):
            with self.subTest(point=point):
                before = log.read_text(errors="replace").count("cannot tell what has not changed")
                (self.host.faults / f"{point}=fail").touch()

                def said(before=before):
                    for guest in guests:
                        guest.step()
                    return log.read_text(errors="replace").count("cannot tell what has not changed") > before
                until(said, "a swap without hashes")
        for guest in guests:
            guest.step()
        self.finish(*guests)


if __name__ == "__main__":
    unittest.main()
