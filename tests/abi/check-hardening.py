#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads off what was built that the compiler and the linker were told to harden it.

usage: check-hardening.py BUILD fortified|plain BINARY...

Of each BINARY: all relocations are made before it runs and are read-only from then on, it may lie
anywhere, no stack is executable, stacks are guarded, and calls of libc that know their buffer's size
check it. Of each object under BUILD/src: it is marked for control-flow enforcement, where this
compiler marks any. (Of the binaries that says nothing: the linker takes the mark off when the C
library's own start files lack it, as Debian 12's do.)
"""
import pathlib
import re
import subprocess
import sys

# No function of theirs has a buffer on its stack, or calls a function that is told a buffer's size.
WITHOUT_GUARD = {"libcuda.so"}
WITHOUT_CHECKED_CALL = {"libcuda.so"}

bad = []


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *map(str, arguments)], capture_output=True, text=True,
                          check=True).stdout


def check_binary(path, is_fortified):
    def want(what, verdict):
        if not verdict:
            bad.append(f"{path}: {what}")

    name = pathlib.Path(path).name
    dynamic, segments, symbols = readelf("-d", path), readelf("-l", path), readelf("--dyn-syms", path)
    stack = re.search(r"GNU_STACK +\S+ \S+ \S+ \S+ \S+ (\S+)", segments)
    calls = set(re.findall(r"UND (\w+)", symbols))
    want("is not BIND_NOW", re.search(r"\(FLAGS_1\).*\bNOW\b", dynamic))
    want("has no GNU_RELRO", "GNU_RELRO" in segments)
    want("cannot lie anywhere (no DYN)", "DYN (" in readelf("-h", path))
    want("has an executable stack", stack and "E" not in stack[1])
    want("has no guarded stack", name in WITHOUT_GUARD or "__stack_chk_fail" in calls)
    if is_fortified:
        want("has no checked call", name in WITHOUT_CHECKED_CALL or
             any(re.fullmatch(r"__\w+_chk", call) for call in calls))


def properties(objects):
    """{object: what it is marked with}"""
    marks, current = {}, str(objects[0])
    for line in readelf("-n", *objects).splitlines():
        if line.startswith("File: "):
            current = line.removeprefix("File: ")
        if "x86 feature:" in line:
            marks[current] = set(re.findall(r"\b(IBT|SHSTK)\b", line))
    return marks


def check_objects(build):
    objects = sorted(pathlib.Path(build, "src").rglob("*.o"))
    marks = properties(objects)
    if not marks:
        print("this compiler marks nothing for control-flow enforcement")
        return
    for path in objects:
        missing = {"IBT", "SHSTK"} - marks.get(str(path), set())
        if missing:
            bad.append(f"{path}: not marked with {' and '.join(sorted(missing))}")


if len(sys.argv) < 4 or sys.argv[2] not in ("fortified", "plain"):
    sys.exit(__doc__)
for binary in sys.argv[3:]:
    check_binary(binary, sys.argv[2] == "fortified")
check_objects(sys.argv[1])
print("\n".join(bad) or f"{len(sys.argv) - 3} binaries are hardened")
sys.exit(bool(bad))
