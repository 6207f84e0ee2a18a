#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A process is frozen by its container's engine, or stopped: it is named, nobody else waits, and nothing is lost."""
import concurrent.futures
import contextlib
import signal
import time

import case
import freezer
from wait import until
from wire import Refused

SUSPEND, RESUME, MIGRATE = "SuspendVgpu", "ResumeVgpu", "MigrateVgpu"
GUEST = ("--on-demand", "--size", "5M", "--piece", "2M", "--small", "20")
TIMEOUT = 1.0
# The most that a busy machine may take for what waits for nothing, and far less than a driver would wait.
SOON = 15
WAITS = "waiting for a process to run"


class Frozen(case.Case):
    def setUp(self):
        self.host.create("train")
        self.host.create("beside")
        self.train = self.host.train("train", *GUEST)
        self.beside = self.host.train("beside", *GUEST)
        self.train.step()

    @contextlib.contextmanager
    def halted(self, kind):
        group = kind(self.train.pid)
        try:
            group.freeze()
            yield group
        finally:
            group.close()

    def call(self, method, name="train", timeout=60):
        where = {"device": "1"} if method == MIGRATE else {}
        return self.host.call(method, name=name, timeout=timeout, **where)

    @contextlib.contextmanager
    def paused_at(self, point, method, timeout):
        """The call, while the manager waits at the point; the block lets it go on."""
        self.host.arm(point, "pause")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            call = pool.submit(self.call, method, timeout=timeout)
            self.host.wait_paused(point)
            try:
                yield call
            finally:
                self.host.remove_pause(point)

    def check_named(self, kind, method):
        """It fails, and names the process and what is the matter with it."""
        start = time.monotonic()
        with self.assertRaises(Refused) as refusal:
            self.call(method, timeout=TIMEOUT)
        self.assertIn(f"process {self.train.pid} (guest-train) {kind.halt}", str(refusal.exception))
        self.assertIn("thaw it" if "frozen" in kind.halt else "kill -CONT", refusal.exception.parameters["hint"])
        self.assertLess(time.monotonic() - start, SOON)

    def check_others_go_on(self):
        """A neighbour on the same device leaves and comes back, and a new one joins."""
        for method in (SUSPEND, RESUME):
            self.call(method, "beside")
        self.beside.step()
        self.host.create("new")
        new = self.host.train("new", *GUEST)
        new.step()
        new.finish()
        self.host.wait_state("new", "idle")
        self.host.vgpu("rm", "new")

    def check_works(self):
        for method in (SUSPEND, RESUME):
            self.call(method)
        self.train.step()

    def test_it_is_named_by_a_resume_and_resumed_when_it_runs(self):
        for kind in freezer.find_kinds():
            with self.subTest(kind=kind.__name__):
                self.call(SUSPEND)
                with self.halted(kind):
                    self.check_named(kind, RESUME)
                    self.assertEqual(self.host.get("train")["state"], "suspended")
                    self.check_others_go_on()
                self.call(RESUME)
                self.train.step()

    def test_it_is_named_by_a_suspend_and_goes_on_when_it_runs(self):
        for kind in freezer.find_kinds():
            with self.subTest(kind=kind.__name__):
                with self.halted(kind):
                    self.check_named(kind, SUSPEND)
                    self.check_others_go_on()
                self.host.wait_state("train", "running")
                self.train.step()
                self.check_works()

    def check_halted_at(self, kind, method, point, state):
        """It is frozen in the middle, right before the driver is asked: nothing is lost."""
        with self.paused_at(point, method, TIMEOUT) as call, self.halted(kind):
            self.host.remove_pause(point)
            with self.assertRaises(Refused) as refusal:
                call.result()
            self.assertIn(f"process {self.train.pid} (guest-train) {kind.halt}", str(refusal.exception))
            self.check_others_go_on()
        self.host.wait_state("train", state)

    def test_one_that_is_frozen_before_the_checkpoint_is_back_when_it_runs(self):
        for kind in freezer.find_kinds():
            for method, point in ((SUSPEND, "suspend.released"), (MIGRATE, "migrate.released")):
                with self.subTest(kind=kind.__name__, method=method):
                    self.check_halted_at(kind, method, point, "running")
                    self.train.step()
                    self.check_works()

    def test_one_that_is_frozen_before_its_restore_stays_suspended_until_it_runs(self):
        for kind in freezer.find_kinds():
            with self.subTest(kind=kind.__name__):
                self.call(SUSPEND)
                self.check_halted_at(kind, RESUME, "resume.fetched", "suspended")
                self.call(RESUME)
                self.train.step()

    def test_a_restore_that_takes_long_keeps_no_neighbour_waiting(self):
        self.call(SUSPEND)
        self.host.create("new")
        with self.paused_at("mover.restoring", RESUME, 600) as call:
            new = self.host.train("new", *GUEST)
            new.step()
            new.finish()
            self.assertFalse(call.done())
        call.result()
        self.train.step()

    def check_silent(self, method, point, call, state, timeout=TIMEOUT):
        """It is frozen while the driver is asked: the call does not return, and holds up nobody else."""
        self.host.arm(point, "pause")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            under_way = pool.submit(self.call, method, timeout=timeout)
            self.host.wait_paused(point)
            with self.halted(freezer.find_kinds()[0]):
                self.host.remove_pause(point)
                with self.assertRaises(Refused) as refusal:
                    under_way.result()
                silent = f"the driver does not answer for process {self.train.pid} (guest-train): {call} has not returned"
                self.assertIn(silent, str(refusal.exception))
                self.assertEqual(self.host.get("train")["state"], "failed")
                self.check_others_go_on()
                with self.assertRaisesRegex(Refused, "does not answer for process"):
                    self.call(RESUME)
        self.host.wait_state("train", state)

    def test_a_restore_that_does_not_return_is_given_up_and_undone_later(self):
        """However long the client would wait: others wait for what the call keeps."""
        self.call(SUSPEND)
        self.check_silent(RESUME, "mover.restoring", "cuCheckpointProcessRestore", "suspended", timeout=86400)
        self.call(RESUME)
        self.train.step()

    def test_a_checkpoint_that_does_not_return_ends_at_the_time_out_and_is_undone_later(self):
        self.check_silent(SUSPEND, "mover.checkpointing", "cuCheckpointProcessCheckpoint", "running")
        self.train.step()
        self.check_works()

    def test_a_process_that_is_ended_while_the_driver_does_not_answer_leaves_nothing(self):
        self.host.arm("mover.checkpointing", "pause")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            under_way = pool.submit(self.call, SUSPEND, timeout=TIMEOUT)
            self.host.wait_paused("mover.checkpointing")
            self.train.signal(signal.SIGSTOP)
            self.host.remove_pause("mover.checkpointing")
            self.assertRaises(Refused, under_way.result)
        self.train.kill()
        self.host.wait_state("train", "idle")
        self.check_others_go_on()

    def test_one_that_runs_again_in_time_is_suspended(self):
        for kind in freezer.find_kinds():
            with self.subTest(kind=kind.__name__):
                waits = self.host.log().count(WAITS)
                with self.paused_at("suspend.released", SUSPEND, 60) as call:
                    with self.halted(kind):
                        self.host.remove_pause("suspend.released")
                        until(lambda: self.host.log().count(WAITS) > waits, "the manager to wait", context=self.host.log)
                    call.result()
                self.call(RESUME)
                self.train.step()


if __name__ == "__main__":
    case.main()
