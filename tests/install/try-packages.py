#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Debian packages in a fresh root with systemd: installed, upgraded under running guests, removed, purged.

usage: try-packages.py PACKAGES GUEST [SUITE]

PACKAGES is a folder of .deb files, GUEST the program tests/guests/guest-train of a build, SUITE the release of
Debian (default: this machine's). Exit status 77: no root of that release can be made here. Needs root and mmdebstrap.
systemd runs in the root as in a container, in namespaces and a control group of its own, which end with this.
"""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
sys.dont_write_bytecode = True
from guest import Guest  # noqa: E402
from wait import until  # noqa: E402

# Makes a container of the root, with as little as systemd needs; in a mount namespace of our own.
BOOT = r"""
mount --bind "$0" "$0" && cd "$0"
mount -t proc proc proc && mount -t sysfs -o ro sysfs sys
mount -t tmpfs tmpfs run && mount -t tmpfs tmpfs tmp && mount -t tmpfs tmpfs dev && mkdir dev/shm dev/pts
mknod -m 666 dev/null c 1 3 && mknod -m 666 dev/zero c 1 5 && mknod -m 666 dev/full c 1 7
mknod -m 666 dev/random c 1 8 && mknod -m 666 dev/urandom c 1 9 && mknod -m 666 dev/tty c 5 0
mount -t tmpfs tmpfs dev/shm && mount -t tmpfs tmpfs sys/fs/cgroup && mount -t cgroup2 cgroup2 sys/fs/cgroup
mkdir -p old && pivot_root . old && umount -l old
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd
"""

# As in check-unit.py, in points of 10.
EXPOSURE_MAX = 50

EXPORTER_EXPOSURE_MAX = 20

# What a scrape is answered; the metrics of programs are there because the package's configuration is changed so.
SCRAPE = """
import socket, sys
where = sys.argv[1]
if where.startswith("/"):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(where)
else:
    connection = socket.create_connection(where.split(":"))
connection.settimeout(60)
connection.sendall(b"GET /metrics HTTP/1.0\\r\\n\\r\\n")
print(connection.makefile("rb").read().decode())
"""
SOCKET = "/run/vgpu-exporter.sock"

# Made by the package or by vgpud; none of it is to be there after a purge.
OURS = ("/usr/bin/vgpu*", "/usr/lib/openvgpu", "/usr/lib/x86_64-linux-gnu/libopenvgpu*", "/usr/lib/systemd/system/vgpu*",
        "/usr/share/openvgpu", "/usr/share/doc/*openvgpu*", "/var/lib/openvgpu",
        "/etc/openvgpu/vgpud.conf",
        "/etc/systemd/system/*/vgpud*", "/etc/systemd/system/*/vgpu-exporter*",
        "/etc/default/vgpu-exporter", "/usr/lib/python3/dist-packages/openvgpu*")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Root:
    def __init__(self, directory, suite, guest):
        self.directory = pathlib.Path(directory)
        self.environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                            "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"}
        # Its lists of packages are kept: they need not be fetched again.
        done = subprocess.run(["mmdebstrap", "--quiet", "--variant=apt", "--mode=root", "--dpkgopt=force-unsafe-io",
                               "--skip=cleanup/apt", "--include=systemd,systemd-sysv", suite, directory, mirror()],
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            print(f"skipped: no root of {suite} can be made here:\n{done.stderr}", flush=True)
            sys.exit(77)
        self.write("etc/openvgpu/vgpud.conf.d/simulate.conf", "simulate = 2xH200:1G\npool-limit = 512M\n")
        # Roots share the machine's network, and there may be two at once.
        self.loopback = f"127.0.0.1:{free_port()}"
        self.listen("10-port", self.loopback)
        shutil.copy2(guest, self.path("usr/local/bin"))
        self.boot()

    def boot(self):
        """In a control group of version 2, which systemd takes for that of the whole machine."""
        self.groups = self.directory.parent / "groups"
        self.groups.mkdir()
        subprocess.run(["mount", "-t", "cgroup2", "cgroup2", self.groups], check=True)
        self.group = self.groups / f"openvgpu-packages-{os.getpid()}"
        self.group.mkdir()
        script = 'echo $$ >"$0/cgroup.procs" && exec unshare --mount --cgroup --uts --ipc --pid --fork --kill-child sh -ec "$@"'
        self.machine = subprocess.Popen(["sh", "-c", script, self.group, BOOT, self.directory],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        # /sbin/init of the root: the only child.
        until(self.init, "systemd to start")
        until(lambda: self.ask("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"), "systemd to be ready")

    def init(self):
        children = pathlib.Path(f"/proc/{self.machine.pid}/task/{self.machine.pid}/children").read_text().split()
        found = [int(pid) for pid in children if pathlib.Path(f"/proc/{pid}/comm").read_text() == "systemd\n"]
        return found[0] if found else None

    def end(self):
        self.machine.kill()
        self.machine.wait()
        until(lambda: not (self.group / "cgroup.procs").exists() or "populated 0" in (self.group / "cgroup.events").read_text(),
              "all that ran in the root to end")
        for folder, _, _ in os.walk(self.group, topdown=False):
            os.rmdir(folder)

    def enter(self, *command):
        return ["nsenter", "--target", str(self.init()), "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--root", "--wd=/",
                *command]

    def path(self, name):
        return self.directory / name.lstrip("/")

    def write(self, name, text):
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def ask(self, *command):
        return subprocess.run(self.enter(*command), env=self.environment, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL)

    def run(self, *command, code=0):
        done = self.ask(*command)
        assert done.returncode == code, f"{command}: {done.stdout}{done.stderr}{self.log()}"
        return done.stdout + done.stderr

    def log(self):
        return self.ask("journalctl", "--no-pager", "--quiet", "--unit", "vgpud").stdout

    def guest(self, vgpu):
        return Guest(self.enter("vgpu", "run", "--vgpu", vgpu, "--", "guest-train", "--size", "64M", "--pause", "20",
                                "--log", f"/srv/steps-{vgpu}"),
                     self.environment, log=self.path(f"srv/steps-{vgpu}")).wait_ready()

    def install(self, folder):
        """The packages of the folder, together, as a user gives them to apt; what they need comes from Debian."""
        debs = [path for path in sorted(pathlib.Path(folder).glob("*.deb")) if "-dbgsym_" not in path.name]
        self.path("packages").mkdir(exist_ok=True)
        for deb in debs:
            shutil.copy(deb, self.path("packages"))
        self.run("apt-get", "install", "-y", "-q", "--no-install-recommends",
                 *(f"/packages/{deb.name}" for deb in debs))

    def manager(self):
        return self.main_pid("vgpud")

    def main_pid(self, unit):
        return int(self.run("systemctl", "show", "--property=MainPID", "--value", unit))

    def listen(self, name, where):
        self.write(f"etc/systemd/system/vgpu-exporter.socket.d/{name}.conf", f"[Socket]\nListenStream=\nListenStream={where}\n")

    def scrape(self, where):
        return self.run("python3", "-c", SCRAPE, where)

    def wait_scrape(self, where, line):
        until(lambda: line in self.ask("python3", "-c", SCRAPE, where).stdout.splitlines(), f"vgpu-exporter to say {line}",
              context=lambda: self.ask("journalctl", "--no-pager", "--quiet", "--unit", "vgpu-exporter").stdout)

    def wait_manager(self):
        until(lambda: self.ask("vgpu", "info").returncode == 0, "vgpud to answer", context=self.log)

    def state(self, vgpu):
        return re.search(r"^ *State +(\S+)", self.run("vgpu", "show", vgpu), re.M | re.I)[1]

    def left(self):
        return [str(path) for pattern in OURS for path in self.directory.glob(pattern.lstrip("/"))]


def mirror():
    """Where this machine has Debian from."""
    found = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(LABEL)", "Created-By: Packages"],
                           capture_output=True, text=True, check=True).stdout
    return next((line.split()[0] for line in found.splitlines() if line.endswith(" Debian Debian")),
                "http://deb.debian.org/debian")


def make_former(folder, former):
    """The same packages with a lower version: what is upgraded from. No debug symbols, to save time."""
    former.mkdir()
    for deb in pathlib.Path(folder).glob("*.deb"):
        if "-dbgsym_" in deb.name:
            continue
        tree = former / "tree"
        subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)
        control = tree / "DEBIAN" / "control"
        version = re.search(r"^Version: (.*)$", control.read_text(), re.M)[1]
        control.write_text(control.read_text().replace(version, f"{version}~former"))
        subprocess.run(["dpkg-deb", "-b", "-Znone", "--root-owner-group", tree, former / deb.name], check=True,
                       stdout=subprocess.DEVNULL)
        shutil.rmtree(tree)


def step(text):
    print(f"ok: {text}", flush=True)


def try_unit(root):
    """What only a real systemd does."""
    root.run("systemctl", "stop", "vgpud.service")
    assert root.ask("systemctl", "is-active", "vgpud.service").stdout.strip() == "inactive"
    root.run("vgpu", "info")
    until(lambda: root.ask("systemctl", "is-active", "vgpud.service").returncode == 0, "vgpud to be started", context=root.log)
    step("who connects to the socket of a vgpud that is not there starts it")
    before = root.manager()
    root.write("etc/openvgpu/vgpud.conf.d/log.conf", "log-level = debug\n")
    root.run("systemctl", "reload", "vgpud")
    until(lambda: "the configuration was read again" in root.log(), "vgpud to read its configuration again", context=root.log)
    assert root.manager() == before
    root.path("etc/openvgpu/vgpud.conf.d/log.conf").unlink()
    step("a reload reads the configuration again, in the same vgpud")
    print(root.run("systemd-analyze", "security", "--no-pager", f"--threshold={EXPOSURE_MAX}", "vgpud.service")
          .strip().splitlines()[-1].lstrip("→ "))
    step("systemd finds it no more exposed than it has to be")


def try_exporter(root):
    root.wait_scrape(root.loopback, "openvgpu_up 1")
    step("a scrape of the exporter is answered on loopback")
    user = root.run("stat", "-c", "%U", f"/proc/{root.main_pid('vgpu-exporter')}").strip()
    assert user == "vgpu-exporter", user
    print(root.run("systemd-analyze", "security", "--no-pager", f"--threshold={EXPORTER_EXPOSURE_MAX}", "vgpu-exporter.service")
          .strip().splitlines()[-1].lstrip("→ "))
    step("it is a user of its own, and little exposed")
    root.listen("20-socket", SOCKET)
    configuration = root.path("etc/default/vgpu-exporter")
    options = "--processes --names dcgm"
    configuration.write_text(configuration.read_text().replace('OPTIONS=""', f'OPTIONS="{options}"'))
    root.run("systemctl", "daemon-reload")
    root.run("systemctl", "stop", "vgpu-exporter.service", "vgpu-exporter.socket")
    root.run("systemctl", "start", "vgpu-exporter.socket")
    root.wait_scrape(SOCKET, "openvgpu_up 1")
    assert "DCGM_FI_DEV_FB_FREE" in root.scrape(SOCKET)
    step("it starts when somebody connects to its unix socket, with the options of its configuration")


def try_upgrade(root, packages):
    root.run("vgpu", "create", "train", "--fb", "256M")
    root.run("vgpu", "create", "asleep", "--fb", "256M")
    train, asleep = root.guest("train"), root.guest("asleep")
    root.run("vgpu", "suspend", "asleep")
    before, exporter = root.manager(), root.main_pid("vgpu-exporter")
    root.install(packages)
    assert root.manager() != before, "vgpud was not restarted"
    root.wait_scrape(SOCKET, "openvgpu_up 1")
    assert root.main_pid("vgpu-exporter") != exporter, "vgpu-exporter was not restarted"
    metrics = root.scrape(SOCKET)
    assert "openvgpu_process_memory_used_bytes{" in metrics and "DCGM_FI_DEV_FB_FREE" in metrics, metrics
    step("upgraded: the exporter is another, with its user's configuration")
    root.wait_manager()
    train.wait_steps()
    step("upgraded: vgpud is another, the program of a vGPU runs on")
    assert root.state("asleep") == "suspended", root.run("vgpu", "ls")
    root.run("vgpu", "resume", "asleep")
    asleep.wait_steps()
    root.run("vgpu", "migrate", "train", "--device", "1")
    train.wait_steps()
    step("a vGPU that was suspended before is resumed, one that ran is moved")
    return train, asleep


def find_child(pid):
    (child,) = map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return child


def try_removal(root, train, asleep):
    said = root.run("apt-get", "remove", "-y", "-q", "openvgpu")
    assert re.search(r"programs run in vGPUs.*: asleep train$", said, re.M), said
    train.wait_steps()
    root.wait_scrape(SOCKET, "openvgpu_up 0")
    root.run("apt-get", "remove", "-y", "-q", "openvgpu-exporter")
    assert root.ask("systemctl", "is-active", "vgpu-exporter.socket").stdout.strip() != "active"
    assert root.path("etc/default/vgpu-exporter").exists()
    step("removed: the exporter missed vgpud, and is gone; a program that still runs keeps its GPU")
    for guest in (train, asleep):
        os.kill(find_child(guest.pid), signal.SIGTERM)  # of nsenter
        assert guest.join() == 0 and guest.lines[-1].endswith(" ok"), guest.context()
    step("both programs have all that they had, word for word")
    assert root.path("var/lib/openvgpu").exists() and root.path("etc/openvgpu/vgpud.conf").exists()
    root.run("apt-get", "purge", "-y", "-q", "openvgpu", "openvgpu-exporter", "libopenvgpu0", "libopenvgpu-dev", "openvgpu-nvml",
             "openvgpu-slurm", "python3-openvgpu")
    assert not root.left(), root.left()
    assert root.path("etc/openvgpu/vgpud.conf.d/simulate.conf").exists()
    failed = root.run("systemctl", "list-units", "--failed", "--no-legend", "--plain", "vgpu*")
    assert not failed, failed
    step("purged: nothing of it is left but the user's own file")


def try_packages(packages, root, former):
    make_former(packages, former)
    root.install(former)
    root.wait_manager()
    root.run("getent", "group", "vgpu")
    root.run("python3", "-c", "import openvgpu")
    step("installed: vgpud answers")
    try_unit(root)
    try_exporter(root)
    try_removal(root, *try_upgrade(root, packages))


def this_suite():
    release = pathlib.Path("/etc/os-release").read_text()
    return re.search(r"^VERSION_CODENAME=(\S+)$", release, re.M)[1]


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    if "TRY_PACKAGES_INSIDE" not in os.environ:  # what is mounted goes with it
        os.environ["TRY_PACKAGES_INSIDE"] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])
    suite = sys.argv[3] if len(sys.argv) == 4 else this_suite()
    work = tempfile.mkdtemp()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", work], check=True)
    try:
        root = Root(os.path.join(work, "root"), suite, os.path.realpath(sys.argv[2]))
        step(f"a fresh root: {suite}, with systemd")
        try:
            try_packages(sys.argv[1], root, pathlib.Path(work, "former"))
        finally:
            root.end()
    finally:
        subprocess.run(["umount", "--recursive", "--lazy", work], check=False)
        os.rmdir(work)


main()
