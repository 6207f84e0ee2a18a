# SPDX-License-Identifier: Apache-2.0
"""Test cases of one file: one host for all of a class, results as TAP for meson."""
import signal
import sys
import traceback
import unittest

import stage
from host import Host


class Case(unittest.TestCase):
    """A class has one host, described by HOST; each test leaves it as it found it."""

    HOST = {}

    @classmethod
    def setUpClass(cls):
        cls.host = Host(**cls.HOST).start()
        cls.addClassCleanup(cls.host.close)

    def tearDown(self):
        """End the guests of the test and remove its vGPUs, also when it has failed."""
        for guest in self.host.guests:
            guest.kill()
        self.host.guests.clear()
        if self.host.manager.poll() is not None:
            self.host.start()
        self.host.wait_clean()
        for name in self.host.names():
            self.host.vgpu("rm", name)


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.n = 0

    def _report(self, verdict, test, comment="", error=None):
        self.n += 1
        name = test.id().removeprefix("__main__.")
        print(f"{verdict} {self.n} - {name}{comment}")
        if error:
            text = "".join(traceback.format_exception(*error))
            print("\n".join("# " + line for line in text.splitlines()))
        sys.stdout.flush()

    def addSuccess(self, test):
        self._report("ok", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._report("not ok", test, error=err)

    addError = addFailure

    def addSkip(self, test, reason):
        self._report("ok", test, f" # SKIP {reason}")

    def addSubTest(self, test, subtest, err):
        if err:
            self.addFailure(subtest, err)


def main():
    stage.make()
    # nohup leaves it ignored, and so would be every program under test.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    result = TapResult()
    names = sys.argv[1:] or None
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(names, sys.modules["__main__"]) if names else \
        loader.loadTestsFromModule(sys.modules["__main__"])
    suite.run(result)
    print(f"1..{result.n}")
    sys.exit(not result.wasSuccessful())
