#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scale to zero and return by demand: a vGPU leaves by itself, and whoever wants it again brings it back."""
import contextlib
import os
import signal
import unittest

from guest import Guest
from harness import MIB, Host, expect_error
from wait import PATIENCE, GaveUp, until

ON_DEMAND = ("--on-demand", "--size", "8M", "--piece", "4M")
SOON = 0.2  # seconds without work
LATER = 3600


class Residency(unittest.TestCase):
    """One manager for all: its vGPUs go after each test. No stay is guaranteed: a busy machine swaps slowly."""

    @classmethod
    def setUpClass(cls):
        cls.host = cls.enterClassContext(Host(options=("--simulate", "1xH200:1G", "--swap-time", "100")))
        cls.host.start()

    def setUp(self):
        self.addCleanup(self.remove_all)

    def remove_all(self):
        for guest in self.host.guests:
            guest.kill()
        for vgpu in self.host.call("ListVgpus")["vgpus"]:
            self.host.wait_state(vgpu["name"], "idle")
            self.host.call("RemoveVgpu", name=vgpu["name"])

    def create(self, name, idle_after=SOON, size=256 * MIB, **parameters):
        self.host.call("CreateVgpu", name=name, frame_buffer=size, idle_after=idle_after,
                       **parameters)
        return name

    def guest(self, name, *options):
        return self.host.guest(name, *ON_DEMAND, *options)

    def wait_away(self, name, state="suspended"):
        until(lambda: (self.host.vgpu(name)["state"], self.host.vgpu(name)["demand"]) ==
              (state, "away"), f"{name} to be {state} by itself")

    def ask(self, guest):
        """It wants to do a step, and has not done it yet."""
        guest.process.stdin.write("\n")
        guest.process.stdin.flush()

    def finish(self, guest):
        self.assertEqual(guest.end_input(), 0, guest.context())
        self.assertTrue(guest.lines[-1].endswith("ok"), guest.lines)

    def test_it_leaves_and_comes_back(self):
        kept = self.create("kept", idle_keep_context=True)
        gone = self.create("gone")
        by_hand = self.create("by-hand", idle_after=LATER)
        guests = {name: self.guest(name) for name in (kept, gone, by_hand)}
        self.wait_away(gone)
        self.wait_away(kept, "evicted")
        for name in (gone, kept, gone):
            guests[name].step()
            self.assertIn(self.host.vgpu(name)["state"], ("running", "suspending", "suspended", "evicted"))
            self.wait_away(name, "evicted" if name == kept else "suspended")
        # A new process brings it in as well, though its own first call waits for that.
        other = self.guest(gone)
        self.wait_away(gone)
        # Who was suspended by hand stays so, whatever its programs want.
        self.host.call("SuspendVgpu", name=by_hand)
        steps = guests[by_hand].steps()
        self.ask(guests[by_hand])
        self.host.call("SetVgpuIdle", name=by_hand, idle_after=SOON)
        guests[gone].step()
        self.assertEqual(self.host.vgpu(by_hand)["state"], "suspended")
        self.assertEqual(self.host.vgpu(by_hand)["demand"], "")
        self.assertEqual(guests[by_hand].steps(), steps)
        self.host.call("ResumeVgpu", name=by_hand)
        until(lambda: guests[by_hand].steps() > steps, "the step after the resume")
        # One that is away stays so when its time is taken away.
        self.wait_away(gone)
        self.host.call("SetVgpuIdle", name=gone)
        self.assertEqual(self.host.vgpu(gone)["demand"], "")
        steps = guests[gone].steps()
        self.ask(guests[gone])
        guests[kept].step()
        self.assertEqual(self.host.vgpu(gone)["state"], "suspended")
        self.host.call("ResumeVgpu", name=gone)
        until(lambda: guests[gone].steps() > steps, "the step after the resume")
        for guest in (*guests.values(), other):
            self.finish(guest)

    def test_the_manager_is_killed(self):
        """Restarts while it is away, while it leaves and while it comes in."""
        name = self.create("nb")
        guest = self.guest(name)
        self.wait_away(name)
        self.host.kill_manager()
        self.ask(guest)  # while nobody is there to hear it
        self.host.start(fault="resume.restored=kill")
        self.host.wait_killed()
        self.host.start(fault="suspend.released=kill")
        until(lambda: guest.steps() == 2, "the step that was asked for")
        self.host.wait_killed()
        self.host.start()
        self.wait_away(name)
        self.assertEqual(self.host.vgpu(name)["idle_after"], SOON)
        guest.step()
        self.finish(guest)

    def crowd(self, left):
        """A stranger, outside of all vGPUs, who takes all but @left of the device."""
        environment = dict(os.environ, **self.host.call("PrepareRun", name="nb")["environment"])
        for name in ("LD_PRELOAD", "OPENVGPU_VGPU"):
            del environment[name]
        guest = Guest([os.environ["TEST_GUESTS"] + "/guest-leave", left], environment)
        self.host.guests.append(guest)
        return guest.wait_ready()

    def send(self, method, **parameters):
        """A call whose answer is asked for later."""
        client = self.host.client()
        client.send(method, **parameters)
        return client

    def test_who_is_away_is_suspended_by_hand(self):
        """It stays away, whatever its programs want, until it is resumed; also after a restart."""
        for name, keeps_context in (("gone", False), ("kept", True)):
            guest = self.guest(self.create(name, idle_keep_context=keeps_context))
            state = "evicted" if keeps_context else "suspended"
            self.wait_away(name, state)
            report = self.host.call("SuspendVgpu", name=name)
            self.assertEqual((report["had_left"], report["bytes"], report["processes"]), (True, 0, 1))
            self.assertEqual((report["vgpu"]["state"], report["vgpu"]["demand"]), (state, ""))
            expect_error("WrongState", self.host.call, "SuspendVgpu", name=name)
            self.ask(guest)
            other = self.guest(self.create("other"))
            other.step()  # so vgpud has looked at all
            self.assertEqual(self.host.vgpu(name)["state"], state)
            self.host.kill_manager()
            self.host.start()
            self.assertEqual((self.host.vgpu(name)["state"], self.host.vgpu(name)["demand"]), (state, ""))
            self.assertFalse(self.host.call("ResumeVgpu", name=name)["had_left"])
            until(lambda guest=guest: guest.steps() == 2, "the step that was asked for")
            for one in (other, guest):
                self.finish(one)
            self.host.wait_state("other", "idle")
            self.host.call("RemoveVgpu", name="other")

    def stop_movers(self):
        """What is begun now does not end."""
        movers = until(self.host.movers, "a mover")
        for pid in movers:
            os.kill(pid, signal.SIGSTOP)
            self.addCleanup(self.go_on, pid)  # before all else is tidied up
        return movers

    @staticmethod
    def go_on(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    def answer_after(self, movers, client):
        """Of a call that waits for what the movers have not done yet."""
        client.socket.settimeout(0.05)
        with self.assertRaises(TimeoutError):
            client.receive()
        client.socket.settimeout(PATIENCE)
        for pid in movers:
            self.go_on(pid)
        return client.answer()

    def leave_in_part(self):
        """
        It begins to leave and does not end: the movers, which are returned, are stopped before its time is short.
        What came before may not be tidied up yet, and that needs the movers too.
        """
        for _ in range(10):
            movers = self.stop_movers()
            self.host.call("SetVgpuIdle", name="nb", idle_after=SOON)
            with contextlib.suppress(GaveUp):
                until(lambda: self.host.vgpu("nb")["demand"] == "leaving", "it to leave", 2)
                return movers
            self.host.call("SetVgpuIdle", name="nb", idle_after=LATER)
            for pid in movers:
                self.go_on(pid)
            until(lambda: self.host.vgpu("nb")["state"] == "running", "it to be where it was")
        return self.fail("it does not leave")

    def test_a_command_waits_for_what_the_vgpu_does_by_itself(self):
        guest = self.guest(self.create("nb", idle_after=LATER))
        # It is leaving, and shall come back.
        movers = self.leave_in_part()
        client = self.send("ResumeVgpu", name="nb")
        self.assertEqual(self.answer_after(movers, client)["vgpu"]["state"], "running")
        # It is leaving, and shall stay away.
        movers = self.leave_in_part()
        self.assertTrue(self.answer_after(movers, self.send("SuspendVgpu", name="nb"))["had_left"])
        self.host.call("ResumeVgpu", name="nb")
        self.host.call("SetVgpuIdle", name="nb", idle_after=SOON)
        self.wait_away("nb")
        self.host.call("SetVgpuIdle", name="nb", idle_after=LATER)
        # It comes back, and shall leave again.
        movers = self.stop_movers()
        self.ask(guest)
        until(lambda: self.host.vgpu("nb")["demand"] == "coming in", "it to come back")
        self.assertFalse(self.answer_after(movers, self.send("SuspendVgpu", name="nb"))["had_left"])
        self.assertEqual((self.host.vgpu("nb")["state"], self.host.vgpu("nb")["demand"]), ("suspended", ""))
        self.host.call("ResumeVgpu", name="nb")
        until(lambda: guest.steps() == 2, "the step")
        # Its program ends while it leaves: it can be removed.
        movers = self.leave_in_part()
        guest.kill()
        self.assertEqual(self.answer_after(movers, self.send("RemoveVgpu", name="nb"))["vgpu"]["name"], "nb")

    def test_who_waits_for_room_makes_way_for_a_command(self):
        """It comes back by itself and the device is full, while another operation may make room there."""
        guest = self.guest(self.create("nb"))
        self.wait_away("nb")
        other = self.guest(self.create("other", idle_after=LATER))
        crowd = self.crowd("16M")
        other.signal(signal.SIGSTOP)
        client = self.send("SuspendVgpu", name="other", timeout=PATIENCE)
        self.host.wait_state("other", "suspending")
        self.ask(guest)
        until(lambda: "waiting for room vgpu=nb" in (self.host.root / "log").read_text(), "it to wait for room")
        self.assertTrue(self.host.call("SuspendVgpu", name="nb")["had_left"])
        self.assertEqual(self.host.vgpu("other")["state"], "suspending")
        other.signal(signal.SIGCONT)
        self.assertEqual(client.answer()["vgpu"]["state"], "suspended")
        crowd.end_input()
        for name in ("nb", "other"):
            self.host.call("ResumeVgpu", name=name)
        until(lambda: guest.steps() == 2, "the step")
        for one in (guest, other):
            self.finish(one)

    def test_work_in_the_middle(self):
        """A program that has work again while its vGPU leaves has to wait, and loses nothing."""
        name = self.create("nb")
        guest = self.guest(name)
        (self.host.faults / "suspend.closed=pause").touch()
        self.host.wait_paused("suspend.closed")
        self.ask(guest)
        self.host.go_on("suspend.closed")
        until(lambda: guest.steps() == 2, "the step")
        self.finish(guest)

    def test_who_waits_is_killed(self):
        name = self.create("nb", size=512 * MIB)
        guest = self.guest(name)
        self.wait_away(name)
        self.host.call("CreateVgpu", name="other", frame_buffer=768 * MIB)
        self.ask(guest)
        until(lambda: self.host.vgpu(name)["demand"] == "waiting for memory", "it to wait")
        until(lambda: "promised" in self.host.vgpu(name)["demand_reason"], "the reason")
        expect_error("Busy", self.host.call, "RemoveVgpu", name=name)
        guest.process.kill()
        self.host.wait_state(name, "idle")
        self.assertEqual(self.host.vgpu(name)["demand_reason"], "")  # nobody waits any more
        self.host.call("RemoveVgpu", name=name)

    def test_idle_ones_leave_for_who_has_work(self):
        """One comes back although its device is full: who is idle leaves for it, long before its time."""
        first = self.create("first", size=768 * MIB)
        guest = self.guest(first)
        self.wait_away(first)
        second = self.create("second", idle_after=60, size=768 * MIB)
        other = self.guest(second)
        self.ask(guest)
        until(lambda: self.host.vgpu(first)["demand"] == "waiting for memory", "it to wait")
        self.host.call("SetVgpuIdle", name=second, idle_after=2)  # a tenth of it is short
        until(lambda: guest.steps() == 2, "the step")
        self.wait_away(second)
        self.finish(guest)
        self.host.wait_state(first, "idle")
        self.ask(other)  # and the other one when the first is gone, not before
        until(lambda: self.host.vgpu(second)["demand"] == "waiting for memory", "it to wait")
        self.host.call("RemoveVgpu", name=first)
        until(lambda: other.steps() == 2, "the step")
        self.finish(other)

    def test_what_cannot_leave(self):
        managed = self.create("managed")
        guest = self.guest(managed, "--managed")
        until(lambda: "managed memory" in self.host.vgpu(managed)["demand_reason"], "the reason")
        self.assertEqual(self.host.vgpu(managed)["state"], "running")
        self.host.call("SetVgpuIdle", name=managed, idle_after=SOON, idle_keep_context=True)
        self.wait_away(managed, "evicted")
        self.finish(guest)
        stopped = self.create("stopped", idle_after=1)
        guest = self.guest(stopped)
        until(lambda: "idle" in self.host.vgpu(stopped), "its gate to say that it is idle")
        os.kill(guest.pid, signal.SIGSTOP)
        until(lambda: "is stopped" in self.host.vgpu(stopped)["demand_reason"], "the reason")
        self.assertEqual(self.host.vgpu(stopped)["state"], "running")
        os.kill(guest.pid, signal.SIGCONT)
        self.wait_away(stopped)
        self.finish(guest)
        for after in (0.0001, 0.01, 1e9):  # the first is none in whole ms
            expect_error("InvalidParameter", self.host.call, "SetVgpuIdle", name=stopped,
                         idle_after=after)

    def test_work_keeps_it_there(self):
        """A kernel that takes longer than the time is work, and so is what is over before the next look."""
        busy = self.create("busy")
        self.host.start_guest(busy, "guest-busy", 120 * 1000000, "64K")
        short = self.create("short", idle_after=3)
        guest = self.guest(short)

        def idle():
            return self.host.vgpu(short).get("idle", 0)
        before = until(idle, "it to be idle")
        guest.step()
        until(lambda: idle() < before, "the step to count")
        quiet = self.create("quiet")  # its time is that of the busy one
        other = self.guest(quiet)
        for _ in range(2):
            self.wait_away(quiet)
            other.step()
        self.assertEqual(self.host.vgpu(busy)["state"], "running")
        log = (self.host.root / "log").read_text(errors="replace")
        self.assertNotIn("vgpu=busy idle=", log)
        self.assertIn("vgpu=quiet idle=", log)
        self.finish(guest)
        self.finish(other)


if __name__ == "__main__":
    unittest.main()
