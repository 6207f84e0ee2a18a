#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that join their vGPU while it leaves or comes back by itself, and call the driver late: none waits for ever."""
import contextlib
import os
import unittest

from guest import Guest
from harness import MIB, Host
from scene import STEPS
from wait import until

ON_DEMAND = ("--on-demand", "--size", "8M", "--piece", "4M")
SOON = 0.1  # seconds without work

# Seconds from joining to the first call.
DELAYS = [i / 40 for i in range(16)]


class Joining(unittest.TestCase):
    def start(self, *options):
        self.host = self.enterContext(Host(options=options))
        self.host.start()

    def create(self, name, **parameters):
        self.host.call("CreateVgpu", name=name, **parameters)
        return name

    def environment(self, name):
        return dict(os.environ, **self.host.call("PrepareRun", name=name)["environment"])

    def late(self, environment, delay):
        """Started, and not waited for: it may have to wait itself."""
        guest = Guest([os.environ["TEST_GUESTS"] + "/guest-late", delay], environment)
        self.host.guests.append(guest)
        return guest

    def end(self, *guests):
        for guest in guests:
            guest.wait_line("worked")
        for guest in guests:
            self.assertEqual(guest.end_input(), 0, guest.context())

    def wait_away(self, name):
        until(lambda: self.host.vgpu(name)["demand"] == "away", f"{name} to be away")


class Moments(Joining):
    """One joins at a certain moment of what its vGPU does by itself, and works there."""

    def setUp(self):
        self.start("--simulate", "1xH200:1G", "--swap-time", "100")
        self.create("nb", frame_buffer=256 * MIB, idle_after=SOON)
        self.inside = self.environment("nb")
        self.first = self.host.guest("nb", *ON_DEMAND)
        self.wait_away("nb")

    def ask(self):
        """The other process wants to make a step, and has not made it yet."""
        self.first.write("")

    @staticmethod
    def has_connected(guest):
        with contextlib.suppress(OSError):
            folder = f"/proc/{guest.pid}/fd"
            return any(os.readlink(f"{folder}/{fd}").startswith("socket:") for fd in os.listdir(folder))
        return False

    def steps_of(self, kind):
        """Those that each operation comes by."""
        return [step for step in STEPS[kind] if step not in ("let-go", "fetched")]

    def check(self, point, delay):
        steps = self.first.steps()
        (self.host.faults / f"{point}=pause").touch()
        self.ask()
        self.host.wait_paused(point)
        late = self.late(self.inside, delay)
        until(lambda: self.has_connected(late), "the new process to join")  # vgpud is paused
        self.host.go_on(point)
        self.end(late)
        until(lambda: self.first.steps() > steps, "the step that was asked for")
        self.wait_away("nb")

    def test_while_it_leaves(self):
        for step in self.steps_of("suspend"):
            for delay in (0, 0.3):
                with self.subTest(step, delay=delay):
                    self.check(f"suspend.{step}", delay)
        self.first.finish()

    def test_while_it_comes_back(self):
        for step in self.steps_of("resume"):
            for delay in (0, 0.3):
                with self.subTest(step, delay=delay):
                    self.check(f"resume.{step}", delay)
        self.first.finish()

    def test_while_it_stays_after_all(self):
        for step in ("closed", "released", "moved"):
            with self.subTest(step):
                (self.host.faults / f"suspend.{step}=fail").touch()
                self.check(f"suspend.undo-{step}", 0)
        self.first.finish()

    def test_it_is_in_its_initialisation(self):
        """Where it may be for a second: so long its gate cannot be closed."""
        (self.host.faults / "gate-joined=pause").touch()
        late = self.late(self.inside | {"OPENVGPU_FAULT_DIR": str(self.host.faults)}, 0.3)
        self.host.wait_paused("gate-joined")
        until(lambda: "did not come to rest" in self.host.vgpu("nb")["demand_reason"], "it to try to leave")
        self.host.go_on("gate-joined")
        self.end(late)
        self.first.finish()


class Crowds(Joining):
    """Many join, whatever their vGPUs do just then."""

    def test_idle_for_its_time(self):
        self.start("--simulate", "1xH200:1G", "--swap-time", "100")
        self.create("nb", frame_buffer=256 * MIB, idle_after=SOON)
        inside = self.environment("nb")
        first = self.host.guest("nb", *ON_DEMAND)
        for delay in DELAYS:
            self.wait_away("nb")
            first.write("")
            self.end(self.late(inside, delay))
        first.finish()

    def test_others_want_their_room(self):
        """Some of them have the memory of others within milliseconds."""
        self.start("--simulate", "1xH200:256M", "--overcommit", "all", "--pool-limit", "4G", "--swap-time", "50")
        busy = [self.host.guest(self.create(f"busy{i}", frame_buffer=200 * MIB), "--size", "80M", "--piece", "10M",
                                "--seed", 1000 * i) for i in range(3)]
        inside = [self.environment(self.create(f"late{i}", frame_buffer=40 * MIB)) for i in range(len(DELAYS))]
        late = [self.late(environment, delay) for environment, delay in zip(inside, DELAYS)]
        late += [self.late(environment, 0.5 - delay) for environment, delay in zip(inside, DELAYS)]
        self.end(*late)
        for guest in busy:
            guest.finish()


if __name__ == "__main__":
    unittest.main()
