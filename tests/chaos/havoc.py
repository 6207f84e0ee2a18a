# SPDX-License-Identifier: Apache-2.0
"""What happens to the processes: they are killed and stopped at random times, and driver calls fail."""
import contextlib
import os
import signal
import threading

import freezer
from wait import until
from world import chance_of

# Calls that may fail without costing anybody anything: what was begun is undone. A restore is not
# among them: the driver gives up a process whose restore has failed.
FAILURES = ["cuMemCreate@1=2", "cuMemMap@1=999", "cuMemSetAccess@1=999", "cuMemExportToShareableHandle@1=999",
            "cuMemImportFromShareableHandle@1=999", "cuMemcpyDtoHAsync_v2@1=719", "cuMemHostRegister_v2@1=999",
            "cuMemcpyHtoDAsync_v2@1=719", "cuMemcpyDtoDAsync_v2@1=719", "cuMemcpyPeerAsync@1=719",
            "cuStreamCreate@1=999", "cuEventRecord@1=999",
            "cuCheckpointProcessLock@1=600", "cuCheckpointProcessLock@1=304",
            "cuCheckpointProcessCheckpoint@1=999", "cuCheckpointProcessUnlock@1=999"]

# Steps after which the manager is told to fail, and where a mover dies (base/fault.h).
STEPS = [f"{kind}.{step}=fail" for kind, steps in {
    "suspend": ("reserved", "round", "ahead", "closed", "exported", "kept", "released", "checkpointed", "handed", "moved"),
    "resume": ("checked", "restored", "created", "arriving", "arrived", "copied"),
    "migrate": ("checked", "closed", "exported", "kept", "released", "left", "restored", "created", "copied"),
}.items() for step in steps] + [f"mover.{point}=kill" for point in (
    "asked", "locked", "checkpointed", "held", "restored", "unlocked", "job-ending", "slab-zeroing", "hashing",
    "hashed", "passed")] + ["mover.hashing=fail", "mover.hashed=fail"]

# Whom to kill and stop beside those of whom there is more to say below.
OTHERS = ["vgpu", "vgpu-keeper", "vgpu-mover", "vgpu-sampler", "vgpud"]


class Havoc(threading.Thread):
    """One after another, with a little time in between."""

    def __init__(self, world):
        super().__init__(name="havoc", daemon=True)
        self.world = world
        self.chance = chance_of(world, self.name)

    def run(self):
        world, options = self.world, self.world.options
        deeds = [(self.kill_manager, 3), (self.kill_mover, 6), (self.kill_keeper, 1), (self.kill_guest, 5),
                 (self.kill_command, 2), (self.stop_mover, 3), (self.stop_guest, 4), (self.stop_any, 3),
                 (self.fail_step, 6)]
        if options.exec:
            deeds.append((self.restart_guest, 10))
        if options.freeze:
            deeds.append((self.freeze_guest, 6))
        if options.simulate:
            deeds.append((self.fail_call, 8))
        functions, weights = zip(*deeds)
        while not world.ending.wait(self.chance.uniform(0, 2 * options.calm)):
            deed = self.chance.choices(functions, weights)[0]
            try:
                deed()
            except (OSError, AssertionError) as error:
                world.complain(f"{deed.__name__}: {error}")

    def kill_manager(self):
        with self.world.deaths:
            self.world.host.kill()
            self.world.count("kills of vgpud")
            self.world.trace("havoc: vgpud killed")
            if self.chance.random() < 0.3:  # and the next one while it starts
                self.world.host.spawn(**self.world.manager_environment())
                self.world.ending.wait(self.chance.uniform(0, 0.3))
                self.world.host.kill()
                self.world.count("kills of vgpud")
            self.world.host.start(**self.world.manager_environment())

    def kill_one(self, program):
        pids = [pid for pid, _ in self.world.host.processes(program)]
        if not pids:
            return False
        pid = self.chance.choice(pids)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        self.world.count(f"kills of {program}")
        self.world.trace(f"havoc: {program} {pid} killed")
        return True

    def kill_mover(self):
        self.kill_one("vgpu-mover")

    def kill_keeper(self):
        """And the next death only when the manager has filled a new one."""
        with self.world.deaths:
            old = self.world.host.processes("vgpu-keeper")
            if self.kill_one("vgpu-keeper"):
                until(lambda: set(self.world.host.processes("vgpu-keeper")) - set(old), "a new keeper",
                      context=self.world.host.log)
                until(lambda: self.world.host.try_vgpu("info")[0] == 0, "vgpud to answer")

    def kill_command(self):
        self.kill_one("vgpu")

    def kill_guest(self):
        _, program = self.world.pick_program(self.chance)
        if program:
            self.world.kill_program(program)

    def restart_guest(self):
        """The same process begins anew, with another image."""
        _, program = self.world.pick_program(self.chance)
        if program and program.was_ready():
            program.restart()
            self.world.count("programs that began anew")

    def stop(self, pid, seconds):
        try:
            os.kill(pid, signal.SIGSTOP)
            self.world.ending.wait(seconds)
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            return
        self.world.count("processes stopped for a while")

    def stop_mover(self):
        movers = self.world.host.movers()
        if movers:
            self.stop(self.chance.choice(movers), self.chance.uniform(0, 0.5))

    def stop_guest(self):
        _, program = self.world.pick_program(self.chance)
        if program:
            self.stop(program.guest.pid, self.chance.uniform(0, 1))

    def freeze_guest(self):
        """Mostly for a moment, and now and then for longer than a call of the driver is waited for."""
        _, program = self.world.pick_program(self.chance)
        seconds = self.chance.choice((0.1, 0.5, 0.5, 2, 8))
        if not program or not program.is_alive():
            return
        kind = freezer.find_kinds()[0]
        try:
            group = kind(program.guest.pid)
        except OSError:  # it has ended
            return
        try:
            group.freeze()
            self.world.ending.wait(seconds)
        except OSError:
            return
        finally:
            group.close()
        self.world.count(f"programs frozen for a while ({kind.__name__})")

    def stop_any(self):
        pids = [pid for pid, program in self.world.host.processes() if program in OTHERS]
        if pids:
            self.stop(self.chance.choice(pids), self.chance.uniform(0, 0.4))

    def fail_step(self):
        """Of the operation that comes to it next."""
        folder = self.world.host.fault_directory
        point = self.chance.choice(STEPS)
        armed = os.listdir(folder)
        if len(armed) >= 4:  # to which nobody has come
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, self.chance.choice(sorted(armed))))
        with open(os.path.join(folder, point), "w", encoding="ascii"):
            pass
        self.world.count("steps told to fail")

    def fail_call(self):
        """The first process that comes to the call fails; to some calls nobody comes for long."""
        if os.path.exists(self.world.fail_file) and self.chance.random() < 0.8:
            return
        with open(self.world.fail_file + ".new", "w", encoding="ascii") as file:
            file.write(self.chance.choice(FAILURES))
        os.rename(self.world.fail_file + ".new", self.world.fail_file)
        self.world.count("driver calls told to fail")


def end_havoc(world):
    """Whatever is stopped goes on; nothing fails any more."""
    armed = [os.path.join(world.host.fault_directory, name) for name in os.listdir(world.host.fault_directory)]
    for name in (world.fail_file, world.fail_file + ".new", *armed):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    for pid, _ in world.host.processes():
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass
