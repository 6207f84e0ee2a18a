#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our declarations of the CUDA runtime with NVIDIA's, where a toolkit of CUDA 13 is installed.

usage: check-cudart.py SRC TABLE

Members of structs and constants of SRC/abi/cudart.h with those of cuda_runtime_api.h; the names of
TABLE (abi/cudart.abi) with those that libcudart.so.13 exports.
"""
import glob
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SKIP = 77
TOOLKITS = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda", *glob.glob("/usr/local/cuda-13*")]
STRUCTS = {"cudaLaunchConfig": "cudaLaunchConfig_st"}  # by another name there
MEMBERS = {"textureLimits": "maxTexture1D"}


def find_toolkit():
    for toolkit in TOOLKITS:
        header = pathlib.Path(toolkit, "include", "cuda_runtime_api.h")
        if toolkit and header.exists() and "CUDART_VERSION  130" in header.read_text():
            return pathlib.Path(toolkit)
    print("no toolkit of CUDA 13 on this machine")
    sys.exit(SKIP)


def read_structs(text):
    for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.M | re.S):
        body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
        members = [re.match(r"\w+", re.split(r"[\s*]+", part.strip())[-1])[0]
                   for part in re.split(r"[,;]", body) if part.strip()]
        yield name, members


def run(program, *options):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "program")
        subprocess.run([os.environ.get("CC", "cc"), "-xc", "-", "-o", path, *options], check=True,
                       input="#include <stddef.h>\n#include <stdio.h>\n" + program, text=True)
        return subprocess.run([path], capture_output=True, text=True, check=True).stdout


def describe(text, include, structs, members):
    """A program that prints where everything is."""
    lines = [f"#include <{include}>", "int main(void) {"]
    for name, names in read_structs(text):
        theirs = structs.get(name, name)
        lines.append(f'printf("{name} %zu\\n", sizeof(struct {theirs}));')
        lines += [f'printf("{name}.{one} %zu\\n", offsetof(struct {theirs}, {members.get(one, one)}));'
                  for one in names]
    lines += [f'printf("{one} %d\\n", (int){one});'
              for one in re.findall(r"^#define (cuda\w+) ", text, re.M)]
    return "\n".join([*lines, "return 0; }"])


def check_layouts(toolkit, source):
    text = (source / "abi" / "cudart.h").read_text()
    ours = run(describe(text, "abi/cudart.h", {}, {}), f"-I{source}").splitlines()
    theirs = run(describe(text, "cuda_runtime_api.h", STRUCTS, MEMBERS),
                 f"-I{toolkit}/include").splitlines()
    assert len(ours) > 100, "nothing was read from cudart.h"
    return [f"cudart.h: {one}, NVIDIA's: {other}" for one, other in zip(ours, theirs) if one != other]


def check_names(toolkit, table):
    rows = {line.split()[0] for line in table.read_text().splitlines()
            if line.strip() and not line.startswith("#")}
    for library in glob.glob(f"{toolkit}/lib*/libcudart.so.13"):
        output = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True,
                                text=True, check=True).stdout
        exported = set(re.findall(r" T (\w+)@", output))
        return [f"{table}: {name} is only in one of table and library" for name in rows ^ exported]
    return []


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    found = find_toolkit()
    problems = check_layouts(found, pathlib.Path(sys.argv[1]))
    problems += check_names(found, pathlib.Path(sys.argv[2]))
    print("\n".join(problems))
    sys.exit(bool(problems))
