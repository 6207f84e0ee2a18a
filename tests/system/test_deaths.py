#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 at points inside gates and movers, and managers and keepers that come and go.

One manager (and its successors) for all cases: what one death spoils, the next case finds. Each case
ends with an operation that works, guests that have lost no byte, and nothing left behind.
"""
import os
import select
import signal

import case
from wait import until
from wire import Refused

SUSPEND, RESUME, MIGRATE = "suspend", "resume", "migrate"
METHODS = {SUSPEND: "SuspendVgpu", RESUME: "ResumeVgpu", MIGRATE: "MigrateVgpu"}
AFTER = {SUSPEND: "suspended", RESUME: "running", MIGRATE: "running"}

GATE_POINTS = {
    SUSPEND: ["gate-close", "gate-export", "gate-release"],
    RESUME: ["gate-create", "gate-export", "gate-open"],
    MIGRATE: ["gate-close", "gate-export", "gate-release", "gate-create", "gate-open"],
}
MOVER_POINTS = {
    SUSPEND: ["mover.job-imported", "mover.copy-half", "mover.job-copied", "mover.locked",
              "mover.checkpointed"],
    RESUME: ["mover.staged", "mover.job-imported", "mover.job-copied", "mover.restored",
             "mover.unlocked"],
    MIGRATE: ["mover.staged", "mover.job-imported", "mover.job-copied", "mover.locked",
              "mover.checkpointed", "mover.restored", "mover.unlocked"],
}
VICTIMS = ("manager", "mover", "keeper", "guest")

GUEST = ("--on-demand", "--size", "5M", "--piece", "2M", "--small", "20")


# What a mover does only when it has the time.
OPTIONAL = {"mover.staged"}


class Deaths(case.Case):
    def setUp(self):
        self.host.create("train")
        self.guests = []
        self.start_again()

    def start_again(self):
        """Two guests, also after one has died."""
        for guest in [g for g in self.guests if not g.is_alive()]:
            guest.join()
            self.guests.remove(guest)
            self.host.guests.remove(guest)
        while len(self.guests) < 2:
            self.guests.append(self.host.train("train", *GUEST))

    def state(self):
        return self.host.get("train")["state"]

    def send(self, kind):
        """Ask for the operation; the connection on which the answer will come."""
        control = self.host.connect()
        self.addCleanup(control.close)
        where = {} if kind == SUSPEND else {"device": str(1 - self.host.get("train")["device"])}
        control.send(METHODS[kind], name="train", **where)
        return control

    @staticmethod
    def answer(control):
        """True when it was done, else why not. None: the manager died before it said so."""
        try:
            control.answer()
            return True
        except Refused as refused:
            return str(refused)
        except ConnectionError:
            return None

    def step(self):
        for guest in self.guests:
            guest.step()

    def settle(self):
        """Whatever became of it, the vGPU works."""
        self.host.wait_for("train", lambda v: v["state"] in ("running", "suspended"),
                           "to be in a state that commands work with")
        if self.state() == "suspended":
            self.host.call("ResumeVgpu", name="train")
        self.start_again()
        self.step()
        self.host.call("MigrateVgpu", name="train",
                       device=str(1 - self.host.get("train")["device"]))
        self.step()
        self.host.call("SuspendVgpu", name="train")
        self.host.call("ResumeVgpu", name="train")
        self.step()
        until(lambda: self.host.info()["pool"]["used"] == 0, "the pool to be empty",
              context=self.host.log)

    def kill(self, victim, point, pid):
        """Kill -9, and what is paused at the point goes on if it is not dead."""
        if victim == "manager":
            self.host.kill()
        elif victim == "guest":
            guest = next((g for g in self.guests if g.pid == pid), self.guests[0])
            os.kill(guest.pid, signal.SIGKILL)
            guest.process.wait()
        else:
            killed = self.host.kill_program(f"vgpu-{victim}")
            until(lambda: not set(killed) & {p for p, _ in self.host.processes()},
                  f"the {victim} to be gone")
        self.host.remove_pause(point)
        if victim == "manager":
            self.host.start()

    def reach(self, kind, point):
        """Start the operation; who is paused at the point, or None, and the connection for the answer."""
        if kind == RESUME:
            self.host.call("SuspendVgpu", name="train")
        self.host.arm(point, "pause")
        control = self.send(kind)
        if point not in OPTIONAL:
            return self.host.wait_paused(point), control
        until(lambda: self.host.is_paused(point) or select.select([control.socket], [], [], 0)[0],
              f"{point} or the end", context=self.host.log)
        return self.host.is_paused(point), control

    def check(self, kind, point, victim):
        for _ in range(20):
            pid, control = self.reach(kind, point)
            if pid:
                break
            self.assertIs(self.answer(control), True)
            self.host.disarm(point)
        self.assertTrue(pid, f"{point} was never reached")
        self.kill(victim, point, pid)
        done = self.answer(control)
        if victim != "manager":
            self.assertIs(done, True, self.host.log())
            self.assertEqual(self.state(), AFTER[kind])
        dead = [guest for guest in self.guests if not guest.is_alive()]
        self.assertEqual(len(dead), victim == "guest")
        self.settle()

    def check_table(self, table, victims=VICTIMS):
        for kind, points in table.items():
            for point in points:
                for victim in victims:
                    try:
                        self.check(kind, point, victim)
                    except AssertionError as error:  # what follows would fail of that
                        raise AssertionError(f"{kind} {point}, killed: {victim}") from error
        for guest in self.guests:
            guest.finish()

    def check_undo(self, kind, failing, point, victim):
        """Of guests that have moved: they cannot map their memory again, it is copied to new one."""
        if self.host.get("train")["device"] == 0:
            self.host.call("MigrateVgpu", name="train", device="1")
        self.host.arm(f"{kind}.{failing}", "fail")
        self.host.arm(point, "pause")
        control = self.send(kind)
        pid = self.host.wait_paused(point)
        self.kill(victim, point, pid)
        self.assertIsNot(self.answer(control), True)
        self.host.wait_for("train", lambda v: v["state"] == "running" and v["device"] == 1,
                           "to be as before")
        for guest in self.guests:
            if guest.is_alive():
                guest.step()
        self.host.call("MigrateVgpu", name="train", device="0")
        self.start_again()  # on device 0: those that are on device 1 have moved
        self.step()

    # What happens to the programs of the manager while nothing is under way.

    def restart(self):
        self.host.restart()

    def stop_and_start(self):
        self.assertEqual(self.host.stop(), 0)
        self.host.start()

    def kill_keeper(self):
        old = self.host.kill_program("vgpu-keeper")
        until(lambda: [p for p, _ in self.host.processes("vgpu-keeper") if p not in old],
              "another keeper", context=self.host.log)
        self.host.info()  # it has been given everything when the manager answers

    def kill_keeper_then_manager(self):
        self.kill_keeper()
        self.restart()

    def kill_movers(self):
        self.host.kill_program("vgpu-mover")

    def kill_manager_and_movers(self):
        self.host.manager.send_signal(signal.SIGSTOP)
        self.kill_movers()
        self.restart()

    def test_what_runs_and_what_is_suspended_survives_them_all(self):
        host, wanted = self.host, {"train": "running", "asleep": "suspended", "evicted": "evicted"}
        for name in ("asleep", "evicted"):
            host.create(name)
            self.guests.append(host.train(name, *GUEST))
        host.call("SuspendVgpu", name="asleep")
        host.call("SuspendVgpu", name="evicted", keep_context=True)
        used = host.info()["pool"]["used"]
        for event in (self.restart, self.kill_keeper, self.kill_keeper_then_manager,
                      self.kill_movers, self.kill_manager_and_movers, self.stop_and_start,
                      self.kill_keeper, self.restart, self.restart):
            with self.subTest(event=event.__name__):
                event()
                self.assertEqual({v["name"]: v["state"]
                                  for v in host.call("ListVgpus")["vgpus"]}, wanted)
                self.assertEqual(host.info()["pool"]["used"], used)
                for guest in self.guests[:2]:
                    guest.step()
        host.call("SuspendVgpu", name="train")
        for name in wanted:
            host.call("ResumeVgpu", name=name, device="1")
        for guest in self.guests:
            guest.step()
            guest.finish()

    def test_inside_an_undo(self):
        for kind, failing in ((SUSPEND, "moved"), (MIGRATE, "left")):
            for point in (f"{kind}.undoing-release", f"{kind}.release-undone", "mover.restored"):
                for victim in VICTIMS:
                    with self.subTest(operation=kind, point=point, killed=victim):
                        self.check_undo(kind, failing, point, victim)

    def test_movers_that_die_again_and_again_cost_no_memory(self):
        self.host.restart("mover.restored=kill")
        self.host.arm("suspend.moved", "fail")
        with self.assertRaises(Refused):
            self.host.call("SuspendVgpu", name="train")
        self.assertEqual(self.state(), "failed")
        self.host.restart()
        self.host.wait_state("train", "running")
        self.settle()

    def test_inside_a_gate(self):
        self.check_table(GATE_POINTS)

    def test_inside_a_mover(self):
        self.check_table(MOVER_POINTS)


if __name__ == "__main__":
    case.main()
