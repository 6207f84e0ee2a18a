# SPDX-License-Identifier: Apache-2.0
"""Programs under test for bench/checkpoint and bench/criu-plugin: each counts its rounds in a file."""
import json
import os
import pathlib
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE = 20.0

numbers = iter(range(1 << 30))
starting = threading.Lock()


class Failed(Exception):
    pass


class Program:
    """
    A program under test, and whether it goes on. Its input and output are files (but what waits for
    calls has a pipe), and it is waited for by its number, so that CRIU can make it again.
    """

    def __init__(self, context, kind, device=0):
        self.path = context.directory / f"program-{next(numbers)}"
        self.output = self.path.with_suffix(".output")
        self.kind, self.status, self.input = kind, None, None
        environment = dict(context.environment)
        if kind.startswith("training"):
            command = [sys.executable, str(HERE / "checkpoint-train.py"), str(self.path)]
            command += ["4"] if "workers" in kind else []
            environment.setdefault("CUDA_VISIBLE_DEVICES", str(device))
        else:
            command = [str(context.tools / "bench-checkpoint-guest"), kind, str(self.path),
                       str(device)]
        self.spawn(command, environment)
        while self.read_output().split("\n")[0] != "ready":
            if self.poll() is not None:
                raise RuntimeError(f"{kind} does not start: {self.read_output()[-300:].strip()}")
            time.sleep(0.002)
        if not kind.startswith("call-") and not self.goes_on():  # the first round
            raise RuntimeError(f"{kind} does not begin: {self.read_output()[-300:].strip()}")

    def spawn(self, command, environment):
        with starting:  # no other child may inherit the end of the pipe
            far = os.open("/dev/null", os.O_RDONLY)
            if self.kind.startswith("call-"):
                os.close(far)
                far, near = os.pipe()
                self.input = os.fdopen(near, "w")
            self.pid = os.posix_spawn(command[0], command, environment, setsid=True, file_actions=[
                (os.POSIX_SPAWN_DUP2, far, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(self.output), os.O_WRONLY | os.O_CREAT, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2)])
            os.close(far)

    def read_output(self):
        return self.output.read_text() if self.output.exists() else ""

    def poll(self):
        """Its exit status, negative for a signal; None while it runs."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def wait(self, seconds=PATIENCE):
        """False if it has not ended in time."""
        end = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < end:
            time.sleep(0.001)
        return self.status is not None

    def kill(self):
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()

    def rounds(self):
        with open(self.path, "rb") as file:
            return struct.unpack("q", file.read(8).ljust(8, b"\0"))[0]

    def goes_on(self, seconds=PATIENCE):
        before, end = self.rounds(), time.monotonic() + seconds
        while time.monotonic() < end and self.poll() is None:
            if self.rounds() > before:
                return True
            time.sleep(0.001)
        return False

    def fate(self):
        """What has become of it: it has ended by then."""
        if self.poll() is None and not self.goes_on(3):
            self.kill()
            return "hangs"
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
            if not self.wait():
                self.kill()
                return "does not end"
        if self.status < 0:
            return f"died, {signal.Signals(-self.status).name}"
        return {0: "right", 1: "WRONG " + self.read_output()[-300:].strip()}.get(
            self.status, f"exit status {self.status}")

    def close(self):
        self.kill()
        if self.input:
            self.input.close()
        self.path.unlink(missing_ok=True)
        self.output.unlink(missing_ok=True)


def command(words, environment, patience=PATIENCE):
    """Runs it; returns what it printed, and its seconds."""
    begin = time.monotonic()
    try:
        done = subprocess.run(words, env=environment, capture_output=True, text=True,
                              timeout=patience)
    except subprocess.TimeoutExpired:
        raise Failed("hangs") from None
    if done.returncode != 0:
        if done.stderr.startswith("{"):
            error = json.loads(done.stderr)["error"]
            raise Failed(f"exit {done.returncode}: {error['message']}")
        raise Failed((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[0])
    return done.stdout, time.monotonic() - begin


def milliseconds(values):
    median = statistics.median(values) if values else 0
    return f"{median * 1e3:.1f}" if median else ""


def print_table(title, columns, rows):
    print(f"\n{title}\n\n| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for row in rows:
        print("| " + " | ".join(row) + " |")


class Context:
    """Where things are, and the environment of programs and commands; simulated GPUs if asked for."""

    def __init__(self, options):
        self.options = options
        self.tools, self.nvidia, self.prefix = options.tools, options.nvidia, options.prefix
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="vgpu-bench-",
                                                       dir=getattr(options, "directory", None)))
        self.environment = dict(os.environ, OPENVGPU_RUN=str(self.directory / "run"),
                                PYTHONDONTWRITEBYTECODE="1")
        self.has_torch = False
        if options.simulate:
            private = self.prefix / "lib/openvgpu"
            subprocess.run([private / "vgpu-simhost", self.directory / "sim", options.simulate],
                           check=True)
            self.environment.update(OPENVGPU_SIM=str(self.directory / "sim"),
                                    LD_LIBRARY_PATH=str(private / "sim"))
        else:
            self.has_torch = subprocess.run([sys.executable, "-c", "import torch"],
                                            capture_output=True).returncode == 0
