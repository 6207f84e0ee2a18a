#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays a transcript of vgpu without a manager, against a driver that plays a host.

    check-transcript.py VGPU FAKE_NVML TRANSCRIPT [--write]

A transcript is a text:

    # a remark
    610$ vgpu types         what was typed, with the fake driver 610
    DEVICE  TYPE ...        what vgpu printed
    ! vgpu: types: ...      what it printed as an error
    = 1                     its exit status, unless that is 0

--write writes down what vgpu says now, for who changes that on purpose.
"""

import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys

COMMAND = re.compile(r"(\d+)\$ vgpu (.+)")


def replay(vgpu, fake_nvml, age, words):
    environment = dict(os.environ, OPENVGPU_RUN="/nonexistent", OPENVGPU_NVML=f"{fake_nvml}-{age}.so")
    environment.pop("LD_LIBRARY_PATH", None)
    environment.pop("LD_PRELOAD", None)
    done = subprocess.run([vgpu, *shlex.split(words)], env=environment, capture_output=True, timeout=60)
    lines = done.stdout.decode().splitlines()
    lines += ["! " + line for line in done.stderr.decode().replace(fake_nvml, "FAKE_NVML").splitlines()]
    return lines + ([f"= {done.returncode}"] if done.returncode else [])


def main(vgpu, fake_nvml, path, *options):
    transcript = pathlib.Path(path)
    expected = transcript.read_text().splitlines()
    actual = []
    for line in expected:
        command = COMMAND.fullmatch(line)
        if command or line.startswith("#"):
            actual.append(line)
        if command:
            actual += replay(vgpu, fake_nvml, *command.groups())
    if options == ("--write",):
        transcript.write_text("\n".join(actual) + "\n")
    elif not any(COMMAND.fullmatch(line) for line in expected):
        sys.exit(f"{path}: no command")
    elif actual != expected:
        sys.exit("\n".join(difflib.unified_diff(expected, actual, path, "vgpu", lineterm="")))


if __name__ == "__main__":
    main(*sys.argv[1:])
