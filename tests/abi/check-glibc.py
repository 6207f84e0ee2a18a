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
         "libpthread.so.0": {"pthread_create", "pthread_once", "pthread_mutex_trylock"}}

bad = []


def objdump(option, path):
    return subprocess.run(["objdump", option, path], capture_output=True, text=True, check=True).stdout


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
    for library, names in MOVED.items():
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
