#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turn abi/cuda.abi into what a library needs that stands in the place of the CUDA driver.

usage: gen-abi.py TABLE EMITTER [HEADER]

HEADER is src/abi/cuda.h, where the emitters that need types find the prototypes.
"""
import re
import sys
from typing import NamedTuple

GATE_WORDS = ("forward", "submit", "launch", "wait", "waited", "own", "hide")
SIM_WORDS = ("own", "early", "control", "refuse")


class Row(NamedTuple):
    name: str
    gate: str
    sim: str
    since: int
    kinds: list  # abi/cuda.kinds
    n_arguments: int  # of a call that is made again; 0: it is not
    ranges: str

    @property
    def base(self):
        """The name as programs ask cuGetProcAddress() for it."""
        return re.sub(r"(_v\d+)?(_ptsz|_ptds)?$", "", self.name)

    @property
    def n_batch(self):
        """Its arguments; 0: it is no batch."""
        return BATCH_ARGUMENTS.get(self.ranges, {}).get("_v2" if "_v2" in self.name else "", 0)

    @property
    def is_per_thread(self):
        return self.name.endswith(("_ptsz", "_ptds"))


class Prototype(NamedTuple):
    parameters: str  # "CUdeviceptr *pointer, size_t size"
    arguments: str  # "pointer, size"


def read_table(path):
    rows = []
    for number, line in enumerate(open(path), 1):
        fields = line.split("#")[0].split()
        if not fields:
            continue
        again = fields[5] if len(fields) > 5 and fields[5] != "-" else "0"
        if not 5 <= len(fields) <= 8 or fields[1] not in GATE_WORDS or not (fields[3] + again).isdigit():
            sys.exit(f"{path}:{number}: want NAME {'|'.join(GATE_WORDS)} SIM SINCE KINDS [AGAIN [WHY [RANGES]]]")
        if again != "0" and fields[1] in ("waited", "own", "hide"):
            sys.exit(f"{path}:{number}: what is {fields[1]} says in its code that it is made again")
        if fields[2] not in SIM_WORDS and not fields[2].startswith("="):
            sys.exit(f"{path}:{number}: want {'|'.join(SIM_WORDS)}|=OTHER, not {fields[2]}")
        rows.append(Row(*fields[:3], int(fields[3]), fields[4].split(","), int(again),
                        fields[7] if len(fields) > 7 else "-"))
    names = {row.name for row in rows}
    if len(names) != len(rows):
        sys.exit(f"{path}: a name occurs twice")
    return rows


def read_prototypes(path):
    found = {}
    for name, parameters in re.findall(r"^CUDA_API CUresult (\w+)\(([^;]*)\);", open(path).read(), re.M):
        parameters = " ".join(parameters.split())
        words = [re.search(r"(\w+)$", one)[1] for one in parameters.split(",")]
        found[name] = Prototype(parameters, "" if parameters == "void" else ", ".join(words))
    return found


def version_script(rows, _):
    yield "{ global:"
    yield from (f"\t{row.name};" for row in rows)
    yield "local: *; };"


# The gate.


def gate_entries(rows, _):
    """One line for each stub, for C and for the assembler alike."""
    yield from (f"GATE_ENTRY({row.name}, {row.gate})" for row in rows if row.gate != "hide")


BATCH_ARGUMENTS = {"batch": {"": 9, "_v2": 8}, "3d-batch": {"": 5, "_v2": 4}}  # those of before CUDA 13 say which one failed


def one_range(path, text):
    """The C expression whether a range of the column "ranges" is good."""
    match = re.fullmatch(r"(\d)\+(\d)(?:\*(\d))?(?:@(\d)\*(\d))?", text)
    if not match:
        sys.exit(f"{path}: {text} is no range")
    pointer, count, unit, pitch, rows = match.groups()
    size = f"a{count}" + (f" * {unit}" if unit and unit != "1" else "")
    if pitch:
        return f"range_rows_are_good(a{pointer}, a{pitch}, {size}, a{rows})"
    return f"range_is_good(a{pointer}, {size})"


def is_good(row):
    """The C expression whether all ranges of a call are good."""
    if row.ranges in ("-", "array", "old"):
        return "true"
    if row.ranges in ("2d", "3d"):
        return f"range_{row.ranges}_is_good(a0)"
    if row.ranges == "batch":
        return f"range_batch_is_good(a0, a1, a2, a3, {'a7' if row.n_batch == 9 else '0'})"
    if row.ranges == "3d-batch":
        return f"range_3d_batch_is_good(a0, a1, {'a2' if row.n_batch == 5 else '0'})"
    good = " && ".join(one_range(row.name, text) for text in row.ranges.split(","))
    if row.base.startswith("cuMemset") and row.base.endswith("Async"):
        good += f" || range_is_captured(a{row.n_arguments - 1}, {str(row.is_per_thread).lower()})"
    return good


def gate_patience(rows, prototypes):
    """One line for each call that is made again, or is looked at before: its parameters as words, the arguments, the condition."""
    for row in rows:
        if row.n_arguments:
            prototype = prototypes.get(sim_target(rows, row).name if row.sim != "refuse" else row.name)
            if prototype and len(prototype.arguments.split(",")) != row.n_arguments:
                sys.exit(f"{row.name}: has other than {row.n_arguments} arguments in the header")
        if row.n_arguments or row.n_batch:
            names = [f"a{i}" for i in range(row.n_arguments or row.n_batch)]
            parameters = ", ".join("uint64_t " + name for name in names)
            macro = "GATE_PATIENCE" if row.n_arguments else "GATE_RANGED"
            yield f"{macro}({row.name}, ({parameters}), ({', '.join(names)}), {is_good(row)})"


def gate_map(rows, _):
    """And ioctl() and mmap(), by which the driver's library talks to its kernel module (object.h); jumps (leave.h) and signals (section.h)."""
    yield "{ global:\n\tioctl;\n\tmmap;\n\tmmap64;"
    yield "\tlongjmp;\n\t_longjmp;\n\tsiglongjmp;\n\t__longjmp_chk;\n\tpthread_exit;\n\tthrd_exit;\n\tsigaction;\n\tsignal;\n\tbsd_signal;\n\tssignal;\n\tsysv_signal;\n\t__sysv_signal;\n\tsigset;"
    yield from (f"\t{row.name};" for row in rows if row.gate != "hide")
    yield "local: *; };"


# The simulated driver.


def sim_target(rows, row):
    """The row that @row answers like: itself, unless it is a second name."""
    if not row.sim.startswith("="):
        return row
    for other in rows:
        if other.name == row.sim[1:] and other.sim in ("own", "early", "control"):
            return other
    sys.exit(f"{row.name}: answers like {row.sim[1:]}, which is not our own")


def sim_header(rows, prototypes):
    """What the simulator defines, and a number for each entry point."""
    yield "#pragma once\n#include \"abi/cuda.h\""
    yield "enum call_name {"
    yield from (f"\tCALL_{row.name}," for row in rows)
    yield "\tCALL_COUNT\n};"
    for row in rows:
        if row.sim in ("own", "early", "control"):
            if row.name not in prototypes:
                sys.exit(f"{row.name}: no prototype in the header")
            yield f"CUresult sim_{row.name}({prototypes[row.name].parameters});"


SIM_OWN = """
CUDA_API CUresult {name}({parameters});
CUresult {name}({parameters})
{{
        CLEANUP(call_leave) struct call call = {{ CALL_{name}, CALL_{kind}, {per_thread}, false,
                                                     CUDA_SUCCESS }};
        CUresult result = call_enter(&call);

        return result ? result : call_finish(&call, sim_{target}({arguments}));
}}"""

SIM_REFUSE = """
CUDA_API CUresult {name}(void);
CUresult {name}(void)
{{
        return call_refuse(CALL_{name});
}}"""


def sim_entries(rows, prototypes):
    """The exported functions, and the table in which cuGetProcAddress() looks."""
    yield '#include "abi/cuda.h"\n#include "base/cleanup.h"\n#include "sim/call.h"'
    for row in rows:
        if row.sim == "refuse":
            # cuda.h may declare it, with parameters: say nothing about them
            yield SIM_REFUSE.format(name=row.name) if row.name not in prototypes else (
                SIM_REFUSE.replace("(void)", "({parameters})")
                .format(name=row.name, parameters=unused(prototypes[row.name].parameters)))
            continue
        target = sim_target(rows, row)
        yield SIM_OWN.format(name=row.name, target=target.name, kind=target.sim.upper(),
                             per_thread="true" if row.is_per_thread else "false",
                             **prototypes[target.name]._asdict())
    yield "\nconst struct call_entry call_entries[CALL_COUNT] = {"
    for row in rows:
        yield (f'\t{{ "{row.name}", "{row.base}", {row.since}, '
               f'{"true" if row.is_per_thread else "false"}, (void (*)(void)){row.name} }},')
    yield "};"


def unused(parameters):
    return parameters if parameters == "void" else re.sub(
        r"(\w+)(,|$)", r"\1 __attribute__((unused))\2", parameters)


EMITTERS = {
    "map": version_script,
    "gate-entries": gate_entries,
    "gate-map": gate_map,
    "gate-patience": gate_patience,
    "sim-header": sim_header,
    "sim-entries": sim_entries,
}

if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or sys.argv[2] not in EMITTERS:
        sys.exit(__doc__)
    print("\n".join(EMITTERS[sys.argv[2]](
        read_table(sys.argv[1]), read_prototypes(sys.argv[3]) if len(sys.argv) == 4 else {})))
