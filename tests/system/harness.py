# SPDX-License-Identifier: Apache-2.0
"""A real vgpud in directories of its own, with clients and guests: what the system tests drive.

The programs come from the environment, as set by meson: TEST_VGPUD, TEST_KEEPER, TEST_MOVER,
TEST_GATE, TEST_SIM, TEST_GUESTS.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import daemons
import scratch
from guest import Guest
from wait import PATIENCE, until
from wire import Control, Keeper, Refused

# A fault for the next mover of one device only: the one that comes after it shall live.
MOVER_SCRIPT = """#!/bin/sh
unset OPENVGPU_FAULT
export OPENVGPU_FAULT_OF="$1"
exec "$TEST_MOVER" "$@"
"""

daemons.set_environment()
HERE = pathlib.Path(__file__).parent
MIB = 1 << 20


class FakeGuest(Guest):
    """fake_gate.py."""

    def __init__(self, host, vgpu, *sizes, user=0):
        super().__init__([sys.executable, HERE / "fake_gate.py", vgpu, *sizes],
                         dict(os.environ, OPENVGPU_RUN=str(host.run),
                              **({"FAKE_GATE_USER": str(user)} if user else {})))

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def plan(self, line):
        """One at a time: select() does not see a line that was read with another one."""
        before = self.count("planned")
        self.tell(line)
        self.wait_for("planned", before + 1)

    def count(self, word):
        return sum(1 for line in list(self.lines) if line.split(" ")[0] == word)

    def wait_for(self, word, times=1):
        until(lambda: self.count(word) >= times, f"'{word}' of the guest, {times} times",
              context=self.context)
        return self

    def is_intact(self):
        before = self.count("intact") + self.count("DAMAGED")
        self.tell("check")
        until(lambda: self.count("intact") + self.count("DAMAGED") > before, "the check",
              context=self.context)
        return self.count("DAMAGED") == 0


class Host:
    """Directories, programs and a manager."""

    def __init__(self, fake=False, options=()):
        self.root = pathlib.Path(scratch.make("vgpu-"))
        self.run, self.state, self.lib = self.root / "run", self.root / "state", self.root / "lib"
        self.faults, self.driver = self.root / "faults", self.root / "driver"
        for directory in (self.lib, self.faults, self.driver):
            directory.mkdir()
        self.fake, self.options = fake, list(options)
        self.manager, self.clients, self.guests = None, [], []
        self.variables = {}  # of the manager's environment, besides the usual ones
        self.log = open(self.root / "log", "w+b")
        self.link_programs()

    def link_programs(self):
        def link(name, target):
            path = self.lib / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)

        link("vgpu-keeper", os.environ["TEST_KEEPER"])
        if "TEST_SAMPLER" in os.environ:
            link("vgpu-sampler", os.environ["TEST_SAMPLER"])
        if self.fake:
            link("vgpu-mover", HERE / "fake_mover.py")
            (self.lib / "gate").mkdir()
            (self.lib / "gate/libcuda.so.1").touch()  # no guest loads it
        else:
            (self.lib / "vgpu-mover").write_text(MOVER_SCRIPT)
            (self.lib / "vgpu-mover").chmod(0o755)
            link("gate/libcuda.so.1", os.environ["TEST_GATE"])
            link("gate/libcuda.so", pathlib.Path(os.environ["TEST_GATE"]).with_name("libcuda.so"))
            link("sim/libcuda.so.1", os.environ["TEST_SIM"])

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.close()
        if kind:
            sys.stderr.write((self.root / "log").read_text(errors="replace")[-20000:])
        shutil.rmtree(self.root, ignore_errors=True)

    def close(self):
        for client in self.clients:
            client.close()
        for guest in self.guests:
            guest.kill()
        if self.manager and self.manager.poll() is None:
            self.manager.terminate()
            try:
                self.manager.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.manager.kill()
                self.manager.wait()
        for pid in self.keepers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.log.close()

    # processes

    def environment(self, fault=""):
        environment = dict(os.environ, OPENVGPU_LIB=str(self.lib), FAKE_MOVER=str(self.driver),
                           OPENVGPU_FAULT_DIR=str(self.faults))
        environment.pop("OPENVGPU_RUN", None)
        environment.pop("OPENVGPU_FAULT", None)
        environment.update(self.variables)
        if fault:
            environment["OPENVGPU_FAULT"] = fault
        return environment

    def start(self, fault="", options=()):
        """A manager; returns when it serves clients."""
        self.start_only(fault, options)
        self.wait_ready()
        return self

    def start_only(self, fault="", options=()):
        arguments = [os.environ["TEST_VGPUD"], "--run-dir", self.run, "--state-dir", self.state,
                     "--log-level", "debug", "--slab-size", "4M", "--refresh", "0", *self.options, *options]
        if self.fake:
            (self.lib / "none").touch()
            arguments += ["--driver", self.lib / "none"]
        elif "--simulate" not in self.options:
            arguments += ["--simulate", "2xH200:1G"]
        self.manager = subprocess.Popen(list(map(str, arguments)), env=self.environment(fault),
                                        stdout=self.log, stderr=self.log)

    def wait_ready(self):
        def is_ready():
            if self.manager.poll() is not None:
                raise AssertionError(f"vgpud ended with {self.manager.returncode}:\n" +
                                     (self.root / "log").read_text(errors="replace"))
            with contextlib.suppress(OSError):
                self.call("GetInfo")
                return True
            return False

        until(is_ready, "vgpud to answer")

    def kill_manager(self):
        self.manager.kill()
        self.manager.wait()

    def wait_killed(self):
        """The manager ends by a fault point."""
        assert self.manager.wait(PATIENCE) == -signal.SIGKILL, self.manager.returncode

    def stop_manager(self):
        self.manager.terminate()
        assert self.manager.wait(PATIENCE) == 0

    def children(self, name):
        """Processes of this host whose program is called @name."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                arguments = (entry / "cmdline").read_bytes().split(b"\0")[:3]
                environment = (entry / "environ").read_bytes().split(b"\0")
                if any(one.endswith(name.encode()) for one in arguments) and \
                        b"OPENVGPU_LIB=" + os.fsencode(self.lib) in environment:
                    found.append(int(entry.name))
        return found

    def fail_mover(self, device, point, action):
        """The mover of @device takes the action when it comes to @point."""
        uuid = self.call("ListDevices")["devices"][device]["uuid"]
        (self.faults / f"{point}@{uuid}={action}").touch()

    def keepers(self):
        return self.children("vgpu-keeper")

    def movers(self):
        return self.children("vgpu-mover")

    @staticmethod
    def room_for_descriptors(pid):
        """How many the kernel has made room for."""
        return int(pathlib.Path(f"/proc/{pid}/status").read_text().split("FDSize:")[1].split()[0])

    # paused fault points

    def wait_paused(self, point):
        return until(lambda: (self.faults / point).exists(), f"{point} to be reached")

    def go_on(self, point):
        (self.faults / point).unlink()

    # clients and guests

    def client(self):
        client = Control(self.run / "control.sock")
        self.clients.append(client)
        return client

    def call(self, method, **parameters):
        with Control(self.run / "control.sock") as control:
            return control.call(method, **parameters)

    def fake_guest(self, vgpu, *sizes, user=0):
        guest = FakeGuest(self, vgpu, *sizes, user=user)
        self.guests.append(guest)
        return guest.wait_for("joined")

    def start_guest(self, vgpu, program, *arguments, log=None, **more):
        """A program of tests/guests in the vGPU."""
        environment = dict(os.environ, **self.call("PrepareRun", name=vgpu)["environment"]) | more
        guest = Guest([os.environ["TEST_GUESTS"] + "/" + program, *arguments], environment, log)
        self.guests.append(guest)
        return guest.wait_ready()

    def guest(self, vgpu, *options):
        """guest-train: each step proves that its memory is right."""
        log = self.root / f"train-{len(self.guests)}"
        return self.start_guest(vgpu, "guest-train", "--log", log, "--pause", "10", *options, log=log)

    def ordered(self, vgpu, *options):
        """guest-ordered: the same of memory that is allocated in the order of streams."""
        log = self.root / f"ordered-{len(self.guests)}"
        return self.start_guest(vgpu, "guest-ordered", "--log", log, *options, log=log)

    def vgpu(self, name):
        return self.call("ListVgpus", name=name)["vgpus"][0]

    def wait_state(self, name, state):
        until(lambda: self.vgpu(name)["state"] == state, f"{name} to be {state}")

    def labels(self):
        """What the keeper holds: asked when no manager is there."""
        with contextlib.suppress(OSError), Keeper(self.run / "keeper.sock") as keeper:
            return keeper.labels()
        return []  # it ends when it holds nothing

    def held_memory(self):
        """How many pieces of device memory the keeper holds; the manager must be dead."""
        return sum(1 for label in self.labels() if label.startswith("memory/"))


def expect_error(error_name, function, /, *arguments, **parameters):
    try:
        function(*arguments, **parameters)
    except Refused as error:
        assert error.name == error_name, f"{error} instead of {error_name}"
        assert error.parameters["message"], "an error must say what it is"
        return error
    raise AssertionError(f"succeeded instead of {error_name}")


def crowd_out(host, name, left, piece="16M"):
    """A program outside of all vGPUs, who takes all but @left of the device that @name is on, and less than a piece."""
    environment = dict(os.environ, **host.call("PrepareRun", name=name)["environment"])
    for variable in ("LD_PRELOAD", "OPENVGPU_VGPU"):
        del environment[variable]
    guest = Guest([os.environ["TEST_GUESTS"] + "/guest-leave", left, piece], environment)
    host.guests.append(guest)
    return guest.wait_ready()
