# SPDX-License-Identifier: Apache-2.0
"""Programs that nobody here wrote: fetched from Debian with apt, unpacked, not installed.

They are in the components contrib and non-free, which few machines have. So apt runs with sources
of its own: those of this machine, with the two components added, and lists and caches in our
folder. Nothing of the system is changed and no right is needed.
"""
import fcntl
import glob
import os
import pathlib
import re
import shutil
import subprocess

COMPONENTS = "main contrib non-free non-free-firmware"

# What all tests of this folder need: one set, so that it is fetched once.
NAMES = ("nvidia-smi", "nvtop", "gpustat", "python3-pynvml", "python3-psutil", "python3-blessed",
         "python3-wcwidth", "python3-six")

# What only some Debians have: a test whose client was not fetched skips itself.
RARE = ("btop", "glances", "netdata-plugins-python", "nvitop", "python3-defusedxml", "python3-packaging")


def without_internals(text):
    """What nvidia-smi says, without what it has from a table of functions that is NVIDIA's secret."""
    return re.sub(r"(?m)^ +Sparse Operation Mode +: Uninitialized$", "", text)


class Missing(Exception):
    """Why the packages cannot be had."""


def _set_components(text, components):
    """Both notations: "Components: main" and "deb URI SUITE main"."""
    text = re.sub(r"(?m)^(Components:).*\bmain\b.*$", rf"\1 {components}", text)
    return re.sub(r"(?m)^(deb\s+(?:\[[^]]*\]\s+)?\S+\s+\S+)\s+.*\bmain\b.*$", rf"\1 {components}",
                  text)


def _write_sources(directory, components):
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    sources = ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*")]
    for path in sources:
        if not os.path.isfile(path) or not path.endswith((".list", ".sources")):
            continue
        text = pathlib.Path(path).read_text()
        if re.search(r"\bmain\b", text):
            (directory / os.path.basename(path)).write_text(_set_components(text, components))


class Apt:
    def __init__(self, directory, components):
        self.directory = directory
        _write_sources(directory / "sources", components)
        for part in ("lists/partial", "cache/archives/partial"):
            (directory / part).mkdir(parents=True, exist_ok=True)
        config = directory / "apt.conf"
        config.write_text(f'''
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "{directory}/sources";
Dir::State::Lists "{directory}/lists";
Dir::Cache "{directory}/cache";
APT::Sandbox::User "{os.environ.get("USER", "root")}";
Acquire::http::Timeout "20";
Acquire::Languages "none";
Acquire::GzipIndexes "true";
Acquire::Retries "1";
''')
        self.environment = {**os.environ, "APT_CONFIG": str(config)}

    def has(self, name):
        try:
            self.run("download", "--print-uris", name)
        except Missing:
            return False
        return True

    def run(self, *arguments):
        try:
            done = subprocess.run(["apt-get", "-qq", *arguments], cwd=self.directory / "debs",
                                  env=self.environment, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=300)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Missing(f"apt-get {arguments[0]}: {error}") from None
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
            raise Missing(f"apt-get {arguments[0]}: {lines[-1]}")


def fetch(directory, *names, rare=(), components=COMPONENTS):
    """The folder with the unpacked packages, and those of @rare that this Debian has; from the last
    time, if all are there. The lists of the components are fetched first: those of main are large."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    root, stamp = directory / "root", directory / "stamp"
    with open(directory / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text().split() == [*names, *rare]:
            return root
        if not shutil.which("apt-get"):
            raise Missing("there is no apt-get here")
        shutil.rmtree(directory / "debs", ignore_errors=True)
        (directory / "debs").mkdir()
        apt = Apt(directory, components)
        apt.run("update")
        apt.run("download", *names, *filter(apt.has, rare))
        for package in (directory / "debs").glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, root], check=True)
        stamp.write_text(" ".join([*names, *rare]))
    return root
