# SPDX-License-Identifier: Apache-2.0
"""Runs a suite and writes a line for each test as it goes, so that a test that ends the process is known: for bench/suites.

usage: suite_runner.py pytest|unittest LOG FOLDER [ARGUMENT]...

The tests in FOLDER, or those that the ARGUMENTs name. LOG gets JSON: {"test": NAME} when a test begins, and with an "outcome", the
"seconds" and a "message" when it is over. SUITE_DONE names a file with tests that are not to be run, one in a line, SUITE_ONLY
one with those that alone are.
"""
import json
import os
import sys
import time
import unittest


def lines_of(variable):
    path = os.environ.get(variable)
    if not path:
        return None
    with open(path, encoding="utf-8") as file:
        return set(file.read().splitlines())


class Choice:
    def __init__(self):
        self.done, self.only = lines_of("SUITE_DONE") or set(), lines_of("SUITE_ONLY")

    def has(self, name):
        return name not in self.done and (self.only is None or name in self.only)


class Log:
    def __init__(self, path):
        # Not across a fork of a test: each line is one write.
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.pid, self.started = os.getpid(), {}

    def write(self, **what):
        if os.getpid() == self.pid:
            os.write(self.fd, json.dumps(what).encode() + b"\n")

    def begin(self, name):
        self.started[name] = time.monotonic()
        self.write(test=name)

    def end(self, name, outcome, message=""):
        seconds = time.monotonic() - self.started.get(name, time.monotonic())
        self.write(test=name, outcome=outcome, seconds=round(seconds, 3), message=last_line(message))


def last_line(text):
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    return lines[-1][:400] if lines else ""


def first_line(text):
    return text.strip().partition("\n")[0]


class PytestPlugin:
    def __init__(self, log):
        self.log, self.choice, self.outcome = log, Choice(), {}

    def pytest_collection_modifyitems(self, config, items):
        chosen = [item for item in items if self.choice.has(item.nodeid)]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen

    def pytest_collectreport(self, report):
        """A file that cannot be loaded is a test that ends with an error."""
        if report.failed and self.choice.has(report.nodeid):
            self.log.begin(report.nodeid)
            self.log.end(report.nodeid, "error", report.longreprtext)

    def pytest_runtest_logstart(self, nodeid, location):
        del location
        self.outcome[nodeid] = ("passed", "")
        self.log.begin(nodeid)

    def pytest_runtest_logreport(self, report):
        outcome = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "xpassed" if report.passed else "xfailed"
        elif outcome == "failed" and report.when != "call":
            outcome = "error"
        if outcome != "passed":
            crash = getattr(report.longrepr, "reprcrash", None)
            message = report.longrepr[2] if isinstance(report.longrepr, tuple) else crash.message if crash else report.longreprtext
            self.outcome[report.nodeid] = (outcome, "" if outcome == "xfailed" else first_line(message))

    def pytest_runtest_logfinish(self, nodeid, location):
        del location
        self.log.end(nodeid, *self.outcome.pop(nodeid))


def run_pytest(log, folder, arguments):
    import pytest  # not for those without it
    os.chdir(folder)
    return pytest.main(["-p", "no:cacheprovider", "-q", "--continue-on-collection-errors", *arguments], plugins=[PytestPlugin(log)])


class UnittestResult(unittest.TestResult):
    def __init__(self, log):
        super().__init__()
        self.log, self.said = log, None

    def startTest(self, test):
        super().startTest(test)
        self.said = ("passed", "")
        self.log.begin(test.id())

    def stopTest(self, test):
        super().stopTest(test)
        self.log.end(test.id(), *self.said)

    def say(self, outcome, error):
        self.said = (outcome, f"{error[0].__name__}: {error[1]}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.say("failed", err)

    def addError(self, test, err):
        super().addError(test, err)
        self.say("error", err)
        if not isinstance(test, unittest.TestCase) or test.id() not in self.log.started:  # of a class, or a module
            self.log.end(test.id(), *self.said)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.say("failed", err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.said = ("skipped", reason)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.said = ("xfailed", "")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.said = ("xpassed", "")


def all_tests(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from all_tests(test)
        else:
            yield test


def run_unittest(log, folder, arguments):
    os.chdir(folder)
    sys.path.insert(0, folder)
    loader, choice = unittest.TestLoader(), Choice()
    found = loader.loadTestsFromNames(arguments) if arguments else loader.discover(folder, top_level_dir=folder)
    chosen = unittest.TestSuite(test for test in all_tests(found) if choice.has(test.id()))
    return not chosen.run(UnittestResult(log)).wasSuccessful()


def main():
    kind, path, folder, *arguments = sys.argv[1:]
    run = {"pytest": run_pytest, "unittest": run_unittest}[kind]
    return int(run(Log(path), folder, arguments))


if __name__ == "__main__":
    raise SystemExit(main())
