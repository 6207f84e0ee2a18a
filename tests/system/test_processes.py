#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guests of all kinds survive suspend, resume and migrate with their memory intact."""
import fcntl
import os
import resource
import signal
import sys
import unittest

import case
import stage
from wait import until


# What the driver shows a program: the number of devices and the UUID of the first.
SHOW_DEVICES = """
import ctypes
cuda, n, uuid = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.create_string_buffer(16)
cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(n)), cuda.cuDeviceGetUuid(uuid, 0)
print(n.value, uuid.raw.hex())
"""


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

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
    def test_a_process_of_another_user_runs_in_a_vgpu_of_its_own(self):
        self.host.vgpu("create", "theirs", "--fb", "64M", user="nobody")
        guest = self.host.run("theirs", "guest-train", "--size", "4M", user="nobody").wait_ready()
        self.host.vgpu("suspend", "theirs")
        self.host.vgpu("resume", "theirs", "--device", "1", user="nobody")
        guest.finish()

    def test_a_script_that_hides_the_variable_from_a_guest_shows_it_no_other_device(self):
        self.host.create("second", device=1)
        shown = self.host.vgpu("run", "--vgpu", "second", "--", "/usr/bin/env", "-u",
                               "CUDA_VISIBLE_DEVICES", sys.executable, "-c", SHOW_DEVICES).output
        self.assertEqual(shown.split(), ["1", self.host.device(1)["uuid"][4:].replace("-", "")])

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

    def test_a_program_that_has_not_come_to_cuda_is_counted(self):
        self.host.create("train")
        guest = self.host.run("train", "/bin/cat")
        vgpu = self.host.wait_for("train", lambda vgpu: vgpu["processes"], "to have a process")
        self.assertEqual(vgpu["state"], "running")
        self.assertEqual(vgpu["processes"][0]["pid"], guest.pid)
        self.assertIn("has 1 process", self.host.vgpu("rm", "train", code=7).errors)
        self.assertIn("have not called CUDA yet", self.host.vgpu("suspend", "train", code=7).errors)
        guest.kill()
        self.host.wait_for("train", lambda vgpu: not vgpu["processes"], "to have no process")
        self.assertEqual(self.host.get("train")["state"], "idle")

    def test_a_program_that_joins_is_counted_once(self):
        guest = self.host.train(self.host.create("train"), "--size", "4M")
        self.assertEqual([one["pid"] for one in self.host.get("train")["processes"]], [guest.pid])
        guest.finish()

    def test_a_program_that_is_not_there_leaves_no_transient_vgpu(self):
        self.host.vgpu("run", "--fb", "16M", "--", "/nonexistent/program", code=127)
        self.assertEqual(self.host.names(), [])

    def test_a_program_in_a_suspended_vgpu_waits_for_the_resume(self):
        first = self.host.train(self.host.create("train"), "--size", "4M")
        self.host.vgpu("suspend", "train")
        refused = self.host.vgpu("run", "--vgpu", "train", "--no-wait", "--", "true", code=7)
        self.assertIn("is suspended", refused.errors)
        waiting = self.host.vgpu("run", "--vgpu", "train", "--", "true")
        self.assertEqual(waiting.errors, "vgpu: run: vGPU train is suspended: the program's first CUDA call waits until "
                                         "'vgpu resume train'\n")
        second = self.host.run("train", "guest-train", "--size", "4M")
        self.host.wait_for("train", lambda vgpu: len(vgpu["processes"]) == 2, "to have both")
        self.assertEqual(self.host.get("train")["state"], "suspended")
        self.host.vgpu("resume", "train")
        second.wait_ready()
        self.assertEqual(self.host.vgpu("run", "--vgpu", "train", "--", "true").errors, "")
        first.finish()
        second.finish()

    def test_a_guest_that_ends_just_before_the_manager_leaves_nothing_in_the_keeper(self):
        guest = self.host.train(self.host.create("train"), "--size", "4M")
        self.host.manager.send_signal(signal.SIGSTOP)
        guest.kill()
        self.host.manager.send_signal(signal.SIGTERM)
        self.host.manager.send_signal(signal.SIGCONT)
        self.assertEqual(self.host.wait_manager(), 0)
        self.assertEqual(self.host.keeper_labels(), [])

    def test_a_process_that_starts_while_the_manager_is_replaced_waits_for_the_next_one(self):
        self.host.create("train")
        environment = self.host.call("PrepareRun", name="train")["environment"]
        log = os.path.join(self.host.directory, "gate-log")
        for end in (self.host.kill, self.host.stop):
            end()
            guest = self.host.spawn_guest(["guest-train", "--size", "4M", "--steps", "3"],
                                          {**environment, "OPENVGPU_GATE_LOG": log})
            self.wait_logged(log, "waiting for another manager", 1)
            self.host.start()
            guest.wait_line("done 3 ok")
            self.assertEqual(guest.join(), 0, guest.context())
            os.unlink(log)

    def take_simulated_slots(self):
        """src/sim/host-layout.h: as if as many processes used the simulated host as there is room for."""
        slots, kept, first, size = 2048, 64, 8, 24
        file = open(os.path.join(self.host.run_directory, "sim", "slots"), "r+b", buffering=0)
        self.addCleanup(file.close)
        for i in range(kept, slots):
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, i)
            except BlockingIOError:
                continue  # it has a process
            os.pwrite(file.fileno(), os.getpid().to_bytes(4, "little"), first + i * size)
        os.pwrite(file.fileno(), slots.to_bytes(4, "little"), 0)

    def test_a_manager_finds_its_devices_among_as_many_processes_as_there_can_be(self):
        guest = self.host.train(self.host.create("train"), "--size", "4M", "--on-demand")
        self.host.kill()  # before: else it would look at who we are
        self.take_simulated_slots()
        self.host.start()
        late = self.host.run("train", "guest-train", "--size", "4M")
        self.assertNotEqual(late.join(), 0)
        self.assertIn("has 1984 processes already", "\n".join(late.errors))
        guest.step()

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

    def test_a_program_that_allocates_in_the_order_of_streams(self):
        guest = self.host.train(self.host.create("train"), "--size", "16M", program="guest-ordered")
        self.around(guest)
        for _ in range(5):
            self.host.vgpu("suspend", "train", "--keep-context")
            process = self.host.get("train")["processes"][0]
            self.assertGreaterEqual(process["memory_movable"], 16 << 20)
            self.assertEqual(process["memory_movable"], process["memory_used"])
            self.host.vgpu("resume", "train")
            guest.wait_steps(2)
        guest.finish()

    def test_memory_of_pools_that_is_left_to_the_driver_moves_with_it(self):
        guest = self.host.train(self.host.create("train"), "--size", "8M", "--async-pool",
                                OPENVGPU_NATIVE_POOLS="1")
        process = self.host.get("train")["processes"][0]
        self.assertEqual(process["memory_used"] - process["memory_movable"], 4 << 20)
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
