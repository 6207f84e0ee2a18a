#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what ninja has to build for some tests of a meson build, one file a line.

list-tested.py BUILD [--suite NAME]... [--no-suite NAME]...

The options are those of `meson test`, which builds everything for any test.
"""
import argparse
import json
import os
import subprocess
import sys


def introspect(build):
    told = subprocess.run(["meson", "introspect", build, "--tests", "--targets"], check=True,
                          stdout=subprocess.PIPE)
    told = json.loads(told.stdout)
    return told["tests"], {target["id"]: target["filename"] for target in told["targets"]}


def is_wanted(test, options):
    suites = {suite.rpartition(":")[2] for suite in test["suite"]}
    return not suites & set(options.no_suite) and \
        (not options.suite or bool(suites & set(options.suite)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--suite", action="append", default=[])
    parser.add_argument("--no-suite", action="append", default=[])
    options = parser.parse_args()
    tests, files = introspect(options.build)
    wanted = {target for test in tests if is_wanted(test, options) for target in test["depends"]}
    if not wanted:
        sys.exit(f"list-tested.py: no test of {options.build} is chosen")
    for path in sorted(path for target in wanted for path in files[target]):
        print(os.path.relpath(path, options.build))


main()
