#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Equal blocks of one user's suspended vGPUs are kept once, and everybody gets his own back."""
import concurrent.futures
import contextlib
import os
import signal
import unittest

from harness import MIB, Host, expect_error
from wait import until
from wire import Refused

BLOCK = 2 * MIB
BLOCKS, STILL = 20, 18  # of a guest: each is another, and 18 are the same in all guests
SIZE = BLOCKS * BLOCK
N = 3


class Models(unittest.TestCase):
    """Some guests of one model, each in a vGPU of its own. They check their memory at each step."""

    options = []

    def setUp(self):
        self.host = self.enterContext(Host(options=self.options))
        self.host.start()
        self.guests = {}

    def add(self, name, *arguments, **parameters):
        self.host.call("CreateVgpu", name=name, frame_buffer=128 * MIB, device="0", **parameters)
        self.guests[name] = self.add_process(name, *arguments)

    def add_process(self, name, *arguments):
        """One more of that vGPU."""
        return self.host.guest(name, "--size", str(SIZE), "--piece", str(BLOCK), "--still", str(STILL), "--on-demand",
                               *arguments)

    def add_all(self):
        """Each changes its last blocks another number of times."""
        for i in range(N):
            self.add(f"server-{i}")
            for _ in range(8 * i):
                self.guests[f"server-{i}"].step()

    def suspend(self, *names, **parameters):
        return [self.host.call("SuspendVgpu", name=name, **parameters) for name in names or self.guests]

    def resume(self, *names):
        for name in names or self.guests:
            self.host.call("ResumeVgpu", name=name)

    def step(self, *names):
        for name in names or self.guests:
            self.guests[name].step()

    def finish(self):
        for guest in self.guests.values():
            guest.finish()

    def pool(self):
        return self.host.call("GetInfo")["pool"]

    def check_all_once(self, n=N):
        """The common blocks once, and those of each that are its own."""
        pool = self.pool()
        self.assertEqual(pool["used"], (STILL + n * (BLOCKS - STILL)) * BLOCK)
        self.assertEqual(pool["saved"], (n - 1) * STILL * BLOCK)

    def wait_empty(self):
        """What resumed vGPUs had is given back after the answer."""
        until(lambda: self.pool()["used"] == 0 and self.pool()["saved"] == 0, "the room to be given back")

    def kill_manager(self, *options):
        self.host.kill_manager()
        self.host.start(options=options)


class Servers(Models):
    # what is kept

    def test_what_is_equal_is_kept_once(self):
        self.add_all()
        for report in self.suspend():
            self.assertEqual(report["bytes"], SIZE)
        self.check_all_once()
        self.resume()
        self.step()
        self.wait_empty()
        self.finish()

    def test_equal_blocks_of_one_are_one(self):
        self.host.call("CreateVgpu", name="train", frame_buffer=128 * MIB, device="0")
        self.guests["train"] = self.host.guest("train", "--size", str(SIZE), "--piece", str(4 * BLOCK), "--alike",
                                              "--on-demand")
        for _ in range(3):
            self.suspend()
            self.assertEqual(self.pool()["used"], BLOCKS // 4 * BLOCK)
            self.assertEqual(self.pool()["saved"], SIZE - BLOCKS // 4 * BLOCK)
            self.resume()
            self.step()
        self.finish()

    def test_who_came_first_may_go_first(self):
        self.add_all()
        self.suspend()
        self.resume("server-0")
        self.step("server-0")
        self.guests.pop("server-0").finish()
        self.host.call("RemoveVgpu", name="server-0")
        until(lambda: self.pool()["spare"] == 0, "the room of the first to be free")
        self.check_all_once(N - 1)
        self.add("other", "--seed", "1000")  # takes that room
        self.suspend("other")
        self.resume()
        self.step()
        self.finish()

    def test_who_ends_while_suspended_takes_nothing_along(self):
        self.add_all()
        self.suspend()
        self.guests.pop("server-0").kill()
        until(lambda: self.pool()["saved"] == (N - 2) * STILL * BLOCK, "its part to be given back")
        self.check_all_once(N - 1)
        self.resume()
        self.step()
        self.finish()

    def test_what_one_changes_the_others_have_as_it_was(self):
        self.add_all()
        for _ in range(3):
            self.suspend()
            for name in self.guests:
                self.resume(name)
                for _ in range(3):
                    self.step(name)
                self.suspend(name)
            self.resume()
            self.step()
        self.finish()

    def test_a_block_that_several_have_leaves_for_nothing_the_second_time(self):
        self.add_all()
        self.suspend()
        for name in self.guests:
            self.resume(name)
            report, = self.suspend(name)
            self.assertEqual(report["bytes_unchanged"], SIZE)
            self.resume(name)
            self.step(name)
            report, = self.suspend(name)
            self.assertEqual(report["bytes_unchanged"], STILL * BLOCK)
        self.check_all_once()
        self.resume()
        self.step()
        self.finish()

    def test_processes_of_one_vgpu_share_too(self):
        self.host.call("CreateVgpu", name="train", frame_buffer=256 * MIB, device="0")
        for i in range(N):
            self.guests[i] = self.host.guest("train", "--size", str(SIZE), "--piece", str(BLOCK), "--still",
                                             str(BLOCKS), "--on-demand")
        self.suspend("train")
        self.assertEqual(self.pool()["used"], SIZE)
        self.resume("train")
        self.step()
        self.finish()

    @unittest.skipIf(os.geteuid() != 0, "only root makes vGPUs for others")
    def test_never_across_users(self):
        for owner in (0, 1000, 1001):
            self.add(f"of-{owner}", owner=owner)
        self.suspend()
        self.assertEqual(self.pool()["used"], 3 * SIZE)
        self.assertEqual(self.pool()["saved"], 0)
        self.resume()
        self.step()
        self.finish()

    @unittest.skipIf(os.geteuid() != 0, "only root makes vGPUs for others")
    def test_across_users_where_root_says_so(self):
        """Also after a restart, and only those of the group."""
        for owner in (0, 1000, 1001):
            self.add(f"of-{owner}", owner=owner, **({"pool_group": "models"} if owner else {}))
        for _ in range(3):
            self.guests["of-1001"].step()
        self.suspend()
        used, saved = self.pool()["used"], self.pool()["saved"]
        self.assertGreaterEqual(saved, STILL * BLOCK)
        self.assertLess(saved, SIZE)
        self.assertEqual(used, 3 * SIZE - saved)
        self.kill_manager()
        self.assertEqual(self.pool()["used"], used)
        self.assertEqual(self.host.vgpu("of-1000")["pool_group"], "models")
        self.assertEqual(self.host.vgpu("of-0")["pool_group"], "")
        self.resume("of-1000")
        self.step("of-1000")
        self.suspend("of-1000")
        self.resume()
        self.step()
        self.finish()

    @unittest.skipIf(os.geteuid() != 0, "only root makes vGPUs for others")
    def test_each_user_of_a_group_has_its_own_part_of_the_pool(self):
        """What others of the group have there is not the affair of the user whose vGPU is the oldest."""
        self.kill_manager("--pool-limit", "244M", "--slab-size", "4M")
        self.add("oldest", owner=1000, pool_group="models")
        self.add("other", "--size", "96M", owner=1001, pool_group="models")
        self.add("own", owner=1000)
        self.suspend("other")
        self.suspend("own")  # a third of what the other has left
        expect_error("PoolTooSmall", self.host.call, "SuspendVgpu", name="oldest")
        self.resume("other", "own")
        self.step()
        self.finish()

    def test_what_a_group_may_be_called(self):
        for name in ("", "a/b", "-a", "a b", "x" * 32):
            expect_error("InvalidParameter", self.host.call, "CreateVgpu", name="a", frame_buffer=64 * MIB, pool_group=name)

    # what goes wrong

    def test_the_next_vgpud_counts_the_same(self):
        self.add_all()
        self.suspend()
        before = self.pool()
        self.kill_manager()
        self.assertEqual({key: self.pool()[key] for key in ("used", "saved")},
                         {key: before[key] for key in ("used", "saved")})
        self.resume("server-0")
        self.step("server-0")
        self.suspend("server-0")
        self.kill_manager()
        self.resume()
        self.step()
        self.wait_empty()
        self.finish()

    def test_vgpud_may_die_at_any_step(self):
        self.add_all()
        for point in ("suspend.kept", "suspend.copied", "suspend.moved", "suspend.recorded", "resume.recorded",
                      "resume.dropped"):
            with self.subTest(point=point):
                self.suspend("server-0", "server-2")
                (self.host.faults / f"{point}=kill").write_text("")
                with contextlib.suppress(ConnectionError):
                    self.suspend("server-1")
                    self.resume("server-1")
                self.host.wait_killed()
                self.host.start()
                until(lambda: self.host.vgpu("server-1")["state"] in ("running", "suspended"), "the undoing")
                if self.host.vgpu("server-1")["state"] == "suspended":
                    self.resume("server-1")
                self.resume("server-0", "server-2")
                self.step()
        self.finish()

    def test_a_failed_suspend_takes_nothing_from_the_others(self):
        self.add_all()
        self.suspend()
        for point in ("suspend.kept", "suspend.copied", "suspend.moved"):
            with self.subTest(point=point):
                self.resume("server-1")
                (self.host.faults / f"{point}=fail").write_text("")
                with self.assertRaises(Refused):
                    self.suspend("server-1")
                self.step("server-1")
                self.suspend("server-1")
                self.check_all_once()
        self.resume()
        self.step()
        self.finish()

    def test_a_mover_that_dies_is_followed_by_one_that_copies_everything(self):
        self.add_all()
        self.suspend()
        for point in ("mover.hashed", "mover.copy-half", "mover.job-copied"):
            with self.subTest(point=point):
                self.resume("server-1")
                self.step("server-1")
                (self.host.faults / f"{point}=kill").write_text("")
                self.suspend("server-1")
                self.resume("server-1")
                self.step("server-1")
                self.suspend("server-1")
        self.resume()
        self.step()
        self.finish()

    def test_a_mover_that_dies_when_blocks_are_shared_already(self):
        """The second try writes to nothing that another has."""
        self.add_all()
        self.suspend("server-0", "server-2")
        (self.host.faults / "mover.locked=pause").write_text("")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            suspend = pool.submit(self.host.client().call, "SuspendVgpu", name="server-1")
            self.host.wait_paused("mover.locked")
            until(lambda: self.pool()["saved"] == 2 * STILL * BLOCK, "the blocks to be shared")
            for pid in self.host.movers():
                os.kill(pid, signal.SIGKILL)
            self.assertEqual(suspend.result()["bytes"], SIZE)
        self.assertEqual(self.pool()["saved"], STILL * BLOCK)  # of the second try nothing is known
        self.resume()
        self.step()
        self.finish()


    def test_a_mover_that_dies_when_there_is_no_room_for_blocks_of_its_own(self):
        """Another vGPU took what sharing had freed. It is told so, stays on its device, and nobody loses anything."""
        self.kill_manager("--pool-limit", "128M")
        self.add("server-0")
        self.add("server-1")
        for _ in range(8):
            self.step("server-1")
        self.add("other", "--seed", "1000")
        self.guests["large"] = self.host.guest("other", "--size", str(SIZE), "--piece", str(BLOCK), "--seed", "2000",
                                              "--on-demand")
        self.suspend("server-0")
        (self.host.faults / "mover.locked=pause").write_text("")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            suspend = pool.submit(self.host.client().call, "SuspendVgpu", name="server-1")
            self.host.wait_paused("mover.locked")
            until(lambda: self.pool()["saved"] == STILL * BLOCK, "the blocks to be shared")
            self.suspend("other")
            for pid in self.host.movers():
                os.kill(pid, signal.SIGKILL)
            with self.assertRaises(Refused) as refused:
                suspend.result()
        self.assertEqual(refused.exception.name, "PoolTooSmall", refused.exception)
        self.assertEqual(self.host.vgpu("server-1")["state"], "running")
        self.step("server-1")
        self.resume("server-0", "other")
        self.suspend("server-1")
        self.resume("server-1")
        self.step()
        self.finish()


class Verifying(Servers):
    """Blocks are compared byte by byte before they are shared."""

    options = ["--clean-copies", "verify"]

    def test_a_block_that_several_have_leaves_for_nothing_the_second_time(self):
        """It is copied, to be compared, and kept once again."""
        self.add_all()
        self.suspend()
        self.resume("server-1")
        self.suspend("server-1")
        self.check_all_once()
        self.resume()
        self.step()
        self.finish()


class Doors(Models):
    """With --cdi a vGPU of root may be for a container of anybody: nobody says whose it is."""

    def setUp(self):
        super().setUp()
        self.doors = ("--cdi", str(self.host.root / "cdi.json"))

    def check_none_shared(self):
        pool = self.pool()
        self.assertEqual((pool["used"], pool["saved"]), (N * SIZE, 0))

    def test_vgpus_of_containers_share_nothing(self):
        self.host.stop_manager()
        self.host.start(options=self.doors)
        self.add_all()
        self.suspend()
        self.check_none_shared()
        self.resume("server-1")
        self.step("server-1")
        self.suspend("server-1")
        self.check_none_shared()
        self.resume()
        self.step()
        self.finish()

    def test_what_was_shared_before_there_were_doors_is_not_shared_again(self):
        self.add_all()
        self.suspend()
        self.check_all_once()
        self.host.stop_manager()
        self.host.start(options=self.doors)
        self.check_all_once()  # it is still there, once
        for name in self.guests:
            self.resume(name)
            self.step(name)
            self.suspend(name)
        self.check_none_shared()
        self.resume()
        self.step()
        self.finish()

    def test_what_processes_of_one_vgpu_share_is_found_again(self):
        """Its slabs are its own, and nobody's group's."""
        self.host.stop_manager()
        self.host.start(options=self.doors)
        self.add("server")
        guests = [self.guests["server"], self.add_process("server")]
        self.suspend("server")
        self.assertEqual(self.pool()["saved"], BLOCKS * BLOCK)
        self.kill_manager(*self.doors)
        self.assertEqual(self.pool()["saved"], BLOCKS * BLOCK)
        self.resume("server")
        for guest in guests:
            guest.step()
            guest.finish()

    def test_what_several_have_in_one_slab_is_theirs_when_there_are_doors(self):
        """The first process is in a slab that only its vGPU has, the second in that and in one with another vGPU."""
        small = ("--slab-size", "64M")
        self.host.stop_manager()
        self.host.start(options=small)
        self.add("one")
        guests = [self.guests["one"], self.add_process("one", "--seed", "1000")]
        self.add("other", "--seed", "2000")
        self.suspend("one", "other")
        self.kill_manager(*small, *self.doors)
        self.resume("one", "other")
        self.guests["other"].step()
        self.guests["other"].finish()
        for guest in guests:
            guest.step()
            guest.finish()


class Off(unittest.TestCase):
    def test_nothing_is_shared(self):
        host = self.enterContext(Host(options=["--clean-copies", "off"]))
        host.start()
        guests = []
        for i in range(2):
            host.call("CreateVgpu", name=f"server-{i}", frame_buffer=128 * MIB, device="0")
            guests.append(host.guest(f"server-{i}", "--size", str(SIZE), "--piece", str(BLOCK)))
            host.call("SuspendVgpu", name=f"server-{i}")
        self.assertEqual(host.call("GetInfo")["pool"]["used"], 2 * SIZE)
        for i in range(2):
            host.call("ResumeVgpu", name=f"server-{i}")
            guests[i].wait_steps()
            guests[i].finish()


if __name__ == "__main__":
    unittest.main()
