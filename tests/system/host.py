# SPDX-License-Identifier: Apache-2.0
"""One simulated host with its own vgpud, run directory and state, and what can be done to it."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess

import scratch
import stage
from guest import Guest
from wait import PATIENCE, until
from wire import Control, Gate, Keeper, Refused


class Result:
    """What a command answered."""

    def __init__(self, code, output, errors):
        self.code = code
        self.output = output
        self.errors = errors

    @property
    def json(self):
        return json.loads(self.output)

    def __str__(self):
        return f"exit {self.code}\n  output: {self.output}\n  errors: {self.errors}"


class Host:
    """Started by start(), ended by close(); guests outlive the manager, as they do on a real host."""

    def __init__(self, devices="2xH200:1G", pool="256M", slab="8M", options=()):
        # Short: the path of a socket has 108 bytes.
        self.directory = scratch.make("vg-")
        os.chmod(self.directory, 0o755)
        self.run_directory = os.path.join(self.directory, "run")
        self.state_directory = os.path.join(self.directory, "state")
        self.fault_directory = os.path.join(self.directory, "fault")
        os.mkdir(self.fault_directory)
        self.options = ["--simulate", devices, "--pool-limit", pool, "--slab-size", slab, *options]
        self.log_path = os.path.join(self.directory, "vgpud.log")
        self.manager = None
        self.guests = []
        self.n_guests = 0
        self.free_at_first = None

    # The manager.

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("OPENVGPU_", "CUDA_", "TEST_"))
                and name not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
        # One that may not be searched makes "not found" a "permission denied".
        kept["PATH"] = ":".join(folder for folder in os.environ["PATH"].split(":")
                                if os.access(folder, os.X_OK))
        return {**kept, "OPENVGPU_RUN": self.run_directory, "OPENVGPU_STATE": self.state_directory,
                "OPENVGPU_FAULT_DIR": self.fault_directory, **more}

    def spawn(self, faults="", **environment):
        """Start vgpud and return at once; it tells self.notices when it is ready."""
        assert self.manager is None or self.manager.poll() is not None
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = os.path.join(self.directory, "notify")
        if os.path.exists(path):
            os.unlink(path)
        self.notices.bind(path)
        with open(self.log_path, "ab") as log:
            self.manager = subprocess.Popen(
                [str(stage.VGPUD), *self.options], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.environment(NOTIFY_SOCKET=path, OPENVGPU_FAULT=faults, **environment))

    def is_ready(self):
        self.notices.settimeout(0)
        try:
            while True:
                if "READY=1" in self.notices.recv(4096).decode().split("\n"):
                    return True
        except BlockingIOError:
            return False

    def wait_ready(self):
        def look():
            if self.is_ready():
                return True
            assert self.manager.poll() is None, f"vgpud ended\n{self.log()}"
            return False
        until(look, "vgpud to be ready", context=self.log)
        self.notices.close()
        return self

    def start(self, faults="", **environment):
        self.spawn(faults, **environment)
        self.wait_ready()
        if self.free_at_first is None:
            self.free_at_first = self.driver_memory()
        return self

    def stop(self):
        """End vgpud as systemd does; its exit status."""
        self.manager.send_signal(signal.SIGTERM)
        return self.wait_manager()

    def kill(self):
        self.manager.kill()
        self.wait_manager()

    def wait_manager(self):
        try:
            code = self.manager.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"vgpud does not end\n{self.log()}") from None
        self.notices.close()
        return code

    def restart(self, faults="", **environment):
        """As after a crash: no chance to tidy up."""
        if self.manager.poll() is None:
            self.kill()
        return self.start(faults, **environment)

    def log(self):
        with open(self.log_path, errors="replace") as log:
            return "--- log of vgpud\n" + log.read()

    # Asking it.

    def vgpu(self, *arguments, code=0, user=None, environment=None):
        """Run the command; fails unless it exits with code (None: any)."""
        done = subprocess.run([str(stage.VGPU), *map(str, arguments)], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE * 2, user=user,
                              env=environment or self.environment())
        result = Result(done.returncode, done.stdout, done.stderr)
        assert code is None or result.code == code, \
            f"vgpu {' '.join(map(str, arguments))}: expected exit {code}, got {result}\n{self.log()}"
        return result

    def connect(self):
        return Control(os.path.join(self.run_directory, "control.sock"))

    def connect_gate(self):
        return Gate(os.path.join(self.run_directory, "gate.sock"))

    def call(self, method, **parameters):
        """By the Python package, as a user would; a test of the protocol itself takes connect()."""
        openvgpu = stage.package()
        try:
            with openvgpu.Client(self.run_directory, timeout=PATIENCE) as client:
                return client.call(method, **parameters)
        except openvgpu.Error as error:
            if isinstance(error.__cause__, OSError):  # nobody answers, or no longer
                raise error.__cause__
            raise Refused(error.name, {"message": error.message, "hint": error.hint}) from error

    def info(self):
        return self.call("GetInfo")

    def device(self, index):
        return self.call("ListDevices")["devices"][index]

    def get(self, name):
        """The vGPU as the manager describes it."""
        return self.call("ListVgpus", name=name)["vgpus"][0]

    def names(self):
        return [vgpu["name"] for vgpu in self.call("ListVgpus")["vgpus"]]

    def wait_for(self, name, condition, what):
        """The vGPU, once it is as wanted."""
        def look():
            vgpu = self.get(name)
            return vgpu if condition(vgpu) else None
        return until(look, f"vGPU {name} {what}", context=self.log)

    def wait_state(self, name, state):
        self.wait_for(name, lambda vgpu: vgpu["state"] == state, f"to be {state}")

    def create(self, name, frame_buffer="256M", device=0):
        self.vgpu("create", name, "--fb", frame_buffer, "--device", device)
        return name

    # Guests.

    def run(self, name, *command, log=None, user=None, options=(), **environment):
        """Start a program of tests/guests in the vGPU; None: a transient one, by options."""
        program, *arguments = command
        self.n_guests += 1
        where = ["--vgpu", name] if name else []
        guest = Guest([stage.VGPU, "run", *where, *options, "--", stage.GUESTS / program, *arguments],
                      self.environment(**environment), log, user)
        self.guests.append(guest)
        return guest

    def spawn_guest(self, command, environment):
        """The same, by a variable for each thing that `vgpu run` would have set."""
        program, *arguments = command
        guest = Guest([stage.GUESTS / program, *arguments], self.environment(**environment))
        self.guests.append(guest)
        return guest

    def train(self, name, *arguments, program="guest-train", options=(), **environment):
        """A guest-train, or one that does as it, whose first step is done."""
        log = os.path.join(self.directory, f"steps-{self.n_guests}")
        return self.run(name, program, "--log", log, *arguments, log=log, options=options,
                        **environment).wait_ready()

    def crowd(self, left, piece="16M"):
        """A stranger, outside of all vGPUs, who takes all but @left of each device."""
        environment = self.environment(OPENVGPU_SIM=os.path.join(self.run_directory, "sim"),
                                       LD_LIBRARY_PATH=stage.DRIVER.parent)
        guest = Guest([stage.GUESTS / "guest-leave", left, piece], environment)
        self.guests.append(guest)
        return guest.wait_ready()

    # Fault points (src/base/fault.h).

    def arm(self, point, action):
        """Of whoever passes the point next."""
        with open(os.path.join(self.fault_directory, f"{point}={action}"), "w"):
            pass

    def is_paused(self, point):
        """Who waits at the point, or None."""
        try:
            with open(os.path.join(self.fault_directory, point)) as file:
                return int(file.read() or 0)
        except FileNotFoundError:
            return None

    def wait_paused(self, point):
        """Until somebody waits at the point; who."""
        return until(lambda: self.is_paused(point), f"{point} to be reached", context=self.log)

    def disarm(self, point):
        """Armed once: nobody has come to it, or waits there, or is about to: let it be as if it had never been."""
        for name in os.listdir(self.fault_directory):
            if name.startswith(f"{point}="):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.fault_directory, name))
                    return
        self.wait_paused(point)
        self.remove_pause(point)

    def remove_pause(self, point):
        """Let whoever waits at the point go on."""
        try:
            os.unlink(os.path.join(self.fault_directory, point))
        except FileNotFoundError:
            pass

    # What is left.

    def processes(self, program=None):
        """(pid, program) of all processes that were started for this host, ourselves apart."""
        mark = b"OPENVGPU_RUN=" + self.run_directory.encode()
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as environ:
                    if mark not in environ.read().split(b"\0"):
                        continue
                name = os.path.basename(os.readlink(f"/proc/{entry}/exe")).removesuffix(" (deleted)")
            except OSError:
                continue  # gone, or on its way
            if program is None or name == program:
                found.append((int(entry), name))
        return found

    def pid_of(self, program):
        """The one process of that name, waited for."""
        return until(lambda: self.processes(program), f"a {program}", context=self.log)[0][0]

    def movers(self):
        return [pid for pid, _ in self.processes("vgpu-mover")]

    def kill_program(self, program):
        """Kill -9 all of that name; their ids, also of those that end by themselves meanwhile."""
        pids = [pid for pid, _ in self.processes(program)]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return pids

    def keeper_labels(self):
        """Only while no manager runs: the keeper serves one at a time."""
        path = os.path.join(self.run_directory, "keeper.sock")
        if not self.processes("vgpu-keeper"):
            return []
        try:
            with Keeper(path) as keeper:
                return keeper.labels()
        except (FileNotFoundError, ConnectionError):
            return []  # it has just ended, as it does when it holds nothing

    def driver_memory(self):
        """Free bytes of each device, from the driver itself and not through a gate."""
        driver = self.info()["driver_path"]
        done = subprocess.run([stage.GUESTS / "guest-memory"], capture_output=True, text=True,
                              check=True, timeout=PATIENCE, env=self.environment(
                                  OPENVGPU_SIM=os.path.join(self.run_directory, "sim"),
                                  LD_LIBRARY_PATH=os.path.dirname(driver)))
        return [int(line.split()[0]) for line in done.stdout.splitlines()]

    def wait_clean(self):
        """Nothing is held that nobody uses: to be called when all guests have ended."""
        def look():
            vgpus = self.call("ListVgpus")["vgpus"]
            devices = self.call("ListDevices")["devices"]
            left = [f"{v['name']} is {v['state']} with {v['processes']}, {v['frame_buffer_used']} used"
                    for v in vgpus if v["processes"] or v["frame_buffer_used"] or v["state"] != "idle"]
            left += [f"device {d['index']} has {d['memory_used']} used"
                     for d in devices if d["memory_used"]]
            if self.info()["pool"]["used"]:
                left.append(f"the pool: {self.info()['pool']}")
            if self.movers():
                left.append(f"movers {self.movers()}")
            self.left = left
            return not left
        until(look, "everything to be given back", context=lambda: f"{self.left}\n{self.log()}")
        self.wait_driver_memory(self.free_at_first)

    def wait_driver_memory(self, expected):
        """A process that has ended may still be giving back what it held."""
        until(lambda: self.driver_memory() == expected, f"the devices to have {expected} bytes free",
              context=lambda: f"they have {self.driver_memory()}\n{self.log()}")

    def close(self, expect_clean=True):
        """End everything; nothing may be left of it."""
        try:
            for guest in self.guests:
                guest.kill()
            if self.manager and self.manager.poll() is None:
                if expect_clean:
                    self.wait_clean()
                code = self.stop()
                assert code == 0, f"vgpud ended with {code}\n{self.log()}"
                labels = self.keeper_labels()
                assert not labels, f"the keeper still holds {labels}\n{self.log()}"
                until(lambda: not self.processes(), "the last process",
                      context=lambda: f"{self.processes()}\n{self.log()}")
        finally:
            self.sweep()

    def sweep(self):
        """Whatever is left goes."""
        for pid, _ in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)
