#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every file that is installed is in exactly one Debian package, and no package asks for one that is not.

usage: check-packages.py BUILD DEBIAN VERSION

The packages are not built: what meson would install is compared with debian/*.install.
"""
import fnmatch
import json
import pathlib
import re
import sys

MULTIARCH = "usr/lib/x86_64-linux-gnu/"


# Built only where the build has found what they need.
OPTIONAL = {"openvgpu-exporter", "openvgpu-slurm"}


def installed(build):
    """Where Debian has what meson installs, whatever this build's prefix is; folders as their files."""
    info = build / "meson-info"
    options = {option["name"]: option["value"] for option in
               json.loads((info / "intro-buildoptions.json").read_text())}
    paths = set()
    for source, path in json.loads((info / "intro-installed.json").read_text()).items():
        path = "usr/" + str(pathlib.PurePath(path).relative_to(options["prefix"]))
        path = re.sub(r"^usr/lib/(libopenvgpu\.|pkgconfig/)", MULTIARCH + r"\1", path)
        path = re.sub(r"^usr/lib/python3[^/]*/(dist|site)-packages/", "usr/lib/python3/dist-packages/", path)
        files = [found.relative_to(source) for found in pathlib.Path(source).rglob("*") if found.is_file()]
        paths |= {f"{path}/{file}" for file in files} or {path}
    return paths


def wanted(debian):
    """Of each package, the patterns of what it takes."""
    return {path.name.removesuffix(".install"): [line.split()[0] for line in path.read_text().splitlines()
                                                 if line.strip() and not line.startswith("#")]
            for path in debian.glob("*.install")}


def matches(path, pattern):
    """As dh_install: a pattern is of a file, or of a folder with all that is in it."""
    parts, n = path.split("/"), pattern.count("/") + 1
    return len(parts) >= n and all(map(fnmatch.fnmatchcase, parts, pattern.split("/")))


def faults(build, debian, version):
    paths, packages = installed(build), wanted(debian)
    for path in sorted(paths):
        takers = [name for name, patterns in packages.items()
                  if any(matches(path, pattern) for pattern in patterns)]
        if len(takers) != 1:
            yield f"{path} is in {' and '.join(takers) or 'no package'}"
    for name, patterns in packages.items():
        for pattern in patterns:
            if name not in OPTIONAL and not any(matches(path, pattern) for path in paths):
                yield f"{name} asks for {pattern}, which is not installed"
    control = set(re.findall(r"^Package: (.*)$", (debian / "control").read_text(), flags=re.M))
    if control != set(packages):
        yield f"control and *.install disagree on {control ^ set(packages)}"
    if not (debian / "changelog").read_text().startswith(f"openvgpu ({version}-"):
        yield f"the changelog does not begin with version {version}"


def main(build, debian, version):
    found = list(faults(pathlib.Path(build), pathlib.Path(debian), version))
    print("\n".join(found) or "each file is in one package")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
