#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refuse entry points of the CUDA driver about which the gate does nothing although their kind demands it.

usage: check-kinds.py CUDA.ABI CUDA.KINDS [CUDA.H]

CUDA.KINDS says what each kind demands, and for what reasons a row need not have it. Every reason is used, and every row
with a reason needs it. With NVIDIA's header CUDA.H, a function that has a parameter of a type that matters must be of its kind.
"""
import re
import sys
from typing import NamedTuple


class Row(NamedTuple):
    name: str
    gate: str
    kinds: list
    again: str
    why: str
    ranges: str

    def has(self, words):
        """Has the row one of @words?"""
        return ("any" in words or self.gate in words or ("again" in words and self.again != "-") or
                ("ranges" in words and self.ranges != "-"))


def lines_of(path):
    for number, line in enumerate(open(path), 1):
        fields = line.split("#")[0].split()
        if fields:
            yield f"{path}:{number}", fields


def read_rules(path):
    """({kind: words that satisfy it}, {reason: kinds that it excuses})"""
    rules = {"kind": {}, "reason": {}}
    for where, fields in lines_of(path):
        if len(fields) < 4 or fields[0] not in rules or fields[1] in rules[fields[0]]:
            sys.exit(f"{where}: want kind|reason WORD WORDS TEXT, each word once")
        rules[fields[0]][fields[1]] = fields[2].split(",")
    for word, kinds in rules["reason"].items():
        if set(kinds) - set(rules["kind"]):
            sys.exit(f"{path}: the reason {word} is for kinds that there are not")
    return rules["kind"], rules["reason"]


def read_rows(path):
    for where, fields in lines_of(path):
        if len(fields) < 5:
            sys.exit(f"{where}: want NAME GATE SIM SINCE KINDS [AGAIN [WHY [RANGES]]]")
        name, gate, _, _, kinds, *rest = fields
        again, why, ranges = (*rest, "-", "-", "-")[:3]
        yield Row(name, gate, [] if kinds == "-" else kinds.split(","), again, why, ranges)


COPIES = re.compile(r"cuMem(cpy|set)")


def faults_of(row, kinds, reasons):
    unknown = [kind for kind in row.kinds if kind not in kinds]
    if unknown:
        return [f"there is no kind {', '.join(unknown)}"]
    if COPIES.match(row.name) and "span" not in row.kinds:
        return ["copies or sets memory, and is not of the kind span"]
    if row.why != "-" and row.why not in reasons:
        return [f"there is no reason {row.why}"]
    lacks = [kind for kind in row.kinds if not row.has(kinds[kind])]
    if row.why != "-" and not set(lacks) & set(reasons[row.why]):
        return [f"needs no reason: {row.why}"]
    return [f"is {kind}, which wants {' or '.join(kinds[kind])}, and says no reason"
            for kind in lacks if kind not in reasons.get(row.why, [])]


# A parameter of such a type, or a pointer to one, makes a function one of these kinds, or of those with + or -.
KIND_OF_TYPE = {
    "CUcontext": "ctx", "CUgreenCtx": "ctx", "CUdeviceptr": "ptr", "CUmemGenericAllocationHandle": "han",
    "CUmemoryPool": "pool", "CUarray": "arr", "CUmipmappedArray": "arr", "CUarrayMapInfo": "arr",
    "CUgraph": "graph", "CUgraphExec": "graph", "CUgraphNode": "graph", "CUgraphNodeParams": "node",
    "CUexternalMemory": "in", "CUexternalSemaphore": "in", "CUgraphicsResource": "in", "CUeglStreamConnection": "in",
}


def kinds_by_type(path):
    """{exported name: kinds that its parameters make it}, of the newest version of each function."""
    text = re.sub(r"/\*.*?\*/", "", open(path).read(), flags=re.S)
    newest = dict(re.findall(r"#\s*define (cu\w+)\s+(cu\w+_v\d+)$", text, re.M))
    found = {}
    for name, parameters in re.findall(r"^CUresult CUDAAPI (cu\w+)\(([^;]*)\);", text, re.M):
        types = re.findall(r"\bCU\w+", parameters)
        found.setdefault(newest.get(name, name), {KIND_OF_TYPE[one] for one in types if one in KIND_OF_TYPE})
    return found


def untold(rows, path):
    """What the header says of a row and its kinds do not."""
    by_type = kinds_by_type(path)
    for row in rows:
        told = {kind.rstrip("+-") for kind in row.kinds}
        for kind in by_type.get(re.sub(r"_pt[sd][sz]$", "", row.name), set()) - told:
            yield f"{row.name}: its parameters say that it is {kind}"


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    kinds, reasons = read_rules(sys.argv[2])
    rows = list(read_rows(sys.argv[1]))
    faults = [f"{row.name}: {fault}" for row in rows for fault in faults_of(row, kinds, reasons)]
    faults += [f"no row has the reason {word}" for word in reasons if word not in {row.why for row in rows}]
    faults += [f"no row is {word}" for word in kinds if not any(word in row.kinds for row in rows)]
    faults += untold(rows, sys.argv[3]) if len(sys.argv) == 4 else []
    print("\n".join([*faults, f"{len(rows)} entry points, {len(faults)} with neither hook nor reason"]))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
