#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What of a build folder is installed: for who builds no more than that, as a package.

usage: list-installed.py BUILD
"""
import json
import pathlib
import sys

build = pathlib.Path(sys.argv[1]).resolve()
for target in json.loads((build / "meson-info" / "intro-targets.json").read_text()):
    for path in target["filename"] if target["installed"] else []:
        print(pathlib.Path(path).relative_to(build))
