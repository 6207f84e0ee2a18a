#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that share device memory are suspended and resumed together."""
import contextlib
import os
import pathlib
import resource
import signal
import unittest

import case
from host import Host
from scene import UNDOABLE
from wait import until
from wire import Refused

WAYS = ("descriptor", "ipc", "pool")
MIB = 1 << 20


class Pairs:
    """Tests with processes of which one has made memory that the other uses."""

    ORDINALS = ()  # of the devices of a vGPU that the maker and the user of a pair have; none: the first
    ENVIRONMENT = {}

    def new_path(self):
        self.n = getattr(self, "n", 0) + 1
        return f"{self.host.directory}/pair-{type(self).__name__}-{id(self)}-{self.n}"

    def pair(self, way="descriptor", maker="job", user="job", arguments=(), user_arguments=None):
        path = self.new_path()
        guests = []
        for i, (vgpu, word, its) in enumerate(((maker, "make", arguments), (user, "use", user_arguments or arguments))):
            place = (*(its or ("4M", 1)), self.ORDINALS[i]) if self.ORDINALS else its
            guests.append(self.host.run(vgpu, "guest-share", word, way, path, *place, **self.ENVIRONMENT).wait_ready())
            guests[i].path = path
        return tuple(guests)

    def refused(self, error, method, **parameters):
        with self.assertRaises(Refused) as refused:
            self.host.call(method, **parameters)
        self.assertEqual(refused.exception.name, error, refused.exception.parameters)
        return refused.exception.parameters["message"]

    def check_both_ways(self, maker, user, value):
        """What one writes, the other reads."""
        maker.hold(f"fill={value}")
        user.hold(f"check={value}")
        user.hold(f"fill={value + 1000}")
        maker.hold(f"check={value + 1000}")

    def end(self, *guests):
        for guest in guests:
            self.assertEqual(guest.end_input(), 0, guest.context())

    def end_pairs(self, pairs):
        """All end, after a look at what check_both_ways() has left."""
        for i, (maker, user) in enumerate(pairs):
            user.hold(f"check={1000 + i}")
            self.end(user, maker)

    def not_moved(self, guests, *command):
        """It is told why, by one of these processes, and what to do."""
        done = self.host.vgpu(*command, code=None)
        self.assertNotEqual(done.code, 0, str(done))
        self.assertRegex(done.errors, r"process ({}) \(\S+\) shares memory with process \d+ \(\S+\), and cannot on device \d+: "
                         "its driver did not see that device when it was initialised"
                         .format("|".join(str(guest.pid) for guest in guests)))
        self.assertIn("OPENVGPU_ALL_DEVICES=1", done.errors)

    def suspend_and_resume(self, *options):
        self.host.vgpu("suspend", "job", *options)
        self.host.vgpu("resume", "job")


class Sharing(Pairs, case.Case):
    HOST = {"devices": "2xH200:512M", "pool": "128M", "slab": "4M"}

    def test_what_one_writes_the_other_reads(self):
        self.host.create("job")
        for way, size in (("descriptor", "4M"), ("ipc", "4M"), ("ipc", "4K"), ("pool", "4M"), ("pool", "4K")):
            with self.subTest(way=way, size=size):
                maker, user = self.pair(way, arguments=(size, 3))
                self.check_both_ways(maker, user, 7)
                self.end(user, maker)

    def test_only_who_made_it_pays(self):
        self.host.create("job", "64M")
        maker, user = self.pair(arguments=("4M", 3))
        used = {p["pid"]: p["memory_used"] for p in self.host.get("job")["processes"]}
        self.assertEqual(used, {maker.pid: 12 * MIB, user.pid: 0})
        self.end(user, maker)

    def test_a_suspend_and_a_resume(self):
        self.host.create("job")
        for way in WAYS:
            for options in ((), ("--keep-context",)):
                with self.subTest(way=way, options=options):
                    maker, user = self.pair(way, arguments=("4M", 3))
                    maker.hold("fill=7")
                    for turn in range(3):
                        self.suspend_and_resume(*options)
                        user.hold(f"check={7 + 1000 * turn}")
                        maker.hold(f"check={7 + 1000 * turn}")
                        user.hold(f"fill={7 + 1000 * (turn + 1)}")
                    self.check_both_ways(maker, user, 70)
                    self.end(user, maker)

    def test_what_is_opened_by_ipc_is_ordinary_memory(self):
        """As natively. A handle of it was the driver's own once: nobody let go of it, and the process was lost."""
        self.host.create("job")
        for way in ("ipc", "pool"):
            with self.subTest(way=way):
                maker, user = self.pair(way)
                for guest in (maker, user):
                    guest.hold("seize")
                    self.assertEqual([line for line in guest.lines if line.startswith("code")], ["code 1"] * 4)
                self.check_both_ways(maker, user, 3)
                self.suspend_and_resume()
                user.hold("check=1003")
                self.end(user, maker)

    def test_memory_of_a_pool_is_freed_in_the_order_of_its_stream(self):
        """What was written before arrives, and afterwards nothing of it is left with who has imported it."""
        self.host.create("job")
        for options in ((), ("--keep-context",)):
            with self.subTest(options=options):
                maker, user = self.pair("pool", arguments=("4M", 3))
                user.hold("last=50")
                self.suspend_and_resume(*options)
                maker.hold("check=50")
                maker.hold("more")
                user.hold("more")  # the first again, which is imported anew
                user.hold("fill=60")
                maker.hold("last=70")
                self.end(user, maker)
        maker, user = self.pair("pool")
        user.hold("last=8")
        self.suspend_and_resume()  # or the next call of the user that waits
        self.host.vgpu("migrate", "job", "--device", "1")  # they share nothing any more
        maker.hold("check=8")
        self.end(user, maker)

    def test_an_imported_pool_gives_no_memory(self):
        self.host.create("job")
        maker, user = self.pair("pool")
        for guest, code in ((user, 1), (maker, 0)):
            guest.hold("alone")
            self.assertEqual([line for line in guest.lines if line.startswith("code")], [f"code {code}"])
        self.end(user, maker)

    def test_who_has_imported_from_a_pool_is_killed(self):
        self.host.create("job")
        maker, user = self.pair("pool", arguments=("4M", 3))
        other = self.host.run("job", "guest-share", "use", "pool", maker.path, "4M", "3").wait_ready()
        self.check_both_ways(maker, user, 3)
        user.kill()
        for _ in range(2):
            self.suspend_and_resume()
            other.hold("check=1003")
        self.check_both_ways(maker, other, 4)
        other.hold("drop")
        maker.hold("drop")
        self.host.vgpu("migrate", "job", "--device", "1")
        self.end(other, maker)

    def test_several_users_and_a_second_place(self):
        self.host.create("job")
        maker, first = self.pair()
        second = self.host.run("job", "guest-share", "use", "descriptor",
                               maker.path).wait_ready()
        for guest in (first, maker):
            guest.hold("twice")
        for guest in (maker, first, second):
            guest.hold("retain")
        second.hold("read")
        maker.hold("fill=5")
        self.suspend_and_resume()
        for guest in (maker, first, second):
            guest.hold("check=5")
        first.hold("fill=6")
        for guest in (maker, first, second):
            guest.hold("check=6")
        second.write("fill=9")
        self.assertNotEqual(second.join(), 0, "what may only be read cannot be written")
        self.end(first, maker)

    def test_thousands_of_pieces(self):
        self.host.create("job", "400M")
        for way, size, n in (("descriptor", "2M", 40), ("ipc", "4K", 2500), ("pool", "4K", 2500), ("pool", "2M", 40)):
            with self.subTest(way=way):
                maker, user = self.pair(way, arguments=(size, n))
                maker.hold("fill=100")
                self.suspend_and_resume()
                user.hold("check=100")
                self.end(user, maker)

    def test_a_slow_machine_hangs_up_on_nobody(self):
        """Descriptors that passed through vgpud wait to be closed: their processes wait, and do not lose it."""
        host = self.host
        count = host.log().count("process is back")
        host.create("job", "400M")
        path = self.new_path()
        maker = host.run("job", "guest-share", "make", "ipc", path, "4K", 2500).wait_ready()
        before = self.count_fds(host.manager.pid)
        paused = pathlib.Path(host.fault_directory, "foreign.close")
        armed = paused.with_name("foreign.close=pause")
        armed.write_text("1+")
        user = host.run("job", "guest-share", "use", "ipc", path, "4K", 2500)
        until(lambda: self.count_fds(host.manager.pid) > before + 512, "more descriptors than may wait", context=host.log)
        self.assertTrue(paused.exists())
        self.assertNotIn("ready", user.lines)
        armed.unlink()
        paused.unlink()
        user.wait_ready()
        maker.hold("fill=100")
        self.suspend_and_resume()
        user.hold("check=100")
        self.end(user, maker)
        self.assertEqual(host.log().count("process is back"), count)

    def count_fds(self, pid):
        return len(os.listdir(f"/proc/{pid}/fd"))

    def test_thousands_of_imports_leave_nothing(self):
        self.host.create("job")
        maker, user = self.pair(arguments=("2M", 3))
        user.hold("try=10")
        pids = (maker.pid, user.pid, self.host.manager.pid)
        before = [self.count_fds(pid) for pid in pids]
        user.hold("try=2000")
        until(lambda: [self.count_fds(pid) for pid in pids] <= before, "all descriptors to be closed")
        self.assertEqual(user.lines.count("code 0"), 2)
        self.end(user, maker)

    def test_a_process_with_too_many_open_files_is_told_so(self):
        """It gets the driver's error, 'vgpu logs' says why, and it and all others go on."""
        self.host.create("job")
        maker, user = self.pair()
        first, other = self.pair()
        count = self.count_fds(user.pid)
        limits = resource.prlimit(user.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(user.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        for _ in range(3):
            user.hold("try=1")
        self.assertEqual([line for line in user.lines if line.startswith("code")], ["code 304"] * 3)
        self.check_both_ways(maker, user, 1)
        self.check_both_ways(first, other, 2)
        resource.prlimit(user.pid, resource.RLIMIT_NOFILE, limits)
        user.hold("try=1")
        self.assertEqual(user.lines.count("code 0"), 1)
        self.assertEqual(self.count_fds(user.pid), count)
        self.assertIn("(ulimit -n)", "".join(user.errors))
        self.assertEqual(self.host.vgpu("logs", "job").output.count("too many open files"), 1)
        self.suspend_and_resume()
        user.hold("check=1001")
        self.end(user, maker, other, first)

    def test_imports_under_way_do_not_hold_a_suspend_up(self):
        self.host.create("job")
        maker, first = self.pair()
        second = self.host.run("job", "guest-share", "use", "descriptor",
                               maker.path).wait_ready()
        for guest in (first, second):
            guest.hold("churn")
        for turn in range(50):
            self.suspend_and_resume(*(() if turn % 10 == 0 else ("--keep-context",)))
        for guest in (first, second):
            guest.hold("calm")
        self.check_both_ways(maker, first, 3)
        second.hold("check=1003")
        self.end(first, second, maker)

    def test_imports_from_a_pool_under_way_do_not_hold_a_suspend_up(self):
        """Also where nothing else of it is there, so that the last free and the next import meet."""
        self.host.create("job")
        maker, first = self.pair("pool", arguments=("64K", 1))
        second = self.host.run("job", "guest-share", "use", "pool", maker.path, "64K").wait_ready()
        first.hold("drop")
        for guest in (first, second):
            guest.hold("churn")
        for turn in range(50):
            self.suspend_and_resume(*(() if turn % 10 == 0 else ("--keep-context",)))
        for guest in (first, second):
            guest.hold("calm")
        for guest in (maker, second):
            guest.hold("check=77")
        self.end(first, second, maker)

    def test_the_memory_lives_as_long_as_one_uses_it(self):
        self.host.create("job")
        for way in WAYS:
            with self.subTest(way=way):
                maker, user = self.pair(way)
                maker.hold("fill=8")
                maker.hold("drop")
                user.hold("check=8")
                message = self.refused("NotMovable", "SuspendVgpu", name="job")
                self.assertIn(f"process {user.pid} ", message)
                user.hold("check=8")
                self.end(maker)
                user.hold("check=8")
                self.refused("NotMovable", "SuspendVgpu", name="job")
                user.hold("check=8")
                user.hold("drop")
                self.suspend_and_resume()
                self.end(user)

    def test_a_process_that_ends_while_its_memory_is_away(self):
        self.host.create("job")
        maker, user = self.pair()
        train = self.host.train("job", "--size", "4M")
        self.host.vgpu("suspend", "job")
        maker.kill()
        self.host.vgpu("resume", "job")
        train.wait_steps()
        user.write("check=0")
        self.assertNotEqual(user.join(), 0, "its memory is gone")
        train.finish()

    def test_memory_of_a_pool_that_is_gone_for_ever_is_freed_like_any_other(self):
        self.host.create("job")
        maker, user = self.pair("pool")
        self.check_both_ways(maker, user, 3)
        train = self.host.train("job", "--size", "4M")
        self.host.vgpu("suspend", "job")
        maker.kill()
        self.host.vgpu("resume", "job")
        train.wait_steps()
        user.hold("drop")
        self.suspend_and_resume()
        self.end(user)
        train.finish()

    def test_in_two_vgpus_they_do_not_go_alone(self):
        self.host.create("job")
        self.host.create("other", device=1)
        maker, user = self.pair(user="other")
        self.check_both_ways(maker, user, 3)
        for name, partner in (("job", user), ("other", maker)):
            message = self.refused("NotMovable", "SuspendVgpu", name=name)
            self.assertIn(f"shares memory with process {partner.pid} ", message)
        self.host.kill()
        self.host.start()
        until(lambda: self.is_refused("other"), "the gates to tell what they share")
        self.check_both_ways(maker, user, 4)
        self.end(user)
        self.suspend_and_resume()
        maker.hold("check=1004")
        self.end(maker)

    def test_a_new_manager_waits_for_the_gates_to_tell_what_they_share(self):
        self.host.create("job")
        self.host.create("other", device=1)
        maker, user = self.pair(user="other")
        for name in ("job", "other", "job"):
            self.host.kill()
            self.host.start()
            self.refused("NotMovable", "SuspendVgpu", name=name)
        user.signal(signal.SIGSTOP)
        self.host.kill()
        self.host.start()
        message = self.refused("TimedOut", "SuspendVgpu", name="job", timeout=0.5)
        self.assertIn(f"process {user.pid} ", message)
        user.signal(signal.SIGCONT)
        self.check_both_ways(maker, user, 4)
        self.refused("NotMovable", "SuspendVgpu", name="job")
        self.end(user)
        self.suspend_and_resume()
        self.end(maker)

    def group(self):
        for i in range(3):
            self.host.create(f"rank{i}", device=i % 2)
        return [self.pair(way, f"rank{a}", f"rank{b}", ("4M", 2))
                for way, a, b in (("descriptor", 0, 1), ("ipc", 1, 0), ("descriptor", 1, 2))]

    def test_a_group_of_vgpus_goes_and_comes_as_one(self):
        pairs = self.group()
        for i, (maker, user) in enumerate(pairs):
            self.check_both_ways(maker, user, i)
        for options in ((), ("--keep-context",)):
            self.host.vgpu("suspend", "rank0", "--group", *options)
            for i in range(3):
                self.assertIn(self.host.get(f"rank{i}")["state"], ("suspended", "evicted"))
            self.refused("NotMovable", "ResumeVgpu", name="rank1")
            self.host.vgpu("resume", "rank2", "--group")
            for i, (maker, user) in enumerate(pairs):
                self.assertEqual(self.host.get(f"rank{i}")["state"], "running")
                user.hold(f"check={1000 + i}")
                self.check_both_ways(maker, user, i)
        for maker, user in pairs:
            self.end(user, maker)

    def test_a_group_of_which_one_cannot_leave_stays(self):
        pairs = self.group()
        for i, (maker, user) in enumerate(pairs):
            self.check_both_ways(maker, user, i)
        held = self.host.run("rank2", "guest-hold").wait_ready()
        held.hold("managed")
        result = self.host.vgpu("suspend", "rank0", "--group", code=1)
        self.assertIn(f"process {held.pid} ", result.errors)
        for i, (maker, user) in enumerate(pairs):
            self.host.wait_state(f"rank{i}", "running")
            user.hold(f"check={1000 + i}")
            self.check_both_ways(maker, user, i)
        held.end_input()
        for names in (("rank1", "rank2"), ("--all",)):
            self.assertIn("name one vGPU", self.host.vgpu("suspend", *names, "--group", code=2).errors)
        self.host.vgpu("suspend", "rank1", "--group")
        for name in ("rank0", "rank2"):
            self.refused("WrongState", "SuspendVgpu", name=name, group=True)
        self.host.vgpu("resume", "rank1", "--group")
        self.end_pairs(pairs)

    def test_a_group_waits_for_the_gates_to_tell_a_new_manager_what_they_share(self):
        pairs = self.group()
        for i, (maker, user) in enumerate(pairs):
            self.check_both_ways(maker, user, i)
        for turn in range(3):
            self.host.kill()
            self.host.start()
            self.host.call("SuspendVgpu", name=f"rank{turn}", group=True)
            self.host.kill()
            self.host.start()
            self.host.call("ResumeVgpu", name=f"rank{turn}", group=True)
            for i in range(3):
                self.assertEqual(self.host.get(f"rank{i}")["state"], "running")
        brief = self.host.run(None, "guest-hold", options=["--name", "brief", "--fb", "64M", "--device", "1"]).wait_ready()
        stopped = pairs[2][1]
        stopped.signal(signal.SIGSTOP)
        self.host.kill()
        self.host.start()
        until(lambda: f"process {stopped.pid} (guest-share) of vGPU rank2 has not come back" in
              self.refused("TimedOut", "SuspendVgpu", name="rank0", group=True, timeout=0.5),
              "all others to have told")
        client = self.host.connect()
        client.call("GetInfo")  # it is connected now: what it says next is heard before that a program ends
        client.send("SuspendVgpu", name="brief", group=True)
        self.host.call("GetInfo")  # asked later: by its answer vgpud has heard that
        brief.kill()
        with self.assertRaises(Refused) as refused:
            client.answer()
        self.assertEqual(refused.exception.name, "NoSuchVgpu")
        self.assertIn("vGPU brief was removed", refused.exception.parameters["message"])
        client = self.host.connect()
        client.send("SuspendVgpu", name="rank0", group=True)
        self.host.kill()
        with self.assertRaises((ConnectionError, OSError)):
            client.answer()
        stopped.signal(signal.SIGCONT)
        self.host.start()
        self.end_pairs(pairs)

    def is_refused(self, name):
        with contextlib.suppress(Refused):
            self.host.call("SuspendVgpu", name=name)
            self.host.call("ResumeVgpu", name=name)
            return False
        return True

    def test_what_is_shared_does_not_move_to_another_device(self):
        self.host.create("job")
        maker, user = self.pair()
        self.check_both_ways(maker, user, 3)
        self.not_moved((maker, user), "migrate", "job", "--device", "1")
        self.host.vgpu("suspend", "job")
        self.not_moved((maker, user), "resume", "job", "--device", "1")
        self.host.vgpu("resume", "job")
        user.hold("check=1003")
        user.hold("drop")
        self.host.vgpu("migrate", "job", "--device", "1")
        maker.hold("check=1003")
        self.end(user, maker)

    def test_a_group_does_not_move_and_nobody_says_that_it_could(self):
        pairs = self.group()
        for name in ("rank0", "rank2"):
            with self.assertRaises(Refused) as refused:
                self.host.call("MigrateVgpu", name=name, device="1")
            self.assertEqual(refused.exception.name, "NotMovable")
            self.assertIn("on device 1: its driver did not see that device", refused.exception.parameters["message"])
            self.assertNotIn("--group", refused.exception.parameters["hint"])
        self.host.vgpu("suspend", "rank0", "--group")
        self.refused("NotMovable", "ResumeVgpu", name="rank0", device="1", group=True)
        self.host.vgpu("resume", "rank0", "--group")
        for maker, user in pairs:
            self.check_both_ways(maker, user, 3)
            self.end(user, maker)

    def test_what_criu_could_not_make_anew_is_refused_before_anything_is_touched(self):
        pairs = self.group()
        for i, name in enumerate(("rank0", "rank1", "rank2")):
            message = self.refused("NotMovable", "SuspendVgpu", name=name, detach=True)
            self.assertIn("CRIU cannot make that anew", message)
            self.assertEqual(self.host.get(name)["state"], "running")
            self.check_both_ways(*pairs[i], i)
        self.host.vgpu("suspend", "rank0", "--group")
        for name in ("rank0", "rank1", "rank2"):
            self.refused("NotMovable", "OpenMemory", name=name, detach=True)
        self.host.vgpu("resume", "rank0", "--group")
        self.end_pairs(pairs)

    def test_the_memory_of_a_group_is_dumped_and_loaded(self):
        pairs = self.group()
        for i, (maker, user) in enumerate(pairs):
            self.check_both_ways(maker, user, i)
        self.host.vgpu("suspend", "rank0", "--group")
        images = {name: self.new_path() for name in ("rank0", "rank1", "rank2")}
        for name, image in images.items():
            self.host.vgpu("checkpoint", "dump", name, image)
        self.host.vgpu("resume", "rank0", "--group")
        for maker, user in pairs:
            self.check_both_ways(maker, user, 77)
        self.host.vgpu("suspend", "rank1", "--group")
        for name, image in images.items():
            self.host.vgpu("checkpoint", "load", image, "--vgpu", name)
        self.host.vgpu("resume", "rank1", "--group")
        for i, (maker, user) in enumerate(pairs):
            user.hold(f"check={1000 + i}")
            maker.hold(f"check={1000 + i}")
            self.end(user, maker)

    def test_descriptors_that_processes_have_received_count_no_more(self):
        """Each resume sends one for each piece."""
        self.host.create("job")
        maker, user = self.pair(arguments=("2M", 24))
        self.suspend_and_resume()
        before = self.host.info()["descriptors_used"]
        for _ in range(10):
            self.suspend_and_resume()
        self.assertLess(self.host.info()["descriptors_used"], before + 48)
        self.end(user, maker)

    def test_a_maker_that_does_not_answer_holds_nobody_for_long(self):
        self.host.create("job")
        maker, user = self.pair()
        maker.signal(signal.SIGSTOP)
        self.host.vgpu("suspend", "job", "--timeout", "0.5", code=4)
        maker.signal(signal.SIGCONT)
        self.check_both_ways(maker, user, 3)
        self.suspend_and_resume()
        user.hold("check=1003")
        self.end(user, maker)


# Seconds in which all come to rest, also on a busy machine; a test waits for them to pass.
LONG = 5


class Faults(Pairs, unittest.TestCase):
    """Death and failure at every step: no byte is lost, and the next operation works."""

    HOST = {"pool": "64M", "slab": "4M"}
    DEVICES = {"job": 0, "other": 1}

    @contextlib.contextmanager
    def pairs(self, faults="", **names):
        """A host with a pair of each way, all of whose memory is 1003."""
        with self.subTest(**names):
            self.host = Host(**self.HOST).start(faults)
            try:
                self.create("job")
                pairs = [self.pair(way) for way in WAYS]
                for maker, user in pairs:
                    self.check_both_ways(maker, user, 3)
                yield pairs
            except BaseException:
                self.host.close(expect_clean=False)
                raise
            self.host.close()

    def create(self, name):
        self.host.create(name, device=self.DEVICES[name])

    def check_usable(self, pairs):
        if self.host.get("job")["state"] != "running":
            self.host.vgpu("resume", "job")
        for maker, user in pairs:
            user.hold("check=1003")
        self.suspend_and_resume()
        for maker, user in pairs:
            user.hold("check=1003")
            self.check_both_ways(maker, user, 3)
            self.end(user, maker)

    def operate(self, kind):
        if kind == "resume":
            self.host.vgpu("suspend", "job")
        with contextlib.suppress(ConnectionError, OSError, Refused):
            self.host.call(f"{kind.capitalize()}Vgpu", name="job")

    def restart(self):
        """The manager has died at a fault point."""
        self.host.wait_manager()
        self.host.start()
        self.host.wait_for("job", lambda vgpu: vgpu["state"] in ("running", "suspended"),
                           "the operation to be undone or ended")

    def manager_dies(self, kind):
        for step in UNDOABLE[kind] + ["recorded", "dropped"]:
            with self.pairs(f"{kind}.{step}=kill", step=step) as pairs:
                self.operate(kind)
                self.restart()
                self.check_usable(pairs)

    def test_the_manager_dies_at_each_step_of_a_suspend(self):
        self.manager_dies("suspend")

    def test_the_manager_dies_at_each_step_of_a_resume(self):
        self.manager_dies("resume")

    def step_fails(self, kind):
        for step in UNDOABLE[kind]:
            with self.pairs(f"{kind}.{step}=fail", step=step) as pairs:
                self.operate(kind)
                self.check_usable(pairs)

    def test_each_step_of_a_suspend_fails(self):
        self.step_fails("suspend")

    def test_each_step_of_a_resume_fails(self):
        self.step_fails("resume")

    def undo_dies(self, kind):
        for step in UNDOABLE[kind]:
            with self.pairs(f"{kind}.{UNDOABLE[kind][-1]}=fail,{kind}.undo-{step}=kill",
                            step=step) as pairs:
                self.operate(kind)
                self.restart()
                self.check_usable(pairs)

    def test_the_manager_dies_while_it_undoes_a_suspend(self):
        self.undo_dies("suspend")

    def test_the_manager_dies_while_it_undoes_a_resume(self):
        self.undo_dies("resume")

    def group_goes_on(self, kind, faults, is_killed):
        with self.pairs(faults, kind=kind, fault=faults) as pairs:
            for maker, user in pairs:
                self.end(user, maker)
            self.create("other")
            pairs = [self.pair("descriptor", "job", "other"), self.pair("ipc", "other", "job")]
            for maker, user in pairs:
                self.check_both_ways(maker, user, 3)
            if kind == "resume":
                self.host.vgpu("suspend", "job", "--group")
            with contextlib.suppress(ConnectionError, OSError, Refused):
                self.host.call(f"{kind.capitalize()}Vgpu", name="job", group=True)
            if is_killed:
                self.restart()
            for name in ("job", "other"):
                self.host.wait_for(name, lambda vgpu: vgpu["state"] in ("running", "suspended"),
                                   "the operation to be undone or ended")
            if self.host.get("job")["state"] != "running":
                self.host.call("ResumeVgpu", name="job", group=True)
            for maker, user in pairs:
                user.hold("check=1003")
            self.host.vgpu("suspend", "other", "--group")
            self.host.vgpu("resume", "other", "--group")
            for maker, user in pairs:
                user.hold("check=1003")
                self.end(user, maker)

    def test_a_step_of_one_of_a_group_fails(self):
        for kind in ("suspend", "resume"):
            for step in UNDOABLE[kind]:
                self.group_goes_on(kind, f"{kind}.{step}=fail", False)

    def test_the_manager_dies_while_a_group_goes(self):
        for kind in ("suspend", "resume"):
            for step in UNDOABLE[kind] + ["recorded", "dropped"]:
                self.group_goes_on(kind, f"{kind}.{step}=kill@2", True)

    def settle_group(self, names):
        """Whatever the operation came to: all run, or have no processes left."""
        for name in names:
            self.host.wait_for(name, lambda vgpu: vgpu["state"] in ("running", "suspended", "idle"),
                               "the operation to be undone or ended")
        for name in names:
            if self.host.get(name)["state"] == "suspended":
                self.host.vgpu("resume", name, "--group")

    def rank_of_group_dies(self, kind, who):
        """One of a pair over two vGPUs; the pairs of the same two vGPUs lose nothing."""
        for step in UNDOABLE[kind]:
            with self.pairs(f"{kind}.{step}=pause", step=step, who=who) as pairs:
                for maker, user in pairs:
                    self.end(user, maker)
                self.create("other")
                pairs = [self.pair("descriptor", "job", "other"), self.pair("ipc", "other", "job")]
                for maker, user in pairs:
                    self.check_both_ways(maker, user, 3)
                if kind == "resume":
                    self.host.vgpu("suspend", "other", "--group")
                client = self.host.connect()
                client.send(f"{kind.capitalize()}Vgpu", name="other", group=True)
                self.host.wait_paused(f"{kind}.{step}")
                pairs[0][who].kill()
                self.host.remove_pause(f"{kind}.{step}")
                with contextlib.suppress(Refused):
                    client.answer()
                self.settle_group(("job", "other"))
                maker, user = pairs[1]
                user.hold("check=1003")
                self.check_both_ways(maker, user, 3)
                pairs[0][1 - who].kill()
                self.host.vgpu("suspend", "job", "--group")
                self.host.vgpu("resume", "job", "--group")
                user.hold("check=1003")
                self.end(user, maker)

    def test_a_maker_of_a_group_dies_at_each_step(self):
        for kind in ("suspend", "resume"):
            self.rank_of_group_dies(kind, 0)

    def test_a_user_of_a_group_dies_at_each_step(self):
        for kind in ("suspend", "resume"):
            self.rank_of_group_dies(kind, 1)

    def one_of_a_group_hangs(self, kind, step):
        """
        The other vGPU is ready to be recorded then, and goes back as well. Contexts stay during a resume: to go back they
        would be checkpointed again, which takes a stopped process, or a busy machine, longer than the time-out.
        """
        with self.pairs(f"{kind}.{step}=pause", kind=kind) as pairs:
            for maker, user in pairs:
                self.end(user, maker)
            self.create("other")
            maker, user = self.pair("descriptor", "job", "other")
            self.check_both_ways(maker, user, 3)
            train = self.host.train("job", "--size", "4M")
            if kind == "resume":
                self.host.vgpu("suspend", "job", "--group", "--keep-context")
            client = self.host.connect()
            client.send(f"{kind.capitalize()}Vgpu", name="job", group=True, timeout=LONG)
            self.host.wait_paused(f"{kind}.{step}")
            user.signal(signal.SIGSTOP)
            self.host.remove_pause(f"{kind}.{step}")
            with self.assertRaises(Refused) as refused:
                client.answer()
            self.assertIn(f"process {user.pid} ", refused.exception.parameters["message"])
            user.signal(signal.SIGCONT)
            for name in ("job", "other"):
                self.host.wait_state(name, "running" if kind == "suspend" else "evicted")
            if kind == "resume":
                self.host.vgpu("resume", "other", "--group")
            train.wait_steps()
            user.hold("check=1003")
            self.host.vgpu("suspend", "job", "--group")
            self.host.vgpu("resume", "job", "--group")
            user.hold("check=1003")
            self.end(user, maker)
            train.finish()

    def test_an_importer_of_a_group_that_does_not_let_go_is_named(self):
        self.one_of_a_group_hangs("suspend", "kept")

    def test_an_importer_of_a_group_that_does_not_come_back_is_named(self):
        self.one_of_a_group_hangs("resume", "created")

    def test_a_gate_fails_in_its_part(self):
        for point, kind in (("gate-let-go", "suspend"), ("gate-offer", "suspend"),
                            ("gate-take", "resume"), ("gate-offer", "resume")):
            with self.pairs(point=point, kind=kind) as pairs:
                if kind == "resume":
                    self.host.vgpu("suspend", "job")
                self.host.arm(point, "fail")
                self.refused("DriverFailed" if "offer" not in point else "GuestLost",
                             f"{kind.capitalize()}Vgpu", name="job")
                self.check_usable(pairs)

    def test_an_import_that_the_makers_gate_refuses_has_failed(self):
        """It was taken for success once, and the program got a handle of nothing."""
        calls = {"descriptor": "cuMemImportFromShareableHandle", "ipc": "cuIpcOpenMemHandle",
                 "pool": "cuMemPoolImportPointer"}
        with self.pairs() as pairs:
            for way, (maker, _) in zip(WAYS, pairs):
                self.host.arm("gate-offer", "fail")
                another = self.host.run("job", "guest-share", "use", way, maker.path)
                self.assertEqual(another.join(), 1, another.context())
                self.assertRegex("".join(another.errors), f"{calls[way]}.*: CUDA_ERROR_OPERATING_SYSTEM ")
            self.check_usable(pairs)

    def test_memory_is_named_after_a_suspend_that_was_undone(self):
        for way in WAYS:
            with self.pairs(way=way) as pairs:
                path = self.new_path()
                maker = self.host.run("job", "guest-share", "make", way, path, "2M", "3",
                                      GUEST_SHARE_LATE="1").wait_ready()
                maker.hold("fill=5")
                self.host.arm("suspend.moved", "fail")
                with self.assertRaises(Refused):
                    self.host.call("SuspendVgpu", name="job")
                maker.hold("name")
                user = self.host.run("job", "guest-share", "use", way, path, "2M",
                                     "3").wait_ready()
                user.hold("check=5")
                self.check_both_ways(maker, user, 3)
                self.check_usable([*pairs, (maker, user)])

    def test_an_importer_that_does_not_let_go_is_named(self):
        with self.pairs("suspend.kept=pause") as pairs:
            train = self.host.train("job", "--size", "4M")
            client = self.host.connect()
            client.send("SuspendVgpu", name="job", timeout=LONG)
            self.host.wait_paused("suspend.kept")
            user = pairs[0][1]
            user.signal(signal.SIGSTOP)
            self.host.remove_pause("suspend.kept")
            with self.assertRaises(Refused) as refused:
                client.answer()
            self.assertEqual(refused.exception.name, "TimedOut", refused.exception.parameters)
            self.assertIn(f"process {user.pid} ", refused.exception.parameters["message"])
            train.wait_steps()
            maker, other = pairs[1]
            other.hold("check=1003")
            self.check_both_ways(maker, other, 3)
            user.signal(signal.SIGCONT)
            self.host.wait_state("job", "running")
            train.finish()
            self.check_usable(pairs)

    def member_dies(self, kind, who):
        for step in UNDOABLE[kind]:
            with self.pairs(f"{kind}.{step}=pause", step=step) as pairs:
                train = self.host.train("job", "--size", "4M")
                if kind == "resume":
                    self.host.vgpu("suspend", "job")
                client = self.host.connect()
                client.send(f"{kind.capitalize()}Vgpu", name="job")
                self.host.wait_paused(f"{kind}.{step}")
                pairs[0][who].kill()
                self.host.remove_pause(f"{kind}.{step}")
                with contextlib.suppress(Refused):
                    client.answer()
                if self.host.get("job")["state"] != "running":
                    self.host.vgpu("resume", "job")
                train.wait_steps()
                maker, user = pairs[1]
                user.hold("check=1003")
                self.check_both_ways(maker, user, 3)
                pairs[0][1 - who].kill()
                self.end(user, maker)
                train.finish()

    def test_a_maker_dies_at_each_step_of_a_suspend(self):
        self.member_dies("suspend", 0)

    def test_a_maker_dies_at_each_step_of_a_resume(self):
        self.member_dies("resume", 0)

    def test_a_user_dies_at_each_step_of_a_suspend(self):
        self.member_dies("suspend", 1)

    def test_a_user_dies_at_each_step_of_a_resume(self):
        self.member_dies("resume", 1)


if __name__ == "__main__":
    case.main()
