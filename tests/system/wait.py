# SPDX-License-Identifier: Apache-2.0
"""Waiting for what must come, with a deadline; never for time to pass."""
import os
import time

# Far beyond what anything here takes on two busy cores: it only ends what hangs.
PATIENCE = float(os.environ.get("TEST_PATIENCE", "30"))

# Between two looks at something that cannot tell us by itself.
INTERVAL = 0.004


class GaveUp(AssertionError):
    pass


def until(condition, what, seconds=PATIENCE, context=None):
    """The first true answer of condition(); context() is asked for more words if none comes."""
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() >= end:
            more = f"\n{context()}" if context else ""
            raise GaveUp(f"gave up after {seconds:g} s waiting for {what}{more}")
        time.sleep(INTERVAL)
