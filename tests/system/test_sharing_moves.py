#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that share device memory move together in a vGPU of several devices."""
import contextlib
import signal
import sys
import unittest

import case
import stage
from host import Host
from scene import UNDOABLE
from several import MIB, Case
from test_sharing import WAYS, Pairs
from wait import until
from wire import Refused

# cuInit() where the variable is read, and in a child what it is by then.
PARENT = """
import ctypes, os, subprocess, sys
assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
subprocess.run([sys.executable, "-c", "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])"], env=None)
"""
PLACES = ("2,3", "3,2", "1,2", "0,1")


ALL = {"OPENVGPU_ALL_DEVICES": "1"}


class Moves(Pairs, Case):
    HOST = {"devices": "4xH200:16G", "pool": "256M", "slab": "4M"}
    ENVIRONMENT = ALL

    def pairs_of(self, name):
        """Makers on each of the two devices of the vGPU, users on the other one."""
        return [self.pair(way, name, name, arguments=("4M", 3, str(device)), user_arguments=("4M", 3, str(by)))
                for way in WAYS for device, by in ((0, 1), (1, 0))]

    def run_with(self, visible, *command):
        """As a launcher does that gives each of its processes a device."""
        program, *arguments = command
        return self.host.run("job", "/usr/bin/env", f"CUDA_VISIBLE_DEVICES={visible}", stage.GUESTS / program,
                             *arguments, **self.ENVIRONMENT).wait_ready()

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

    def lines_of(self, guest):
        """What it may use and what it sees besides, as the host numbers it."""
        numbers = {uuid: index for index, uuid in enumerate(self.uuids(*range(4)))}
        words = [line.split() for line in guest.lines if line != "ready"]
        return [(word, numbers[uuid]) for word, _, uuid, _ in words]

    def test_the_program_sees_the_devices_of_its_vgpu_alone(self):
        self.make("job", "2,0", 64)
        guest = self.guest("job")
        self.assertEqual(self.lines_of(guest), [("device", 2), ("device", 0)])
        self.end(guest)

    def test_the_program_sees_all_devices_if_it_is_told_to(self):
        self.make("job", "2,0", 64)
        self.make("one", "3", 64)
        for name, first in (("job", 2), ("one", 3)):
            guest = self.guest(name, **ALL)
            own = [("device", 2), ("device", 0)] if name == "job" else [("device", 3)]
            others = [("other", i) for i in range(4) if ("device", i) not in own]
            self.assertEqual(self.lines_of(guest), own + others)
            self.assertEqual(self.tell(guest, "hold 0 32M"), "held")
            self.assertEqual(self.tell(guest, "hold 0 48M"), "refused")
            self.assertEqual(self.used(name)[0] if name == "job" else self.host.get(name)["frame_buffer_used"], 32 * MIB)
            self.assertEqual(self.host.device(first)["memory_used"], 32 * MIB)
            self.end(guest)
        one = self.run_with("1", "guest-devices")
        self.assertEqual(self.lines_of(one), [("device", 0), ("other", 2), ("other", 1), ("other", 3)])
        self.end(one)

    def test_the_child_of_a_program_has_its_devices(self):
        """It finds in the variable what its parent may use."""
        self.make("job", "2,0", 64)
        done = self.host.vgpu("run", "--vgpu", "job", "--", "/usr/bin/env", "CUDA_VISIBLE_DEVICES=1", "OPENVGPU_ALL_DEVICES=1",
                              sys.executable, "-c", PARENT)
        self.assertEqual(done.output.split(), [self.host.device(0)["uuid"]])

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

    def test_without_that_they_move_among_the_devices_that_they_had(self):
        self.ENVIRONMENT = {}
        self.make("job", "0,1", 256)
        pairs = self.pairs_of("job")
        for maker, user in pairs:
            self.check_both_ways(maker, user, 1)
        self.not_moved([guest for pair in pairs for guest in pair], "migrate", "job", "--device", "2,3")
        self.host.vgpu("migrate", "job", "--device", "1,0")
        self.check_all(pairs, 2)
        for maker, user in pairs:
            self.end(user, maker)


class OneDevice(Pairs, Case):
    """A vGPU of one device moves, too, where the drivers of those who share have seen the device."""
    HOST = {"devices": "3xH200:2G", "pool": "256M", "slab": "4M"}
    ENVIRONMENT = ALL

    def pairs_of(self, name):
        pairs = [self.pair(way, name, name, ("4M", 3)) for way in WAYS]
        for maker, user in pairs:
            self.check_both_ways(maker, user, 1)
        return pairs

    def check_all(self, pairs, value):
        for maker, user in pairs:
            user.hold(f"check={value - 1 + 1000}")
            self.check_both_ways(maker, user, value)

    def end_all(self, pairs):
        for maker, user in pairs:
            self.end(user, maker)

    def test_memory_that_is_shared_moves_and_comes_back(self):
        self.host.create("job")
        pairs = self.pairs_of("job")
        for value, device in enumerate(("1", "2", "0", "2"), 2):
            self.assertIn(f"to GPU {device}", self.host.vgpu("migrate", "job", "--device", device).output)
            self.check_all(pairs, value)
        self.assertEqual([self.host.device(i)["memory_used"] for i in (0, 1)], [0, 0])
        self.end_all(pairs)

    def test_a_suspended_one_is_resumed_elsewhere(self):
        self.host.create("job")
        pairs = self.pairs_of("job")
        for value, device in enumerate(("1", "2", "0"), 2):
            self.host.vgpu("suspend", "job")
            self.host.vgpu("resume", "job", "--device", device)
            self.check_all(pairs, value)
        self.end_all(pairs)

    def test_more_is_shared_after_a_move(self):
        self.host.create("job", device=1)
        pairs = self.pairs_of("job")
        self.host.vgpu("migrate", "job", "--device", "0")
        for maker, user in pairs:
            maker.hold("more")
            user.hold("more")
            self.check_both_ways(maker, user, 5)
        pairs += self.pairs_of("job")
        self.host.vgpu("migrate", "job", "--device", "2")
        for maker, user in pairs:
            self.check_both_ways(maker, user, 7)
        self.end_all(pairs)

    def check_waits(self, stopped, method):
        """Of a program whose gate is not back nobody knows yet where it can go."""
        stopped.signal(signal.SIGSTOP)
        self.host.restart()

        def names_it():
            with self.assertRaises(Refused) as refused:
                self.host.call(method, name="job", device="2", timeout=0.5)
            self.assertEqual(refused.exception.name, "TimedOut")
            return f"process {stopped.pid} (guest-share) of vGPU job has not come back to vgpud yet" \
                in refused.exception.parameters["message"]
        until(names_it, "all others to have come back")  # on a busy machine they are not back in half a second
        with self.host.connect() as client:
            client.call("GetInfo")  # it is connected now: what it says next is heard before that the gate is back
            client.send(method, name="job", device="2")
            self.host.call("GetInfo")
            stopped.signal(signal.SIGCONT)
            client.answer()

    def test_a_restarted_manager_waits_for_the_gates_before_it_says_where_they_can_go(self):
        self.host.create("job")
        (maker, _), *_ = pairs = self.pairs_of("job")
        self.check_waits(maker, "MigrateVgpu")
        self.check_all(pairs, 2)
        self.host.vgpu("migrate", "job", "--device", "0")
        self.host.vgpu("suspend", "job")
        self.check_waits(maker, "ResumeVgpu")
        self.check_all(pairs, 3)
        self.end_all(pairs)

    def test_no_other_device_gets_access_to_what_is_shared(self):
        self.host.create("job", device=1)
        pairs = self.pairs_of("job")
        for device in ("2", "0"):
            for way, pair in zip(WAYS, pairs):
                for guest in pair:
                    guest.lines.clear()
                    guest.hold("expose")
                    code = 101 if way == "descriptor" else 1  # the others are no memory of the virtual-memory calls
                    self.assertEqual([line for line in guest.lines if line.startswith("code")],
                                     [f"code {code} access 0"] * 2)
            self.host.vgpu("migrate", "job", "--device", device)
        self.check_all(pairs, 2)
        self.end_all(pairs)

    def test_a_restarted_manager_knows_that_they_can_move(self):
        self.host.create("job")
        pairs = self.pairs_of("job")
        self.host.restart()
        self.host.vgpu("migrate", "job", "--device", "2")
        self.check_all(pairs, 2)
        self.end_all(pairs)

    def test_each_of_those_who_share_must_have_seen_the_device(self):
        self.host.create("job")
        maker, user = self.pair()
        self.ENVIRONMENT = {}
        late = self.host.run("job", "guest-share", "use", "descriptor", maker.path).wait_ready()
        self.not_moved([late], "migrate", "job", "--device", "1")
        self.end(late)
        self.host.vgpu("migrate", "job", "--device", "1")
        self.check_both_ways(maker, user, 4)
        self.end(user, maker)

    def test_a_group_is_resumed_elsewhere(self):
        for name, device in (("job", 0), ("other", 1)):
            self.host.create(name, device=device)
        pairs = [self.pair("descriptor", "job", "other"), self.pair("ipc", "other", "job")]
        for maker, user in pairs:
            self.check_both_ways(maker, user, 1)
        self.assertIn("suspend --group, then resume --group --device", self.host.vgpu("migrate", "job", "--device", "2", code=1).errors)
        self.host.vgpu("suspend", "job", "--group")
        self.host.vgpu("resume", "job", "--group", "--device", "2")
        self.assertEqual([self.host.get(name)["device"] for name in ("job", "other")], [2, 2])
        self.check_all(pairs, 2)
        self.end_all(pairs)


class Faults(Pairs, unittest.TestCase):
    """Death and failure at each step of a move of those who share."""

    ENVIRONMENT = ALL

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
