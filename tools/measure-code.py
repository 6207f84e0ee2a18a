#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the figures of docs/architecture.md ("In figures"): usage: measure-code.py [SOURCE-DIRECTORY]

Files and lines of each folder of src/ (unit tests apart), the lengths of C functions, and how many lines stand in
runs of six or more that occur more than once.
"""
import collections
import pathlib
import re
import sys

RUN = 6


def is_test(path):
    return path.name.startswith(("test-", "fake-", "fixture", "hammer"))


def get_lengths(text):
    """The lengths of the functions, from the line of the opening brace to that of the closing one."""
    begin = None
    for number, line in enumerate(text.splitlines()):
        if line == "{":
            begin = number
        elif line.startswith("}"):
            if line == "}" and begin is not None:
                yield number - begin + 1
            begin = None


def get_code(text):
    """The lines that count for repetition: no comments, no includes, no lone punctuation."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in lines if re.search(r"\w", line) and not line.startswith("#include")]


def count_repeated(files):
    """(lines that stand in runs that occur more than once, all lines that count)"""
    code = {path: get_code(text) for path, text in files.items()}
    places = collections.defaultdict(list)
    for path, lines in code.items():
        for at in range(len(lines) - RUN + 1):
            places[tuple(lines[at:at + RUN])].append((path, at))
    repeated = {(path, at + i) for found in places.values() if len(found) > 1
                for path, at in found for i in range(RUN)}
    return len(repeated), sum(map(len, code.values()))


def main(source):
    files = {path: path.read_text() for path in sorted(source.rglob("*.[ch]"))}
    folders = collections.defaultdict(lambda: [0, 0, 0, 0])
    for path, text in files.items():
        counts = folders[str(path.parent.relative_to(source))]
        counts[2 * is_test(path)] += 1
        counts[2 * is_test(path) + 1] += text.count("\n")
    print("| folder of `src/` | files | lines | files of unit tests | their lines |\n| --- | --- | --- | --- | --- |")
    for name, counts in sorted(folders.items()):
        print(f"| `{name}/` | " + " | ".join(f"{count:,}" for count in counts) + " |")
    print("| all | " + " | ".join(f"{sum(column):,}" for column in zip(*folders.values())) + " |\n")
    lengths = sorted(length for text in files.values() for length in get_lengths(text))
    print(f"functions: {len(lengths):,}, median {lengths[len(lengths) // 2]} lines, longest {lengths[-1]}")
    repeated, lines = count_repeated({path: text for path, text in files.items() if not is_test(path)})
    print(f"repeated: {repeated:,} of {lines:,} lines ({100 * repeated / lines:.1f} %), without unit tests")


main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "src"))
