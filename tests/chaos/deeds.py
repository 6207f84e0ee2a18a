# SPDX-License-Identifier: Apache-2.0
"""What clients of several users do with their vGPUs, each by a chance of its own."""
import os
import shutil
import signal
import subprocess
import threading

import stage

from wire import Refused
from world import SHORT, STEADY, chance_of

# Exit statuses of vgpu that tell of a refusal: not found, time-out, no vgpud, state, no room; or that havoc
# killed it. A wrong command line (2) and a missing permission (6) would be mistakes of this program or of vgpud.
REFUSALS = {1, 3, 4, 5, 7, -signal.SIGKILL}


class Client(threading.Thread):
    """One client: one deed after another until the run ends."""

    def __init__(self, world, number, user):
        super().__init__(name=f"client-{number}", daemon=True)
        self.world = world
        self.number = number
        self.user = user
        self.chance = chance_of(world, self.name)
        self.n_made = 0

    def run(self):
        deeds = [(self.create, 6), (self.start_steady, 12), (self.start_short, 8), (self.suspend, 20),
                 (self.keep_context, 8), (self.resume, 26), (self.migrate, 14), (self.look, 4),
                 (self.open_memory, 3), (self.image, 4), (self.share, 2 if not self.user else 0), (self.idle, 6),
                 (self.remove, 4)]
        functions, weights = zip(*deeds)
        while not self.world.ending.is_set():
            deed = self.chance.choices(functions, weights)[0]
            try:
                deed()
            except OSError as error:
                self.world.count("connections lost")
                self.world.trace(f"{self.name} {deed.__name__}: {error}")
                self.world.ending.wait(0.05)

    def do(self, *arguments):
        code, text = self.world.host.try_vgpu(*arguments, user=self.user)
        what = " ".join(arguments[:2]) if arguments[0] == "checkpoint" else arguments[0]
        self.world.count(what if code == 0 else f"{what} refused")
        self.world.trace(f"{self.name}: vgpu {' '.join(map(str, arguments))}: {code} {text.strip()}")
        if code is None:
            self.world.complain(f"vgpu {' '.join(map(str, arguments))}: {text}")
        elif code != 0 and code not in REFUSALS:
            self.world.complain(f"vgpu {' '.join(map(str, arguments))}: exit {code}: {text.strip()}")
        return code

    def pick(self):
        return self.world.pick(self.chance, self.user)

    # Deeds.

    def create(self):
        options = self.world.options
        if len(self.world.all_vgpus()) >= options.vgpus:
            return
        self.n_made += 1
        name = f"v{self.number}-{self.n_made}"
        size = self.chance.choice(options.sizes)
        idle = self.chance.choice(((), ("--idle-after", "0.1s"), ("--idle-after", "1s", "--idle", "keep-context")))
        n_devices = self.chance.randint(1, options.devices) if options.several else 1
        code, _ = self.world.add_vgpu(name, self.user, f"{size}M", idle, n_devices)
        self.world.count("create" if code == 0 else "create refused")

    def start_steady(self):
        vgpu = self.pick()
        if not vgpu:
            return
        self.world.reap(vgpu)
        if sum(p.kind == STEADY for p in vgpu.programs) >= 2:
            return
        self.begin(vgpu, STEADY)

    def start_short(self):
        vgpu = self.pick()
        if vgpu:
            self.world.reap(vgpu)
            if len(vgpu.programs) < 5:
                self.begin(vgpu, SHORT, "--steps", self.chance.randint(1, 20))

    def begin(self, vgpu, kind, *more):
        whole = int(vgpu.frame_buffer[:-1])
        size = max(1, whole * self.chance.choice((10, 20, 30)) // 100)
        piece = self.chance.choice((2, 4, 16)) * max(1, whole // 256)
        pause = self.chance.choice((20, 700, 700))
        self.world.start_program(vgpu, kind, "--size", f"{size}M", "--piece", f"{piece}M", "--small",
                                 self.chance.choice((0, 5, 40)), "--still", self.chance.choice((0, 1, 3)),
                                 "--pause", pause, *more)
        self.world.count("programs started")

    def suspend(self):
        vgpu = self.pick()
        if vgpu:
            options = [option for option in ("--verify", "--pre-copy") if self.chance.random() < 0.3]
            self.do("suspend", vgpu.name, "--timeout", 20, *options)

    def keep_context(self):
        vgpu = self.pick()
        if vgpu:
            self.do("suspend", vgpu.name, "--keep-context", "--timeout", 20)

    def choose_place(self, vgpu):
        """Devices, in any order."""
        return ",".join(map(str, self.chance.sample(range(self.world.options.devices), vgpu.n_devices)))

    def resume(self):
        vgpu = self.pick()
        where = self.choose_place(vgpu) if vgpu and self.chance.random() < 0.7 else None
        if vgpu:
            with vgpu.going.enter() as may_go:
                if may_go:
                    self.do("resume", vgpu.name, "--timeout", 20,
                            *([] if where is None else ["--device", where]))

    def migrate(self):
        vgpu = self.pick()
        if vgpu and self.world.options.devices > 1:
            where = self.choose_place(vgpu)
            with vgpu.going.enter() as may_go:
                if may_go:
                    self.do("migrate", vgpu.name, "--timeout", 20, "--device", where)

    def look(self):
        self.do(*self.chance.choice((["ls"], ["devices"], ["info"], ["utilization"],
                                      ["usage", "--since", "today"])))

    def share(self):
        vgpu = self.pick()
        if vgpu:
            self.do("share", vgpu.name, self.chance.choice(("none", 5, 10)))

    def idle(self):
        """From now on it leaves and comes back by itself, or no more."""
        vgpu = self.pick()
        if vgpu:
            with vgpu.going.enter() as may_go:
                if may_go:
                    self.do("idle", vgpu.name, self.chance.choice(("0.1s", "0.5s", "2s", "never")),
                            *self.chance.choice(((), ("--keep-context",))))

    def open_memory(self):
        """As who writes an image does; the connection may break at any time."""
        vgpu = self.pick()
        if not vgpu:
            return
        try:
            with self.world.host.connect() as control:
                control.call(self.chance.choice(("OpenMemory", "ReplaceMemory")), name=vgpu.name)
                self.world.ending.wait(self.chance.uniform(0, 0.2))
                if self.chance.random() < 0.5:
                    control.call("CloseMemory", name=vgpu.name)
            self.world.count("memory opened")
        except Refused as error:
            self.world.count("memory refused")
            self.world.trace(f"{self.name} memory of {vgpu.name}: {error}")

    def image(self):
        """To disk and back. Between the two no program may go on: its own memory would be of another moment."""
        vgpu = self.pick()
        if not vgpu:
            return
        self.n_made += 1
        path = os.path.join(self.world.host.directory, f"image-{self.number}-{self.n_made}")
        is_cut = self.chance.random() < 0.2
        with vgpu.going.enter(alone=True) as is_alone:
            if is_alone and not self.stays_off(vgpu):
                pass
            elif is_alone and is_cut:
                self.cut_dump(vgpu, path, self.chance.uniform(0, 0.3))
            elif is_alone and self.do("checkpoint", "dump", vgpu.name, path) == 0:
                self.do("checkpoint", "load", path, "--vgpu", vgpu.name)
        shutil.rmtree(path, ignore_errors=True)

    def stays_off(self, vgpu):
        """Is it off, and does not come back by itself? Whoever else could bring it back is kept out."""
        self.do("idle", vgpu.name, "never")
        self.do("suspend", vgpu.name, "--timeout", 20)
        try:
            now = self.world.host.get(vgpu.name)
        except Refused:
            return False
        return now["state"] in ("suspended", "evicted") and not now["demand"]

    def cut_dump(self, vgpu, path, seconds):
        """Who writes the image is killed."""
        host = self.world.host
        with subprocess.Popen([str(stage.VGPU), "checkpoint", "dump", vgpu.name, path], user=self.user,
                              env=host.environment(), stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as dump:
            self.world.ending.wait(seconds)
            dump.kill()
        self.world.count("dumps that were killed")

    def remove(self):
        vgpu = self.pick()
        if not vgpu:
            return
        self.world.reap(vgpu)
        if vgpu.programs and self.chance.random() < 0.3:
            for program in vgpu.programs:
                self.world.kill_program(program)
        if any(p.is_alive() for p in vgpu.programs):
            return
        vgpu.may_be_gone = True  # also when vgpud dies between the removal and the answer
        if self.do("rm", vgpu.name) in (0, 3):
            self.world.reap(vgpu)
            self.world.remove_vgpu(vgpu)
