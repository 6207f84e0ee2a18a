# SPDX-License-Identifier: Apache-2.0
"""What the compatibility programs share: check, wait for a line on standard input, check again.

The runner suspends, resumes or moves the program while it waits, or while it works when
COMPAT_BUSY is set. Prints "NAME: ok" or "NAME: BAD", then "ready", then the same after the line, and how often it was
right while it worked.
"""
import os
import select
import sys


def hold(name, check):
    def report():
        print(f"{name}: {'ok' if check() else 'BAD'}", flush=True)

    report()
    if os.environ.get("COMPAT_ONCE"):
        return
    print("ready", flush=True)
    right = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        if os.environ.get("COMPAT_BUSY"):
            if check():
                right += 1
            else:
                print(f"{name}: BAD while busy", flush=True)
        else:
            select.select([sys.stdin], [], [])
    report()
    if right:
        print(f"{name}, {right} times while busy: ok", flush=True)
