#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a testlog.json of meson.

count-tests.py LOG           prints "PASSED FAILED"; a skipped test counts as neither
count-tests.py --failed LOG  prints the names of the tests that failed, as `meson test` takes them
"""
import json
import sys

PASSED = ("OK", "EXPECTEDFAIL")


def main():
    with open(sys.argv[-1], encoding="utf-8") as log:
        tests = [json.loads(line) for line in log]
    failed = [test["name"] for test in tests if test["result"] not in PASSED + ("SKIP",)]
    if sys.argv[1] == "--failed":
        for name in failed:
            print(name.rpartition(" / ")[2])
    else:
        print(sum(test["result"] in PASSED for test in tests), len(failed))


main()
