#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An overcommitted device: vGPUs that do not fit on it together come in by demand, and lose nothing."""
import signal
import unittest

from harness import MIB, Host, expect_error

# Two of these fit on a device of 1 GiB beside their contexts, three do not.
SIZE = ("--size", "320M", "--piece", "40M")
OPTIONS = ("--simulate", "1xH200:1G", "--overcommit", "all", "--pool-limit", "4G")


class Overcommit(unittest.TestCase):
    """A stay lasts as long as a swap took, at least: a busy machine swaps slowly."""

    def setUp(self):
        self.host = self.enterContext(Host(options=(*OPTIONS, "--swap-time", "50")))
        self.host.start()

    def create(self, name, size=800 * MIB, **parameters):
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

    def test_those_that_do_not_fit_take_turns(self):
        """All four have work all the time; the third one finds the device full while it allocates."""
        guests = [self.guest(self.create(f"v{i}")) for i in range(4)]
        for _ in range(2):
            for guest in guests:
                guest.wait_steps(2)
        device = self.host.call("ListDevices")["devices"][0]
        self.assertEqual(device["memory_promised"], 4 * 800 * MIB)
        self.finish(*guests)

    def test_two_of_which_each_needs_most_of_it(self):
        """The second one's allocations wait until the first one has left; nobody is refused."""
        size = ("--size", "600M", "--piece", "60M")
        guests = [self.guest(self.create(name, size=1000 * MIB), size=size) for name in ("one", "two")]
        for guest in (*guests, *guests):
            guest.wait_steps(2)
        self.finish(*guests)

    def test_what_may_be_promised(self):
        """As much as the pool has room for all of them at once, and the pool holds it for them."""
        for i in range(5):
            self.create(f"v{i}", size=800 * MIB)
        refused = expect_error("NoRoom", self.create, "v5", size=800 * MIB)
        self.assertIn("96 MiB left to promise", refused.parameters["message"])
        self.create("v5", size=96 * MIB)
        expect_error("NoRoom", self.create, "v6", size=4 * MIB)
        self.host.call("RemoveVgpu", name="v0")
        self.create("v6", size=800 * MIB)

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
        self.create("large", size=1024 * MIB)
        with self.assertRaises(AssertionError):
            self.guest("large", size=("--size", "1000M", "--piece", "500M"))
        for guest in (second, third, first):
            guest.step()
        self.finish(first, second, third)


if __name__ == "__main__":
    unittest.main()
