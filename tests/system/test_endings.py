#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One process of a vGPU ends, breaks or hangs: the others are suspended, moved and resumed without it."""
import os
import signal
import subprocess
import threading

import case
import stage
from wait import until
from wire import Refused

SUSPEND, RESUME, MIGRATE = "SuspendVgpu", "ResumeVgpu", "MigrateVgpu"
DEINITIALIZED, ILLEGAL_ADDRESS, LAUNCH_FAILED = 4, 700, 719

# Where the manager waits while the process comes to its end; the next step finds a driver that has ended.
POINTS = {
    SUSPEND: ["suspend.reserved", "suspend.closed", "suspend.kept", "suspend.released"],
    RESUME: ["resume.checked", "resume.restored", "resume.created", "resume.copied"],
    MIGRATE: ["migrate.checked", "migrate.closed", "migrate.kept", "migrate.restored",
              "migrate.copied"],
}
# It ends at the first point, and the second step fails.
UNDONE = [(SUSPEND, "suspend.kept", "suspend.released"),
          (SUSPEND, "suspend.released", "suspend.moved"),
          (RESUME, "resume.restored", "resume.created"),
          (RESUME, "resume.created", "resume.copied"),
          (MIGRATE, "migrate.released", "migrate.left"),
          (MIGRATE, "migrate.created", "migrate.copied")]

# Of short-lived programs; OPENVGPU_TEST_ROUNDS asks for more of them.
ROUNDS = int(os.environ.get("OPENVGPU_TEST_ROUNDS", "24"))

GUEST = ("--on-demand", "--size", "5M", "--piece", "2M", "--small", "20")


class Endings(case.Case):
    def setUp(self):
        self.host.create("train")
        self.others = [self.host.train("train", *GUEST) for _ in range(2)]

    def start_one(self):
        return self.host.run("train", "guest-end", "4M").wait_ready()

    def end(self, guest):
        """It returns from main(), and its driver has ended when we go on; its process has not."""
        guest.write("end")
        guest.wait_line("ending")

    def wait_forgotten(self, guest):
        self.host.wait_for("train", lambda v: guest.pid not in [p["pid"] for p in v["processes"]],
                           "to forget the process")

    def wait_ended(self, guest):
        """Nothing holds it at the gate, and it asks the driver for its last thing."""
        self.assertTrue(guest.is_alive())
        self.assertEqual(guest.end_input(), 0, guest.context())
        self.assertEqual(guest.wait_line("ended"), f"ended {DEINITIALIZED}")

    def call(self, method):
        where = {"device": str(1 - self.host.get("train")["device"])} if method == MIGRATE else {}
        return self.host.call(method, name="train", **where)

    def send(self, method):
        control = self.host.connect()
        self.addCleanup(control.close)
        where = {"device": str(1 - self.host.get("train")["device"])} if method == MIGRATE else {}
        control.send(method, name="train", **where)
        return control

    def step(self):
        for guest in self.others:
            guest.step()

    def check_works(self):
        """With the others, whatever has become of the one."""
        if self.host.get("train")["state"] == "suspended":
            self.call(RESUME)
        self.step()
        for method in (MIGRATE, SUSPEND, RESUME):
            self.call(method)
        self.step()
        until(lambda: self.host.info()["pool"]["used"] == 0, "the pool to be empty",
              context=self.host.log)

    # A process that ends.

    def check_ending(self, method, point):
        guest = self.start_one()
        if method == RESUME:
            self.call(SUSPEND)
        self.host.arm(point, "pause")
        control = self.send(method)
        self.host.wait_paused(point)
        self.end(guest)
        self.host.remove_pause(point)
        control.answer()
        self.check_works()
        self.wait_forgotten(guest)
        self.wait_ended(guest)

    def test_a_process_that_ends_in_the_middle_holds_nobody(self):
        for method, points in POINTS.items():
            for point in points:
                with self.subTest(operation=method, point=point):
                    self.check_ending(method, point)

    def check_undone(self, method, pause, failing):
        """It ends in the middle of what comes to be undone: the undoing meets it."""
        guest = self.start_one()
        if method == RESUME:
            self.call(SUSPEND)
        before = self.host.get("train")["state"]
        self.host.arm(failing, "fail")
        self.host.arm(pause, "pause")
        control = self.send(method)
        self.host.wait_paused(pause)
        self.end(guest)
        self.host.remove_pause(pause)
        with self.assertRaises(Refused):
            control.answer()
        self.host.wait_state("train", before)
        self.check_works()
        self.wait_forgotten(guest)
        self.wait_ended(guest)

    def test_a_process_that_ends_in_what_is_undone_holds_nobody(self):
        for method, pause, failing in UNDONE:
            with self.subTest(operation=method, point=pause, failing=failing):
                self.check_undone(method, pause, failing)

    def test_a_process_that_has_ended_between_two_operations_holds_nobody(self):
        for method in (SUSPEND, RESUME, MIGRATE):
            with self.subTest(operation=method):
                guest = self.start_one()
                if method == RESUME:
                    self.call(SUSPEND)
                self.end(guest)
                self.call(method)
                self.check_works()
                self.wait_forgotten(guest)
                self.wait_ended(guest)

    def run_one_after_another(self, environment, until_set, results):
        """Programs that allocate, and end at once."""
        while not until_set.is_set():
            done = subprocess.run([stage.GUESTS / "guest-end", "2M"], env=environment, check=False,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            results.append((done.returncode, done.stderr))

    def test_short_lived_programs_never_keep_the_others(self):
        environment = self.host.environment(
            **self.host.call("PrepareRun", name="train")["environment"])
        over, results = threading.Event(), []
        threads = [threading.Thread(target=self.run_one_after_another,
                                    args=(environment, over, results)) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for i in range(ROUNDS):
                self.call(SUSPEND)
                self.call(RESUME)
                if i % 4 == 0:
                    self.call(MIGRATE)
                self.step()
        finally:
            over.set()
            if self.host.get("train")["state"] == "suspended":
                self.call(RESUME)
            for thread in threads:
                thread.join()
        self.assertEqual([result for result in results if result != (0, "")], [])
        self.host.wait_for("train", lambda v: len(v["processes"]) == 2, "to forget them all")
        self.check_works()

    # A process that is told to end while it is away.

    def test_a_suspended_process_whose_handler_calls_exit_ends_without_a_resume(self):
        for arguments in ((), ("busy",)):
            with self.subTest(arguments=arguments):
                guest = self.host.run("train", "guest-exit", *arguments).wait_ready()
                self.call(SUSPEND)
                guest.signal(signal.SIGTERM)
                self.assertEqual(guest.join(), 7, guest.context())
                self.assertEqual(guest.lines[1:], [f"freed {DEINITIALIZED}", f"destroyed {DEINITIALIZED}"])
                self.wait_forgotten(guest)
                self.call(RESUME)
                self.step()

    def test_a_process_that_is_told_to_end_after_a_resume_gives_all_back(self):
        guest = self.host.run("train", "guest-exit").wait_ready()
        self.call(SUSPEND)
        self.call(RESUME)
        guest.signal(signal.SIGTERM)
        self.assertEqual(guest.join(), 7, guest.context())
        self.assertEqual(guest.lines[1:], ["freed 0", "destroyed 0"])

    # A process whose context is broken.

    def say(self, guest, word, answer):
        n = guest.lines.count(answer)
        guest.write(word)
        until(lambda: guest.lines.count(answer) > n, f"'{answer}' of the guest", context=guest.context)

    def check_refused(self, guest, code):
        """Nothing is touched, and who reads it knows what to do."""
        for method in (SUSPEND, MIGRATE):
            with self.assertRaises(Refused) as refusal:
                self.call(method)
            self.assertEqual(refusal.exception.name, "NotMovable")
            message = str(refusal.exception)
            self.assertIn(f"process {guest.pid} ", message)
            self.assertIn(f"failed with {code}", message)
            self.assertIn("end it", refusal.exception.parameters["hint"])
            self.assertEqual(self.host.get("train")["state"], "running")
            self.step()

    def test_a_broken_process_is_named_before_anything_is_touched(self):
        guest = self.start_one()
        used = self.host.get("train")["frame_buffer_used"]
        self.say(guest, "break", f"broken {ILLEGAL_ADDRESS}")
        self.check_refused(guest, ILLEGAL_ADDRESS)
        self.assertEqual(self.host.get("train")["frame_buffer_used"], used)
        self.say(guest, "use", f"used {ILLEGAL_ADDRESS}")
        guest.kill()
        self.wait_forgotten(guest)
        self.check_works()

    def check_broken(self, method, call, failing=None):
        """The driver of one says so when its memory shall come back; it goes on, to see for itself."""
        path = os.path.join(self.host.directory, "fail-gate")
        guest = self.host.run("train", "guest-end", "4M", OPENVGPU_SIM_FAIL_FILE=path).wait_ready()
        if method == RESUME:
            self.call(SUSPEND)
        if failing:
            self.host.arm(failing, "fail")
        with open(path + ".draft", "w") as file:
            file.write(f"{call}@1={LAUNCH_FAILED}")
        os.rename(path + ".draft", path)
        if failing:
            self.assertRaises(Refused, self.call, method)
        else:
            self.call(method)
        self.assertFalse(os.path.exists(path))
        self.step()
        self.say(guest, "use", f"used {LAUNCH_FAILED}")
        self.host.wait_for("train", lambda v: len(v["processes"]) == 3, "to have it back")
        self.check_refused(guest, LAUNCH_FAILED)
        guest.kill()
        self.wait_forgotten(guest)
        self.check_works()

    def test_a_process_that_breaks_while_it_is_away_holds_nobody(self):
        for method, call, failing in ((RESUME, "cuMemCreate", None), (MIGRATE, "cuMemCreate", None),
                                      (SUSPEND, "cuMemImportFromShareableHandle", "suspend.moved")):
            with self.subTest(operation=method, failing=failing):
                self.check_broken(method, call, failing)

    # A process that hangs.

    def leave_behind(self):
        """Of three, one is stopped while all are away: the two others come back."""
        guest = self.host.train("train", *GUEST)
        self.call(SUSPEND)
        guest.signal(signal.SIGSTOP)
        report = self.host.call(RESUME, name="train", timeout=0.5)
        follows = f"process {guest.pid} (guest-train) is stopped and follows after kill -CONT {guest.pid}"
        self.assertEqual((report["processes"], report["left_behind"]), (2, follows))
        self.assertIn(follows, self.host.call("ListEvents", name="train")["events"][-1]["message"])
        self.assertEqual(self.host.get("train")["state"], "running")
        self.step()
        with self.assertRaisesRegex(Refused, f"process {guest.pid} ") as refusal:
            self.call(SUSPEND)
        self.assertIn("kill -CONT", refusal.exception.parameters["hint"])
        self.step()
        return guest

    def check_caught_up(self, guest):
        self.others.append(guest)
        self.step()
        until(lambda: self.host.info()["pool"]["used"] == 0, "the pool to be empty",
              context=self.host.log)
        self.host.wait_state("train", "running")
        self.check_works()
        for one in self.others:
            one.finish()

    def test_a_stopped_process_does_not_keep_the_others_from_coming_back(self):
        guest = self.leave_behind()
        guest.signal(signal.SIGCONT)
        self.check_caught_up(guest)

    def test_a_catch_up_that_fails_is_tried_again(self):
        """It has failed when the memory was there, but not yet what is in it."""
        guest = self.leave_behind()
        self.host.arm("catch-up.created", "fail")
        guest.signal(signal.SIGCONT)
        self.check_caught_up(guest)
        self.assertIn("told to fail at catch-up.created", self.host.log())

    def test_the_next_manager_knows_who_was_left_behind(self):
        guest = self.leave_behind()
        self.host.restart()
        self.step()
        guest.signal(signal.SIGCONT)
        self.check_caught_up(guest)

    def test_a_catch_up_that_could_not_be_undone_is_known_to_the_next_manager(self):
        """The process hangs again in the middle, and the manager ends before it is back."""
        guest = self.leave_behind()
        self.host.arm("catch-up.hurried", "fail")
        self.host.arm("catch-up.restored", "pause")
        guest.signal(signal.SIGCONT)
        self.host.wait_paused("catch-up.restored")
        guest.signal(signal.SIGSTOP)
        self.host.remove_pause("catch-up.restored")
        until(lambda: self.host.get("train")["state"] == "failed", "the undo to have failed", 60,
              self.host.log)
        self.host.restart()
        self.step()
        guest.signal(signal.SIGCONT)
        self.check_caught_up(guest)

    def test_a_process_that_is_ended_after_it_was_left_behind_leaves_nothing(self):
        guest = self.leave_behind()
        guest.kill()
        self.wait_forgotten(guest)
        self.check_works()

    def test_a_stopped_process_is_named_within_the_operations_time(self):
        guest = self.start_one()
        for point in ("suspend.closed", "suspend.kept"):
            self.host.arm(point, "pause")
            control = self.host.connect()
            self.addCleanup(control.close)
            control.send(SUSPEND, name="train", timeout=0.5)
            self.host.wait_paused(point)
            guest.signal(signal.SIGSTOP)
            self.host.remove_pause(point)
            with self.assertRaisesRegex(Refused, f"process {guest.pid} .* is stopped"):
                control.answer()
            self.step()
            guest.signal(signal.SIGCONT)
            self.host.wait_state("train", "running")
        self.say(guest, "use", "used 0")
        self.check_works()


if __name__ == "__main__":
    case.main()
