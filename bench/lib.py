# SPDX-License-Identifier: Apache-2.0
"""For benchmarks with a vgpud of their own: the options that all have, vgpud, and programs that hold memory."""
import argparse
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

PATIENCE = 200  # seconds for one answer


def parse(text, *arguments, **numbers):
    """Options: --prefix, --tools, --simulate, @numbers with their defaults, @arguments as (names, how); @text is the help."""
    parser = argparse.ArgumentParser()
    parser.format_help = lambda: text.strip() + "\n"
    parser.add_argument("--prefix", type=pathlib.Path)
    parser.add_argument("--tools", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent / "build/bench")
    parser.add_argument("--simulate")
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    for names, how in arguments:
        parser.add_argument(names, **how)
    return parser.parse_args()


def end_when_told():
    """SIGTERM ends what was started, too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))


def end_keepers(folder):
    """The keepers of the vgpud in @folder: each has the memory of the pool while there is something of a vGPU in it."""
    mark = f"OPENVGPU_RUN={folder}/run".encode()
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if b"vgpu-keeper" in (entry / "cmdline").read_bytes() and mark in (entry / "environ").read_bytes():
                os.kill(int(entry.name), signal.SIGTERM)
        except OSError:
            pass  # it has ended, or is another user's


class Program:
    """A bench-clean-guest: it writes one line for each that it gets."""

    def __init__(self, command, environment, patience):
        self.patience = patience
        self.process = subprocess.Popen(list(map(str, command)), env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        answer = self.answer()
        if answer != "ready":
            raise RuntimeError(f"{command[-1]}: {answer!r}")

    def answer(self):
        if not select.select([self.process.stdout], [], [], self.patience)[0]:
            raise RuntimeError(f"a program has not answered after {self.patience:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a program has ended: {self.process.wait(10)}")
        return line.strip()

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.answer()


class Bench:
    """vgpud, in a folder of its own, and the programs that are started here; all ends with it."""

    def __init__(self, options, *arguments, folder=None, patience=PATIENCE):
        end_when_told()
        self.options, self.patience, self.programs, self.bad = options, patience, {}, 0
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="vgpu-bench-", dir=folder))
        self.environment = dict(os.environ, OPENVGPU_RUN=str(self.folder / "run"),
                                OPENVGPU_STATE=str(self.folder / "state"))
        self.log_path = self.folder / "vgpud.log"
        command = [self.find("vgpud"), *map(str, arguments)]
        if options.simulate:
            command += ["--simulate", options.simulate]
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.daemon = subprocess.Popen(command, env=self.environment, stderr=log)

    def __enter__(self):
        try:
            self.wait_for(lambda: self.daemon.poll() is not None or self.vgpu("info", may_fail=True), "vgpud to answer")
            if self.daemon.poll() is not None:
                raise SystemExit("vgpud has ended")
        except BaseException as error:  # Python leaves only what it has entered
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, kind, *_):
        for process in (*(program.process for program in self.programs.values()), self.daemon):
            end(process)
        end_keepers(self.folder)
        if kind or self.bad:
            print(self.log()[-6000:])
        shutil.rmtree(self.folder, ignore_errors=True)

    def find(self, name):
        path = shutil.which(self.options.prefix / "bin" / name if self.options.prefix else name)
        if not path:
            raise SystemExit(f"there is no {name}: install OpenVGPU, or say where it is with --prefix")
        return path

    def log(self):
        return self.log_path.read_text(errors="replace")

    def wait_for(self, condition, what, every=0.1):
        end_s = time.monotonic() + self.patience
        while not condition():
            if time.monotonic() > end_s:
                raise RuntimeError(f"gave up waiting for {what}")
            time.sleep(every)

    def vgpu(self, *arguments, may_fail=False):
        words = list(map(str, arguments))
        try:
            done = subprocess.run([self.find("vgpu"), *words, "--json"], env=self.environment, capture_output=True,
                                  text=True, timeout=self.patience, check=False)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"vgpu {' '.join(words)} has not ended after {self.patience:.0f} s") from None
        if done.returncode == 0:
            return json.loads(done.stdout)
        if may_fail:
            return None
        raise RuntimeError(f"vgpu {' '.join(words)}: {done.stderr}")

    def state(self, name):
        return next(vgpu["state"] for vgpu in self.vgpu("ls")["vgpus"] if vgpu["name"] == name)

    def start(self, name, *arguments, options=()):
        """A vGPU with a program of so many GiB in it: bench-clean-guest with these arguments."""
        self.vgpu("create", name, "--fb", f"{int(self.options.gib * 1024) + 512}M", *options)
        return self.start_outside(name, *arguments, before=(self.find("vgpu"), "run", "--vgpu", name, "--"))

    def start_outside(self, name, *arguments, before=()):
        self.programs[name] = Program([*before, self.options.tools / "bench-clean-guest", *arguments], self.environment,
                                      self.patience)
        return self.programs[name]

    def wait_pinned(self):
        """Host memory for the program, which is pinned in the background."""
        self.wait_for(lambda: self.vgpu("info")["pool"]["ready"] >= int(self.options.gib * 2**30), "the pool to be ready")

    def check(self, name):
        """Every word of a program's memory."""
        answer = self.programs[name].tell("check")
        if answer != "ok":
            self.bad += 1
            print(f"  WRONG: {name}: {answer}", flush=True)

    def end_with_verdict(self):
        """The exit status."""
        print("contents: " + ("all right" if self.bad == 0 else f"WRONG {self.bad} times"))
        return 1 if self.bad else 0


def end(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
