#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every struct and number that our headers of NVML declare is among the facts that the build compares.

usage: check-nvml-facts.py abi/nvml-layouts.json HEADER...
"""
import json
import pathlib
import re
import sys

# Ours, not the interface's: each is another name for a number of it, or says how to compute one.
OURS = {"NVML_VERSION", "NVML_INVALID_GPU_INSTANCE_PROFILE_ID", "NVML_INVALID_MIG_ID",
        "NVML_VGPU_TEXT_BUFFER_SIZE", "NVML_VGPU_VIRTUALIZATION_CAP_MIGRATION",
        "NVML_GPU_INSTANCE_PROFILE_NAME_MAX"}


def structs(text):
    return set(re.findall(r"^\} (nvml\w+_t);", re.sub(r"typedef enum .*?;", "", text, flags=re.S),
                          re.M))


def numbers(text):
    return set(re.findall(r"^#define (NVML_\w+)", text, re.M)) | \
        set(re.findall(r"\b(NVML_\w+) = ", text))


def main():
    facts = json.loads(pathlib.Path(sys.argv[1]).read_text())
    text = "".join(pathlib.Path(path).read_text() for path in sys.argv[2:])
    missing = (structs(text) - set(facts["structs"])) | (numbers(text) - set(facts["values"]) - OURS)
    for name in sorted(missing):
        print(f"{name} is declared, but {sys.argv[1]} has no facts of it")
    sys.exit(bool(missing))


if __name__ == "__main__":
    main()
