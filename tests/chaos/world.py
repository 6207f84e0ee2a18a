# SPDX-License-Identifier: Apache-2.0
"""What a chaos run acts on: one host, its vGPUs and programs, and who has done what to them."""
import contextlib
import os
import random
import signal
import subprocess
import threading
import time

import stage
from guest import Guest, GuestEnded
from host import Host
from wait import PATIENCE, until

MIB = 1 << 20

# A program of a vGPU that is to survive, and one that ends by itself.
STEADY = "steady"
SHORT = "short"


class ChaosHost(Host):
    """A host whose vgpud is started again whenever it was killed; simulated, or this machine's own."""

    def __init__(self, devices, pool, is_overcommitted=False, spill=None):
        super().__init__(devices or "1xH200", pool, "8M")
        self.is_simulated = bool(devices)
        if not devices:
            self.options = ["--pool-limit", pool]
        self.options += ["--swap-time", "100"]  # who may leave by itself does so often
        if is_overcommitted:
            self.options += ["--overcommit", "all"]
        if spill:
            spill_directory = os.path.join(self.directory, "spill")
            os.mkdir(spill_directory, 0o700)
            self.options += ["--spill", spill_directory, "--spill-limit", spill]
        self.cdi_path = os.path.join(self.directory, "cdi", "openvgpu.json")
        self.options += ["--cdi", self.cdi_path]
        # What the guests of other users write to and read from.
        os.chmod(self.directory, 0o777)
        self.said = ""

    def sweep(self):
        """What vgpud said outlives its folder."""
        if os.path.exists(self.log_path):
            self.said = self.log()
        super().sweep()

    def wait_driver_memory(self, expected):
        """A real device has other users, and caches of its driver."""
        if self.is_simulated:
            super().wait_driver_memory(expected)
            return
        until(lambda: all(now + 64 * MIB >= then for now, then in zip(self.driver_memory(), expected)),
              f"the devices to have about {expected} bytes free", context=lambda: str(self.driver_memory()))

    def try_vgpu(self, *arguments, user=None, seconds=PATIENCE):
        """(exit status, what it said); None instead of the status: it did not end in time."""
        try:
            done = subprocess.run([str(stage.VGPU), *map(str, arguments)], capture_output=True,
                                  text=True, stdin=subprocess.DEVNULL, timeout=seconds, user=user,
                                  env=self.environment(), check=False)
        except subprocess.TimeoutExpired:
            return None, f"no answer in {seconds} s"
        return done.returncode, done.stdout + done.stderr


class Program:
    """A guest process and what was done to it."""

    def __init__(self, guest, kind):
        self.guest = guest
        self.kind = kind
        self.was_killed = False
        self.n_restarts = 0

    def is_alive(self):
        return self.guest.process.poll() is None

    def was_ready(self):
        """It is since it last began."""
        return self.guest.lines.count("ready") > self.n_restarts

    def wait_ready(self):
        self.guest.wait_ready()
        until(lambda: self.was_ready() or not self.is_alive(), "the program to begin", context=self.guest.context)

    def restart(self):
        self.n_restarts += 1
        try:
            self.guest.signal(signal.SIGUSR1)
        except GuestEnded:
            pass


class Turnstile:
    """For many at once, or for one alone; who finds it closed goes away."""

    def __init__(self):
        self._lock = threading.Lock()
        self._inside = 0  # -1: one who is alone

    @contextlib.contextmanager
    def enter(self, alone=False):
        with self._lock:
            is_open = self._inside == 0 if alone else self._inside >= 0
            if is_open:
                self._inside = -1 if alone else self._inside + 1
        try:
            yield is_open
        finally:
            if is_open:
                with self._lock:
                    self._inside = 0 if alone else self._inside - 1


class VGpu:
    """One vGPU of one user."""

    def __init__(self, name, user, frame_buffer, n_devices=1):
        self.name = name
        self.user = user
        self.frame_buffer = frame_buffer
        self.n_devices = n_devices
        self.programs = []
        self.may_be_gone = False
        self.lock = threading.Lock()  # of the list
        self.going = Turnstile()  # who lets its programs go on; alone: who brings back older memory


class World:
    """All of it; every member may be used by any thread."""

    def __init__(self, options):
        self.options = options
        self.host = ChaosHost(options.simulate, options.pool, options.overcommit, options.spill)
        self.vgpus = []
        self.lock = threading.Lock()
        self.ending = threading.Event()
        # Who ends vgpud or the keeper: the two of them at once lose what is off the devices.
        self.deaths = threading.Lock()
        self.counts = {}
        self.complaints = []
        self.n_logs = 0
        self.fail_file = os.path.join(self.host.directory, "fail")

    def manager_environment(self):
        return {"OPENVGPU_SIM_FAIL_FILE": self.fail_file} if self.options.simulate else {}

    def crowd_devices(self):
        """A stranger takes all memory of the devices but what --leave says; returns him, or None."""
        if not self.options.leave:
            return None
        environment = self.host.environment()
        if self.options.simulate:
            driver = os.path.dirname(self.host.info()["driver_path"])
            environment.update(OPENVGPU_SIM=os.path.join(self.host.run_directory, "sim"),
                               LD_LIBRARY_PATH=driver)
        return Guest([stage.GUESTS / "guest-leave", self.options.leave], environment).wait_ready()

    # Telling.

    def count(self, what, n=1):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + n

    def complain(self, text):
        """Something is wrong that must not be."""
        with self.lock:
            self.complaints.append(text)
        print(f"chaos: {text}", flush=True)

    def trace(self, text):
        if self.options.trace:
            print(f"{time.monotonic():.3f} {text}", flush=True)

    # vGPUs and programs.

    def add_vgpu(self, name, user, frame_buffer, options, n_devices=1):
        vgpu = VGpu(name, user, frame_buffer, n_devices)
        if n_devices > 1:
            options = (*options, "--devices", n_devices)
        code, text = self.host.try_vgpu("create", name, "--fb", frame_buffer, *options, user=user)
        if code != 0:
            return code, text
        with self.lock:
            self.vgpus.append(vgpu)
        return 0, vgpu

    def remove_vgpu(self, vgpu):
        with self.lock:
            if vgpu in self.vgpus:
                self.vgpus.remove(vgpu)

    def pick(self, chance, user=None):
        """One vGPU, or None."""
        with self.lock:
            mine = [v for v in self.vgpus if user is None or v.user == user]
        return chance.choice(mine) if mine else None

    def all_vgpus(self):
        with self.lock:
            return list(self.vgpus)

    def start_program(self, vgpu, kind, *arguments):
        with self.lock:
            self.n_logs += 1
            log = os.path.join(self.host.directory, f"steps-{self.n_logs}")
        environment = self.host.environment()
        if self.options.simulate:
            environment["OPENVGPU_SIM_FAIL_FILE"] = self.fail_file
        guest = Guest([stage.VGPU, "run", "--vgpu", vgpu.name, "--", stage.GUESTS / "guest-train",
                       "--log", log, *arguments], environment, log, vgpu.user)
        program = Program(guest, kind)
        with vgpu.lock:
            vgpu.programs.append(program)
        return program

    def programs(self):
        found = []
        for vgpu in self.all_vgpus():
            with vgpu.lock:
                found += [(vgpu, program) for program in vgpu.programs]
        return found

    def pick_program(self, chance):
        alive = [(v, p) for v, p in self.programs() if p.is_alive()]
        return chance.choice(alive) if alive else (None, None)

    def kill_program(self, program):
        program.was_killed = True
        try:
            program.guest.signal(signal.SIGKILL)
        except GuestEnded:
            pass

    def reap(self, vgpu):
        """Forget the programs of @vgpu that have ended; complains about those that should not have."""
        with vgpu.lock:
            ended = [p for p in vgpu.programs if not p.is_alive()]
            vgpu.programs = [p for p in vgpu.programs if p not in ended]
        for program in ended:
            self.judge_end(vgpu, program)

    def judge_end(self, vgpu, program):
        guest = program.guest
        code = guest.join()
        bad = [line for line in guest.log_lines() if not line.endswith(" ok")]
        if bad or any("BAD" in line for line in guest.lines):
            self.complain(f"{vgpu.name}: memory of process {guest.pid} is wrong: {bad[:2]} {guest.lines[-1:]} "
                          f"{guest.errors[-2:]}")
        elif program.was_killed:
            self.count("programs killed")
        elif code == 0:
            self.count("programs ended well")
        elif not program.was_ready():
            self.count("programs that could not start")
            self.trace(f"not started in {vgpu.name}: {guest.errors[-2:]}")
        else:
            self.complain(f"{vgpu.name}: process {guest.pid} ended with {code} by itself: {guest.errors[-4:]}")


def chance_of(world, name):
    """A source of chance of its own for each actor, so that a seed decides what each does."""
    return random.Random(f"{world.options.seed}/{name}")
