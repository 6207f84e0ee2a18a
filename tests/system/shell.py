# SPDX-License-Identifier: Apache-2.0
"""A shell on a simulated host, into which a test types what a document tells a reader to type.

What makes the host a simulated one lies in a folder before all others in PATH: vgpud takes simulated GPUs
unless it is told which, sudo does what it is told without asking (a manager of the same user obeys that
user as it does root), and "train.py", "infer.py", "serve.py" and "other.py", which the documents name, are
programs that use the GPU.
"""
import fcntl
import json
import os
import pwd
import select
import shutil
import signal
import subprocess

import reach
import stage
from wait import PATIENCE, until

LOOP = """
while IFS= read -r -u 8 -d '' number && IFS= read -r -u 8 -d '' command; do
        eval "$command" </dev/null >"$typed/$number.out" 2>"$typed/$number.err"
        printf '%s ' $? >&9
done
"""

VGPUD = """#!/bin/sh
case " $* " in
*" --simulate "* | *" --scenario "*) exec {vgpud} "$@" ;;
*) exec {vgpud} --simulate 2xH200 "$@" ;;
esac
"""

# Becomes the program: what the manager sees has the program's name and one process.
PROGRAM = """import os
os.execv("{guest}", ["{name}", "--size", "8M", "--piece", "2M", "--still", "3", "--steps", "{steps}",
                     "--log", "{name}.log"])
"""

EXPORTER = """import ctypes
assert ctypes.CDLL("libnvidia-ml.so.1").nvmlInit_v2() == 0
"""

# The library of a stage is not where its pkg-config file says.
PKG_CONFIG = """#!/bin/sh
PKG_CONFIG_SYSROOT_DIR={destdir} PKG_CONFIG_PATH={found} exec {pkg_config} "$@"
"""


class Answer:
    def __init__(self, code, output, errors):
        self.code, self.output, self.errors = code, output, errors


class Shell:
    def __init__(self, directory, environment, user=None):
        self.directory = directory
        self.user = user
        self.n = 0
        self.typed = os.path.join(directory, "typed")
        self.work = os.path.join(directory, "work")
        for folder in (self.typed, self.work, os.path.join(directory, "shims")):
            os.mkdir(folder)
        self._make_host()
        self.environment = {**environment, "HOME": self.work, "typed": self.typed,
                            "PATH": f"{directory}/shims:{stage.ROOT}/bin:{os.environ['PATH']}",
                            "OPENVGPU_SIM": os.path.join(directory, "run", "sim"),
                            "LD_LIBRARY_PATH": f"{stage.ROOT}/lib:{stage.DRIVER.parent}"}
        if user:
            owner = pwd.getpwnam(user).pw_uid
            for path, folders, files in os.walk(directory):
                for name in (".", *folders, *files):
                    os.lchown(os.path.join(path, name), owner, -1)
        self._start()

    def _make_host(self):
        work, shims = self.work, os.path.join(self.directory, "shims")

        def write(path, text):
            with open(path, "w") as file:
                file.write(text)
            os.chmod(path, 0o755)
        write(f"{shims}/vgpud", VGPUD.format(vgpud=stage.VGPUD))
        write(f"{shims}/sudo", '#!/bin/sh\nexec "$@"\n')
        guest = stage.GUESTS / "guest-train"
        for name, steps in (("train", 0), ("serve", 0), ("other", 0), ("infer", 3)):
            write(f"{work}/{name}.py", PROGRAM.format(guest=guest, name=name, steps=steps))
        write(f"{work}/my_exporter.py", EXPORTER)
        found = next(stage.DESTDIR.rglob("openvgpu.pc")).parent
        write(f"{shims}/pkg-config", PKG_CONFIG.format(destdir=stage.DESTDIR, found=found,
                                                       pkg_config=shutil.which("pkg-config")))
        source = stage.INSTALL.parents[1]
        os.symlink(reach.of(source / "examples"), f"{work}/examples")
        shutil.copy(source / "examples" / "list-vgpus.c", f"{work}/program.c")
        shutil.copy(source / "share" / "scenarios" / "plain.json", f"{work}/mine.json")

    def _start(self):
        read, self.commands = os.pipe()
        self.answers, write = os.pipe()
        # Out of the way of the numbers that the shell knows them by.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in (read, write)]

        def place():
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell ignores it for what it runs behind itself
            os.dup2(high[0], 8)
            os.dup2(high[1], 9)
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-c", LOOP], cwd=self.work, env=self.environment,
            stdin=subprocess.DEVNULL, preexec_fn=place, pass_fds=(8, 9), start_new_session=True,
            user=self.user, group=self.user and "nogroup", extra_groups=[] if self.user else None)
        for fd in (read, write, *high):
            os.close(fd)

    def _read(self, number, what):
        with open(os.path.join(self.typed, f"{number}.{what}"), errors="replace") as file:
            return file.read()

    def _send(self, command):
        self.n += 1
        os.write(self.commands, f"{self.n}\0{command}\0".encode())
        return self.n

    def _wait(self, number):
        if not select.select([self.answers], [], [], PATIENCE)[0]:
            raise AssertionError(f"it does not end\n{self._read(number, 'out')}{self._read(number, 'err')}")
        word = b""
        while not word.endswith(b" "):
            byte = os.read(self.answers, 1)
            if not byte:
                raise AssertionError("the shell has ended")
            word += byte
        return Answer(int(word), self._read(number, "out"), self._read(number, "err"))

    def type(self, command):
        """One line; returns when the next one can be typed, and then what a reader waits for has come."""
        number = self._send(command)
        answer = self._wait(number)
        before_comment = command.split(" #")[0].rstrip()
        if answer.code == 0 and before_comment.endswith("&"):
            self._wait_background(number, before_comment)
        if command.startswith("kill "):
            until(self._are_ends_known, "the manager to notice that the program has ended")
        return answer

    def _are_ends_known(self):
        done = self._ask("ls", "--json")
        # A vGPU is running until its last operation has tidied up, after its answer.
        return all(os.path.exists(f"/proc/{process['pid']}") if vgpu["processes"] else
                   vgpu["state"] != "running"
                   for vgpu in json.loads(done.stdout)["vgpus"]
                   for process in vgpu["processes"] or [None])

    def _wait_background(self, number, command):
        if "vgpud" in command:
            until(lambda: self._ask("info").returncode == 0,
                  "vgpud to answer", context=lambda: self._read(number, "err"))
        elif ".py" in command:
            until(lambda: "ready" in self._read(number, "out"), "the program to be ready",
                  context=lambda: self._read(number, "out") + self._read(number, "err"))

    def type_and_interrupt(self, command):
        """A command that goes on until Ctrl-C, which it gets once it has found the manager."""
        number = self._send(command)

        def is_connected():
            for pid in self._children():
                try:
                    if os.readlink(f"/proc/{pid}/exe") != str(stage.VGPU.resolve()):
                        continue
                    links = [os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")]
                except OSError:
                    continue
                if any(link.startswith("socket:") for link in links):
                    return pid
            return select.select([self.answers], [], [], 0)[0] and -1
        pid = until(is_connected, f"'{command}' to begin", context=lambda: self._read(number, "err"))
        if pid > 0:
            os.kill(pid, signal.SIGINT)
        answer = self._wait(number)
        answer.code = 0 if answer.code == 128 + signal.SIGINT else answer.code
        return answer

    def _children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return [int(word) for word in file.read().split()]

    def has(self, program):
        return shutil.which(program, path=self.environment["PATH"]) is not None

    def end_manager(self):
        """As Ctrl-C in its terminal."""
        self._signal(signal.SIGTERM, ("vgpud",))
        until(lambda: not any(name == "vgpud" for _, name in self.processes()), "vgpud to end")

    def _signal(self, number, names=None):
        for pid, name in self.processes():
            if names is None or name in names:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass

    def processes(self):
        """(pid, name) of what was started here, whatever has become of its parent; not the shell."""
        mark = f"typed={self.typed}".encode()
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/environ", "rb") as environ:
                    if mark not in environ.read().split(b"\0"):
                        continue
                found.append((int(entry), os.path.basename(os.readlink(f"/proc/{entry}/exe"))))
            except OSError:
                continue
        return [(pid, name) for pid, name in found if pid != self.process.pid]

    def _ask(self, *words):
        return subprocess.run([stage.VGPU, *words], env=self.environment, user=self.user,
                              capture_output=True)

    def _remove_vgpus(self):
        """Only an unused simulated machine goes with its manager, and what it has in /dev/shm."""
        listed = self._ask("ls", "--json")
        if listed.returncode == 0:
            for vgpu in json.loads(listed.stdout)["vgpus"]:
                until(lambda name=vgpu["name"]: self._ask("rm", name).returncode in (0, 3),
                      f"vGPU {vgpu['name']} to be removed")

    def close(self):
        """What was left running ends; how a program ends does not matter here."""
        os.close(self.commands)
        for pid, name in self.processes():
            if not name.startswith("vgpu"):
                os.kill(pid, signal.SIGKILL)
        self._remove_vgpus()
        self.end_manager()
        self._signal(signal.SIGKILL)
        self.process.wait(PATIENCE)
        os.close(self.answers)
        until(lambda: not self.processes(), "the last process to end",
              context=lambda: str(self.processes()))
