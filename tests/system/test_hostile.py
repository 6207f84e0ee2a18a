#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A guest may say anything and write anything: only itself is harmed."""
import os
import pwd
import signal
import socket
import subprocess
import sys
import unittest

import case
import reach
import stage
from guest import Guest
from wait import until
from wire import Gate

MIB = 1 << 20

HUNG_UP = ["impossible_state", "garbage_for_join", "empty_packet", "short_join", "name_without_end",
           "join_with_descriptors", "claims_too_many_imports", "great_packet", "joins_twice", "floods",
           "floods_with_descriptors", "tells_whose_memory_it_has", "speaks_garbage", "seen_before_join",
           "seen_of_too_few", "seen_of_too_many", "seen_with_a_descriptor", "seen_of_an_older_gate"]

# Behaviours in the middle of a suspend that the manager cannot let succeed.
SPOILERS = ["hangs_up_at_close", "closes_with_strange_error", "closes_with_too_many_imports", "out_of_turn",
            "exports_what_is_no_memory", "exports_what_lingers", "exports_too_much_that_lingers",
            "exports_plain_memory", "exports_the_same_address_twice",
            "exports_overlapping_memory", "exports_in_no_order",
            "exports_great_sizes", "exports_odd_sizes", "exports_without_descriptors",
            "exports_great_count", "exports_without_end", "exports_less_than_it_said",
            "dies_at_release", "lies_about_size"]


class Hostile(case.Case):
    def setUp(self):
        self.host.create("good", "64M")
        self.host.create("evil", "64M")
        self.good = self.host.train("good", "--size", "8M")

    def hostile(self, behaviour, vgpu=None, user=None):
        vgpu = self.host.get("evil")["uuid"] if vgpu is None else vgpu
        python = stage.SYSTEM_PYTHON if user else sys.executable
        guest = Guest([python, os.path.join(reach.scripts(), "hostile.py"), self.host.run_directory,
                       vgpu, behaviour], self.host.environment(), user=user)
        self.host.guests.append(guest)
        return guest

    def check_unharmed(self):
        """The other vGPU works, and the one of the hostile process does when that is gone."""
        for guest in self.host.guests:
            if guest is not self.good:
                guest.kill()
        self.good.wait_steps()
        self.host.vgpu("suspend", "good")
        self.host.vgpu("resume", "good")
        self.good.wait_steps()
        self.host.wait_state("evil", "idle")
        guest = self.host.train("evil", "--size", "8M")
        self.host.vgpu("suspend", "evil")
        self.host.vgpu("resume", "evil")
        guest.wait_steps()
        guest.finish()

    def refused(self, behaviour, word, **how):
        guest = self.hostile(behaviour, **how)
        line = guest.wait_line("refused ")
        self.assertIn(word, line)
        return line

    def test_another_version_is_told_who_must_be_upgraded(self):
        for behaviour in ("other_version", "older_version"):
            line = self.refused(behaviour, "upgrade")
            self.assertIn("gate speaks version", line)

    def test_an_unknown_vgpu_cannot_be_joined(self):
        self.refused("joined", "nobody", vgpu="nobody")
        self.refused("joined", "no vGPU", vgpu="")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
    def test_the_vgpu_of_another_user_cannot_be_joined(self):
        self.refused("joined", "belongs to user 0", user="nobody")

    @staticmethod
    def connect_as(user, path):
        """A connection, and the process that made it and is dead."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            os.setuid(pwd.getpwnam(user).pw_uid)
            connection.connect(path)
            os._exit(0)
        os.waitpid(pid, 0)
        return connection, pid

    @staticmethod
    def start_as(pid):
        """A process of ours with that number, if nobody else gets it first."""
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str(pid - 1))
        process = subprocess.Popen(["sleep", "60"])
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
        return None

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
    def test_a_process_that_got_the_number_of_a_dead_one_is_not_taken_for_it(self):
        self.host.vgpu("create", "theirs", "--fb", "64M", user="nobody")
        self.check_number_of_a_dead_one("nobody", self.host.get("theirs")["uuid"])
        if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 5):  # SO_PEERPIDFD
            self.check_number_of_a_dead_one("root", self.host.get("evil")["uuid"])
        self.check_unharmed()

    def check_number_of_a_dead_one(self, user, uuid):
        path = os.path.join(self.host.run_directory, "gate.sock")

        def attempt():
            connection, pid = self.connect_as(user, path)
            victim = self.start_as(pid)
            if not victim:
                connection.close()
                return False
            try:
                with Gate(path, connection) as gate:
                    gate.join(uuid)
                    self.assertNotEqual(gate.receive_message()[0], Gate.WELCOME)
                self.assertEqual(self.host.get(uuid)["processes"], [])
            finally:
                victim.kill()
                victim.wait()
            return True

        until(attempt, "a process with the number of another one")

    def test_memory_that_nobody_suspended_cannot_be_claimed(self):
        self.refused("claims_suspended_memory", "memory")

    def test_a_process_is_in_one_vgpu_only(self):
        guest = self.hostile("joined")
        guest.wait_line("joined")
        self.assertEqual([p["pid"] for p in self.host.get("evil")["processes"]], [guest.pid])

    def test_nonsense_is_hung_up_on(self):
        for behaviour in HUNG_UP:
            with self.subTest(behaviour=behaviour):
                self.hostile(behaviour).wait_line("hung up")
                self.good.wait_steps(1)
        self.check_unharmed()

    def test_descriptors_that_linger_hold_up_nobody(self):
        for faults in ("", "manager.old-kernel=fail,manager.old-kernel=fail@2"):
            self.host.restart(faults)
            hostile = self.hostile("strangers_that_linger")
            hostile.wait_line("all are hung up on")
            if faults:
                self.assertNotIn("not allowed", hostile.lines)
            self.good.wait_steps(1)
            hostile.kill()
        self.host.restart()
        self.check_unharmed()

    def test_strangers_that_say_nothing_keep_nobody_out(self):
        self.hostile("silent_strangers").wait_ready()
        self.good.wait_steps()
        self.host.vgpu("suspend", "good")
        self.host.vgpu("resume", "good")

    def test_a_process_that_joins_again_and_again_is_one_process(self):
        self.hostile("rejoins_for_ever").wait_ready()
        self.assertEqual(len(self.host.get("evil")["processes"]), 1)
        self.check_unharmed()

    def test_who_tells_for_ever_what_its_driver_sees_delays_nobody(self):
        guest = self.hostile("seen_for_ever").wait_ready()
        for _ in range(3):
            self.good.wait_steps(1)
            self.host.vgpu("suspend", "good")
            self.host.vgpu("resume", "good")
        self.assertTrue(guest.is_alive())
        self.check_unharmed()

    def test_garbage_in_the_instance_page_is_its_own_affair(self):
        guest = self.hostile("scribbles").wait_ready()
        vgpu = self.host.get("evil")
        self.assertLessEqual(vgpu["frame_buffer_used"], vgpu["frame_buffer"])
        self.assertEqual(vgpu["frame_buffer"], 64 * MIB)
        self.assertGreaterEqual(self.host.get("good")["frame_buffer_used"], 8 * MIB)
        self.assertLess(self.host.get("good")["frame_buffer_used"], 16 * MIB)
        self.host.vgpu("ls")
        guest.kill()
        self.host.wait_for("evil", lambda v: v["frame_buffer_used"] == 0, "to be empty")
        self.check_unharmed()

    def test_the_next_manager_is_not_harmed_by_garbage_in_a_page_either(self):
        guest = self.hostile("scribbles_and_hangs_up").wait_ready()
        self.host.restart()
        self.good.wait_steps()
        vgpu = self.host.get("evil")
        self.assertLessEqual(vgpu["frame_buffer_used"], vgpu["frame_buffer"])
        guest.kill()
        self.host.wait_state("evil", "idle")
        self.check_unharmed()

    def test_a_page_cannot_be_shortened(self):
        guest = self.hostile("resizes_page").wait_ready()
        self.assertNotIn("resized", guest.lines)
        self.check_unharmed()

    def test_a_guest_that_spoils_a_suspend_harms_no_other(self):
        neighbour = self.host.train("evil", "--size", "8M")
        for behaviour in SPOILERS:
            with self.subTest(behaviour=behaviour):
                guest = self.hostile(behaviour).wait_ready()
                result = self.host.vgpu("suspend", "evil", "--timeout", "1", code=None)
                if guest.is_alive():
                    self.assertNotEqual(result.code, 0, f"{behaviour}: {result}")
                guest.kill()
                self.host.wait_for(
                    "evil", lambda v: len(v["processes"]) == 1 and
                    v["state"] in ("running", "suspended"), "to go on without it")
                if result.code == 0:  # it died of its deed, and the others are better off
                    self.host.vgpu("resume", "evil")
                neighbour.wait_steps()
                self.good.wait_steps(1)
                until(lambda: self.host.info()["pool"]["used"] == 0, "the pool to be empty",
                      context=self.host.log)  # a resume is answered before that
        neighbour.finish()
        self.check_unharmed()

    def test_a_guest_that_never_answers_costs_no_more_than_the_timeout_and_some(self):
        neighbour = self.host.train("evil", "--size", "8M")
        self.hostile("silent_at_close").wait_ready()
        result = self.host.vgpu("suspend", "evil", "--timeout", "0.2", code=None)
        self.assertIn(result.code, (1, 4), result)
        neighbour.wait_steps()
        neighbour.finish()
        self.check_unharmed()

    def test_a_stopped_guest_does_not_stop_the_manager(self):
        # On another device: whoever is stopped while the simulated device works for him keeps it, which a
        # real one does not do.
        self.host.create("aside", "64M", device=1)
        guest = self.host.train("aside", "--size", "8M")
        guest.signal(signal.SIGSTOP)
        result = self.host.vgpu("suspend", "aside", "--timeout", "0.2", code=None)
        self.assertIn(result.code, (1, 4), result)
        self.assertIn(f"process {guest.pid} (guest-train) is stopped", result.errors)
        self.good.wait_steps()
        guest.signal(signal.SIGCONT)
        guest.wait_steps()
        until(lambda: self.host.vgpu("suspend", "aside", code=None).code == 0,
              "the guest to be suspended after all", context=self.host.log)
        self.host.vgpu("resume", "aside")
        guest.wait_steps()
        guest.finish()

    def test_a_crowd_that_waits_for_a_resume_is_let_in_as_far_as_there_is_room(self):
        neighbour = self.host.train("evil", "--size", "8M")
        self.host.vgpu("suspend", "evil")
        crowd = self.hostile("waiting_crowd")
        crowd.wait_line("all wait")
        until(lambda: len(self.host.get("evil")["processes"]) == 141, "all to be known",
              context=self.host.log)
        self.host.vgpu("resume", "evil")
        self.assertEqual(crowd.wait_line("welcome"), "welcome 127 refused 13")
        neighbour.wait_steps()
        self.check_unharmed()

    def test_there_is_room_for_128_processes_and_a_clear_word_for_the_next(self):
        crowd = self.hostile("crowd").wait_ready()
        self.assertIn("welcome 128", crowd.lines)
        self.assertEqual(len(self.host.get("evil")["processes"]), 128)
        self.refused("joined", "128 processes")
        crowd.kill()
        self.host.wait_state("evil", "idle")
        self.check_unharmed()


if __name__ == "__main__":
    case.main()
