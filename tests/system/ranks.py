# SPDX-License-Identifier: Apache-2.0
"""Several guest-rank, whose kernels wait for each other."""
import itertools
import signal

SLOW_HOST = ("--size", "64K", "--pause", 1000)


class Ranks:
    """One in each of the named vGPUs; or in one vGPU, several times, each on one of @n_devices of it."""

    NUMBERS = itertools.count()

    def __init__(self, host, n, *options, vgpus=("train",), n_devices=1):
        self.host = host
        number = next(self.NUMBERS)
        meeting = host.root / f"meeting-{number}"
        self.all = []
        for index in range(n):
            log = host.root / f"rank-{number}-{index}"
            self.all.append(host.start_guest(vgpus[index % len(vgpus)], "guest-rank", n, index, meeting, "--log", log,
                                             *options, log=log,
                                             **({"CUDA_VISIBLE_DEVICES": str(index % n_devices)} if n_devices > 1 else {})))

    def wait_steps(self, n=2):
        for guest in self.all:
            guest.wait_steps(n)

    def finish(self):
        """All end after the same step, with the right sums."""
        for guest in self.all:
            guest.signal(signal.SIGTERM)
        ends = set()
        for guest in self.all:
            code = guest.join()
            self.host.guests.remove(guest)
            assert code == 0, guest.context()
            ends.add(guest.lines[-1])
        assert len(ends) == 1 and ends.pop().endswith(" ok"), [guest.lines for guest in self.all]

    def die(self):
        """All at once, and the test has still to kill() them."""
        for guest in self.all:
            guest.process.kill()
            guest.process.wait()

    def kill(self):
        for guest in self.all:
            guest.kill()
            self.host.guests.remove(guest)
