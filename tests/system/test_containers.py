#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vGPUs in containers (docs/containers.md): what vgpud writes for container engines, who comes in by a vGPU's
door, and a real podman with runc, where there is one."""
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess

import case
import stage
from guest import Guest
from host import Host
from wait import PATIENCE, until
from wire import Gate

HERE = os.path.dirname(os.path.abspath(__file__))
SHORT_LIVED, HOSTILE = os.path.join(HERE, "short_lived.py"), os.path.join(HERE, "hostile.py")

# podman looks there and nowhere else; one file for each that runs this test.
CDI_FILE = f"/var/run/cdi/openvgpu-test-{os.getpid()}.json"


def files_of(program):
    """What it needs to be started, and what the gate adds for glibc before 2.34."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    libraries = re.findall(r"(/\S+) \(0x", listed)
    libc = next(path for path in libraries if path.endswith("/libc.so.6"))
    others = [os.path.join(os.path.dirname(libc), name) for name in ("libdl.so.2", "libpthread.so.0")]
    return libraries + [path for path in others if os.path.exists(path)]


def make_root(directory):
    """A root file system with one program; it must be able to run without any other file."""
    for folder in ("bin", "dev", "etc", "proc", "sys", "tmp", "run/openvgpu", "usr/lib/openvgpu/gate",
                   "usr/lib/openvgpu/nvml", "usr/lib/openvgpu/sim", "usr/lib/openvgpu/simulated-host"):
        os.makedirs(os.path.join(directory, folder))  # root of a container may not be able to do so
    program = stage.GUESTS / "guest-train"
    shutil.copy(program, os.path.join(directory, "bin"))
    for path in files_of(program):
        os.makedirs(os.path.join(directory, os.path.dirname(path)[1:]), exist_ok=True)
        shutil.copy(path, os.path.join(directory, path[1:]))


class Podman:
    """Its own storage; the options that a machine with little cgroup support needs."""

    def __init__(self, directory):
        self.directory = directory
        self.root = os.path.join(directory, "root")
        make_root(self.root)
        self.begin = ["podman", "--root", f"{directory}/storage", "--runroot", f"{directory}/runroot",
                      "--tmpdir", f"{directory}/tmp", "--storage-driver", "vfs", "--runtime", "runc",
                      "--cgroup-manager", "cgroupfs"]

    def command(self, *options, program=("/bin/guest-train",)):
        return [*self.begin, "run", "--rm", "--network", "none", "--ulimit", "nofile=20000:20000",
                "--ulimit", "nproc=1000:1000", *options, "--rootfs", self.root, *program]

    def problem(self):
        """Why it cannot run the simplest container on this machine; '' if it can."""
        done = subprocess.run(self.command(program=("/bin/guest-train", "--no-such-option")), text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE)
        return "" if "usage: guest-train" in done.stderr else done.stderr.strip() or "no output"


class Containers(case.Case):
    @classmethod
    def setUpClass(cls):
        cls.host = Host()
        cls.file = os.path.join(cls.host.directory, "cdi", "openvgpu.json")
        if os.geteuid() == 0 and shutil.which("podman"):
            cls.file = CDI_FILE
        cls.host.options += ["--cdi", cls.file]
        if cls.file == CDI_FILE:  # also of a manager that was killed
            cls.addClassCleanup(pathlib.Path(CDI_FILE).unlink, missing_ok=True)
        cls.host.start()
        cls.addClassCleanup(cls.host.close)

    def specification(self):
        with open(self.file) as file:
            return json.load(file)

    def device(self, name):
        return next(d for d in self.specification()["devices"] if d["name"] == name)

    def door(self, name):
        """The folder that a container gets."""
        (mount,) = self.device(name)["containerEdits"]["mounts"]
        self.assertEqual(mount["containerPath"], "/run/openvgpu")
        return mount["hostPath"]

    def test_the_file_has_what_there_is(self):
        self.host.create("box")
        self.host.create("3-")  # no name of a CDI device
        names = [device["name"] for device in self.specification()["devices"]]
        self.assertEqual(names, ["box", self.host.get("3-")["uuid"]])
        self.assertEqual(self.specification()["kind"], "openvgpu.org/vgpu")
        self.assertEqual(json.loads(self.host.vgpu("cdi").output), self.specification())
        self.assertNotEqual(self.door("box"), self.door(names[1]))
        self.host.vgpu("rename", "box", "crate")
        self.assertEqual(self.specification()["devices"][0]["name"], "crate")
        self.host.vgpu("rename", "crate", "box")
        self.host.vgpu("rm", "3-")
        until(lambda: [d["name"] for d in self.specification()["devices"]] == ["box"], "the other one to go")

        self.assertEqual(self.host.stop(), 0)
        self.assertFalse(os.path.exists(self.file))
        self.host.start()
        self.assertTrue(os.path.exists(self.door("box")))

    def test_the_door_of_a_vgpu_that_is_gone_goes_also_without_cdi(self):
        self.host.create("box")
        self.host.create("other")
        doors = [self.door("box"), self.door("other")]
        options = self.host.options
        self.host.options = [word for word in options if word not in ("--cdi", self.file)]
        try:
            self.host.restart()
            self.assertEqual([os.path.exists(door) for door in doors], [True, True])  # containers may have them
            self.host.vgpu("rm", "other")
            self.host.restart()
            self.assertEqual([os.path.exists(door) for door in doors], [True, False])
            self.host.vgpu("rm", "box")
            self.host.restart()
            self.assertFalse(os.path.exists(os.path.dirname(doors[0])))
        finally:
            self.host.options = options
            self.host.restart()

    def test_a_container_reaches_its_own_vgpu_only(self):
        self.host.create("box")
        self.host.create("other")
        edits = self.specification()["containerEdits"]
        for mount in edits["mounts"]:
            self.assertNotEqual(mount["hostPath"], self.host.run_directory)
        self.assertEqual(sorted(os.listdir(self.door("box"))), ["gate.sock", "state-page"])
        self.assertEqual(os.stat(os.path.dirname(self.door("box"))).st_mode & 0o777, 0o700)
        with Gate(os.path.join(self.door("box"), "gate.sock")) as gate:
            gate.join(self.host.get("other")["uuid"])
            message, body, _ = gate.receive_message()
            self.assertEqual(message, Gate.REFUSED)
            self.assertIn("its own vGPU", gate.refusal(body)[1])

    def test_a_container_joins_as_whatever_user_it_has(self):
        self.host.create("box")
        user = "nobody" if stage.can_be_used_by("nobody") else None
        door = os.open(self.door("box"), os.O_RDONLY)
        try:
            subprocess.run([stage.SYSTEM_PYTHON, SHORT_LIVED, f"/proc/self/fd/{door}",
                            self.host.get("box")["uuid"], "1"], user=user, pass_fds=[door], check=True,
                           stdout=subprocess.DEVNULL, timeout=PATIENCE)
        finally:
            os.close(door)

    def test_a_container_that_says_nothing_holds_up_no_other_vgpu(self):
        """It claims to have memory of somebody, and does not tell of whom. One user owns both vGPUs."""
        self.host.create("box")
        self.host.create("other")
        guest = self.host.train("other", "--size", "4M")
        silent = subprocess.Popen([stage.SYSTEM_PYTHON, HOSTILE, self.door("box"), self.host.get("box")["uuid"],
                                   "claims_imports_and_tells_of_none"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(silent.stdout.readline(), "joined\n")
        self.host.vgpu("suspend", "other", "--timeout", "5")
        self.host.vgpu("resume", "other")
        silent.communicate(timeout=PATIENCE)
        guest.wait_steps()
        guest.finish()

    # With podman.

    @classmethod
    @functools.cache
    def podman_and_problem(cls):
        podman = Podman(os.path.join(cls.host.directory, "podman"))
        return podman, podman.problem()

    def get_podman(self):
        if self.file != CDI_FILE or not shutil.which("runc"):
            self.skipTest("needs root and podman with runc: apt-get install podman runc")
        podman, problem = self.podman_and_problem()
        if problem:
            self.skipTest(f"podman cannot run a container here: {problem.splitlines()[-1]}")
        return podman

    def start(self, podman, vgpu, *options):
        log = os.path.join(podman.directory, "errors")
        command = podman.command("--device", f"openvgpu.org/vgpu={vgpu}", *options)
        guest = Guest(command, self.host.environment(), log)
        self.host.guests.append(guest)
        return guest.wait_ready()

    def wait_steps(self, guest, n=2):
        """Its log is what it says on standard error: a container has no file of ours."""
        target = len(guest.errors) + n
        until(lambda: len(guest.errors) >= target, f"{n} more steps", context=guest.context)
        self.assertFalse([line for line in guest.errors if not line.endswith(" ok")], guest.errors)

    def test_a_program_in_a_container_leaves_its_gpu_and_comes_back(self):
        podman = self.get_podman()
        name = self.host.create(f"box-{os.getpid()}")
        guest = self.start(podman, name, "--name", f"web-{os.getpid()}", "--read-only", "--security-opt",
                           "no-new-privileges", "--user", "1000:1000", "--cap-drop", "all")
        (process,) = self.host.get(name)["processes"]
        with open(f"/proc/{process['pid']}/status") as status:
            self.assertRegex(status.read(), rf"\nNSpid:\t{process['pid']}\t1\n")
        self.assertRegex(self.host.vgpu("ls", "-l", name).output, rf"CONTAINER\n.* web-{os.getpid()}\n")
        self.assertIn(f"guest-train (web-{os.getpid()})", self.host.vgpu("top", "--once").output)
        self.check_container(name, process["pid"])
        try:
            self.check_reach(process["pid"], name)
        except AssertionError:
            os.kill(process["pid"], signal.SIGKILL)
            raise

        self.wait_steps(guest)
        self.host.vgpu("suspend", name)
        self.host.restart()
        self.host.vgpu("resume", name, "--device", 1)
        self.wait_steps(guest)
        self.check_container(name, process["pid"])
        self.host.vgpu("migrate", name, "--device", 0)
        self.wait_steps(guest)
        os.kill(process["pid"], signal.SIGKILL)
        guest.join()
        self.host.wait_state(name, "idle")

    def check_container(self, name, pid):
        """vgpud knows which container the vGPU is in, for metrics."""
        with open(f"/proc/{pid}/cgroup") as groups:
            (identity,) = set(re.findall("[0-9a-f]{64}", groups.read()))
        (use,) = [use for use in self.host.vgpu("top", "--json").json["vgpus"] if use["name"] == name]
        self.assertEqual([use["container"], use["processes"][0]["container"]], [identity[:12]] * 2)

    def check_reach(self, pid, name):
        """Of what is vgpud's, the container has the door of its vGPU, and the page of no other."""
        self.host.create("other")
        with open(f"/proc/{pid}/mountinfo") as mounts:
            mine = {line.split()[3].split(self.host.run_directory.removeprefix("/tmp"))[1] for line in mounts
                    if self.host.run_directory.removeprefix("/tmp") + "/" in line.split()[3]}
        self.assertEqual(mine, {f"/cdi/{self.host.get(name)['uuid']}", "/sim"})
        root = f"/proc/{pid}/root"
        paths = [os.path.join(folder, file) for part in ("etc", "run", "tmp", "usr/lib/openvgpu/gate", "usr/lib/openvgpu/nvml")
                 for folder, _, files in os.walk(os.path.join(root, part)) for file in files]
        self.assertEqual([path for path in paths if stat.S_ISSOCK(os.lstat(path).st_mode)],
                         [f"{root}/run/openvgpu/gate.sock"])
        with open(f"/proc/{pid}/maps") as maps:
            pages = {line.split()[4] for line in maps if "memfd:" in line and "page" in line}
        self.assertEqual(len(pages), 1, pages)

    def test_a_container_may_have_users_of_its_own(self):
        podman = self.get_podman()
        name = self.host.create(f"mapped-{os.getpid()}")
        guest = self.start(podman, name, "--uidmap", "0:100000:65536", "--gidmap", "0:100000:65536")
        (process,) = self.host.get(name)["processes"]
        self.assertEqual(os.stat(f"/proc/{process['pid']}").st_uid, 100000)
        self.host.vgpu("suspend", name)
        self.host.vgpu("resume", name)
        self.wait_steps(guest)
        os.kill(process["pid"], signal.SIGKILL)
        guest.join()


if __name__ == "__main__":
    case.main()
