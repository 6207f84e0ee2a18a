#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what ninja has to build for some tests of a meson build, one file a line.

list-tested.py BUILD [--suite NAME]... [--no-suite NAME]... [TEST]...

The options and the names are those of `meson test`, which builds everything for any test. Some tests install what is
built: if one of these is among them, all that is installed is listed as well.
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
    return told["tests"], told["targets"]


def is_wanted(test, options):
    suites = {suite.rpartition(":")[2] for suite in test["suite"]}
    return not suites & set(options.no_suite) and \
        (not options.suite or bool(suites & set(options.suite))) and \
        (not options.tests or test["name"] in options.tests)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("tests", nargs="*", metavar="TEST")
    parser.add_argument("--suite", action="append", default=[])
    parser.add_argument("--no-suite", action="append", default=[])
    options = parser.parse_args()
    tests, targets = introspect(options.build)
    tests = [test for test in tests if is_wanted(test, options)]
    wanted = {target for test in tests for target in test["depends"]}
    if not wanted:
        sys.exit(f"list-tested.py: no test of {options.build} is chosen")
    if any("TEST_PREFIX" in test["env"] for test in tests):
        wanted |= {target["id"] for target in targets if target["installed"]}
    for path in sorted({path for target in targets if target["id"] in wanted for path in target["filename"]}):
        print(os.path.relpath(path, options.build))


main()
