#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print "PASSED FAILED" of a meson testlog.json; a skipped test counts as neither."""
import json
import sys

passed = failed = 0
for line in open(sys.argv[1]):
    result = json.loads(line)["result"]
    if result in ("OK", "EXPECTEDFAIL"):
        passed += 1
    elif result != "SKIP":
        failed += 1
print(passed, failed)
