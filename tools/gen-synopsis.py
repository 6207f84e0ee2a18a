#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The synopsis of vgpu(1), and the headings of its commands, say what 'vgpu help --json' says.

usage: gen-synopsis.py VGPU MAN-PAGE [--write]

Compares; --write writes the page anew. It is the tool of whoever adds or changes a command.
"""
import difflib
import json
import pathlib
import re
import subprocess
import sys

TOKEN = re.compile(r"\.\.\.|--?[a-z][a-z-]*|--(?= |\])|[A-Z][A-Z-]*|[a-z-]+|[][()|,=]|\s+")


def macros(usage):
    """The words of mdoc(7) for a usage: a list without line breaks."""
    words, tight, variant = [], True, False
    tokens = TOKEN.findall(usage)
    assert "".join(tokens) == usage, usage
    for token in tokens:
        if token.isspace():
            tight = False
            continue
        if tight and words and token not in "][" and token != "|" and words[-1] not in ("Oo", "|", "(") and token != ")":
            words.append("Ns")
        if token == "[":
            words += (["Ns"] if tight and words and words[-1] not in ("Oo", "|", "(") else []) + ["Oo"]
        elif token == "]":
            words.append("Oc")
        elif token == "|":
            words.append("|")
        elif token == "--":
            words += ["Fl", "-"]
        elif token.startswith("-"):
            words += ["Fl", token[1:]]
        elif token.isupper():
            words += ["Ar", token.lower()]
        elif token == "...":
            words.append("...")
        elif token in ",=()":
            words.append(token)
        else:
            words += ["Cm", token]
        tight = True
    return words


def lines_of(command):
    return [" ".join([".Cm", command["name"], *macros(command["usage"])])]


def synopsis(commands):
    lines = [".Sh SYNOPSIS"]
    for command in commands:
        lines.append(".Nm")
        lines += lines_of(command)
    return lines + [".Nm", ".Cm help", ".Op Ar command"]


def rewrite(page, commands):
    headings = {command["name"]: " ".join([".It Cm", command["name"], *macros(command["usage"])]) for command in commands}
    lines, inside = [], False
    for line in page.split("\n"):
        if line.startswith(".Sh "):
            inside = line == ".Sh SYNOPSIS"
            if inside:
                lines += synopsis(commands)
        if inside:
            continue
        if line.startswith(".Sh JSON"):
            headings = {}
        for name in sorted(headings, key=len, reverse=True):
            if re.match(rf"\.It Cm {name}( |$)", line):
                line = headings.pop(name)
                break
        lines.append(line)
    return "\n".join(lines)


def main(vgpu, path, *options):
    done = subprocess.run([vgpu, "help", "--json"], capture_output=True, text=True, check=True)
    page = pathlib.Path(path).read_text()
    wanted = rewrite(page, json.loads(done.stdout)["commands"])
    if options == ("--write",):
        pathlib.Path(path).write_text(wanted)
    elif page != wanted:
        sys.exit("\n".join(difflib.unified_diff(page.split("\n"), wanted.split("\n"), path, "vgpu help", lineterm="")) +
                 "\ntools/gen-synopsis.py VGPU MAN-PAGE --write writes it anew")


if __name__ == "__main__":
    main(*sys.argv[1:])
