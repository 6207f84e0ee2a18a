# SPDX-License-Identifier: Apache-2.0
"""A vGPU with two guests in the state in which an operation begins, and what must hold afterwards."""
import contextlib
import os
import signal

from harness import MIB, Host
from wait import until

STEPS = {
    "suspend": ["reserved", "closed", "asked", "exported", "kept", "released", "copied", "checkpointed",
                "moved", "recorded", "dropped"],
    "resume": ["checked", "fetched", "restored", "created", "copied", "recorded", "opened", "let-go", "dropped"],
    "migrate": ["checked", "closed", "asked", "exported", "kept", "released", "checkpointed", "left", "measured",
                "restored", "created", "copied", "recorded", "opened", "let-go", "dropped"],
}
TARGETS = {"suspend": 0, "resume": 1, "migrate": 1}
METHODS = {"suspend": ("SuspendVgpu", {}), "resume": ("ResumeVgpu", {"device": "1"}),
           "migrate": ("MigrateVgpu", {"device": "1"})}

# After the point of no return the operation has happened, before it it has not.
FINAL = {"suspend": "recorded", "resume": "recorded", "migrate": "recorded"}


UNDOABLE = {"suspend": ["reserved", "closed", "asked", "exported", "kept", "released", "moved"],
            "resume": ["checked", "fetched", "restored", "created", "copied"],
            "migrate": ["checked", "closed", "asked", "exported", "kept", "released", "left", "measured", "restored",
                        "created", "copied"]}


class Scene:
    def __init__(self, test, kind, fault=""):
        self.host = test.enterContext(Host())
        self.kind, self.test = kind, test
        self.host.start(fault)
        self.host.call("CreateVgpu", name="train", frame_buffer=256 * MIB, device="0")
        self.guests = [self.host.guest("train", "--size", size, "--small", "20")
                       for size in ("9M", "4M")]
        self.sizes = {process["pid"]: process["memory_used"]
                      for process in self.host.vgpu("train")["processes"]}
        if kind == "resume":
            self.host.call("SuspendVgpu", name="train")

    def run(self):
        method, parameters = METHODS[self.kind]
        return self.host.call(method, name="train", **parameters)

    def go_back(self):
        """To where it was before it ran."""
        method, parameters = {"resume": ("SuspendVgpu", {}), "migrate": ("MigrateVgpu", {"device": "0"})}[self.kind]
        self.host.call(method, name="train", **parameters)
        if self.kind == "resume":
            self.host.call("ResumeVgpu", name="train", device="0")
            self.host.call("SuspendVgpu", name="train")

    def run_until(self, step):
        method, parameters = METHODS[self.kind]
        client = self.host.client()
        client.send(method, name="train", **parameters)
        self.host.wait_paused(f"{self.kind}.{step}")
        return client

    def go_on(self, step):
        self.host.go_on(f"{self.kind}.{step}")

    def state_before(self):
        return ("suspended", 0) if self.kind == "resume" else ("running", 0)

    def state_after(self):
        return ("suspended", 0) if self.kind == "suspend" else ("running", 1)

    def check_state(self, has_happened):
        vgpu = self.host.vgpu("train")
        wanted = self.state_after() if has_happened else self.state_before()
        self.test.assertEqual((vgpu["state"], vgpu["device"]), wanted)

    def check_usable(self):
        """The next commands work, nobody lost a byte, nothing is left behind."""
        host, alive = self.host, [g for g in self.guests if g.process.poll() is None]
        if host.vgpu("train")["state"] == "suspended":
            host.call("ResumeVgpu", name="train")
        host.call("SuspendVgpu", name="train")
        host.call("ResumeVgpu", name="train", device="0")
        host.call("MigrateVgpu", name="train", device="1")
        for guest in alive:
            guest.wait_steps()
        self.check_clean(alive)

    def check_clean(self, alive):
        host = self.host
        self.test.assertEqual({process["pid"]: process["memory_used"]
                               for process in host.vgpu("train")["processes"]},
                              {guest.pid: self.sizes[guest.pid] for guest in alive})
        until(lambda: host.call("GetInfo")["pool"]["used"] == 0, "the pool to be empty")
        for guest in self.guests:
            guest.kill()
        self.test.assertEqual(until(lambda: host.vgpu("train")
                                        if host.vgpu("train")["state"] == "idle" else None,
                                    "the vGPU to be idle")
                              ["frame_buffer_used"], 0)
        host.call("RemoveVgpu", name="train")
        self.test.assertEqual([d["memory_promised"] for d in host.call("ListDevices")["devices"]],
                              [0, 0])
        until(lambda: not host.movers(), "the movers to go")
        host.kill_manager()
        self.test.assertEqual(host.labels(), [])


def is_dead(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def kill_all(pids):
    """And their sockets are closed."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: is_dead(pid), f"process {pid} to be dead")


def steps(*kinds):
    return [(kind, step) for kind in kinds or STEPS for step in STEPS[kind]]


def add_tests(case, table):
    """One test for each operation and step of @table."""
    for kind, step in table:
        def run(self, kind=kind, step=step):
            self.check(kind, step)

        setattr(case, f"test_{kind}_{step}", run)
