#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random operations on crowded devices: stress_crowd.py [SECONDS [SEED]].

Several vGPUs on two devices that cannot take them all, and processes outside any vGPU that come and
go. Whoever is refused stays as it was; nobody fails, no process is lost, no byte of memory is wrong.
"""
import collections
import os
import random
import subprocess
import sys
import threading
import time

import stage
from guest import Guest
from host import Host
from wire import Refused

MIB = 1 << 20
VGPUS, SIZE = 14, 60
# What a crowded device may answer; all else is a mistake of ours.
EXPECTED = {"NoRoom", "WrongState", "Busy", "PoolTooSmall"}


class Crowd:
    def __init__(self, host, seed):
        self.host, self.random = host, random.Random(seed)
        self.outcomes = collections.Counter()
        self.mistakes = []
        self.names = [host.create(f"train-{i}", f"{SIZE + 10}M", device=i % 2) for i in range(VGPUS)]
        self.guests = []
        for name in self.names:
            self.guests.append(host.train(name, "--size", f"{SIZE}M", "--piece", "20M", "--still", "1",
                                          "--small", "10", "--pause", "5"))
            host.vgpu("suspend", name)
        self.is_over = False

    def operate(self, seed):
        choice = random.Random(seed)
        while not self.is_over:
            name = choice.choice(self.names)
            method = choice.choice(["SuspendVgpu", "ResumeVgpu", "ResumeVgpu", "MigrateVgpu"])
            where = {} if method == "SuspendVgpu" else {"device": str(choice.randrange(2))}
            try:
                answer = self.host.call(method, name=name, timeout=5, **where)
                outcome = "done"
                if answer["lost"]:
                    self.mistakes.append(answer["lost"])
            except Refused as error:
                outcome = error.name
                if outcome not in EXPECTED:
                    self.mistakes.append(f"{method} {name}: {error} {error.parameters}")
            self.outcomes[f"{method} {outcome}"] += 1

    def stranger(self):
        """One that takes most of what is free, as somebody may at any time."""
        device = self.random.randrange(2)
        try:
            size = self.host.driver_memory()[device] - self.random.randrange(40, 400) * MIB
        except subprocess.CalledProcessError:
            size = 0  # who asks needs room for a context
        if size < 2 * MIB:
            return
        guest = Guest([stage.GUESTS / "guest-hold", size], self.host.environment(
            OPENVGPU_SIM=os.path.join(self.host.run_directory, "sim"), CUDA_VISIBLE_DEVICES=str(device),
            LD_LIBRARY_PATH=os.path.dirname(self.host.info()["driver_path"])))
        self.host.guests.append(guest)
        try:
            guest.wait_ready().hold("attempt")
            self.outcomes["stranger " + guest.lines[-2]] += 1
            time.sleep(self.random.random())  # waits for nothing: it is in the way for so long
        except AssertionError:
            self.outcomes["stranger without a context"] += 1
        guest.kill()
        self.host.guests.remove(guest)

    def run(self, seconds, seed):
        workers = [threading.Thread(target=self.operate, args=(seed * 100 + i,)) for i in range(4)]
        for worker in workers:
            worker.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.stranger()
        self.is_over = True
        for worker in workers:
            worker.join()

    def check(self):
        """With room for all, two after another, all of them are whole."""
        states = {name: self.host.get(name)["state"] for name in self.names}
        bad = {name: state for name, state in states.items() if state not in ("running", "suspended")}
        assert not bad and not self.mistakes, f"{bad} {self.mistakes}\n{self.host.log()}"
        for name, guest in zip(self.names, self.guests):
            if states[name] == "suspended":
                self.host.vgpu("resume", name, "--device", self.roomier())
            guest.wait_steps()
            guest.finish()

    def roomier(self):
        """Where fewest run."""
        devices = [vgpu["device"] for vgpu in self.host.call("ListVgpus")["vgpus"]
                   if vgpu["state"] == "running"]
        return min((0, 1), key=devices.count)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    stage.make()
    host = Host(devices="2xH200:1G", pool="1G")
    try:
        host.start()
        crowd = Crowd(host, seed)
        crowd.run(seconds, seed)
        for outcome, n in sorted(crowd.outcomes.items()):
            print(f"{n:6} {outcome}")
        crowd.check()
    except BaseException:
        print(f"seed {seed}", file=sys.stderr)
        host.close(expect_clean=False)
        raise
    host.close()


if __name__ == "__main__":
    main()
