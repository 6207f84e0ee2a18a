#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vGPUs in containers (docs/containers.md): what vgpud writes for container engines, who comes in by a vGPU's
door, and a real podman with runc, where there is one."""
import contextlib
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
import reach
import stage
from guest import Guest
from host import Host
from wait import PATIENCE, until
from wire import Gate

HERE = reach.scripts()
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
    for folder in ("bin", "dev", "etc", "proc", "sys", "tmp", "run/openvgpu", "usr/lib/openvgpu/gate", "usr/local/lib",
                   "usr/lib/openvgpu/nvml", "usr/lib/openvgpu/sim", "usr/lib/openvgpu/simulated-host"):
        os.makedirs(os.path.join(directory, folder))  # root of a container may not be able to do so
    for file in ("etc/ld.so.preload", "usr/local/lib/libcuda.so.1", "usr/local/lib/libnvidia-ml.so.1"):
        pathlib.Path(directory, file).touch()
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

    def command(self, *options, program=("/bin/guest-train",), image=None):
        """In an image; without one, in the root."""
        return [*self.begin, "run", "--rm", "--network", "none", "--ulimit", "nofile=20000:20000",
                "--ulimit", "nproc=1000:1000", *options, *([image] if image else ["--rootfs", self.root]), *program]

    def make_image(self, name, *changes):
        """Of the root: an image has variables of its own."""
        tar = subprocess.run(["tar", "-C", self.root, "-c", "."], capture_output=True, check=True).stdout
        subprocess.run([*self.begin, "import", *(f"--change={change}" for change in changes), "-", name], input=tar,
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE)
        return name

    def problem(self):
        """Why it cannot run the simplest container on this machine; '' if it can."""
        done = subprocess.run(self.command(program=("/bin/guest-train", "--no-such-option")), text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE)
        return "" if "usage: guest-train" in done.stderr else done.stderr.strip() or "no output"


class Engines(case.Case):
    """A vgpud for containers, and podman."""

    OPTIONS = ()
    pid_file = ""

    @classmethod
    def setUpClass(cls):
        cls.host = Host()
        cls.file = os.path.join(cls.host.directory, "cdi", "openvgpu.json")
        if os.geteuid() == 0 and shutil.which("podman"):
            cls.file = CDI_FILE
        cls.host.options += ["--cdi", cls.file, *cls.OPTIONS]
        if cls.file == CDI_FILE:  # also of a manager that was killed
            cls.addClassCleanup(pathlib.Path(CDI_FILE).unlink, missing_ok=True)
        cls.host.start()
        cls.addClassCleanup(cls.host.close)
        cls.addClassCleanup(cls.unmount)

    @classmethod
    def unmount(cls):
        """What podman has mounted for a container whose engine was killed."""
        for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
            path = line.split()[4]
            if path.startswith(cls.host.directory + "/"):
                subprocess.run(["umount", "--lazy", path], check=True)

    def tearDown(self):
        """Also when the test has failed: a container does not end with podman, and its vGPU goes by itself."""
        if self.pid_file:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError):
                pid = int(pathlib.Path(self.pid_file).read_text())
                if pathlib.Path(f"/proc/{pid}/comm").read_text() == "guest-train\n":
                    os.kill(pid, signal.SIGKILL)
            self.pid_file = ""
        for guest in self.host.guests:
            guest.kill()
        if self.host.manager.poll() is None:
            until(lambda: not any(vgpu["transient"] for vgpu in self.host.call("ListVgpus")["vgpus"]),
                  "the vGPUs of containers to go", context=self.host.log)
        super().tearDown()

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

    def start(self, podman, vgpu, *options, image=None):
        log = os.path.join(podman.directory, "errors")
        self.pid_file = os.path.join(podman.directory, "pid")
        command = podman.command("--pidfile", self.pid_file, "--device", f"openvgpu.org/vgpu={vgpu}", *options,
                                 image=image)
        guest = Guest(command, self.host.environment(), log)
        self.host.guests.append(guest)
        return guest.wait_ready()

    @staticmethod
    def get_container(pid):
        with open(f"/proc/{pid}/cgroup") as groups:
            (identity,) = set(re.findall("[0-9a-f]{64}", groups.read()))
        return identity

    def wait_steps(self, guest, n=2):
        """Its log is what it says on standard error: a container has no file of ours."""
        target = len(guest.errors) + n
        until(lambda: len(guest.errors) >= target, f"{n} more steps", context=guest.context)
        self.assertFalse([line for line in guest.errors if not line.endswith(" ok")], guest.errors)


class Containers(Engines):
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
        user = "nobody" if os.geteuid() == 0 else None
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
        self.check_usage(f"web-{os.getpid()}", process["pid"])
        os.kill(process["pid"], signal.SIGKILL)
        guest.join()
        self.host.wait_state(name, "idle")

    def check_usage(self, name, pid):
        """The ledger has its use by its name, also when its engine and its vGPU are gone."""
        rows = self.host.vgpu("usage", "--by", "container", "--json").json["rows"]
        identity = self.get_container(pid)
        (row,) = [row for row in rows if row["container"] == identity[:12]]
        self.assertEqual((row["container_name"], row["tenant"]), (name, os.geteuid()))
        self.assertGreater(row["memory_peak"], 0)

    def check_container(self, name, pid):
        """vgpud knows which container the vGPU is in, for metrics."""
        identity = self.get_container(pid)
        (use,) = [use for use in self.host.vgpu("top", "--json").json["vgpus"] if use["name"] == name]
        self.assertEqual([use["container"], use["processes"][0]["container"]], [identity[:12]] * 2)

    def check_reach(self, pid, name):
        """Of what is vgpud's, the container has the door of its vGPU, and the page of no other."""
        self.host.create("other")
        run = self.host.run_directory.removeprefix(os.path.dirname(self.host.directory))  # may be a file system
        with open(f"/proc/{pid}/mountinfo") as mounts:
            mine = {line.split()[3].split(run)[1] for line in mounts if run + "/" in line.split()[3]}
        self.assertEqual(mine, {f"/cdi/{self.host.get(name)['uuid']}", "/sim"})
        root = f"/proc/{pid}/root"
        paths = [os.path.join(folder, file) for part in ("etc", "run", "tmp", "usr/lib/openvgpu/gate", "usr/lib/openvgpu/nvml")
                 for folder, _, files in os.walk(os.path.join(root, part)) for file in files]
        self.assertEqual([path for path in paths if stat.S_ISSOCK(os.lstat(path).st_mode)],
                         [f"{root}/run/openvgpu/gate.sock"])
        with open(f"/proc/{pid}/maps") as maps:
            pages = {line.split()[4] for line in maps if "memfd:" in line and "page" in line}
        self.assertEqual(len(pages), 1, pages)

    def test_an_image_keeps_the_library_that_it_preloads(self):
        podman = self.get_podman()
        libm = next(path for path in files_of(stage.SYSTEM_PYTHON) if path.endswith("/libm.so.6"))
        shutil.copy(libm, os.path.join(podman.root, "tmp", "mine.so"))
        image = podman.make_image("preloads", "ENV LD_PRELOAD=/tmp/mine.so")
        name = self.host.create(f"kept-{os.getpid()}")
        guest = self.start(podman, name, image=image)
        (process,) = self.host.get(name)["processes"]
        with open(f"/proc/{process['pid']}/maps") as maps:
            loaded = {line.split()[-1] for line in maps if "/" in line}
        self.assertLessEqual({"/tmp/mine.so", "/usr/lib/openvgpu/gate/libcuda.so.1",
                              "/usr/lib/openvgpu/nvml/libnvidia-ml.so.1"}, loaded)
        self.assertNotIn("/usr/local/lib/libcuda.so.1", loaded)  # it is for musl
        self.host.vgpu("suspend", name)
        self.host.vgpu("resume", name)
        self.wait_steps(guest)
        os.kill(process["pid"], signal.SIGKILL)
        guest.join()

    def test_no_user_has_a_program_of_another_user_load_what_he_names(self):
        """The gate is also in set-user-id programs, which must not believe the environment."""
        podman = self.get_podman()
        for program in ("/usr/bin/env", stage.GUESTS / "guest-train"):
            copy = os.path.join(podman.root, "bin", f"other-{os.path.basename(program)}")
            shutil.copy(program, copy)
            os.chmod(copy, 0o4755 if "guest" in copy else 0o755)
        name = self.host.create(f"strange-{os.getpid()}")
        done = subprocess.run(
            podman.command("--device", f"openvgpu.org/vgpu={name}", "--user", "1000:1000",
                           program=["/bin/other-env", "OPENVGPU_DRIVER=/tmp/evil", "OPENVGPU_GATE_LOG=/tmp/gate.log",
                                    "/bin/other-guest-train"]),
            text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE)
        self.assertIn("OPENVGPU_DRIVER does not say where it is", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(podman.root, "tmp", "gate.log")))

    def test_a_program_of_musl_is_told_why_it_has_no_gpu(self):
        podman = self.get_podman()
        program, loader = stage.GUESTS / "guest-musl", "/lib/ld-musl-x86_64.so.1"
        if not program.exists() or not os.path.exists(loader):
            self.skipTest("needs a compiler for musl: apt-get install musl-tools")
        shutil.copy(program, os.path.join(podman.root, "bin"))
        os.makedirs(os.path.join(podman.root, "lib"), exist_ok=True)
        shutil.copy(loader, os.path.join(podman.root, "lib"))
        name = self.host.create(f"musl-{os.getpid()}")
        done = subprocess.run(podman.command("--device", f"openvgpu.org/vgpu={name}", program=["/bin/guest-musl"]),
                              text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE)
        self.assertEqual(done.stdout, "cuInit 100\nnvmlInitWithFlags 9\nvGPUs need glibc\n", done.stderr)
        self.assertEqual(done.stderr.count("linked with musl, and vGPUs need a glibc (2.17 or newer)"), 2, done.stderr)
        self.assertEqual(done.returncode, 0)

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


class Orders(Engines):
    """openvgpu.org/vgpu=new: a vGPU that a container has made for it, and that goes with it. The namespaces of most
    containers here are made by hand, for where there is no podman."""

    OPTIONS = ("--cdi-new", "256M:30", "--user-vgpus", "2")

    def environment_of(self, device, **variables):
        """What an engine would set, with the paths of the host, for want of mounts."""
        specification = self.specification()
        edits = [specification["containerEdits"], self.device(device)["containerEdits"]]
        set_ = dict(entry.split("=", 1) for edit in edits for entry in edit["env"])
        (preload,) = [mount["hostPath"] for edit in edits for mount in edit["mounts"]
                      if mount["containerPath"] == "/etc/ld.so.preload"]
        set_["LD_PRELOAD"] = ":".join(pathlib.Path(preload).read_text().split())
        for edit in edits:
            for mount in edit["mounts"]:
                set_ = {name: re.sub(rf"(^|:){re.escape(mount['containerPath'])}(?=[/:]|$)",
                                     rf"\g<1>{mount['hostPath']}", value) for name, value in set_.items()}
        kept = {name: value for name, value in self.host.environment().items() if not name.startswith("OPENVGPU_")}
        return {**kept, **set_, **variables}

    def contain(self, *command, is_contained=True, **variables):
        """A command as the first process of a container."""
        own = ["unshare", "--fork", "--pid", "--kill-child"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
        if is_contained and subprocess.run([*own, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("the kernel lets this user make no namespaces")
        guest = Guest([*(own if is_contained else []), *command], self.environment_of("new", **variables))
        self.host.guests.append(guest)
        return guest

    def train(self, **variables):
        """One program, and another one for each line of input."""
        script = '"$0" & while read line; do "$0" & done; wait'
        return self.contain("sh", "-c", script, stage.GUESTS / "guest-train", **variables).wait_ready()

    def refused(self, **variables):
        guest = self.contain(stage.GUESTS / "guest-train", **variables)
        guest.join()
        self.assertNotEqual(guest.process.returncode, 0)
        return "\n".join(guest.errors)

    def get_only(self):
        (name,) = self.host.names()
        return self.host.get(name)

    def wait_gone(self):
        until(lambda: not self.host.names(), "the vGPU of the container to go", context=self.host.log)

    def end(self, guest):
        guest.kill()
        self.wait_gone()

    def test_the_device_is_there(self):
        self.host.create("new")  # one that is called so goes by its UUID
        self.assertEqual([device["name"] for device in self.specification()["devices"]],
                         ["new", self.host.get("new")["uuid"]])
        self.assertEqual(json.loads(self.host.vgpu("cdi").output), self.specification())

    def test_a_container_gets_one_that_goes_with_it(self):
        guest = self.train(OPENVGPU_FB="128M", OPENVGPU_SHARE="25")
        vgpu = self.get_only()
        self.assertEqual((vgpu["frame_buffer"], vgpu["owner"], vgpu["transient"]), (128 << 20, os.geteuid(), True))
        self.assertEqual(vgpu["share"], 25)
        self.host.vgpu("suspend", vgpu["name"])
        self.host.vgpu("resume", vgpu["name"], "--device", 1)
        self.wait_steps(guest)
        self.end(guest)

    def test_all_programs_of_a_container_share_one_over_managers_that_die(self):
        guest = self.train(OPENVGPU_FB="256M")
        vgpu = self.get_only()
        for n in (2, 3):
            guest.process.stdin.write("\n")
            guest.process.stdin.flush()
            until(lambda n=n: len(self.get_only()["processes"]) == n, f"{n} programs", context=guest.context)
            self.assertEqual(self.get_only()["uuid"], vgpu["uuid"])
            self.host.restart()
        self.host.vgpu("suspend", vgpu["name"])
        self.host.kill()
        guest.kill()
        self.host.start()
        self.wait_gone()

    def test_the_vgpu_of_another_container_cannot_be_joined(self):
        guest = self.train(OPENVGPU_FB="64M")
        with Gate(os.path.join(self.door("new"), "gate.sock")) as gate:
            gate.join(self.get_only()["uuid"])
            message, body, _ = gate.receive_message()
        self.assertEqual(message, Gate.REFUSED)
        self.assertIn("its own vGPU", gate.refusal(body)[1])
        other = self.train(OPENVGPU_FB="64M")
        self.assertEqual(len(self.host.names()), 2)
        other.kill()
        until(lambda: len(self.host.names()) == 1, "that of the other one to go", context=self.host.log)
        self.end(guest)

    def test_what_is_too_much_is_refused(self):
        self.assertIn("OPENVGPU_FB=20G", self.refused())
        self.assertIn("OPENVGPU_FB is no size", self.refused(OPENVGPU_FB="large"))
        self.assertIn("may have 256 MiB, not 257 MiB", self.refused(OPENVGPU_FB="257M"))
        self.assertIn("30 percent", self.refused(OPENVGPU_FB="64M", OPENVGPU_SHARE="31"))
        self.assertIn("no percentage", self.refused(OPENVGPU_FB="64M", OPENVGPU_SHARE="-1"))
        self.assertIn("--pid=host", self.refused(is_contained=False, OPENVGPU_FB="64M"))
        self.assertEqual(self.host.names(), [])
        guests = [self.train(OPENVGPU_FB="64M") for _ in range(2)]
        self.assertIn("containers have 2 vGPUs together", self.refused(OPENVGPU_FB="64M"))
        for guest in guests:
            guest.kill()
        self.wait_gone()

    def test_no_vgpu_is_made_elsewhere(self):
        """At the socket of all, and at the door of another vGPU."""
        self.host.create("box")
        for run in (self.host.run_directory, self.door("box")):
            self.assertIn("vgpu=new", self.refused(OPENVGPU_FB="64M", OPENVGPU_RUN=run))
        self.assertEqual(self.host.names(), ["box"])

    def test_an_order_that_is_none_ends_the_connection(self):
        for body in (b"", b"64M", b"x" * 48, b"x" * 49):
            with self.subTest(body=body), Gate(os.path.join(self.door("new"), "gate.sock")) as gate:
                gate.send(gate.header(Gate.ORDER) + body)
                self.assertEqual(gate.receive_message()[0], None)
        self.assertEqual(self.host.names(), [])

    def test_nvml_shows_it_whoever_asks_first(self):
        library = self.environment_of("new")["LD_PRELOAD"].split(":")[-1]
        guest = self.contain(stage.SYSTEM_PYTHON, os.path.join(HERE, "nvml_client.py"), library, OPENVGPU_FB="64M")
        guest.wait_line("0")
        guest.process.stdin.write("nvmlDeviceGetCount_v2 @\n")
        guest.process.stdin.flush()
        guest.wait_line("0 1")  # the host has two
        self.assertEqual(self.get_only()["frame_buffer"], 64 << 20)
        self.end(guest)

    def test_who_may_not_have_one_made_keeps_what_was(self):
        """A vgpud without --cdi-new: its containers come back, and no other gets one."""
        guest = self.train(OPENVGPU_FB="64M")
        environment = self.environment_of("new", OPENVGPU_FB="64M")
        options = self.host.options
        self.host.options = [word for word in options if word not in self.OPTIONS[:2]]
        try:
            self.host.restart()
            self.host.vgpu("suspend", self.get_only()["name"])
            self.host.vgpu("resume", self.get_only()["name"])
            self.wait_steps(guest)
            self.assertTrue(os.path.exists(environment["OPENVGPU_RUN"]))
            guest.kill()
            self.wait_gone()
            self.host.restart()
            self.assertFalse(os.path.exists(environment["OPENVGPU_RUN"]))
        finally:
            self.host.options = options
            self.host.restart()

    # With podman.

    def test_podman_says_how_large_it_is(self):
        podman = self.get_podman()
        name = f"own-{os.getpid()}"
        guest = self.start(podman, "new", "--env", "OPENVGPU_FB=128M", "--name", name, "--read-only",
                           "--user", "1000:1000", "--cap-drop", "all", "--security-opt", "no-new-privileges")
        vgpu = self.host.get(name)  # it is called as its container
        self.assertEqual(vgpu["frame_buffer"], 128 << 20)
        (process,) = vgpu["processes"]
        self.host.vgpu("suspend", name)
        self.host.restart()
        self.host.vgpu("resume", name, "--device", 1)
        self.wait_steps(guest)
        os.kill(process["pid"], signal.SIGKILL)
        guest.join()
        self.wait_gone()

    def get_billed(self):
        """The names of containers in the ledger."""
        rows = self.host.vgpu("usage", "--since", "1h", "--by", "container", "--json").json["rows"]
        return [row["container_name"] for row in rows]

    def check_name(self, name):
        """Of the container: its owner sees it, others do not."""
        self.assertRegex(self.host.vgpu("ls", "-l", name).output, rf"CONTAINER\n.* {name}\n")
        self.assertIn(f"guest-train ({name})", self.host.vgpu("top", "--once").output)
        for user, seen in ((None, name), *([("nobody", "")] if os.geteuid() == 0 else [])):
            (use,) = self.host.vgpu("top", "--json", user=user).json["vgpus"]
            (vgpu,) = self.host.vgpu("ls", "--json", user=user).json["vgpus"]
            self.assertEqual([one["processes"][0]["container_name"] for one in (use, vgpu)], [seen] * 2)

    def test_a_container_outlives_its_engine(self):
        """kill -9 of what watches it. Its name is still shown and in the ledger, though nobody says it any more."""
        podman = self.get_podman()
        name = f"orphan-{os.getpid()}"
        guest = self.start(podman, "new", "--env", "OPENVGPU_FB=128M", "--name", name, "--log-driver", "passthrough",
                           "--uidmap", "0:100000:65536", "--gidmap", "0:100000:65536")
        (process,) = self.host.get(name)["processes"]
        self.addCleanup(subprocess.run, ["runc", "delete", "--force", self.get_container(process["pid"])], check=False,
                        stderr=subprocess.DEVNULL, timeout=PATIENCE)  # nobody else does it then
        with open(f"/proc/{process['pid']}/stat") as stat_file:
            conmon = int(stat_file.read().rpartition(")")[2].split()[1])
        with open(f"/proc/{conmon}/comm") as comm:
            self.assertEqual(comm.read(), "conmon\n")
        until(lambda: name in self.get_billed(), "the ledger to have it")
        os.kill(conmon, signal.SIGKILL)
        guest.process.kill()  # podman itself
        self.wait_steps(guest)
        self.check_name(name)
        self.host.vgpu("suspend", name)
        self.host.restart()
        self.host.vgpu("resume", name)
        self.wait_steps(guest)
        self.check_name(name)
        self.host.vgpu("migrate", name, "--device", 1)
        self.wait_steps(guest)
        os.kill(process["pid"], signal.SIGKILL)
        self.wait_gone()
        self.assertIn(name, self.get_billed())


if __name__ == "__main__":
    case.main()
