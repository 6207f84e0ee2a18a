#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files and folders of the source that the documents name are there.

usage: check-paths.py SOURCE

A path is a word in backquotes that begins with a folder of the source, or a link to another document. One with
a placeholder (NAME, NOUN) stands for several and is not looked for.
"""
import pathlib
import re
import sys

QUOTED = re.compile(r"`([\w./*-]+)`")
LINK = re.compile(r"\]\(([\w./-]+)(?:#[\w-]*)?\)")
FOLDERS = ("abi", "bench", "docs", "examples", "fuzz", "include", "debian", "packaging", "python", "scripts", "share", "src",
           "tests", "tools")
PLACEHOLDER = re.compile(r"[A-Z]{4}")


def named(document, source):
    """(what stands there, the path that it means)"""
    text = document.read_text()
    for word in QUOTED.findall(text):
        if word.split("/")[0] in FOLDERS and "/" in word and not PLACEHOLDER.search(word):
            yield word, source, word
    for word in LINK.findall(text):
        yield word, document.parent, word


def main(name):
    source = pathlib.Path(name)
    bad = 0
    for document in [*source.glob("*.md"), *(source / "docs").glob("*.md")]:
        for word, base, path in named(document, source):
            found = list(base.glob(path.rstrip("/"))) if "*" in path else (base / path).exists()
            if not found:
                bad = 1
                print(f"{document.relative_to(source)} names {word}, which is not there")
    sys.exit(bad)


if __name__ == "__main__":
    main(*sys.argv[1:])
