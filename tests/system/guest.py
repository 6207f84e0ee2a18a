# SPDX-License-Identifier: Apache-2.0
"""A guest process: started, watched through what it prints, ended."""
import contextlib
import os
import pathlib
import signal
import subprocess
import threading

from wait import PATIENCE, until


class GuestEnded(AssertionError):
    """It was to get a signal, and is gone."""


class Guest:
    """A program of tests/guests under `vgpu run`; `vgpu run` becomes the program, so pid is its."""

    def __init__(self, arguments, environment, log=None, user=None):
        self.log = log
        self.lines = []
        self.process = subprocess.Popen([str(a) for a in arguments], env=environment, user=user,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.errors = []
        self._readers = [threading.Thread(target=self._read, args=pair, daemon=True)
                         for pair in ((self.process.stdout, self.lines),
                                      (self.process.stderr, self.errors))]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream, lines):
        for line in stream:
            lines.append(line.rstrip("\n"))

    def context(self):
        return (f"guest {self.pid} rc={self.process.poll()}\n  output: {self.lines}\n"
                f"  errors: {self.errors[-20:]}\n  last steps: {self.log_lines()[-3:]}")

    def wait_line(self, start, seconds=PATIENCE):
        """The first line of its output that begins with start."""
        def look():
            found = [line for line in list(self.lines) if line.startswith(start)]
            if not found and self.process.poll() is not None:
                self.join()
                found = [line for line in self.lines if line.startswith(start)]
                assert found, f"the guest ended before '{start}'\n{self.context()}"
            return found
        return until(look, f"'{start}' of the guest", seconds, self.context)[0]

    def wait_ready(self):
        self.wait_line("ready")
        return self

    def log_lines(self, log=None):
        path = log or self.log
        if not path or not os.path.exists(path):
            return []
        with open(path) as file:
            return [line for line in file.read().split("\n")[:-1]]

    def steps(self, log=None):
        """How many steps it has done; all of them with the right contents."""
        lines = self.log_lines(log)
        bad = [line for line in lines if not line.endswith(" ok")]
        assert not bad, f"memory of the guest is wrong: {bad[:5]}\n{self.context()}"
        return len(lines)

    def wait_steps(self, n=2, log=None, seconds=PATIENCE):
        """Wait until it has gone n steps further than now."""
        target = self.steps(log) + n

        def look():
            assert self.process.poll() is None, f"the guest ended\n{self.context()}"
            return self.steps(log) >= target
        until(look, f"{n} more steps", seconds, self.context)

    def step(self):
        """One step of a guest-train that makes them --on-demand."""
        before = self.steps()
        self.process.stdin.write("\n")
        self.process.stdin.flush()

        def look():
            assert self.process.poll() is None, f"the guest ended\n{self.context()}"
            return self.steps() > before
        until(look, "a step", PATIENCE, self.context)

    def write(self, line):
        """A line for its standard input."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hold(self, what):
        """Tell a guest-hold, and wait until it does."""
        before = self.lines.count(what)
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()

        def look():
            assert self.process.poll() is None, f"the guest ended\n{self.context()}"
            return self.lines.count(what) > before
        until(look, f"the guest to hold {what}", PATIENCE, self.context)

    def is_alive(self):
        return self.process.poll() is None

    def signal(self, number):
        """kill() returns before the threads have stopped."""
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            raise GuestEnded(f"the guest ended\n{self.context()}") from None
        if number == signal.SIGSTOP:
            until(lambda: all(state in "Tt" for state in self.thread_states()), "all threads to stop", context=self.context)

    def thread_states(self):
        for path in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(OSError):  # it has ended
                yield (path / "stat").read_text().rsplit(")", 1)[1].split()[0]

    def join(self, seconds=PATIENCE):
        """Its exit status, all output read."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the guest does not end\n{self.context()}") from None
        for reader in self._readers:
            reader.join(seconds)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except OSError:
                pass  # what was never read by it
        return self.process.returncode

    def finish(self):
        """End guest-train in good order: it compares every word that it has."""
        self.signal(signal.SIGTERM)
        # One that makes steps on demand may have got the signal just before it reads on: the end of
        # its input is there then, too.
        self.process.stdin.close()
        code = self.join()
        done = [line for line in self.lines if line.startswith("done ")]
        assert code == 0 and done and done[0].endswith(" ok"), f"not a good end\n{self.context()}"
        return int(done[0].split()[1])

    def end_input(self):
        """What guest-alloc waits for; its exit status."""
        self.process.stdin.close()
        return self.join()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        return self.join()
