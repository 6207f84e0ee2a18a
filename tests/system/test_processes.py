#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guests of all kinds survive suspend, resume and migrate with their memory intact."""
import os
import resource
import signal
import unittest

import case
import stage
from wait import until


class Processes(case.Case):
    def wait_logged(self, log, words, n):
        def count():
            if not os.path.exists(log):
                return 0
            with open(log) as file:
                return file.read().count(words)
        until(lambda: count() >= n, f"the gate to write '{words}'", context=self.host.log)

    def test_devices_that_are_hidden_from_the_manager_are_there(self):
        self.host.restart(CUDA_VISIBLE_DEVICES="1")
        self.assertEqual(len(self.host.call("ListDevices")["devices"]), 2)
        guest = self.host.train(self.host.create("train"), "--size", "4M")
        self.around(guest)
        guest.finish()

    @unittest.skipUnless(stage.can_be_used_by("nobody"), "needs root, and a build that all can read")
    def test_a_process_of_another_user_runs_in_a_vgpu_of_its_own(self):
        self.host.vgpu("create", "theirs", "--fb", "64M", user="nobody")
        guest = self.host.run("theirs", "guest-train", "--size", "4M", user="nobody").wait_ready()
        self.host.vgpu("suspend", "theirs")
        self.host.vgpu("resume", "theirs", "--device", "1", user="nobody")
        guest.finish()

    def test_a_vgpu_whose_last_process_ends_while_the_disk_is_full_can_be_used_again(self):
        """A limit on the size of vgpud's files stands for the disk: the writes fail in the same place."""
        guest = self.host.train(self.host.create("train"), "--size", "4M")
        old = resource.prlimit(self.host.manager.pid, resource.RLIMIT_FSIZE,
                               (0, resource.RLIM_INFINITY))
        guest.kill()
        self.host.wait_state("train", "idle")
        resource.prlimit(self.host.manager.pid, resource.RLIMIT_FSIZE, old)
        self.host.restart()
        self.host.wait_state("train", "idle")
        self.host.train("train", "--size", "4M").finish()

    def test_a_guest_that_ends_just_before_the_manager_leaves_nothing_in_the_keeper(self):
        guest = self.host.train(self.host.create("train"), "--size", "4M")
        self.host.manager.send_signal(signal.SIGSTOP)
        guest.kill()
        self.host.manager.send_signal(signal.SIGTERM)
        self.host.manager.send_signal(signal.SIGCONT)
        self.assertEqual(self.host.wait_manager(), 0)
        self.assertEqual(self.host.keeper_labels(), [])

    def around(self, guest, name="train", logs=(None,)):
        """Through everything, with steps between."""
        host = self.host
        for command in (["suspend", name], ["resume", name, "--device", "1"],
                        ["migrate", name, "--device", "0"], ["suspend", name, "--keep-context"],
                        ["resume", name]):
            host.vgpu(*command)
            if command[0] != "suspend":
                for log in logs:
                    guest.wait_steps(2, log)

    def test_a_program_with_one_thread(self):
        guest = self.host.train(self.host.create("train"), "--size", "24M", "--small", "50")
        self.around(guest)
        guest.finish()

    def test_a_program_that_launches_from_many_threads(self):
        guest = self.host.train(self.host.create("train"), "--size", "24M", "--small", "64",
                                "--threads", "16", "--pause", "0")
        self.around(guest)
        guest.finish()

    def test_a_program_that_does_nothing_but_synchronize(self):
        guest = self.host.train(self.host.create("train"), "--size", "8M", "--sync-loop")
        self.around(guest)
        guest.finish()

    def test_a_program_with_memory_of_an_asynchronous_pool(self):
        guest = self.host.train(self.host.create("train"), "--size", "8M", "--async-pool")
        self.around(guest)
        guest.finish()

    def test_several_processes_in_one_vgpu(self):
        guest = self.host.train(self.host.create("train"), "--size", "8M", "--children", "3")
        logs = [guest.log, *(f"{guest.log}.{i}" for i in (1, 2, 3))]
        until(lambda: all(guest.steps(log) for log in logs), "all four to take a step")
        pids = {process["pid"] for process in self.host.get("train")["processes"]}
        self.assertEqual(len(pids), 4)
        self.around(guest, logs=logs)
        self.assertEqual({p["pid"] for p in self.host.get("train")["processes"]}, pids)
        for pid in pids - {guest.pid}:
            os.kill(pid, signal.SIGTERM)
        guest.finish()
        done = [line for line in guest.lines if line.startswith("done ")]
        self.assertEqual([line.split()[2] for line in done], ["ok"] * 4, guest.lines)

    def test_a_killed_process_takes_nothing_of_the_others(self):
        guest = self.host.train(self.host.create("train"), "--size", "8M", "--children", "1")
        log = guest.log + ".1"
        until(lambda: guest.steps(log), "the child to take a step")
        [child] = [p["pid"] for p in self.host.get("train")["processes"] if p["pid"] != guest.pid]
        self.host.vgpu("suspend", "train")
        os.kill(child, signal.SIGKILL)
        self.host.wait_for("train", lambda v: len(v["processes"]) == 1, "to lose a process")
        self.host.vgpu("resume", "train")
        guest.wait_steps()
        guest.finish()

    def test_a_suspended_process_can_be_killed(self):
        guest = self.host.train(self.host.create("train"), "--size", "8M")
        self.host.vgpu("suspend", "train")
        guest.kill()
        self.host.wait_state("train", "idle")
        until(lambda: self.host.info()["pool"]["used"] == 0, "the pool to be empty",
              context=self.host.log)

    def test_a_process_that_starts_in_a_suspended_vgpu_waits_for_it(self):
        """Its environment was made before, by a `vgpu run` that is slower than the suspend."""
        guest = self.host.train(self.host.create("train"), "--size", "8M")
        environment = self.host.call("PrepareRun", name="train")["environment"]
        self.host.vgpu("suspend", "train")
        log = os.path.join(self.host.directory, "gate-log")
        late = self.host.spawn_guest(["guest-train", "--size", "4M", "--steps", "3"],
                                     {**environment, "OPENVGPU_GATE_LOG": log})
        self.wait_logged(log, "waiting for the vGPU", 1)
        guest_count = len(self.host.get("train")["processes"])
        self.host.restart()
        self.wait_logged(log, "waiting for the vGPU", 2)
        self.host.vgpu("resume", "train", "--device", "1")
        late.wait_line("done 3 ok")
        self.assertEqual(late.join(), 0, late.context())
        self.assertGreaterEqual(guest_count, 1)
        guest.wait_steps()
        guest.finish()

    def test_many_times_out_and_back(self):
        guest = self.host.train(self.host.create("train"), "--size", "4M", "--pause", "1")
        for i in range(20):
            self.host.call("SuspendVgpu", name="train")
            self.host.call("ResumeVgpu", name="train", device=str(i % 2))
            self.host.call("MigrateVgpu", name="train", device=str((i + 1) % 2))
        guest.wait_steps()
        guest.finish()

    def test_two_vgpus_are_moved_at_the_same_time(self):
        guests = [self.host.train(self.host.create(f"train-{i}", "64M", device=i), "--size", "16M")
                  for i in (0, 1)]
        for _ in range(3):
            for methods in (("SuspendVgpu",), ("ResumeVgpu",), ("MigrateVgpu", "1", "0"),
                            ("MigrateVgpu", "0", "1")):
                connections = []
                for i in (0, 1):
                    connection = self.host.connect()
                    parameters = {"name": f"train-{i}"}
                    if len(methods) > 1:
                        parameters["device"] = methods[1 + i]
                    connection.send(methods[0], **parameters)
                    connections.append(connection)
                for connection in connections:
                    connection.answer()
                    connection.close()
        for guest in guests:
            guest.wait_steps()
            guest.finish()


if __name__ == "__main__":
    case.main()
