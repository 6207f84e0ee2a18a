# SPDX-License-Identifier: Apache-2.0
"""For benchmarks of an overcommitted GPU: a vgpud of their own, programs, limits for each step and for the whole run."""
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from lib import end_keepers, end_when_told


class Clock:
    """How long a run may take. What waits, waits for a part of that; a run that is late says for what."""

    def __init__(self, seconds):
        self.start = time.monotonic()
        self.end = self.start + seconds

    def elapsed(self):
        return time.monotonic() - self.start

    def left(self, most=float("inf"), keep=0):
        """Seconds for one step: @most of them, with @keep left for what comes after it."""
        return max(0, min(most, self.end - keep - time.monotonic()))

    def until(self, condition, most, what):
        end = time.monotonic() + self.left(most)
        while not condition():
            if time.monotonic() > end:
                raise RuntimeError(f"gave up waiting for {what} after {self.elapsed():.0f} s of the run")
            time.sleep(0.1)

    def say(self, text):
        print(f"[{self.elapsed():3.0f} s] {text}", flush=True)


class Program:
    """With a pipe to it and one from it. Whoever reads says for how long it may be silent."""

    def __init__(self, name, command, environment=None, output=None):
        self.name, self.read, self.started = name, b"", time.monotonic()
        self.process = subprocess.Popen([str(word) for word in command], env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=output, bufsize=0, start_new_session=True)

    def line(self, seconds):
        """The next one that it prints; "" when it has ended."""
        end = time.monotonic() + seconds
        while b"\n" not in self.read:
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise RuntimeError(f"{self.name} has said nothing for {seconds:.0f} s")
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                return ""
            self.read += more
        line, _, self.read = self.read.partition(b"\n")
        return line.decode(errors="replace")

    def expect(self, line, seconds):
        said = self.line(seconds)
        if said != line:
            raise RuntimeError(f"{self.name} says {said!r} instead of {line!r}")

    def tell(self, line):
        self.process.stdin.write(line.encode() + b"\n")

    def end_input(self):
        self.process.stdin.close()

    def rest(self, seconds):
        """All that it still prints, once its input has ended; and its exit status."""
        end, lines = time.monotonic() + seconds, []
        while line := self.line(max(0, end - time.monotonic())):
            lines.append(line)
        try:
            return lines, self.process.wait(max(1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{self.name} does not end") from None

    def where(self):
        """In which calls of the kernel its threads are, and those of all that it has started; a line for each."""
        found = []
        for folder in sorted(pathlib.Path("/proc").glob("[0-9]*/task/[0-9]*")):
            try:
                name, _, fields = folder.joinpath("stat").read_text().partition("(")[2].rpartition(")")
                if int(fields.split()[2]) != self.process.pid:
                    continue
                call = folder.joinpath("syscall").read_text().split()[0]
                found.append(f"{folder.parts[2]}/{folder.name} {name}: {fields.split()[0]}, call {call}, in "
                             f"{folder.joinpath('wchan').read_text()}")
            except OSError:  # it has ended, or may not be looked at
                continue
        return found

    def kill(self):
        """With all that it has started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Manager:
    """vgpud with all GPUs overcommitted, in folders of its own."""

    def __init__(self, options, clock, *arguments):
        end_when_told()
        self.options, self.clock = options, clock
        self.vgpu_path = self.find("vgpu")
        command = [self.find("vgpud"), "--overcommit", "all", *arguments]
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="vgpu-demand-"))
        self.environment = dict(os.environ, OPENVGPU_RUN=str(self.folder / "run"),
                                OPENVGPU_STATE=str(self.folder / "state"))
        if options.simulate:
            command += ["--simulate", options.simulate, "--slab-size", "4M"]
        self.log_path = self.folder / "vgpud.log"
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, env=self.environment, stderr=log)
        try:
            clock.until(lambda: self.has_ended() or self.vgpu("info", may_fail=True), 30, "vgpud to answer")
            if self.has_ended():
                raise RuntimeError(f"vgpud has ended: {self.log().strip()[-3000:]}")
        except RuntimeError:
            self.close()
            raise

    def has_ended(self):
        return self.process.poll() is not None

    def find(self, name):
        path = str(self.options.prefix / "bin" / name) if self.options.prefix else name
        found = shutil.which(path)
        if not found:
            raise SystemExit(f"there is no {path}: install OpenVGPU, or say where it is with --prefix")
        return found

    def vgpu(self, *arguments, may_fail=False):
        try:
            done = subprocess.run([self.vgpu_path, *arguments, "--json"], env=self.environment, capture_output=True,
                                  text=True, timeout=max(1, self.clock.left(60)), check=False)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"vgpu {' '.join(arguments)} does not answer") from None
        if done.returncode != 0:
            if may_fail:
                return None
            raise RuntimeError(f"vgpu {' '.join(arguments)}: {done.stderr}")
        return json.loads(done.stdout)

    def vgpus(self):
        return {v["name"]: v for v in self.vgpu("ls")["vgpus"]}

    def inside(self, name, *command):
        """The command that runs in the vGPU."""
        return [self.vgpu_path, "run", "--vgpu", name, "--", *command]

    def outside(self):
        """The environment of programs without a vGPU, on the same GPUs."""
        if not self.options.simulate:
            return dict(os.environ)
        driver = pathlib.Path(self.vgpu_path).parent.parent / "lib/openvgpu/sim"
        return dict(self.environment, OPENVGPU_SIM=str(self.folder / "run/sim"), LD_LIBRARY_PATH=str(driver))

    def processor_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def log(self):
        return self.log_path.read_text(errors="replace")

    def settle(self, name=None):
        """The programs (of @name) have ended: until vgpud knows. What it knows no end of, it leaves to the next vgpud."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            vgpus = (self.vgpu("ls", may_fail=True) or {"vgpus": []})["vgpus"]
            if not any(v["processes"] for v in vgpus if name in (None, v["name"])):
                return
            time.sleep(0.1)

    def close(self):
        if self.process.poll() is None:
            self.settle()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        end_keepers(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)


# It takes all but so many MiB of the first GPU, and gives it back at the end of its input.
STRANGER = """
import ctypes, sys
cuda, context, free, total, piece = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), *(ctypes.c_size_t() for _ in "123")
assert cuda.cuInit(0) == 0 == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert cuda.cuCtxSetCurrent(context) == 0 == cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
assert cuda.cuMemAlloc_v2(ctypes.byref(piece), ctypes.c_size_t(free.value - (int(sys.argv[1]) << 20))) == 0
print("ready", flush=True)
sys.stdin.read()
"""


def start_stranger(mib, environment=None):
    """A program outside of all vGPUs that leaves little memory of the first GPU."""
    stranger = Program("the program that holds memory", [sys.executable, "-c", STRANGER, mib], environment)
    stranger.expect("ready", 60)
    return stranger
