#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turn the facts about NVML in abi/ into what the build needs.

usage: gen-nvml.py abi/nvml.abi slots|stubs|map     list for C, jump stubs, version script
       gen-nvml.py abi/nvml.abi names               for C, the functions whose result is a code
       gen-nvml.py abi/nvml-layouts.json layouts    C that fails to compile if src/abi/ differs
       gen-nvml.py abi/nvml-vgpu.codes codes|functions   what may be answered, for the conformance test
"""
import json
import sys

MACROS = {"always": "NVML_ALWAYS", "own": "NVML_OWN", "stand-in": "NVML_STAND_IN",
          "private": "NVML_PRIVATE", "forward": "NVML_FORWARD", "host": "NVML_HOST",
          "refuse": "NVML_REFUSE"}

HEADERS = ["nvml-vgpu", "nvml-accounting", "nvml-mig", "nvml-sensors",
           "nvml-device", "nvml-event", "nvml-fabric", "nvml-gpm", "nvml-limit", "nvml-link"]

# A stub knows neither arguments nor result, so no prototype can be wrong.
STUBS_HEAD = """#ifdef __CET__
#include <cet.h> /* the mark, for want of which the linker takes it off the library */
#endif
#if defined(__x86_64__)
        .macro stub name, offset
        endbr64
        jmp *nvml_slot+\\offset(%rip)
        .endm
#elif defined(__aarch64__)
        .macro stub name, offset
        hint #34
        adrp x16, nvml_slot+\\offset
        ldr x16, [x16, :lo12:nvml_slot+\\offset]
        br x16
        .endm
#else
#error "jump stubs are written for x86-64 and aarch64"
#endif
        .hidden nvml_slot
        .text"""

STUB = """        .globl {name}
        .type {name}, %function
        .balign 16
{name}: stub {name}, {offset}
        .size {name}, . - {name}"""


def read_table(path):
    rows = []
    for number, line in enumerate(open(path), 1):
        fields = line.split("#")[0].split()
        if not fields:
            continue
        if fields[1:2] == ["refuse"] and len(fields) != 3 or fields[1:2] != ["refuse"] and \
                len(fields) != 2 or fields[1] not in MACROS:
            sys.exit(f"{path}:{number}: want NAME {'|'.join(MACROS)} [CODE]")
        rows.append(fields)
    names = [row[0] for row in rows]
    if len(set(names)) != len(names):
        sys.exit(f"{path}: a name occurs twice")
    return rows


def slots(path):
    for name, how, *code in read_table(path):
        arguments = [name] + [f"NVML_ERROR_{c}" for c in code]
        yield f"{MACROS[how]}({', '.join(arguments)})"


def names(path):
    yield from (f"NVML_NAME({name})" for name, *_ in read_table(path) if name != "nvmlErrorString")


def stubs(path):
    yield STUBS_HEAD
    for index, (name, *_) in enumerate(read_table(path)):
        yield STUB.format(name=name, offset=8 * index)
    yield '        .section .note.GNU-stack, "", %progbits'


def version_script(path):
    yield "{ global:"
    yield from (f"        {name};" for name, *_ in read_table(path))
    yield "local: *; };"


def read_codes(path):
    for number, line in enumerate(open(path), 1):
        fields = line.split("#")[0].split()
        if fields and (len(fields) < 2 or fields[0] == "never" and len(fields) < 4):
            sys.exit(f"{path}:{number}: want NAME CODE... or never CODE NAME REASON")
        if fields:
            yield fields


def codes(path):
    for name, *rest in read_codes(path):
        if name == "never":
            yield f'NVML_NEVER("{rest[1]}", {rest[0]})'
            continue
        for code in rest:
            source = "OURS" if code.startswith("+") else "DOCUMENTED"
            yield f"NVML_CODE({name}, {code.lstrip('+')}, {source})"


def functions(path):
    for name, *_ in read_codes(path):
        if name != "never":
            yield f"NVML_FUNCTION({name})"


def layouts(path):
    facts = json.load(open(path))
    yield from (f'#include "abi/{name}.h"' for name in HEADERS)
    for name, struct in facts["structs"].items():
        yield f'_Static_assert(sizeof({name}) == {struct["size"]}, "{name}");'
        for field, offset in struct["offsets"].items():
            yield f'_Static_assert(offsetof({name}, {field}) == {offset}, "{name}.{field}");'
        if "version" in struct:
            generation = struct["version"] >> 24
            yield (f'_Static_assert(NVML_VERSION({name}, {generation}) == {struct["version"]}, '
                   f'"version of {name}");')
    for name, value in facts["values"].items():
        yield f'_Static_assert((long long){name} == {value}, "{name}");'


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    emit = {"slots": slots, "names": names, "stubs": stubs, "map": version_script, "layouts": layouts,
            "codes": codes, "functions": functions}[sys.argv[2]]
    print("\n".join(emit(sys.argv[1])))
