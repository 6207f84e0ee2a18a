#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""list-nvml-calls.py nvml-calls.h DRIVER: the version script of a fake NVML of that age, which has
the functions that the public library calls and that drivers of that age have."""
import re
import sys

driver = int(sys.argv[2])
print("{\nglobal:\n        fake_nvml;")
for name, since in re.findall(r'X\((nvml\w+),\s+"R(\d+)"\)', open(sys.argv[1]).read()):
    if int(since) <= driver:
        print(f"        {name};")
print("local:\n        *;\n};")
