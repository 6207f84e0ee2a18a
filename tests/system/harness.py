# SPDX-License-Identifier: Apache-2.0
"""A real vgpud in directories of its own, with clients and guests: what the system tests drive.

The programs come from the environment, as set by meson: TEST_VGPUD, TEST_KEEPER, TEST_MOVER,
TEST_GATE, TEST_SIM, TEST_NVML, TEST_GUESTS. Nothing here sleeps for an event: wait_for() polls with
a deadline and says what it waited for.
"""
import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

# A fault for the next mover of one device only: the one that comes after it shall live.
MOVER_SCRIPT = """#!/bin/sh
unset OPENVGPU_FAULT
fault=$OPENVGPU_FAULT_DIR/mover-$1
[ -f "$fault" ] && { OPENVGPU_FAULT=$(cat "$fault"); export OPENVGPU_FAULT; rm "$fault"; }
exec "$TEST_MOVER" "$@"
"""

HERE = pathlib.Path(__file__).parent
DEADLINE = 30.0
MIB = 1 << 20


def wait_for(what, condition, deadline=DEADLINE):
    """The first true value of condition()."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline} s for {what}")
        time.sleep(0.005)


class CallError(Exception):
    """An error answer of the control protocol."""

    def __init__(self, answer):
        self.name = answer["error"].removeprefix("org.openvgpu.")
        self.parameters = answer["parameters"]
        super().__init__(f"{self.name}: {self.parameters.get('message')}")


class Client:
    """A connection to the control socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(DEADLINE)
        self.rest = b""
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise

    def close(self):
        self.socket.close()

    def send(self, method, more=False, **parameters):
        call = {"method": "org.openvgpu." + method, "parameters": parameters}
        if more:
            call["more"] = True
        self.socket.sendall(json.dumps(call).encode() + b"\0")

    def receive(self):
        while b"\0" not in self.rest:
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionError("vgpud hung up")
            self.rest += data
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.send(method, **parameters)
        return self.result(self.receive())

    def call_more(self, method, **parameters):
        """The result and all progress before it."""
        self.send(method, more=True, **parameters)
        progress = []
        answer = self.receive()
        while answer.get("continues"):
            progress.append(answer["parameters"])
            answer = self.receive()
        return self.result(answer), progress

    @staticmethod
    def result(answer):
        if "error" in answer:
            raise CallError(answer)
        return answer["parameters"]


class Lines:
    """What a process prints, as far as it has."""

    def __init__(self, stream):
        self.stream, self.text = stream, ""
        os.set_blocking(stream.fileno(), False)

    def read(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                data = os.read(self.stream.fileno(), 65536)
                if not data:
                    break
                self.text += data.decode(errors="replace")
        return self.text.splitlines()

    def count(self, line):
        return sum(1 for one in self.read() if one.split(" ")[0] == line)


class FakeGuest:
    """fake_gate.py."""

    def __init__(self, host, vgpu, *sizes):
        environment = dict(os.environ, OPENVGPU_RUN=str(host.run))
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "fake_gate.py"), vgpu, *map(str, sizes)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.lines = Lines(self.process.stdout)
        self.pid = self.process.pid

    def tell(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def wait_for(self, line, times=1):
        wait_for(f"guest {self.pid} to print {line} ({times}): {self.lines.read()}",
                 lambda: self.lines.count(line) >= times)
        return self

    def is_intact(self):
        before = self.lines.count("intact") + self.lines.count("DAMAGED")
        self.tell("check")
        wait_for("the check",
                 lambda: self.lines.count("intact") + self.lines.count("DAMAGED") > before)
        return self.lines.count("DAMAGED") == 0

    def check(self):
        assert self.is_intact() and not self.lines.count("DAMAGED"), self.lines.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Guest:
    """guest-train in a vGPU, through the gate: each step proves that its memory is right."""

    def __init__(self, host, vgpu, *options):
        answer = host.call("PrepareRun", name=vgpu)
        environment = dict(os.environ)
        for name, value in answer["environment"].items():
            environment[name] = value
        self.log = host.root / f"train-{len(host.guests)}"
        self.process = subprocess.Popen(
            [os.environ["TEST_GUESTS"] + "/guest-train", "--log", self.log, "--pause", "1",
             *map(str, options)], stdout=subprocess.PIPE, stderr=host.log, env=environment)
        self.lines = Lines(self.process.stdout)
        self.pid = self.process.pid

    def wait_ready(self):
        def is_ready():
            assert self.process.poll() is None, f"guest-train ended: {self.process.returncode}"
            return self.lines.count("ready")

        wait_for("guest-train to be ready", is_ready)
        return self

    def steps(self):
        """How many steps it has made; none of them may be bad."""
        lines = self.log.read_text().splitlines()
        assert not any("BAD" in line for line in lines), [x for x in lines if "BAD" in x][:3]
        return len(lines)

    def goes_on(self):
        """It makes two further steps: the one in which it was stopped, and one more."""
        before = self.steps()

        def has_gone_on():
            assert self.process.poll() is None, f"guest-train died: {self.process.returncode}"
            return self.steps() >= before + 2

        wait_for("guest-train to go on", has_gone_on)

    check = goes_on

    def finish(self):
        """It ends, and has compared all of its memory."""
        self.process.terminate()
        assert self.process.wait(DEADLINE) == 0, self.process.returncode
        last = [line for line in self.lines.read() if line.startswith("done")]
        assert last and last[0].endswith(" ok"), self.lines.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Host:
    """Directories, programs and a manager."""

    def __init__(self, fake=False, options=()):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="vgpu-", dir="/tmp"))
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
            guest.close()
        if self.manager and self.manager.poll() is None:
            self.manager.terminate()
            try:
                self.manager.wait(DEADLINE)
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
                     "--log-level", "debug", "--slab-size", "4M", *self.options, *options]
        if self.fake:
            (self.lib / "none").touch()
            arguments += ["--driver", self.lib / "none"]
        else:
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

        wait_for("vgpud to answer", is_ready)

    def kill_manager(self):
        self.manager.kill()
        self.manager.wait()

    def wait_killed(self):
        """The manager ends by a fault point."""
        assert self.manager.wait(DEADLINE) == -signal.SIGKILL, self.manager.returncode

    def stop_manager(self):
        self.manager.terminate()
        assert self.manager.wait(DEADLINE) == 0

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

    def fail_mover(self, device, fault):
        """The next mover of @device has @fault; one that is there is killed, and its end noticed."""
        uuid = self.call("ListDevices")["devices"][device]["uuid"]
        (self.faults / f"mover-{uuid}").write_text(fault)
        for pid in self.movers():
            path = pathlib.Path(f"/proc/{pid}")
            if uuid.encode() in (path / "cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
                wait_for("vgpud to reap the mover", lambda path=path: not path.exists())

    def keepers(self):
        return self.children("vgpu-keeper")

    def movers(self):
        return self.children("vgpu-mover")

    # paused fault points

    def wait_paused(self, point):
        return wait_for(f"{point} to be reached", lambda: (self.faults / point).exists())

    def go_on(self, point):
        (self.faults / point).unlink()

    # clients and guests

    def client(self):
        client = Client(self.run / "control.sock")
        self.clients.append(client)
        return client

    def call(self, method, **parameters):
        client = Client(self.run / "control.sock")
        try:
            return client.call(method, **parameters)
        finally:
            client.close()

    def fake_guest(self, vgpu, *sizes):
        guest = FakeGuest(self, vgpu, *sizes)
        self.guests.append(guest)
        return guest.wait_for("joined")

    def guest(self, vgpu, *options):
        guest = Guest(self, vgpu, *options)
        self.guests.append(guest)
        return guest.wait_ready()

    def vgpu(self, name):
        return self.call("ListVgpus", name=name)["vgpus"][0]

    def wait_state(self, name, state):
        wait_for(f"{name} to be {state}", lambda: self.vgpu(name)["state"] == state)

    def labels(self):
        """What the keeper holds: asked when no manager is there."""
        packet = struct.Struct("=IHHiI120s")
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.settimeout(DEADLINE)
        try:
            connection.connect(str(self.run / "keeper.sock"))
        except OSError:
            connection.close()
            return []
        labels = []
        with connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.send(packet.pack(0x5045454B, 1, 3, 0, 0, b""))
            while True:
                data, fds, _, _ = socket.recv_fds(connection, 8192, 64)
                for fd in fds:
                    os.close(fd)
                message, label = packet.unpack_from(data)[2], packet.unpack_from(data)[5]
                if message != 5:
                    return sorted(labels)
                labels.append(label.split(b"\0")[0].decode())
        return []  # it ends when it holds nothing

    def held_memory(self):
        """How many pieces of device memory the keeper holds; the manager must be dead."""
        return sum(1 for label in self.labels() if label.startswith("memory/"))


def expect_error(error_name, function, /, *arguments, **parameters):
    try:
        function(*arguments, **parameters)
    except CallError as error:
        assert error.name == error_name, f"{error} instead of {error_name}"
        assert error.parameters["message"], "an error must say what it is"
        return error
    raise AssertionError(f"succeeded instead of {error_name}")
