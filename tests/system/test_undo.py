#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The undo of a release where there is no room for the guest's memory twice.

The guest has moved, so its gate cannot map again what it exported: the memory is made anew and filled,
in parts, and where not even one allocation fits twice, by way of the pool. Whoever dies meanwhile, no
byte is lost and nothing is left behind.
"""

import os
import resource

import case
from wait import until
from wire import Keeper, Refused

SUSPEND, MIGRATE = "suspend", "migrate"
METHODS = {SUSPEND: "SuspendVgpu", MIGRATE: "MigrateVgpu"}

# The step that fails, and the undo after which the memory comes back.
FAILING = {SUSPEND: "moved", MIGRATE: "left"}

# Of a device of 256 MiB, 32 of which contexts take.
MANY = ("--on-demand", "--size", "150M", "--piece", "2M", "--small", "20")
ONE = ("--on-demand", "--size", "150M", "--piece", "150M", "--small", "20")


class Undo(case.Case):
    HOST = {"devices": "2xH200:256M", "pool": "256M"}

    def start(self, arguments, **environment):
        self.host.create("train", "200M")
        self.guest = self.host.train("train", *arguments, **environment)
        self.host.call("MigrateVgpu", name="train", device="1")

    def send(self, kind):
        control = self.host.connect()
        self.addCleanup(control.close)
        control.send(METHODS[kind], name="train", **({"device": "0"} if kind == MIGRATE else {}))
        return control

    def begin(self, kind):
        """The operation, up to where the memory is about to come back."""
        point = f"{kind}.undo-{FAILING[kind]}"
        self.host.arm(f"{kind}.{FAILING[kind]}", "fail")
        self.host.arm(point, "pause")
        control = self.send(kind)
        self.host.wait_paused(point)
        return control, point

    def is_refused(self, control):
        try:
            control.answer()
            return False
        except (Refused, ConnectionError):
            return True

    def check(self):
        """As before: on its device, with all that it had, and it can be suspended and moved."""
        host = self.host
        host.wait_for("train", lambda v: v["state"] == "running" and v["device"] == 1,
                      "to be as before")
        self.guest.step()
        until(lambda: host.info()["pool"]["used"] == 0, "the pool to be empty", context=host.log)

    def finish(self):
        self.host.call("MigrateVgpu", name="train", device="0")
        self.guest.step()
        self.guest.finish()  # compares every word

    def check_undo(self, kind):
        control, point = self.begin(kind)
        self.host.remove_pause(point)
        self.assertTrue(self.is_refused(control))
        self.check()

    def kill(self, victim):
        if victim == "manager":
            self.host.kill()
            return
        killed = self.host.kill_program(f"vgpu-{victim}")
        until(lambda: not set(killed) & {p for p, _ in self.host.processes()},
              f"the {victim} to be gone")

    def check_death(self, kind, point, victim):
        control, start = self.begin(kind)
        self.host.arm(point, "pause")
        self.host.remove_pause(start)
        self.host.wait_paused(point)
        self.kill(victim)
        self.host.remove_pause(point)
        if victim == "manager":
            self.host.start()
        self.assertTrue(self.is_refused(control))
        self.check()

    def check_mover(self, kind, point):
        """It dies by itself, in the middle of its work."""
        control, start = self.begin(kind)
        self.host.arm(point, "kill")
        self.host.remove_pause(start)
        self.assertTrue(self.is_refused(control))
        self.check()

    def test_memory_in_many_pieces_comes_back_in_parts(self):
        self.start(MANY)
        for kind in METHODS:
            with self.subTest(operation=kind):
                self.check_undo(kind)
        self.finish()

    def test_memory_in_one_piece_comes_back_by_way_of_the_pool(self):
        self.start(ONE)
        for kind in METHODS:
            with self.subTest(operation=kind):
                self.check_undo(kind)
        self.finish()

    def test_a_migrate_that_is_undone_leaves_the_target_to_others(self):
        """The context is taken off the target by the source's mover: what that has lent it is given back."""
        for name, device in (("train", 0), ("other", 1)):
            self.host.create(name, "48M", device=device)
        guest, other = (self.host.train(name, "--on-demand", "--size", "20M") for name in ("train", "other"))
        self.host.arm("migrate.copied", "fail")
        with self.assertRaises(Refused):
            self.host.call("MigrateVgpu", name="train", device="1")
        for method in ("SuspendVgpu", "ResumeVgpu"):
            self.host.call(method, name="other", timeout=20)
        other.step()
        self.host.call("MigrateVgpu", name="train", device="1")
        for one in (guest, other):
            one.step()
            one.finish()

    def test_a_death_while_parts_come_back(self):
        self.start(MANY)
        for kind, point, victim in ((SUSPEND, "undoing-release", "manager"),
                                    (SUSPEND, "release-undone", "manager"),
                                    (SUSPEND, "undoing-release", "mover"),
                                    (SUSPEND, "release-undone", "keeper"),
                                    (SUSPEND, "undo-released", "manager"),
                                    (SUSPEND, "undo-kept", "manager"),
                                    (SUSPEND, "undo-exported", "manager"),
                                    (MIGRATE, "undoing-release", "manager"),
                                    (MIGRATE, "release-undone", "mover")):
            with self.subTest(operation=kind, point=point, killed=victim):
                self.check_death(kind, f"{kind}.{point}", victim)
        self.finish()

    def test_a_death_while_memory_is_in_the_pool(self):
        self.start(ONE)
        for kind, point, victim in ((SUSPEND, "parked", "manager"),
                                    (SUSPEND, "undoing-release", "manager"),
                                    (SUSPEND, "parked", "mover"),
                                    (MIGRATE, "parked", "manager"),
                                    (MIGRATE, "parked", "keeper"),
                                    (MIGRATE, "undoing-release", "manager"),
                                    (MIGRATE, "release-undone", "manager")):
            with self.subTest(operation=kind, point=point, killed=victim):
                self.check_death(kind, f"{kind}.{point}", victim)
        self.finish()

    def test_parked_memory_that_is_lost_leaves_nothing_behind(self):
        self.start(ONE)
        control, start = self.begin(SUSPEND)
        self.host.arm("suspend.parked", "pause")
        self.host.remove_pause(start)
        self.host.wait_paused("suspend.parked")
        self.host.kill()
        self.host.remove_pause("suspend.parked")
        with Keeper(os.path.join(self.host.run_directory, "keeper.sock")) as keeper:
            labels = keeper.labels()
            self.assertTrue([label for label in labels if label.startswith("parked/")])
            for label in labels:
                if label.startswith("slab/"):
                    self.assertEqual(keeper.drop(label), 0)
        self.host.start()
        self.assertTrue(self.is_refused(control))
        self.guest.kill()
        self.host.wait_for("train", lambda v: not v["processes"], "to be empty")
        self.host.kill()
        self.assertEqual([label for label in self.host.keeper_labels() if not label.startswith("page/")], [])

    def test_a_mover_that_dies_at_its_work(self):
        work = {MANY: ((SUSPEND, "copy-half"), (MIGRATE, "job-copied")),
                ONE: ((SUSPEND, "job-imported"), (SUSPEND, "copy-half"), (SUSPEND, "job-copied"),
                      (MIGRATE, "copy-half"))}
        for arguments, points in work.items():
            self.start(arguments)
            for kind, point in points:
                with self.subTest(arguments=arguments[4], operation=kind, point=point):
                    self.check_mover(kind, f"mover.{point}")
            self.finish()
            self.host.wait_state("train", "idle")
            self.host.vgpu("rm", "train")

    def park_without_room(self, left):
        """What train had on its device is a stranger's, and in the pool alone; returns the stranger."""
        control, start = self.begin(SUSPEND)
        self.host.arm("suspend.parked", "pause")
        self.host.remove_pause(start)
        self.host.wait_paused("suspend.parked")
        stranger = self.host.crowd(left)
        self.host.remove_pause("suspend.parked")
        self.assertTrue(self.is_refused(control))
        self.host.wait_for("train", lambda v: v["state"] == "failed", "to have failed")
        return stranger

    def test_parked_memory_comes_back_as_soon_as_there_is_room(self):
        """By others of ours who leave; and by somebody whom we do not know, which shows when it is tried."""
        self.host.create("other", "48M", device=1)
        other = self.host.train("other", "--on-demand", "--size", "48M")
        self.start(ONE)
        stranger = self.park_without_room("90M")
        self.host.call("SuspendVgpu", name="other")
        self.host.wait_state("train", "running")
        stranger.end_input()
        self.host.call("ResumeVgpu", name="other")
        self.check()

        stranger = self.park_without_room("16M")
        stranger.end_input()
        self.check()
        other.step()
        other.finish()
        self.finish()

    def test_the_children_of_a_guest_hold_no_memory(self):
        """They are forked all the time, also in the middle of an export; what one held had no room twice."""
        self.start((*MANY, "--forks", "8"))
        for _ in range(3):
            self.check_undo(SUSPEND)
            self.host.call("SuspendVgpu", name="train")
            self.host.call("ResumeVgpu", name="train")
            self.guest.step()
        self.finish()


class FewDescriptors(case.Case):
    """A guest with a limit that leaves no room for a descriptor of each piece of its memory."""

    HOST = {"devices": "2xH200:1G", "pool": "768M"}
    N = 200

    def test_memory_is_mapped_again(self):
        host = self.host
        host.create("train", "640M")
        guest = host.train("train", "--on-demand", "--size", f"{2 * self.N}M", "--piece", "2M")
        # The simulated driver has one for each; a message brings 64, and the program has some.
        limit = self.N + 64 + 64
        resource.prlimit(guest.pid, resource.RLIMIT_NOFILE, (limit, limit))
        host.arm("suspend.moved", "fail")
        with self.assertRaises(Refused):
            host.call("SuspendVgpu", name="train")
        host.wait_state("train", "running")
        guest.step()
        host.call("SuspendVgpu", name="train")
        host.call("ResumeVgpu", name="train")
        guest.step()
        guest.finish()


if __name__ == "__main__":
    case.main()
