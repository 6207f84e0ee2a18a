#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a folder of src/ includes one that it may not use; unit tests may use tests/fake."""
import pathlib
import re
import sys

USES = {
    "base": set(),
    "abi": set(),
    "board": {"base"},
    "catalog": {"base", "board"},
    "scenario": {"base", "board", "catalog"},
    "wire": {"base"},
    "sim": {"base", "abi"},
    "cudart": {"base", "abi"},
    "gate": {"base", "abi", "board", "wire"},
    "sampler": {"base", "abi", "wire"},
    "keeper": {"base", "wire", "channels"},
    "channels": {"base", "board", "wire", "sim"},
    "mover": {"base", "abi", "wire"},
    "meter": {"base", "board"},
    "scheduler": {"base"},
    "daemon": {"base", "board"},
    "helper": {"base", "daemon", "wire"},
    "pool": {"base", "wire"},
    "database": {"base"},
    "store": {"base", "board", "daemon", "database", "wire"},
    "ledger": {"base", "board", "daemon", "database", "meter"},
    "manager": {"base", "board", "catalog", "channels", "daemon", "helper", "ledger", "meter", "pool",
                "scenario", "scheduler", "sim", "store", "wire"},
    "checkpoint": {"base", "abi", "wire"},
    "image": {"base"},
    "lib": {"base", "abi", "wire", "image"},
    "nvml": {"base", "abi", "board"},
    "cli": {"base"},
}

bad = 0
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.[ch]")):
    layer = path.relative_to(sys.argv[1]).parts[0]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        used = re.match(r'#include "(\w+)/', line)
        if used and used[1] in ("fake", "tests") and path.name.startswith("test-"):
            continue
        if used and used[1] == "catalog" and path.name.startswith(("test-", "fixture")):
            continue
        if used and used[1] != layer and used[1] not in USES[layer]:
            print(f"{path}:{number}: {layer}/ may not use {used[1]}/")
            bad = 1
sys.exit(bad)
