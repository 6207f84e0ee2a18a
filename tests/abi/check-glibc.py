#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a library needs a newer glibc than it may.

usage: check-glibc.py NEWEST LIBRARY...

Of each LIBRARY: the versions of glibc's symbols that it needs, and the libraries that had them before glibc
2.34. What is too new goes into src/abi/old-glibc.c.
"""
import re
import subprocess
import sys

SYMBOL = re.compile(r"\*UND\*.*?\(?(GLIBC_(?:[\d.]+|\w+))\)?\s+(\S+)$", re.M)
MOVED = {"libdl.so.2": {"dlopen", "dlsym", "dlerror", "dladdr"},
         "libpthread.so.0": {"pthread_create", "pthread_detach", "pthread_key_create", "pthread_mutex_timedlock",
                             "pthread_mutex_trylock", "pthread_once", "pthread_setname_np", "pthread_setspecific",
                             "pthread_sigmask"}}

bad = []


def objdump(option, path):
    return subprocess.run(["objdump", option, path], capture_output=True, text=True, check=True).stdout


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True, check=True).stdout


def sources(path):
    """{function: the library where the linker found it}: glibc before 2.30 looks for it there."""
    library, libraries = None, {}
    for line in readelf("-V", path).splitlines():
        if found := re.search(r"Version: 1 +File: (\S+)", line):
            library = found[1]
        elif found := re.search(r"Name: \S+ +Flags: \S+ +Version: (\d+)", line):
            libraries[found[1]] = library
    return {name: libraries[index] for name, index in re.findall(r"UND (\w+)@\S+ \((\d+)\)", readelf("--dyn-syms", path))}


def number(version):
    """GLIBC_2.17 as (2, 17); what is no number (GLIBC_PRIVATE, GLIBC_ABI_DT_RELR) is newer than all."""
    digits = version.removeprefix("GLIBC_")
    return tuple(map(int, digits.split("."))) if re.fullmatch(r"[\d.]+", digits) else (99,)


def check(path, newest):
    symbols = {name: version for version, name in SYMBOL.findall(objdump("-T", path))}
    headers = objdump("-p", path)
    needed = set(re.findall(r"NEEDED\s+(\S+)", headers))
    for name, version in sorted(symbols.items()):
        if number(version) > number(newest):
            bad.append(f"{path}: {name} is of {version}")
    for version in re.findall(r"0x\w+ 0x00 \d+ (GLIBC_\S+)", headers):
        if number(version) > number(newest):
            bad.append(f"{path}: needs {version}")
    found = sources(path)
    for library, names in MOVED.items():
        for name in sorted(names & found.keys()):
            if found[name] != library:
                bad.append(f"{path}: {name} is looked for in {found[name]}, and was in {library}")
        if names & symbols.keys() and library not in needed:
            bad.append(f"{path}: does not need {library}, where {min(names & symbols.keys())} was")
    print(f"{path}: {', '.join(sorted(set(symbols.values()), key=number)) or 'none'}")


def main():
    for path in sys.argv[2:]:
        check(path, sys.argv[1])
    for line in bad:
        print(line)
    sys.exit(bool(bad))


main()
