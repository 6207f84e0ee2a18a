#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a library does not export exactly the names of a table.

usage: check-exports.py NM LIBRARY TABLE    the first word of each line of TABLE is a name
"""
import subprocess
import sys

nm, library, table = sys.argv[1:]
want = {line.split("#")[0].split()[0] for line in open(table) if line.split("#")[0].strip()}
lines = subprocess.run([nm, "-D", "--defined-only", library], check=True, text=True,
                       stdout=subprocess.PIPE).stdout.splitlines()
have = {line.split()[-1].split("@")[0] for line in lines}
for name in sorted(want - have):
    print(f"{name}: in the table, but the library does not export it")
for name in sorted(have - want):
    print(f"{name}: exported, but not in the table")
sys.exit(want != have)
