#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns of vGPUs of several devices: on all of them at once, with a share on each, whoever else is there."""
import case
from several import MIB, Case
from wait import until

EQUAL_SHARE = 2


class Base(Case):
    LONG_MS = 600000
    TOLERANCE = 6

    def make_shared(self, name, devices, share=None):
        return self.make(name, devices, 64, **({"share": share} if share else {}))

    def meet(self, name="job"):
        """A guest whose kernels wait for each other across its devices, step after step."""
        guest = self.guest(name)
        guest.write(f"meet 0 {self.LONG_MS}")
        return guest

    def busy(self, name):
        return self.host.run(name, "guest-busy", 200000, "64K").wait_ready()

    def scheduler(self, device):
        return self.host.call("GetScheduler", device=str(device))

    def of(self, name, device):
        return next(one for one in self.scheduler(device)["vgpus"] if one["name"] == name)

    def wait_turns(self, device, n):
        target = self.scheduler(device)["turns"] + n
        until(lambda: self.scheduler(device)["turns"] >= target, f"{n} turns")

    def received(self, device):
        return {one["name"]: one["received"] for one in self.scheduler(device)["vgpus"]}

    @staticmethod
    def get_parts(before, after):
        """What each got meanwhile of what all got, in percent."""
        gains = {name: after[name] - before[name] for name in after}
        total = sum(gains.values()) or 1
        return {name: 100 * gain / total for name, gain in gains.items()}

    def are_right(self, parts, expected):
        return all(abs(part[name] - percent) <= self.TOLERANCE
                   for part, wanted in zip(parts, expected) for name, percent in wanted.items())

    def assert_parts(self, devices, expected, n_turns=150):
        """
        On each device, over so many turns, or over several times so many: the machine may be busy with others meanwhile,
        and who got too much then gets less.
        """
        self.wait_turns(devices[0], 10)
        marks, seen = [[self.received(device) for device in devices]], []
        for _ in range(4):
            self.wait_turns(devices[0], n_turns)
            now = [self.received(device) for device in devices]
            for mark in reversed(marks):
                seen.append([self.get_parts(*pair) for pair in zip(mark, now)])
                if self.are_right(seen[-1], expected):
                    return
            marks.append(now)
        self.fail(f"never as it should be: {seen}")


class Turns(Base):
    MODE = "hardware"

    def test_each_device_has_its_shares(self):
        self.make_shared("job", "0,1", 50)
        self.make_shared("a", "0", 50)
        self.make_shared("b", "1", 25)
        self.make_shared("c", "1")
        self.assertEqual([self.of(name, device)["entitled"]
                          for name, device in (("job", 0), ("job", 1), ("a", 0), ("b", 1), ("c", 1))],
                         [50, 50, 50, 25, 25])
        self.meet()
        for name in "abc":
            self.busy(name)
        self.assert_parts((0, 1), ({"job": 50, "a": 50}, {"job": 50, "b": 25, "c": 25}))
        for device in (0, 1):
            self.assertEqual((self.scheduler(device)["mode"], self.scheduler(device)["taking_turns"]),
                             (self.MODE, True))
        self.assertEqual(self.scheduler(2)["mode"], "off")

    def test_who_waits_on_one_device_is_not_off_the_other(self):
        """Steps whose kernels wait for each other go on, between two that are never idle."""
        self.make_shared("job", "1,0", 40)
        for index in (0, 1):
            self.make_shared(f"n{index}", str(index), 60)
            self.busy(f"n{index}")
        guest = self.guest("job")
        answer = self.tell(guest, "meet 0 2000")
        self.assertGreater(int(answer.split()[1]), 2, self.host.log())
        self.assertEqual(self.tell(guest, "copy 0 1"), "copied")
        self.end(guest)

    def test_two_that_each_want_what_the_other_has(self):
        self.make_shared("left", "0,1", 50)
        self.make_shared("right", "1,2", 50)
        self.make_shared("ring", "2,0")
        guests = [self.guest(name) for name in ("left", "right", "ring")]
        lines = [len(guest.lines) for guest in guests]
        for guest in guests:
            guest.write("meet 0 1500")
        for guest, n in zip(guests, lines):
            until(lambda g=guest, k=n: len(g.lines) > k, "all of them to have met", context=self.host.log)
            self.assertGreater(int(guest.lines[-1].split()[1]), 0)
            self.end(guest)

    def test_the_log_of_each_device_has_its_turns(self):
        vgpu = self.make_shared("job", "0,1", 50)
        self.make_shared("a", "0", 50)
        self.meet(), self.busy("a")
        self.wait_turns(0, 20)

        def look(device):
            return {(turn["name"], turn["id"]) for turn in
                    self.host.call("GetSchedulerLog", device=str(device))["turns"]}
        ids = [part["id"] for part in vgpu["parts"]]
        until(lambda: ("job", ids[0]) in look(0) and "a" in {name for name, _ in look(0)}, "turns on device 0")
        until(lambda: ("job", ids[1]) in look(1), "turns on device 1")
        self.assertLessEqual({name for name, _ in look(1)}, {"job", ""})  # of those that are gone

    def test_it_leaves_and_comes_back_to_others(self):
        self.make_shared("job", "0,1", 50)
        self.make_shared("a", "0", 50)
        self.make_shared("far", "2", 60)
        self.assertIn("40 % of its time left", self.refused("migrate", "job", "--device", "1,2"))
        self.host.vgpu("share", "far", "50")
        guest = self.meet()
        self.busy("a"), self.busy("far")
        self.wait_turns(0, 10)
        self.host.call("SuspendVgpu", name="job")
        until(lambda: not self.scheduler(0)["taking_turns"], "the turns to end")
        self.host.call("ResumeVgpu", name="job", device="1,2")
        self.assert_parts((2,), ({"job": 50, "far": 50},))
        self.assertEqual({one["name"] for one in self.scheduler(0)["vgpus"]}, {"a"})
        guest.kill()
        until(lambda: not self.scheduler(2)["taking_turns"], "the turns to end")

    def test_another_manager_takes_the_turns(self):
        self.make_shared("job", "0,1", 1)
        self.make_shared("a", "1", 99)
        self.busy("a")
        guest = self.guest("job")
        self.host.kill()
        self.host.start()
        answer = self.tell(guest, "meet 0 300")
        self.assertGreater(int(answer.split()[1]), 0, self.host.log())
        self.end(guest)

    def test_gpu_time_is_that_of_its_turns_on_each(self):
        self.make_shared("job", "0,1", 50)
        self.make_shared("a", "0", 50)
        self.meet(), self.busy("a")
        self.wait_turns(0, 40)
        [now] = [v for v in self.host.call("GetUtilization")["vgpus"] if v["name"] == "job"]
        first, second = [part["gpu_seconds"] for part in now["parts"]]
        self.assertGreater(first, 0)
        self.assertAlmostEqual(first, second, delta=0.1 * first + 0.05)


class AtTheGate(Turns):
    HOST = {"devices": "3xH200:1G", "options": ("--turns", "gate")}
    MODE = "gate"
    TOLERANCE = 15

    def test_each_device_has_its_shares(self):
        self.make_shared("job", "0,1", 50)
        self.make_shared("a", "0", 50)
        self.make_shared("b", "1", 50)
        self.meet()
        for name in "ab":
            self.busy(name)
        self.assert_parts((0, 1), ({"job": 50}, {"job": 50}), 30)
        self.assertEqual(self.scheduler(0)["mode"], self.MODE)


class Rules(Base):
    def test_without_turns_each_is_entitled_to_what_it_may_have(self):
        self.make_shared("job", "0,1")
        self.make_shared("one", "1")
        self.assertEqual([(one["name"], one["entitled"]) for one in self.scheduler(1)["vgpus"]],
                         [("job", 50), ("one", 50)])
        self.assertEqual([one["entitled"] for one in self.scheduler(0)["vgpus"]], [50])

    def test_shares_add_up_to_the_whole_on_each_device(self):
        self.make_shared("one", "1", 70)
        for words in (("create", "job", "--fb", "64M", "--device", "0,1", "--share", "40"),
                      ("create", "job", "--fb", "64M", "--devices", "3", "--share", "40")):
            self.assertIn("30 % are left", self.refused(*words))
        self.host.vgpu("create", "job", "--fb", "64M", "--device", "0,1", "--share", "30")
        self.assertIn("30 % are left", self.refused("share", "job", "31"))
        self.host.vgpu("share", "job", "20")
        self.assertEqual([self.of("job", device)["share"] for device in (0, 1)], [20, 20])
        self.host.vgpu("share", "job", "none")
        self.assertEqual(self.host.vgpu("share", "one", "100").code, 0)

    def test_the_policy_is_best_effort(self):
        self.make_shared("job", "0,1")
        said = self.refused("scheduler", "set", "--device", "1", "--policy", "equal-share")
        self.assertIn("the policy there is best effort", said)
        self.assertIn("vgpu share", said)
        self.host.vgpu("scheduler", "set", "--device", "2", "--policy", "equal-share")
        for words in (("create", "more", "--fb", "64M", "--device", "0,2"), ("migrate", "job", "--device", "0,2")):
            self.assertIn("the policy of device 2 is not best effort", self.refused(*words))


if __name__ == "__main__":
    case.main()
