#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a C header of text files: page.html becomes the string page_html.

usage: embed.py OUTPUT FILE...
"""
import pathlib
import sys


def quote(line):
    text = line.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("??", "?\\?")
    return f'        "{text}\\n"'


output, *files = sys.argv[1:]
guard = "EMBEDDED_" + pathlib.Path(output).name.replace("-", "_").replace(".", "_").upper()
parts = ["/* Made by tools/embed.py. */", f"#ifndef {guard}", f"#define {guard}"]
for path in map(pathlib.Path, files):
    text = path.read_text(encoding="ascii")
    parts.append(f"static const char {path.name.replace('.', '_')}[] =\n" +
                 "\n".join(map(quote, text.splitlines())) + ";")
parts.append("#endif")
pathlib.Path(output).write_text("\n".join(parts) + "\n")
