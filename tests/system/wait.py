# SPDX-License-Identifier: Apache-2.0
"""Waiting for what must come, with a deadline; never for time to pass."""
import os
import time

# Far beyond what anything here takes on two busy cores: it only ends what hangs.
PATIENCE = float(os.environ.get("TEST_PATIENCE", "30"))
# And on a machine on which others are busy, too, each of them has its part of the processors.
PATIENCE *= min(max(os.getloadavg()[0] / (2 * os.cpu_count()), 1), 5)

# Between two looks at something that cannot tell us by itself: at first so long, later a part of the time since.
INTERVAL = 0.004
PART = 1 / 16
INTERVAL_MAX = 0.1


class GaveUp(AssertionError):
    pass


def until(condition, what, seconds=PATIENCE, context=None):
    """The first true answer of condition(); context() is asked for more words if none comes."""
    begin = time.monotonic()
    end = begin + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        now = time.monotonic()
        if now >= end:
            more = f"\n{context()}" if context else ""
            raise GaveUp(f"gave up after {seconds:g} s waiting for {what}{more}")
        time.sleep(min(max(INTERVAL, (now - begin) * PART), INTERVAL_MAX))
