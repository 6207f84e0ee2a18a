#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are the steps in docs/recovery.md those of the operations, in their order?"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def steps_in_code(kind):
    text = (ROOT / f"src/manager/operation/{kind}.c").read_text(encoding="utf-8")
    table = re.search(r"operation_step steps\[\] = \{\n(.*?)\n\};", text, re.DOTALL).group(1)
    return re.findall(r'^\s*\{ "([a-z-]+)"', table, re.MULTILINE)


def steps_in_document(text, kind):
    section = re.search(rf"^## {kind.capitalize()}\n(.*?)(?=^## )", text, re.DOTALL | re.MULTILINE)
    return re.findall(r"^\| `([a-z-]+)` \|", section.group(1), re.MULTILINE) if section else []


def main():
    text = (ROOT / "docs/recovery.md").read_text(encoding="utf-8")
    is_right = True
    for kind in ("suspend", "resume", "catch-up", "migrate"):
        code, document = steps_in_code(kind), steps_in_document(text, kind)
        if code != document:
            print(f"docs/recovery.md: steps of {kind}: {document}; in the code: {code}")
            is_right = False
    sys.exit(not is_right)


main()
