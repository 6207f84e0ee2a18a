# SPDX-License-Identifier: Apache-2.0
"""What a manager has on its state page, read by print-state-page."""
import os
import subprocess


def read(path):
    """{"device 0": {"name": ..., ...}, ...}: numbers are numbers, all else is text."""
    lines = subprocess.run([os.environ["TEST_PRINT_STATE_PAGE"], str(path)], capture_output=True,
                           text=True, check=True).stdout.splitlines()
    return {key: dict(fields) for key, fields in map(_split, lines)}


def _split(line):
    noun, place, rest = line.split(" ", 2)
    fields = []
    for word in rest.split(" "):
        if "=" in word:
            name, value = word.split("=", 1)
            fields.append((name, int(value) if value.isdigit() else value))
        else:  # of a text with spaces
            fields[-1] = (fields[-1][0], f"{fields[-1][1]} {word}")
    return f"{noun} {place}", fields
