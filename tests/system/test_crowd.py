#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Devices that are nearly full: who arrives has his room in hand, or waits, or is refused.

A restore that runs out of memory loses the process for ever. So whatever arrives together, and
whatever others take meanwhile: no process is lost, and no byte of its memory.
"""
import os
import select
import signal
import time

import case
import stage
from guest import Guest
from wait import PATIENCE, until
from wire import Refused

MIB = 1 << 20
CONTEXT = 64 * MIB  # of a process, or of a mover, on a device of 1 GiB


def outside(host, index):
    """The environment of a program outside any vGPU that sees one device."""
    return host.environment(OPENVGPU_SIM=os.path.join(host.run_directory, "sim"),
                            LD_LIBRARY_PATH=os.path.dirname(host.info()["driver_path"]),
                            CUDA_VISIBLE_DEVICES=str(index))


class Crowd(case.Case):
    HOST = {"devices": "2xH200:1G", "pool": "768M"}

    def stranger(self, bytes_left, device=0):
        """A process outside any vGPU that leaves so much of the device free."""
        host = self.host
        size = host.driver_memory()[device] - bytes_left  # whom we ask has a context as well
        guest = Guest([stage.GUESTS / "guest-hold", size], outside(host, device))
        host.guests.append(guest)
        guest.wait_ready().hold("device")
        return guest

    def at_once(self, method, names, **parameters):
        """What each was answered: None, or the error's parameters."""
        connections = [self.host.connect() for _ in names]
        for connection, name in zip(connections, names):
            connection.send(method, name=name, **parameters)
        answers = []
        for connection in connections:
            try:
                connection.answer()
                answers.append(None)
            except Refused as error:
                self.assertEqual(error.name, "NoRoom", error.parameters)
                answers.append(error.parameters)
            connection.close()
        return answers

    def check_states(self, names, answers):
        for name, answer in zip(names, answers):
            self.assertEqual(self.host.get(name)["state"], "suspended" if answer else "running")

    def wait_still(self):
        """Until nothing happens on the devices, as what goes on there waits at a fault point."""
        seen = []

        def look():
            seen.append(self.host.driver_memory())
            return len(seen) > 3 and seen[-3:] == [seen[-1]] * 3
        until(look, "the devices to be still", context=self.host.log)

    def start(self, n, size):
        names = [self.host.create(f"train-{i}", f"{size + 10}M") for i in range(n)]
        return names, [self.host.train(name, "--size", f"{size}M", "--pause", "1") for name in names]

    def test_who_was_left_behind_and_finds_no_room_is_tried_now_and_then(self):
        host = self.host
        host.create("train", "512M")
        guests = [host.train("train", "--on-demand", "--size", "128M", "--piece", "8M")
                  for _ in range(2)]
        host.call("SuspendVgpu", name="train")
        guests[1].signal(signal.SIGSTOP)
        host.call("ResumeVgpu", name="train", timeout=0.5)
        self.assertRaises(Refused, host.call, "SuspendVgpu", name="train")  # after the resume's end
        self.wait_still()
        stranger = self.stranger(4 * MIB)
        start = time.monotonic()
        guests[1].signal(signal.SIGCONT)
        until(lambda: host.log().count("undone vgpu=train operation=catch-up") >= 3,
              "three refusals", context=host.log)
        self.assertGreater(time.monotonic() - start, 1)
        stranger.kill()
        for guest in reversed(guests):
            guest.step()
        for guest in guests:
            guest.finish()

    def test_four_that_are_resumed_at_once_and_do_not_all_fit(self):
        names, guests = self.start(4, 60)
        for left in (394, 314, 424):  # a mover that goes may add its context
            for name in names:
                self.host.vgpu("suspend", name)
            stranger = self.stranger(left * MIB)
            answers = self.at_once("ResumeVgpu", names)
            self.check_states(names, answers)
            self.assertIn(None, answers)
            self.assertTrue(any(answers), "all of them fitted: this tests nothing")
            refused = [name for name, answer in zip(names, answers) if answer]
            stranger.kill()
            self.assertEqual(self.at_once("ResumeVgpu", refused), [None] * len(refused))
            for guest in guests:
                guest.wait_steps()
        for guest in guests:
            guest.finish()

    def test_four_that_move_at_once_and_do_not_all_fit(self):
        names, guests = self.start(4, 60)
        stranger = self.stranger(394 * MIB, device=1)
        answers = self.at_once("MigrateVgpu", names, device="1")
        self.assertIn(None, answers)
        self.assertTrue(any(answers), "all of them fitted: this tests nothing")
        for name, answer in zip(names, answers):
            vgpu = self.host.get(name)
            self.assertEqual((vgpu["state"], vgpu["device"]), ("running", 0 if answer else 1))
        for guest in guests:
            guest.wait_steps()
        stranger.kill()
        for guest in guests:
            guest.finish()

    def test_what_fits_when_another_has_left_waits_for_that(self):
        (first, second), guests = self.start(2, 200)
        self.host.vgpu("suspend", second)
        stranger = self.stranger(200 * MIB)
        self.host.arm("mover.locked", "pause")
        with self.host.connect() as leaving, self.host.connect() as coming:
            leaving.send("SuspendVgpu", name=first)
            self.host.wait_paused("mover.locked")
            coming.send("ResumeVgpu", name=second)
            until(lambda: f"waiting for room vgpu={second}" in self.host.log(),
                  "the resume to wait", context=self.host.log)
            self.host.remove_pause("mover.locked")
            leaving.answer()
            coming.answer()
        guests[1].wait_steps()
        stranger.kill()
        self.host.vgpu("resume", first)
        for guest in guests:
            guest.finish()

    def test_who_has_waited_long_enough_is_refused(self):
        (first, second), guests = self.start(2, 200)
        self.host.vgpu("suspend", second)
        stranger = self.stranger(200 * MIB)
        self.host.arm("mover.locked", "pause")
        with self.host.connect() as leaving:
            leaving.send("SuspendVgpu", name=first)
            self.host.wait_paused("mover.locked")
            with self.assertRaises(Refused) as refused:
                self.host.call("ResumeVgpu", name=second, timeout=0.3)
            self.assertEqual(refused.exception.name, "NoRoom")
            self.host.remove_pause("mover.locked")
            leaving.answer()
        stranger.kill()
        for name in (first, second):
            self.host.vgpu("resume", name)
        for guest in guests:
            guest.finish()

    def test_what_a_stranger_takes_before_the_driver_is_asked_loses_nobody(self):
        self.host.create("train", "200M")
        guests = [self.host.train("train", "--size", "30M", "--pause", "1") for _ in range(2)]
        self.host.vgpu("suspend", "train")
        self.host.arm("mover.restoring", "pause")
        with self.host.connect() as resume:
            resume.send("ResumeVgpu", name="train")
            self.host.wait_paused("mover.restoring")
            self.wait_still()
            stranger = self.stranger(CONTEXT - 2 * MIB)  # enough for one of the two contexts
            self.host.remove_pause("mover.restoring")
            with self.assertRaises(Refused) as refused:
                resume.answer()
        self.assertIn("too little free memory", str(refused.exception))
        stranger.kill()
        self.assertEqual(self.host.get("train")["state"], "suspended")
        self.host.vgpu("resume", "train")
        for guest in guests:
            guest.wait_steps()
            guest.finish()

    def test_who_runs_there_cannot_take_what_an_arrival_was_promised(self):
        (name,), (guest,) = self.start(1, 60)
        self.host.create("greedy", "400M")
        greedy = self.host.run("greedy", "guest-hold", 190 * MIB).wait_ready()
        self.host.vgpu("suspend", name)
        stranger = self.stranger(CONTEXT + 60 * MIB + 110 * MIB)
        self.host.arm("mover.restoring", "pause")
        with self.host.connect() as resume:
            resume.send("ResumeVgpu", name=name)
            self.host.wait_paused("mover.restoring")
            self.assertGreater(self.host.driver_memory()[0], 190 * MIB - CONTEXT)
            greedy.hold("attempt")
            self.assertIn("refused", greedy.lines)
            self.host.remove_pause("mover.restoring")
            self.assertEqual(resume.answer()["lost"], "")
        guest.wait_steps()
        stranger.kill()
        greedy.hold("attempt")
        self.assertIn("got", greedy.lines)
        greedy.hold("nothing")
        guest.finish()

    def test_without_a_mover_to_ask_nobody_takes_what_is_to_come_back(self):
        """The mover dies in an undo, and the next one finds no room for a context."""
        host = self.host
        (name,), (guest,) = self.start(1, 60)
        host.create("greedy", "400M")
        greedy = host.run("greedy", "guest-hold", 30 * MIB).wait_ready()
        environment = outside(host, 0)
        host.arm("suspend.moved", "fail")
        host.arm("suspend.checkpointed", "pause")
        with host.connect() as suspend:
            suspend.send("SuspendVgpu", name=name)
            host.wait_paused("suspend.checkpointed")
            movers = [os.pidfd_open(pid) for pid in host.movers()]
            host.kill_program("vgpu-mover")
            for mover in movers:  # all of its threads, and what they held
                self.assertTrue(select.select([mover], [], [], 60)[0])
                os.close(mover)
            stranger = Guest([stage.GUESTS / "guest-leave", "48M"], environment).wait_ready()
            host.guests.append(stranger)
            waits = host.log().count("waiting for room to go back")
            host.remove_pause("suspend.checkpointed")
            until(lambda: host.log().count("waiting for room to go back") > waits, "the undo to wait",
                  context=host.log)
            greedy.hold("attempt")
            self.assertIn("refused", greedy.lines)
            stranger.kill()
            self.assertRaises(Refused, suspend.answer)
        self.assertEqual(host.get(name)["state"], "running")
        guest.wait_steps()
        greedy.hold("attempt")
        self.assertIn("got", greedy.lines)
        greedy.hold("nothing")
        guest.finish()

    def test_those_who_allocate_all_the_time_lose_nobody_who_comes(self):
        names, guests = self.start(3, 40)
        self.host.create("busy", "300M")
        stranger = self.stranger(500 * MIB)
        busy = [self.host.run("busy", "guest-alloc", 2, 100000000, 32 * MIB, seed) for seed in (1, 2)]
        for _ in range(4):
            for name in names:
                self.host.vgpu("suspend", name)
            waiting = list(names)
            while waiting:
                answers = self.at_once("ResumeVgpu", waiting)
                waiting = [name for name, answer in zip(waiting, answers) if answer]
        for guest in guests:
            guest.wait_steps()
        for guest in busy + [stranger]:
            self.assertTrue(guest.is_alive(), guest.context())
            guest.kill()
        for guest in guests:
            guest.finish()

    def test_what_was_taken_from_the_way_back_is_waited_for(self):
        (name,), (guest,) = self.start(1, 60)
        self.host.arm("mover.restoring", "pause")
        self.host.arm("migrate.restored", "fail")
        with self.host.connect() as migrate:
            migrate.send("MigrateVgpu", name=name, device="1")
            there = self.host.wait_paused("mover.restoring")
            held = [pid for pid in self.host.movers() if pid != there]
            for pid in held:
                os.kill(pid, signal.SIGKILL)
            until(lambda: not set(held) & set(self.host.movers()), "the mover to be gone")
            until(lambda: "a mover died device=0" in self.host.log(), "its memory to be free")
            stranger = self.stranger(CONTEXT // 2)
            self.host.remove_pause("mover.restoring")
            until(lambda: f"waiting for room to go back vgpu={name}" in self.host.log(),
                  "the context to want back", context=self.host.log)
            stranger.kill()
            with self.assertRaises(Refused):
                migrate.answer()
        self.assertEqual((self.host.get(name)["state"], self.host.get(name)["device"]), ("running", 0))
        guest.wait_steps()
        guest.finish()

    def ask_for_room(self):
        """Two in one more vGPU: one runs, and one is about to ask the driver for as much as a context has."""
        size = f"{CONTEXT // MIB}M"
        self.host.create("other", "256M")
        other = self.host.run("other", "guest-train", "--size", "8M")
        other.wait_ready()
        self.host.arm("gate-asking", "pause")
        late = self.host.run("other", "guest-train", "--size", size, "--piece", size)
        self.host.wait_paused("gate-asking")
        return other, late

    def test_who_was_asking_before_cannot_take_the_way_back(self):
        """He was let through, and the driver answers him only when the mover has let go of the room."""
        (name,), (guest,) = self.start(1, 60)
        other, late = self.ask_for_room()
        self.stranger(12 * MIB)  # the margin of the way back, and a little
        self.host.arm("suspend.moved", "fail")
        before = len(self.host.log())
        with self.host.connect() as suspend:
            suspend.send("SuspendVgpu", name=name, timeout=PATIENCE)
            until(lambda: f"waiting for those who ask for memory before going back vgpu={name}" in self.host.log()[before:],
                  "the way back to wait", context=self.host.log)
            self.host.remove_pause("gate-asking")
            with self.assertRaises(Refused):
                suspend.answer()
        self.assertEqual(late.join(), 1)
        self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", "".join(late.errors))
        self.assertEqual(self.host.get(name)["state"], "running")
        guest.wait_steps()
        for one in (guest, other):
            one.finish()

    def test_who_asks_for_ever_does_not_keep_others_from_going_back(self):
        """Not for the time of the whole operation, which may be a day."""
        (name,), (guest,) = self.start(1, 60)
        other, late = self.ask_for_room()
        self.host.arm("suspend.moved", "fail")
        before = len(self.host.log())
        with self.host.connect() as suspend:
            suspend.send("SuspendVgpu", name=name, timeout=86400)
            with self.assertRaises(Refused):
                suspend.answer()
        self.assertIn(f"waiting for those who ask for memory before going back vgpu={name}", self.host.log()[before:])
        self.assertEqual(self.host.get(name)["state"], "running")
        guest.wait_steps()
        late.kill()
        self.host.remove_pause("gate-asking")
        for one in (guest, other):
            one.finish()

    def copy_beside_a_restore(self, go_back):
        """Another vGPU is copied while it runs: the copy wants 48 MiB of the mover's own, while a restore has what is free."""
        (name,), (guest,) = self.start(1, 10)
        self.host.create("live", "80M")
        live = self.host.train("live", "--size", "50M", "--piece", "48M", "--pause", "1")
        self.host.vgpu("suspend", "live", "--pre-copy")  # the mover has all that it needs besides
        self.host.vgpu("resume", "live")
        self.stranger(4 * MIB)
        with self.host.connect() as back, self.host.connect() as suspend:
            go_back(back, name)
            self.host.wait_paused("mover.restoring")
            suspend.send("SuspendVgpu", name="live", pre_copy=True)
            self.wait_still()
            self.host.remove_pause("mover.restoring")
            try:
                back.answer()
            except Refused as error:
                self.assertEqual(error.name, "Failed", error.parameters)
            suspend.answer()
        self.assertNotIn("is lost", self.host.log())
        self.assertEqual(self.host.get(name)["state"], "running")
        guest.wait_steps()
        guest.finish()
        self.host.vgpu("resume", "live")
        live.wait_steps()
        live.finish()

    def test_a_copy_takes_nothing_of_what_was_let_go_for_a_restore(self):
        def resume(client, name):
            self.host.vgpu("suspend", name)
            self.host.arm("mover.restoring", "pause")
            client.send("ResumeVgpu", name=name)
        self.copy_beside_a_restore(resume)

    def test_a_copy_takes_nothing_of_what_was_let_go_for_the_way_back(self):
        def suspend(client, name):
            self.host.arm("suspend.checkpointed", "fail")
            self.host.arm("mover.restoring", "pause")
            client.send("SuspendVgpu", name=name)
        self.copy_beside_a_restore(suspend)

    def test_no_gate_takes_memory_while_a_process_is_restored(self):
        """Within its quota, and as fast as it can: it may give back what it has, and nothing else happens."""
        (name,), (guest,) = self.start(1, 10)
        self.host.vgpu("suspend", name)
        self.host.create("busy", "500M")
        busy = self.host.run("busy", "guest-alloc", 2, 100000000, 32 * MIB, 1)
        self.host.arm("mover.restoring", "pause")
        with self.host.connect() as resume:
            resume.send("ResumeVgpu", name=name)
            self.host.wait_paused("mover.restoring")
            self.wait_still()
            self.host.remove_pause("mover.restoring")
            resume.answer()
        guest.wait_steps()
        self.assertTrue(busy.is_alive(), busy.context())
        busy.kill()
        guest.finish()

    def test_a_manager_that_dies_while_room_is_held_leaves_none_of_it(self):
        (name,), (guest,) = self.start(1, 60)
        self.host.vgpu("suspend", name)
        self.host.arm("mover.held", "pause")
        with self.host.connect() as resume:
            resume.send("ResumeVgpu", name=name)
            self.host.wait_paused("mover.held")
            self.host.kill()
        self.host.remove_pause("mover.held")  # the next manager waits for that mover's end
        self.host.start()
        self.host.wait_state(name, "suspended")
        self.host.vgpu("resume", name)
        guest.wait_steps()
        guest.finish()


class SmallContexts(case.Case):
    """On a T4 a context takes 512 MiB, which is far more than a 128th of it."""

    HOST = {"devices": "2xT4", "pool": "256M"}

    def test_a_context_that_does_not_fit_is_refused_before_anything_is_touched(self):
        host = self.host
        guest = host.train(host.create("train"), "--size", "16M", "--pause", "1")
        size = host.driver_memory()[1] - (512 + 300) * MIB  # the mover's context, and that
        stranger = Guest([stage.GUESTS / "guest-hold", size], outside(host, 1))
        host.guests.append(stranger)
        stranger.wait_ready().hold("device")
        with self.assertRaises(Refused) as refused:
            host.call("MigrateVgpu", name="train", device="1")
        self.assertEqual(refused.exception.name, "NoRoom")
        self.assertEqual(host.get("train")["state"], "running")
        guest.wait_steps()
        stranger.kill()
        host.vgpu("migrate", "train", "--device", "1")
        guest.wait_steps()
        guest.finish()


if __name__ == "__main__":
    case.main()
