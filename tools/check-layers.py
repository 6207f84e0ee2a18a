#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a folder of src/ includes one that it may not use; unit tests may use tests/fake.

No folder may use itself by way of others. No module (NAME.c and NAME.h) may either, but in the folders of TIED. Nor may a
file call itself by way of the others of its folder, but in the folders of TIED_CALLS.
"""
import pathlib
import re
import sys

USES = {
    "base": set(),
    "abi": set(),
    "state": {"base"},
    "catalog": {"base", "state"},
    "scenario": {"base", "state", "catalog"},
    "hash": {"base"},
    "wire": {"base", "hash"},
    "record": {"base"},
    "sim": {"base", "abi", "hash"},
    "cudart": {"base", "abi"},
    "gate": {"base", "abi", "state", "wire"},
    "sampler": {"base", "abi", "wire"},
    "keeper": {"base", "wire", "channels"},
    "channels": {"base", "state", "wire", "sim"},
    "mover": {"base", "abi", "hash", "wire"},
    "meter": {"base", "state"},
    "scheduler": {"base"},
    "daemon": {"base", "state"},
    "helper": {"base", "daemon", "wire"},
    "pool": {"base", "wire"},
    "spill": {"base", "daemon", "image"},
    "database": {"base"},
    "store": {"base", "state", "daemon", "database", "wire"},
    "ledger": {"base", "state", "daemon", "database", "meter"},
    "cdi": {"base", "sim"},
    "container": {"base"},
    # vgpud: its folders from the model up, then what puts them together
    "manager/model": {"base", "container", "state", "daemon", "hash", "helper", "meter", "pool", "spill", "store",
                      "wire"},
    "manager/socket": {"base", "daemon", "manager/model"},
    "manager/guests": {"base", "cdi", "container", "daemon", "store", "wire", "manager/model", "manager/socket"},
    "manager/control": {"base", "daemon", "record", "manager/model", "manager/socket"},
    "manager/schedule": {"base", "state", "channels", "daemon", "scheduler", "manager/guests", "manager/model"},
    "manager/meter": {"base", "state", "daemon", "ledger", "meter", "sim", "wire", "manager/model",
                      "manager/schedule"},
    "manager/setting": {"base", "state", "catalog", "daemon", "scheduler", "manager/meter", "manager/model",
                        "manager/schedule"},
    "manager/publish": {"base", "state", "catalog", "daemon", "scenario", "manager/control", "manager/meter",
                        "manager/model", "manager/schedule", "manager/setting"},
    "manager/operation": {"abi", "base", "daemon", "pool", "record", "spill", "state", "store", "wire", "manager/control",
                          "manager/guests", "manager/model", "manager/schedule", "manager/setting"},
    "manager/residency": {"base", "state", "daemon", "scheduler", "manager/guests", "manager/model",
                          "manager/operation"},
    "manager/history": {"base", "store", "daemon", "manager/model", "manager/operation"},
    "manager/image": {"base", "daemon", "pool", "manager/control", "manager/guests", "manager/model",
                      "manager/operation"},
    "manager/methods": {"base", "daemon", "ledger", "record", "scheduler", "state", "manager/control",
                        "manager/guests", "manager/history", "manager/image", "manager/meter", "manager/model", "manager/operation",
                        "manager/publish", "manager/residency", "manager/schedule", "manager/setting"},
    "manager": {"base", "daemon", "scenario", "sim", "manager/control", "manager/guests", "manager/history",
                "manager/image", "manager/meter", "manager/methods", "manager/model", "manager/operation", "manager/publish",
                "manager/residency", "manager/schedule", "manager/setting", "manager/socket"},
    "checkpoint": {"base", "abi", "wire"},
    "image": {"base", "hash"},
    "lib": {"abi", "base", "image", "record", "wire"},
    "nvml": {"base", "abi", "state", "wire"},
    "musl": set(),
    "slurm": {"base"},
    "cli": {"base", "cdi", "container", "record", "state"},
    "exporter": {"base", "state"},
}

# Folders with modules that still use each other; to become fewer.
TIED = set()

# Folders with files that still call each other; to become fewer.
TIED_CALLS = {"gate", "pool", "sim"}


def read_includes(source):
    """(file, line number, folder, module that is included) of each include of ours."""
    for path in sorted(source.rglob("*.[ch]")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            used = re.match(r'#include "([\w/-]+)/([\w-]+)\.h"', line)
            if used:
                yield path, number, used[1], f"{used[1]}/{used[2]}"


def check_folder(source, path, number, used):
    """Returns 1 when the folder of @path may not use the folder @used."""
    layer = str(path.parent.relative_to(source))
    if used.split("/")[0] in ("fake", "tests") and path.name.startswith("test-"):
        return 0
    if used == "catalog" and path.name.startswith(("test-", "fixture")):
        return 0
    if used == layer or used in USES[layer]:
        return 0
    print(f"{path}:{number}: {layer}/ may not use {used}/")
    return 1


def read_code(path):
    """Without comments and strings."""
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\])*"', " ", path.read_text(), flags=re.S)


def find_definitions(code):
    """Names of functions and data of this file that others may use: they begin a line, and are not static."""
    for found in re.finditer(r"^(?!static\b|typedef\b|extern\b|return\b|else\b)[a-z_][\w ]*?[ *](\w+)(?:\([^;{}]*\)\s*\{|(?:\[\w*\])* =)",
                             code, re.M):
        yield found[1]


def read_calls(folder):
    """Of each file of @folder, the files of it that have what it names."""
    codes = {path.stem: read_code(path) for path in sorted(folder.glob("*.c")) if not path.name.startswith("test-")}
    owner = {name: file for file, code in codes.items() for name in find_definitions(code)}
    return {file: {owner[word] for word in set(re.findall(r"\w+", code)) if word in owner} - {file}
            for file, code in codes.items()}


def check_calls(source):
    """Returns 1 when files of one folder call each other."""
    bad = 0
    for folder in sorted(path for path in source.rglob("*") if path.is_dir()):
        name = str(folder.relative_to(source))
        cycles = [] if name in TIED_CALLS else find_cycles(read_calls(folder))
        for cycle in cycles:
            print(f"{name}/: these call each other: {' '.join(sorted(cycle))}")
            bad = 1
    return bad


def find_cycles(uses):
    """Sets of more than one that all reach each other (Tarjan)."""
    index, low, stack, cycles = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(uses[node]):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            cycle = stack[stack.index(node):]
            del stack[-len(cycle):]
            if len(cycle) > 1:
                cycles.append(cycle)

    for node in sorted(uses):
        if node not in index:
            visit(node)
    return cycles


def main(name):
    source = pathlib.Path(name)
    modules = {str(path.relative_to(source).with_suffix("")) for path in source.rglob("*.[ch]")
               if str(path.parent.relative_to(source)) not in TIED}
    uses = {module: set() for module in modules}
    bad = 0
    for path, number, folder, used in read_includes(source):
        bad |= check_folder(source, path, number, folder)
        module = str(path.relative_to(source).with_suffix(""))
        if module in modules and used in modules and used not in (module, f"{module}-internal"):
            uses[module].add(used)
    for cycle in find_cycles(uses) + find_cycles(USES):
        print(f"these include each other: {' '.join(sorted(cycle))}")
        bad = 1
    sys.exit(bad | check_calls(source))


main(sys.argv[1])
