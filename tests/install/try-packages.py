#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Debian packages in a fresh root: installed, upgraded under running guests, removed, purged.

usage: try-packages.py PACKAGES GUEST [SUITE]

PACKAGES is a folder of .deb files, GUEST the program tests/guests/guest-train of a build, SUITE the release of
Debian (default: this machine's). Needs root and debootstrap. No systemd runs in the root: what the packages ask of
`systemctl` is done by a few lines of ours, with the commands of the unit.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
sys.dont_write_bytecode = True
from guest import Guest  # noqa: E402
from wait import until  # noqa: E402

# Starts, ends and restarts vgpud; all else is answered with success.
SYSTEMCTL = """#!/bin/sh
echo "$*" >>/var/log/systemctl
case " $* " in *" vgpud.service "*) ;; *) exit 0 ;; esac
running() { [ -e /run/vgpud.pid ] && kill -0 "$(cat /run/vgpud.pid)" 2>/dev/null; }
case " $* " in *" is-active "*) running; exit ;; *" is-enabled "*) echo enabled; exit ;; esac
case " $* " in *" stop "* | *" restart "*)
        if running; then
                kill "$(cat /run/vgpud.pid)"
                while running; do sleep 0.1; done
        fi ;;
esac
case " $* " in *" start "* | *" restart "*)
        mkdir -p /run/openvgpu /var/lib/openvgpu
        /usr/bin/vgpud >>/var/log/vgpud.log 2>&1 </dev/null &
        echo $! >/run/vgpud.pid ;;
esac
"""

# Made by the package or by vgpud; none of it is to be there after a purge.
OURS = ("/usr/bin/vgpu*", "/usr/lib/openvgpu", "/usr/lib/x86_64-linux-gnu/libopenvgpu*", "/usr/lib/systemd/system/vgpu*",
        "/usr/share/openvgpu", "/usr/share/doc/*openvgpu*", "/var/lib/openvgpu", "/etc/openvgpu/vgpud.conf",
        "/etc/systemd/system/*/vgpud*", "/usr/lib/python3/dist-packages/openvgpu*")


class Root:
    def __init__(self, directory, suite):
        self.directory = pathlib.Path(directory)
        self.environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                            "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"}
        subprocess.run(["debootstrap", "--variant=minbase", suite, directory, mirror()], check=True,
                       stdout=subprocess.DEVNULL)
        for kind, place in (("proc", "proc"), ("tmpfs", "dev/shm"), ("tmpfs", "run")):
            self.path(place).mkdir(exist_ok=True)
            subprocess.run(["mount", "-t", kind, kind, self.path(place)], check=True)
        self.path("run/systemd/system").mkdir(parents=True)
        self.write("usr/local/bin/systemctl", SYSTEMCTL).chmod(0o755)
        self.write("etc/apt/apt.conf.d/path", f"DPkg::Path \"{self.environment['PATH']}\";\n")
        self.write("etc/openvgpu/vgpud.conf.d/simulate.conf", "simulate = 2xH200:1G\npool-limit = 512M\n")

    def path(self, name):
        return self.directory / name.lstrip("/")

    def write(self, name, text):
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run(self, *command, code=0):
        done = subprocess.run(["chroot", self.directory, *command], env=self.environment, capture_output=True,
                              text=True, check=False)
        assert code is None or done.returncode == code, f"{command}: {done.stdout}{done.stderr}{self.log()}"
        return done.stdout

    def log(self):
        """What was asked of systemctl, and what vgpud said."""
        return "".join(path.read_text() for path in map(self.path, ("var/log/systemctl", "var/log/vgpud.log")) if path.exists())

    def guest(self, vgpu):
        log = f"tmp/steps-{vgpu}"
        return Guest(["chroot", self.directory, "vgpu", "run", "--vgpu", vgpu, "--", "/guest-train", "--size", "64M", "--pause",
                      "20", "--log", "/" + log], self.environment, log=self.path(log)).wait_ready()

    def install(self, folder):
        """The packages of the folder, together, as a user gives them to apt; what they need comes from Debian."""
        shutil.copytree(folder, self.path("packages"), dirs_exist_ok=True)
        debs = sorted(f"/packages/{path.name}" for path in pathlib.Path(folder).glob("*.deb"))
        self.run("apt-get", "install", "-y", "-q", "--no-install-recommends", *debs)

    def manager(self):
        return int(self.path("run/vgpud.pid").read_text())

    def wait_manager(self):
        until(lambda: subprocess.run(["chroot", self.directory, "vgpu", "info"], env=self.environment, check=False,
                                     capture_output=True).returncode == 0, "vgpud to answer", context=self.log)

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


def try_upgrade(root, packages):
    root.run("vgpu", "create", "train", "--fb", "256M")
    root.run("vgpu", "create", "asleep", "--fb", "256M")
    train, asleep = root.guest("train"), root.guest("asleep")
    root.run("vgpu", "suspend", "asleep")
    before = root.manager()
    root.install(packages)
    assert root.manager() != before, "vgpud was not restarted"
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


def try_removal(root, train, asleep):
    root.run("apt-get", "remove", "-y", "-q", "openvgpu")
    train.wait_steps()
    step("removed: a program that still runs keeps its GPU")
    for guest in (train, asleep):
        guest.signal(signal.SIGTERM)
        assert guest.join() == 0 and guest.lines[-1].endswith(" ok"), guest.context()
    step("both programs have all that they had, word for word")
    assert root.path("var/lib/openvgpu").exists() and root.path("etc/openvgpu/vgpud.conf").exists()
    root.run("apt-get", "purge", "-y", "-q", "openvgpu", "libopenvgpu0", "libopenvgpu-dev", "openvgpu-nvml",
             "openvgpu-slurm", "python3-openvgpu")
    assert not root.left(), root.left()
    assert root.path("etc/openvgpu/vgpud.conf.d/simulate.conf").exists()
    step("purged: nothing of it is left but the user's own file")


def try_packages(packages, guest, root, former):
    shutil.copy2(guest, root.path("guest-train"))
    make_former(packages, former)
    root.run("apt-get", "update", "-q")
    root.install(former)
    root.wait_manager()
    root.run("getent", "group", "vgpu")
    root.run("python3", "-c", "import openvgpu")
    step("installed: vgpud answers")
    try_removal(root, *try_upgrade(root, packages))


def this_suite():
    release = pathlib.Path("/etc/os-release").read_text()
    return re.search(r"^VERSION_CODENAME=(\S+)$", release, re.M)[1]


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    if "TRY_PACKAGES_INSIDE" not in os.environ:
        # What is mounted and what runs ends with this; the shell is their init, and collects what has ended.
        os.environ["TRY_PACKAGES_INSIDE"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                              "sh", "-c", '"$@"; exit $?', "sh", sys.executable, *sys.argv])
    suite = sys.argv[3] if len(sys.argv) == 4 else this_suite()
    work = tempfile.mkdtemp()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", work], check=True)
    try:
        root = Root(os.path.join(work, "root"), suite)
        step(f"a fresh root: {suite}")
        try_packages(sys.argv[1], sys.argv[2], root, pathlib.Path(work, "former"))
    finally:
        subprocess.run(["umount", "--recursive", "--lazy", work], check=False)
        os.rmdir(work)


main()
