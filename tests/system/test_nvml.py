#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVML against a real manager: changes take effect there, guests see their own, clients come and go."""
import os
import subprocess
import sys
import time

import case
import reach
import stage
from wait import PATIENCE, until

SUCCESS, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, IN_USE, UNKNOWN = \
    "0", "2", "3", "4", "6", "19", "999"
NOBODY = 65534
PROGRAM = os.path.join(reach.scripts(), "nvml_client.py")


class Client:
    """One process with our library loaded; ask() is one call of it."""

    def __init__(self, host, user=None):
        library = os.path.join(stage.PRIVATE, "nvml", "libnvidia-ml.so.1")
        self.process = subprocess.Popen(
            [str(stage.SYSTEM_PYTHON if user else sys.executable), PROGRAM, library], text=True, user=user,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=host.environment())
        self.init = self.read()

    def read(self):
        line = self.process.stdout.readline()
        assert line, "the client died"
        code, *values = line.split()
        return (code, *values)

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.read()

    def code(self, *words):
        return self.ask(*words)[0]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(PATIENCE)

    def kill(self):
        self.process.kill()
        self.close()


class Nvml(case.Case):
    HOST = {"devices": "2xH200:8G"}

    def client(self, user=None):
        client = Client(self.host, user)
        self.addCleanup(client.close)
        self.assertEqual(client.init, (SUCCESS,))
        return client

    def create(self, name="train"):
        """Its NVML id, when the manager has published it."""
        self.host.create(name, "2G")
        return self.host.get(name)["id"]

    def wait_shown(self, client, vgpu):
        until(lambda: client.code("nvmlVgpuInstanceGetFbUsage", vgpu, "@") == SUCCESS,
              "the vGPU to be on the state page")

    def test_what_is_set_takes_effect(self):
        client, vgpu = self.client(), self.create()
        self.wait_shown(client, vgpu)
        self.assertEqual(client.code("nvmlVgpuInstanceSetEncoderCapacity", vgpu, 40), SUCCESS)
        until(lambda: client.ask("nvmlVgpuInstanceGetEncoderCapacity", vgpu, "@") == (SUCCESS, "40"),
              "the capacity to be set")
        self.assertEqual(client.code("nvmlVgpuInstanceClearAccountingPids", vgpu), SUCCESS)
        self.assertEqual(client.code("nvmlDeviceSetVgpuHeterogeneousMode", "D1", "{0x1000008,0}"),
                         SUCCESS)
        until(lambda: client.ask("nvmlDeviceGetVgpuHeterogeneousMode", "D1", "{0x1000008,7}")
              == (SUCCESS, "16777224,0"), "the mode to be set")

    def test_a_vgpu_of_several_devices_is_one_on_each(self):
        client = self.client()
        parts = self.host.call("CreateVgpu", name="both", frame_buffer=2 << 30, device="1,0")["vgpu"]["parts"]
        guest = self.host.run("both", "guest-devices").wait_ready()
        guest.write("hold 1 8M")
        guest.wait_line("held")
        for part, used in zip(parts, (0, 8 << 20)):
            vgpu = part["id"]
            self.wait_shown(client, vgpu)
            until(lambda: client.ask("nvmlVgpuInstanceGetFbUsage", vgpu, "@") == (SUCCESS, str(used)),
                  f"{used} bytes to be used on device {part['device']}")
            self.assertEqual(client.ask("nvmlVgpuInstanceGetUUID", vgpu, "$", 256)[1],
                             self.host.get("both")["uuid"])
            self.assertEqual(client.ask("nvmlDeviceGetActiveVgpus", f"D{part['device']}", "{4}", "{0,0,0,0}"),
                             (SUCCESS, "1", f"{vgpu},0,0,0"))
            self.assertEqual(client.code("nvmlVgpuInstanceSetEncoderCapacity", vgpu, 40), SUCCESS)
        self.assertEqual(guest.end_input(), 0)

    def test_what_is_in_the_way_has_nvmls_code(self):
        client, vgpu = self.client(), self.create()
        self.wait_shown(client, vgpu)
        self.assertEqual(client.code("nvmlDeviceSetVgpuHeterogeneousMode", "D0", "{0x1000008,0}"),
                         IN_USE)
        self.assertEqual(client.code("nvmlDeviceSetVgpuSchedulerState", "D0", "{1,0,0,0}"),
                         NOT_SUPPORTED)
        self.assertEqual(client.code("nvmlSetVgpuVersion", "{65536,65536}"), IN_USE)
        self.assertEqual(client.code("nvmlDeviceSetVirtualizationMode", "D0", 0), NOT_SUPPORTED)
        self.assertEqual(client.code("nvmlDeviceVgpuForceGspUnload", "D0"), NOT_SUPPORTED)
        self.host.vgpu("rm", "train")
        until(lambda: client.code("nvmlSetVgpuVersion", "{65536,65536}") == SUCCESS,
              "the vGPU to be out of the way")

    def test_only_root_may_change_something(self):
        if os.geteuid() != 0:
            self.skipTest("cannot become another user here")
        client, vgpu = self.client(user=NOBODY), self.create()
        self.wait_shown(client, vgpu)
        for question in (("nvmlVgpuInstanceSetEncoderCapacity", vgpu, 40),
                         ("nvmlVgpuInstanceClearAccountingPids", vgpu),
                         ("nvmlDeviceSetVgpuHeterogeneousMode", "D1", "{0x1000008,0}"),
                         ("nvmlDeviceSetVgpuSchedulerState", "D1", "{1,0,0,0}"),
                         ("nvmlSetVgpuVersion", "{65536,65536}")):
            self.assertEqual(client.code(*question), NO_PERMISSION, question)
        self.assertEqual(client.code("nvmlVgpuInstanceSetEncoderCapacity", vgpu, 101),
                         INVALID_ARGUMENT)
        self.assertEqual(client.code("nvmlVgpuInstanceSetEncoderCapacity", 99, 101), NOT_FOUND)

    def test_a_client_lives_through_a_restart_of_the_manager(self):
        client, vgpu = self.client(), self.create()
        self.wait_shown(client, vgpu)
        self.host.kill()
        self.assertEqual(client.code("nvmlVgpuInstanceGetFbUsage", vgpu, "@"), SUCCESS)
        self.assertEqual(client.code("nvmlVgpuInstanceSetEncoderCapacity", vgpu, 40), UNKNOWN)
        self.host.start()
        self.assertEqual(client.code("nvmlVgpuInstanceSetEncoderCapacity", vgpu, 41), SUCCESS)
        until(lambda: client.ask("nvmlVgpuInstanceGetEncoderCapacity", vgpu, "@") == (SUCCESS, "41"),
              "the client to find the new state page")

    def n_descriptors(self):
        return len(os.listdir(f"/proc/{self.host.manager.pid}/fd"))

    def test_clients_that_die_leave_nothing(self):
        vgpu, before = self.create(), self.n_descriptors()
        clients = [Client(self.host) for _ in range(8)]
        self.wait_shown(clients[0], vgpu)
        for client in clients:
            client.process.stdin.write(f"nvmlVgpuInstanceSetEncoderCapacity {vgpu} 7\n")
            client.process.stdin.flush()
            client.kill()
        until(lambda: self.n_descriptors() <= before, "the manager to forget its clients")
        self.assertEqual(self.client().code("nvmlVgpuInstanceSetEncoderCapacity", vgpu, 8), SUCCESS)

    def manager_seconds(self):
        """Of the processors, that the manager has used."""
        with open(f"/proc/{self.host.manager.pid}/stat", encoding="ascii") as file:
            ticks = file.read().rsplit(")", 1)[1].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def test_thousands_of_clients_do_not_slow_the_manager_and_leave_nothing(self):
        vgpu, n = self.create(), 2000
        self.wait_shown(self.client(), vgpu)
        before = self.n_descriptors(), sorted(os.listdir(self.host.run_directory))
        seconds, begin = self.manager_seconds(), time.monotonic()
        crowd = subprocess.Popen(
            [os.environ["TEST_NVML_CROWD"], os.path.join(stage.PRIVATE, "nvml", "libnvidia-ml.so.1"),
             str(n), str(vgpu)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=self.host.environment())
        self.addCleanup(crowd.kill)
        self.assertEqual(crowd.stdout.readline(), f"ready {n}\n")
        self.assertEqual((self.n_descriptors(), sorted(os.listdir(self.host.run_directory))), before)
        used, passed = self.manager_seconds() - seconds, time.monotonic() - begin
        self.assertLess(used, 0.1 + 0.1 * passed, "as without them: it does not know of them")
        self.assertEqual(self.client().code("nvmlVgpuInstanceSetEncoderCapacity", vgpu, 9), SUCCESS)
        crowd.stdin.close()  # they are killed
        self.assertEqual((crowd.stdout.read(), crowd.wait(PATIENCE)), ("gone\n", 0))
        crowd.stdout.close()
        until(lambda: (self.n_descriptors(), sorted(os.listdir(self.host.run_directory))) == before,
              "nothing to be left of them")

    def test_a_guest_sees_its_own_and_changes_nothing(self):
        other = self.create("other")
        own = self.create("train")
        library = os.path.join(stage.PRIVATE, "nvml", "libnvidia-ml.so.1")
        questions = [("nvmlDeviceGetCount_v2", "@"), ("nvmlDeviceGetVirtualizationMode", "D0", "@"),
                     ("nvmlDeviceGetActiveVgpus", "D0", "@", "@"),
                     ("nvmlVgpuInstanceGetFbUsage", own, "@"),
                     ("nvmlVgpuInstanceGetFbUsage", other, "@"),
                     ("nvmlVgpuInstanceSetEncoderCapacity", own, 1),
                     ("nvmlDeviceGetHandleByIndex_v2", 1, "@")]
        done = self.host.vgpu("run", "--vgpu", "train", "--", "sh", "-c",
                              'printf "%s\\n" "$3" | "$0" "$1" "$2"', sys.executable, PROGRAM, library,
                              "\n".join(" ".join(map(str, question)) for question in questions))
        self.assertEqual(done.output.splitlines(),
                         ["0", "0 1", "0 2", f"{NOT_SUPPORTED} 0 0", "0 0", f"{NOT_FOUND} 0",
                          NOT_SUPPORTED, f"{INVALID_ARGUMENT} 0"])


if __name__ == "__main__":
    case.main()
