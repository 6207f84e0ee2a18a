#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are the steps in docs/recovery.md those of the operations, in their order, and the conditions that each kind takes?"""
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


def conditions_in_code(kind):
    text = (ROOT / f"src/manager/operation/{kind}.c").read_text(encoding="utf-8")
    takes = re.search(r"\.takes = ([^,]*),", text)
    return [word.lower().replace("_", "-") for word in re.findall(r"OPERATION_(\w+)", takes[1] if takes else "")]


def conditions_in_document(text, kind):
    row = re.search(rf"^\| `{kind}` \|(.*)\|$", text, re.MULTILINE)
    return re.findall(r"`([a-z-]+)`", row[1]) if row else None


def main():
    text = (ROOT / "docs/recovery.md").read_text(encoding="utf-8")
    is_right = True
    for kind in ("suspend", "resume", "catch-up", "migrate"):
        code, document = steps_in_code(kind), steps_in_document(text, kind)
        if code != document:
            print(f"docs/recovery.md: steps of {kind}: {document}; in the code: {code}")
            is_right = False
        code, document = conditions_in_code(kind), conditions_in_document(text, kind)
        if code != document:
            print(f"docs/recovery.md: conditions of {kind}: {document}; in the code: {code}")
            is_right = False
    sys.exit(not is_right)


main()
