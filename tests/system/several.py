# SPDX-License-Identifier: Apache-2.0
"""Test cases with vGPUs of several devices."""
import contextlib

import case
from wait import until

MIB = 1 << 20


class Case(case.Case):
    HOST = {"devices": "3xH200:1G"}

    def make(self, name, devices, frame_buffer=64, **parameters):
        return self.host.call("CreateVgpu", name=name, frame_buffer=frame_buffer * MIB, device=devices,
                              **parameters)["vgpu"]

    def guest(self, name, **environment):
        return self.host.run(name, "guest-devices", **environment).wait_ready()

    def tell(self, guest, line):
        """What the guest answers."""
        n = len(guest.lines)
        guest.write(line)
        until(lambda: len(guest.lines) > n or not guest.is_alive(), f"an answer to '{line}'",
              context=guest.context)
        self.assertTrue(guest.is_alive(), guest.context())
        return guest.lines[n]

    def seen(self, guest):
        """The UUIDs that it sees, in its order, as 32 digits; and how much memory each has."""
        lines = [line.split() for line in guest.lines if line.startswith("device ")]
        return [line[2] for line in lines], [int(line[3]) for line in lines]

    def uuids(self, *indices):
        return [self.host.device(index)["uuid"].removeprefix("GPU-").replace("-", "") for index in indices]

    def used(self, name):
        return [part["frame_buffer_used"] for part in self.host.get(name)["parts"]]

    def end(self, guest):
        self.assertEqual(guest.end_input(), 0, guest.context())

    def refused(self, *arguments):
        """What a command that fails says."""
        done = self.host.vgpu(*arguments, code=None)
        self.assertNotEqual(done.code, 0, str(done))
        return done.errors

    # Of the vGPU "job" of two devices.

    def start(self):
        """A guest with large and small memory on both, each with its own contents."""
        guest = self.guest("job")
        for line in ("hold 0 6M", "hold 1 10M", "hold 0 4M", "hold 1 64K", "pool 0 2M", "hold 0 100K"):
            self.assertEqual(self.tell(guest, line), "held")
        for line in ("fill 0 17", "fill 1 34"):
            self.assertEqual(self.tell(guest, line), "filled")
        return guest

    def check(self, guest):
        """Not a byte has changed; and it works."""
        for line, answer in (("check 0 17", "right"), ("check 1 34", "right"), ("copy 0 1", "copied"),
                             ("hold 0 2M", "held"), ("hold 1 2M", "held"), ("fill 0 17", "filled"),
                             ("fill 1 34", "filled")):
            self.assertEqual(self.tell(guest, line), answer, self.host.log())

    def call(self, method, **parameters):
        return self.host.call(method, name="job", **parameters)

    def memory(self):
        return [device["memory_used"] for device in self.host.call("ListDevices")["devices"]]

    def mover_of(self, device):
        """Its process."""
        uuid = self.host.device(device)["uuid"]
        for pid in self.host.movers():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if uuid.encode() in file.read():
                        return pid
        raise AssertionError(f"device {device} has no mover")
