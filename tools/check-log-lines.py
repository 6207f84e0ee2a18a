#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a user cannot fill the log: what is told of a vGPU or a process is told by log_event_of(),
or by log_event_of_program().

usage: tools/check-log-lines.py SOURCE-FOLDER

log_event() has no limit (daemon/log-limit.h). It may name a vGPU or a process only for debugging, and where
EXCEPTIONS say why nobody can make it write again and again.
"""
import pathlib
import re
import sys

CALL = re.compile(r"\blog_event\(\s*LOG_LEVEL_(\w+),\s*((?:\"[^\"]*\"\s*)+|\w+),\s*(\"(?:[^\"\\]|\\.|\"\s*\")*\")")

# Message: why. Each must be found.
AT_START = "while vgpud starts, once for each"
EXCEPTIONS = {
    "a device of a vGPU is gone": AT_START,
    "the memory of a suspended process is lost": AT_START,
    "killing a mover of the former manager": AT_START,
    "the accounting of a vGPU cannot be read": AT_START,
    "this vgpud does not know how to undo it: end the processes": AT_START,
    "undoing an incomplete operation": AT_START,
    "undid an incomplete operation": AT_START,
    "a mover died": "the pid is the mover's",
    "should vgpud die now, the next will not wait for a mover": "the pid is the mover's",
    "leaving out more lines about programs of a vGPU": "one line in an interval, for each vGPU",
    "left out lines about programs of a vGPU": "one line in an interval, for each vGPU",
    "turned a client away": "one line in an interval, for all users together",
    "memory that had changed was taken for unchanged; it was copied after all": "a mistake of ours is always told",
}


def find_lines(folder):
    """(file, message) of each call that names somebody."""
    for path in sorted(pathlib.Path(folder).rglob("*.c")):
        for call in CALL.finditer(path.read_text(encoding="utf-8")):
            level, message, fields = call.groups()
            if level != "DEBUG" and re.search(r"\b(vgpu|pid)=", fields):
                yield path, re.sub(r"\"\s*\"", "", message.strip()).strip('"')


def main():
    found = list(find_lines(sys.argv[1]))
    wrong = [f"{path}: \"{message}\" has no limit: use log_event_of()"
             for path, message in found if message not in EXCEPTIONS]
    wrong += [f"\"{message}\" is an exception that is not there any more"
              for message in EXCEPTIONS if message not in {message for _, message in found}]
    print("\n".join(wrong) if wrong else f"{len(found)} lines name somebody and have a reason to have no limit")
    sys.exit(bool(wrong))


main()
