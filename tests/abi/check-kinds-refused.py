#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check-kinds-refused.py CHECK CUDA.ABI CUDA.KINDS: the check refuses a table that is less than this one."""
import pathlib
import re
import subprocess
import sys
import tempfile

CHECK, ABI, KINDS = sys.argv[1:]

# (what is changed in the table, what it becomes, what the check says)
CHANGES = [
    (r"^(cuGreenCtxDestroy +)own    ", r"\1forward", "cuGreenCtxDestroy: is ctx-, which wants own, and says no reason"),
    (r"^(cuMemcpyAsync .*)  4 ", r"\1  - ", "cuMemcpyAsync: is mem, which wants own or again, and says no reason"),
    (r"^(cuMemcpyAsync .*)0\+2,1\+2$", r"\1-", "cuMemcpyAsync: is span, which wants ranges, and says no reason"),
    (r"^(cuMemsetD8Async .*),span", r"\1", "cuMemsetD8Async: copies or sets memory, and is not of the kind span"),
    (r"^(cuMulticastUnbind .*)number$", r"\1host", "cuMulticastUnbind: needs no reason: host"),
    (r"^(cuMulticastUnbind .*)number$", r"\1nothing", "cuMulticastUnbind: there is no reason nothing"),
    (r"^(cuMemFree_v2 .*)mem-", r"\1mend", "cuMemFree_v2: there is no kind mend"),
]


def answer(table):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "cuda.abi")
        path.write_text(table)
        done = subprocess.run([sys.executable, CHECK, path, KINDS], capture_output=True, text=True)
        return done.returncode, done.stdout


whole = pathlib.Path(ABI).read_text()
assert answer(whole)[0] == 0
for pattern, replacement, words in CHANGES:
    changed, n = re.subn(pattern, replacement, whole, flags=re.M)
    assert n == 1, pattern
    code, output = answer(changed)
    assert code == 1 and words in output, output
