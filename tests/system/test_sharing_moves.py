#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that share device memory move together in a vGPU of several devices."""
import contextlib
import unittest

import case
import stage
from host import Host
from scene import UNDOABLE
from several import Case
from test_sharing import WAYS, Pairs
from wire import Refused

PLACES = ("2,3", "3,2", "1,2", "0,1")


class Moves(Pairs, Case):
    HOST = {"devices": "4xH200:4G", "pool": "256M", "slab": "4M"}

    def pairs_of(self, name):
        """Makers on each of the two devices of the vGPU, users on the other one."""
        return [self.pair(way, name, name, arguments=("4M", 3, str(device)), user_arguments=("4M", 3, str(by)))
                for way in WAYS for device, by in ((0, 1), (1, 0))]

    def run_with(self, visible, *command):
        """As a launcher does that gives each of its processes a device."""
        program, *arguments = command
        return self.host.run("job", "/usr/bin/env", f"CUDA_VISIBLE_DEVICES={visible}", stage.GUESTS / program,
                             *arguments).wait_ready()

    def check_all(self, pairs, value):
        for maker, user in pairs:
            user.hold(f"check={value - 1 + 1000}")
            self.check_both_ways(maker, user, value)

    def test_memory_that_is_shared_moves_and_comes_back(self):
        self.make("job", "0,1", 256)
        pairs = self.pairs_of("job")
        for maker, user in pairs:
            self.check_both_ways(maker, user, 1)
        for value, place in enumerate(PLACES, 2):
            self.assertIn(f"GPUs {place}", self.host.vgpu("migrate", "job", "--device", place).output)
            self.check_all(pairs, value)
        for maker, user in pairs:
            self.end(user, maker)

    def test_a_suspended_one_is_resumed_elsewhere(self):
        self.make("job", "0,1", 256)
        pairs = self.pairs_of("job")
        for maker, user in pairs:
            self.check_both_ways(maker, user, 1)
        for value, place in enumerate(PLACES, 2):
            self.host.vgpu("suspend", "job")
            self.host.vgpu("resume", "job", "--device", place)
            self.check_all(pairs, value)
        for maker, user in pairs:
            self.end(user, maker)

    def test_more_is_shared_after_a_move(self):
        self.make("job", "0,1", 256)
        pairs = self.pairs_of("job")
        self.host.vgpu("migrate", "job", "--device", "2,3")
        for maker, user in pairs:
            maker.hold("more")
            user.hold("more")
            self.check_both_ways(maker, user, 5)
        more = self.pair(arguments=("4M", 1, "0"))
        self.check_both_ways(*more, 6)
        self.host.vgpu("migrate", "job", "--device", "1,0")
        for maker, user in pairs:
            self.check_both_ways(maker, user, 7)
        for maker, user in [*pairs, more]:
            self.end(user, maker)

    def test_the_program_sees_the_devices_of_its_vgpu_alone(self):
        self.make("job", "2,0", 64)
        guest = self.guest("job")
        self.assertEqual(self.seen(guest)[0], self.uuids(2, 0))
        self.end(guest)
        one = self.run_with("1", "guest-devices")
        self.assertEqual(self.seen(one)[0], self.uuids(0))
        self.end(one)

    def test_ranks_that_see_a_device_each_move_together(self):
        self.make("job", "0,1", 256)
        pairs = []
        for way in WAYS:
            path = self.new_path()
            pairs.append(tuple(self.run_with(which, "guest-share", role, way, path)
                               for role, which in (("make", "0"), ("use", "1"))))
        for maker, user in pairs:
            self.check_both_ways(maker, user, 1)
        for value, place in enumerate(PLACES, 2):
            self.host.vgpu("migrate", "job", "--device", place)
            self.check_all(pairs, value)
        for maker, user in pairs:
            self.end(user, maker)

    def test_a_restarted_manager_knows_that_they_can_move(self):
        self.make("job", "0,1", 256)
        maker, user = self.pair(arguments=("4M", 1, "1"))
        self.check_both_ways(maker, user, 1)
        self.host.restart()
        self.host.vgpu("migrate", "job", "--device", "2,3")
        user.hold("check=1001")
        self.check_both_ways(maker, user, 2)
        self.end(user, maker)


class Faults(Pairs, unittest.TestCase):
    """Death and failure at each step of a move of those who share."""

    @contextlib.contextmanager
    def pairs(self, faults, **names):
        with self.subTest(**names):
            self.host = Host(devices="4xH200:2G", pool="128M", slab="4M").start(faults)
            try:
                self.host.call("CreateVgpu", name="job", frame_buffer=256 << 20, device="0,1")
                pairs = [self.pair(way, arguments=("4M", 1, "0"), user_arguments=("4M", 1, "1")) for way in WAYS]
                for maker, user in pairs:
                    self.check_both_ways(maker, user, 3)
                yield pairs
            except BaseException:
                self.host.close(expect_clean=False)
                raise
            self.host.close()

    def move(self):
        with contextlib.suppress(ConnectionError, OSError, Refused):
            self.host.call("MigrateVgpu", name="job", device="2,3")

    def restart(self):
        self.host.wait_manager()
        self.host.start()
        self.host.wait_for("job", lambda vgpu: vgpu["state"] in ("running", "suspended"),
                           "the operation to be undone or ended")

    def check_usable(self, pairs):
        if self.host.get("job")["state"] != "running":
            self.host.vgpu("resume", "job")
        for maker, user in pairs:
            user.hold("check=1003")
            self.check_both_ways(maker, user, 3)
        self.host.vgpu("migrate", "job", "--device", "1,2")
        for maker, user in pairs:
            user.hold("check=1003")
            self.end(user, maker)

    def test_the_manager_dies_at_each_step(self):
        for step in UNDOABLE["migrate"] + ["recorded", "dropped"]:
            with self.pairs(f"migrate.{step}=kill", step=step) as pairs:
                self.move()
                self.restart()
                self.check_usable(pairs)

    def test_each_step_fails(self):
        for step in UNDOABLE["migrate"]:
            with self.pairs(f"migrate.{step}=fail", step=step) as pairs:
                self.move()
                self.check_usable(pairs)

    def test_the_manager_dies_while_it_undoes(self):
        for step in UNDOABLE["migrate"]:
            with self.pairs(f"migrate.{UNDOABLE['migrate'][-1]}=fail,migrate.undo-{step}=kill", step=step) as pairs:
                self.move()
                self.restart()
                self.check_usable(pairs)

    def test_a_rank_dies_at_each_step(self):
        for step in UNDOABLE["migrate"]:
            for who in range(2):
                with self.pairs(f"migrate.{step}=pause", step=step, who=who) as pairs:
                    client = self.host.connect()
                    client.send("MigrateVgpu", name="job", device="2,3")
                    self.host.wait_paused(f"migrate.{step}")
                    pairs[0][who].kill()
                    self.host.remove_pause(f"migrate.{step}")
                    with contextlib.suppress(Refused):
                        client.answer()
                    pairs[0][1 - who].kill()
                    self.check_usable(pairs[1:])


if __name__ == "__main__":
    case.main()
