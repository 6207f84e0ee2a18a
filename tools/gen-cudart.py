#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turn abi/cudart.abi into what the simulated GPU's CUDA runtime is made of.

usage: gen-cudart.py TABLE header|entries|map HEADER

HEADER is src/abi/cudart.h, where the prototypes are.
"""
import re
import sys

WORDS = ("own", "early", "plain", "refuse")
SONAME = "libcudart.so.13"

OWN = """
CUDART_API cudaError_t {name}({parameters});
cudaError_t {name}({parameters})
{{
        cudaError_t error = runtime_enter({needs_context}, {is_per_thread});

        return runtime_leave(error ? error : runtime_{target}({arguments}));
}}"""

REFUSE = """
CUDART_API cudaError_t {name}(void);
cudaError_t {name}(void)
{{
        return runtime_refuse("{name}");
}}"""


def read_table(path):
    rows = {}
    for number, line in enumerate(open(path), 1):
        fields = line.split("#")[0].split()
        if not fields:
            continue
        if len(fields) != 2 or not (fields[1] in WORDS or fields[1].startswith("=")):
            sys.exit(f"{path}:{number}: want NAME {'|'.join(WORDS)}|=OTHER")
        if fields[0] in rows:
            sys.exit(f"{path}:{number}: {fields[0]} occurs twice")
        rows[fields[0]] = fields[1]
    return rows


def read_prototypes(path):
    found = {}
    pattern = r"^CUDART_API cudaError_t (\w+)\(([^;]*)\);"
    for name, parameters in re.findall(pattern, open(path).read(), re.M):
        parameters = " ".join(parameters.split())
        words = [re.search(r"(\w+)$", one)[1] for one in parameters.split(",")]
        found[name] = (parameters, "" if parameters == "void" else ", ".join(words))
    return found


def header(rows, prototypes):
    yield '#pragma once\n#include "abi/cudart.h"'
    for name, word in rows.items():
        if word in ("own", "early"):
            yield f"cudaError_t runtime_{name}({prototypes[name][0]});"


def entries(rows, prototypes):
    yield '#include "cudart/runtime.h"'
    for name, word in rows.items():
        target = word[1:] if word.startswith("=") else name
        if word == "refuse":
            yield REFUSE.format(name=name)
        elif word != "plain":
            parameters, arguments = prototypes[target]
            yield OWN.format(name=name, target=target, parameters=parameters, arguments=arguments,
                             needs_context="true" if rows[target] == "own" else "false",
                             is_per_thread="true" if name.endswith(("_ptsz", "_ptds")) else "false")


def version_script(rows, _):
    yield SONAME + " { global:"
    yield from (f"\t{name};" for name in rows)
    yield "local: *; };"


EMITTERS = {"header": header, "entries": entries, "map": version_script}

if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[2] not in EMITTERS:
        sys.exit(__doc__)
    print("\n".join(EMITTERS[sys.argv[2]](read_table(sys.argv[1]), read_prototypes(sys.argv[3]))))
