#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory that one vGPU leaves is given as it is to the one that comes: what is right of it, and who gets none."""
import os
import re
import signal
import unittest

from guest import Guest
from harness import MIB
from test_handover import Handover, QUOTA, SIZE
from wait import until


class Gifts(Handover):
    def gifts(self):
        """Bytes of each, since one began to come."""
        return [int(n) for n in re.findall(r"memory is given .* bytes=(\d+)", self.since_coming())]

    def swap(self):
        """The one that is away comes in place of the other one."""
        coming, leaving = self.away()
        has_come = self.ask(coming)
        until(has_come, "the step", context=self.log)
        return coming, leaving

    @staticmethod
    def count_descriptors(guest):
        return len(os.listdir(f"/proc/{guest.pid}/fd"))


class Swaps(Gifts):
    def test_memory_is_given(self):
        """Most of it: the rest was free, or is that of small allocations."""
        for _ in range(4):
            self.swap()
            self.assertGreater(sum(self.gifts()), 80 * MIB)
        self.check_end()

    def test_descriptors_are_closed_when_it_leaves(self):
        coming, _ = self.swap()
        first = self.count_descriptors(coming)
        for _ in range(4):
            self.swap()
        self.assertEqual(self.away()[0], self.guests[self.guests.index(coming) - 1])
        self.assertLessEqual(abs(self.count_descriptors(coming) - first), 8)
        self.swap()
        self.assertLess(self.count_descriptors(coming), first - 8)
        self.check_end()

    def test_its_context_leaves_later(self):
        """The driver loses who has memory of others while it checkpoints him: our gate lets go of it before."""
        coming, leaving = self.swap()
        self.assertGreater(sum(self.gifts()), 80 * MIB)
        name = self.name(coming)
        self.host.call("SuspendVgpu", name=name)
        self.host.wait_state(name, "suspended")
        leaving.step()
        self.host.call("ResumeVgpu", name=name)
        self.check_end()

    def test_it_leaves_again_unchanged(self):
        """Its second suspend compares what was given with what the pool has kept of it."""
        coming, _ = self.swap()
        name = self.name(coming)
        for _ in range(2):
            self.host.call("SuspendVgpu", name=name, keep_context=True)
            self.host.wait_state(name, "evicted")
            self.host.call("ResumeVgpu", name=name)
            self.host.wait_state(name, "running")
        self.check_end()

    def test_who_allocates_and_frees_meanwhile(self):
        """An allocation of its own is freed as any other: its memory is the device's again."""
        for _ in range(2):
            self.swap()
        for guest in self.guests:
            guest.signal(signal.SIGTERM)
            guest.process.stdin.close()
        for guest in self.guests:
            self.assertEqual(guest.join(), 0, guest.context())
        until(lambda: self.host.call("ListDevices")["devices"][0]["memory_used"] == 0, "the device to be free",
              context=lambda: str(self.host.call("ListDevices")))


class Alike(Gifts):
    """Of the first pieces of each all blocks are the same."""

    def contents(self):
        return (*super().contents(), f"--alike={self.n_alike}")

    def look_at_swaps(self):
        """Bytes given at each after the first two, and what the pool saves."""
        given = []
        for n in range(5):
            self.swap()
            given += [sum(self.gifts())] if n >= 2 else []
        self.away()
        saved = self.host.call("GetInfo")["pool"]["saved"]
        self.check_end()
        return given, saved


class LittleAlike(Alike):
    n_alike = 1

    def test_a_few_equal_blocks_are_kept_twice(self):
        given, saved = self.look_at_swaps()
        self.assertEqual(saved, 0)
        self.assertGreater(min(given), 0, given)


class MuchAlike(Alike):
    n_alike = 5

    def test_many_equal_blocks_are_kept_once(self):
        given, saved = self.look_at_swaps()
        self.assertGreaterEqual(saved, self.n_alike * 6 * MIB)
        self.assertEqual(max(given), 0, given)


class ContextsIncluded(Gifts):
    keeps_context = False

    def test_memory_is_given(self):
        given = 0
        for n in range(20):  # as much as passes after the context is back
            self.swap()
            given += sum(self.gifts())
            if given and n >= 3:
                break
        self.check_end()
        self.assertGreater(given, 0)


class Refused(Gifts):
    def test_its_gate_cannot_map_it(self):
        """It stays away, and comes with memory of its own."""
        coming, _ = self.away()
        (self.host.faults / self.name(coming) / "gate-map=fail").touch()
        until(self.ask(coming), "the step", context=self.log)
        self.assertFalse((self.host.faults / self.name(coming) / "gate-map=fail").exists())
        self.swap()
        self.swap()
        self.assertNotIn(f"to={self.name(coming)} ", self.since_coming())
        self.check_end()

    def test_it_cannot_be_filled(self):
        """Whoever gave it may have said what is not true: that too happens once."""
        coming, _, has_come = self.begin()
        until(lambda: self.parts(coming, "filled"), "what was free to arrive", context=self.log)
        (self.host.faults / "mover.job-imported=fail").touch()
        self.host.go_on("mover.passed")
        until(has_come, "the step", context=self.log)
        self.assertFalse((self.host.faults / "mover.job-imported=fail").exists())
        self.swap()
        self.swap()
        self.assertNotIn(f"to={self.name(coming)} ", self.since_coming())
        self.check_end()

    def test_who_comes_is_killed_while_its_gate_maps(self):
        coming, leaving = self.away()
        (self.host.faults / self.name(coming) / "gate-map=pause").touch()
        self.ask(coming)
        self.host.wait_paused(f"{self.name(coming)}/gate-map")
        coming.process.kill()
        self.host.wait_state(self.name(coming), "idle")
        self.guests.remove(coming)
        leaving.step()
        self.finish()

    def test_the_manager_is_killed_while_its_gate_maps(self):
        coming, _ = self.away()
        (self.host.faults / self.name(coming) / "gate-map=pause").touch()
        has_come = self.ask(coming)
        self.host.wait_paused(f"{self.name(coming)}/gate-map")
        self.host.kill_manager()
        self.host.start()
        self.host.go_on(f"{self.name(coming)}/gate-map")
        self.check_end(has_come)

    def test_who_leaves_stays_after_all(self):
        """What was given comes back to it."""
        coming, _ = self.away()
        (self.host.faults / self.name(coming) / "gate-map=pause").touch()
        has_come = self.ask(coming)
        self.host.wait_paused(f"{self.name(coming)}/gate-map")
        (self.host.faults / "suspend.moved=fail").touch()
        self.host.go_on(f"{self.name(coming)}/gate-map")
        self.check_end(has_come)


@unittest.skipIf(os.geteuid() != 0, "needs root to be somebody else")
class Strangers(Gifts):
    def guest(self, name):
        """Each of another user."""
        user = 1000 + len(self.host.guests)
        return self.guest_of(name, user, user)

    def guest_of(self, name, user, owner):
        self.host.root.chmod(0o755)
        self.host.call("CreateVgpu", name=name, frame_buffer=QUOTA, owner=owner)
        self.host.call("SetVgpuIdle", name=name, idle_after=3600, idle_keep_context=True)
        log = self.host.root / f"train-{user}"
        log.touch()
        os.chown(log, user, user)
        environment = dict(os.environ, **self.host.call("PrepareRun", name=name)["environment"])
        arguments = [os.environ["TEST_GUESTS"] + "/guest-train", "--log", log, "--pause", "10", *SIZE, "--on-demand",
                     *(str(word) for word in self.contents())]
        self.host.guests.append(Guest(arguments, environment, log, user=user))
        return self.host.guests[-1].wait_ready()

    def test_another_user_gets_none(self):
        """What they had could be read, and written to, by whoever has kept a hold on it."""
        for _ in range(2):
            self.swap()
            self.assertEqual(self.gifts(), [])
        self.check_end()


class RootInTheVgpuOfAnother(Strangers):
    def guest(self, name):
        """root's, and one of the user who has both vGPUs."""
        return self.guest_of(name, 1000 if self.host.guests else 0, 1000)

    def test_another_user_gets_none_after_a_restart_either(self):
        self.swap()
        self.away()
        self.host.kill_manager()
        self.host.start()
        for _ in range(3):
            self.swap()
            self.assertEqual(self.gifts(), [])
        self.check_end()


@unittest.skipIf(os.geteuid() != 0, "only root makes vGPUs for others")
class OtherOwners(Gifts):
    def guest(self, name):
        """root's, in the vGPU of another user each."""
        self.host.call("CreateVgpu", name=name, frame_buffer=QUOTA, owner=1000 + len(self.host.guests))
        self.host.call("SetVgpuIdle", name=name, idle_after=3600, idle_keep_context=True)
        return self.host.guest(name, *SIZE, "--on-demand")

    def test_another_owner_gets_none(self):
        for _ in range(2):
            self.swap()
            self.assertEqual(self.gifts(), [])
        self.check_end()


if __name__ == "__main__":
    unittest.main()
