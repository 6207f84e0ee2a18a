#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No user takes so much of vgpud that nothing is left for the others."""
import contextlib
import json
import multiprocessing
import os
import pathlib
import resource
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest
from unittest import mock

import daemons
from harness import MIB, Host, expect_error
from wait import PATIENCE, until
from wire import Control, Gate, Packets, Refused

GREEDY, OTHER = 65534, 65533
DESCRIPTORS = 1024


def be(user):
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


def hoard(path, vgpu, user, ready):
    """Exports its memory in more pieces than vgpud has descriptors for, and says nothing more."""
    memory = os.memfd_create("hoard")
    os.truncate(memory, 4096)
    be(user)
    with Gate(path) as gate:
        gate.socket.settimeout(None)
        gate.join(vgpu)
        assert gate.receive_message()[0] == Gate.WELCOME
        ready.send("joined")
        gate.receive_message()
        gate.send_closed(movable=2 * MIB, allocations=DESCRIPTORS)
        gate.receive_message()
        for first in range(0, DESCRIPTORS, 64):
            pieces = [(0x1000000 + 4096 * i, 4096) for i in range(first, first + 64)]
            gate.send_allocations(pieces, [memory] * 64)
        ready.send("sent")
        ready.recv()
        gate.send_result(Gate.EXPORTED, size=4096 * DESCRIPTORS)
        assert gate.receive_message()[0] == Gate.OPEN
        gate.send_result(Gate.OPENED, state=Gate.OPEN_STATE)
        ready.recv()


def connect_all(path, user, answer):
    """As many connections as there are to be had; then what was said to the first that was not."""
    be(user)
    connections = []
    while True:
        control = Control(path)
        try:
            control.call("GetInfo")
        except Refused as refused:
            answer.send((len(connections), refused.name, refused.parameters))
            break
        connections.append(control)
    answer.recv()


def load_and_hoard(path, user, answer):
    """Has a process to load, takes all connections there are, and then loads it."""
    be(user)
    connections = [Control(path)]
    process = {"pid": os.getpid(), "allocations": [[0x7f0000000000, 2 * MIB]]}
    connections[0].call("CreateVgpu", name="mine", frame_buffer=4 * MIB)
    connections[0].call("ReplaceMemory", name="mine", processes=[process])
    with contextlib.suppress(Refused):
        while True:
            connections.append(Control(path))
            connections[-1].call("GetInfo")
    try:
        connections[0].call("CommitMemory", name="mine")
    except Refused as refused:
        answer.send(refused.name)
    else:
        answer.send("loaded")
    answer.recv()


def load_process(path, user, program, pipe):
    """Loads memory into a process that executes @program between ReplaceMemory and CommitMemory."""
    be(user)
    process = subprocess.Popen(["sh", "-c", f"read line; exec {program}"], stdin=subprocess.PIPE)
    memory = {"pid": process.pid, "allocations": [[0x7f0000000000, 2 * MIB]]}
    with Control(path) as control:
        control.call("CreateVgpu", name=f"of-{user}", frame_buffer=4 * MIB)
        control.call("ReplaceMemory", name=f"of-{user}", processes=[memory])
        process.stdin.write(b"\n")
        process.stdin.flush()
        comm = pathlib.Path(f"/proc/{process.pid}/comm")
        until(lambda: comm.read_text().strip() == os.path.basename(program), "exec")
        try:
            control.call("CommitMemory", name=f"of-{user}")
        except Refused as refused:
            pipe.send(refused.name)
        else:
            pipe.send("loaded")
        pipe.recv()


def load_again_and_again(path, user, pipe):
    """Has new room in the pool pinned each time when it is told so, and lets go of it."""
    be(user)
    process = {"pid": os.getpid(), "allocations": [[0x7f0000000000, 2 * MIB]]}
    with Control(path) as control:
        control.call("CreateVgpu", name="mine", frame_buffer=4 * MIB)
        while pipe.recv() == "load":
            control.call("ReplaceMemory", name="mine", processes=[process])
            control.call("GetSlabs", name="mine")  # what was given away is not pinned again, but made anew
            control.call("CloseMemory", name="mine")
            pipe.send("loaded")


def load_mortal(path, user, pipe):
    """Asks for a process to be loaded that ends, when told so, while vgpud looks at it."""
    be(user)
    with Control(path) as control:
        control.call("CreateVgpu", name="mine", frame_buffer=4 * MIB)
        while pipe.recv() != "end":
            process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
            memory = {"pid": process.pid, "allocations": [[0x7f0000000000, 2 * MIB]]}
            control.send("ReplaceMemory", name="mine", processes=[memory])
            pipe.send(process.pid)
            pipe.recv()
            process.kill()
            process.wait()
            pipe.send("dead")
            try:
                control.answer()
                pipe.send("taken")
                control.call("CloseMemory", name="mine")
            except Refused as refused:
                pipe.send(refused.name)


def start_with_number(pid):
    """A process of root's with that number, if nobody else gets it first."""
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(pid - 1))
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    if process.pid == pid:
        return process
    process.communicate()
    return None


def leave_unread(path, user, vgpu, n, answer):
    """Asks @n times for the slabs of its vGPU, each time on a new connection, and receives none of them."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (8 * DESCRIPTORS, 8 * DESCRIPTORS))
    be(user)
    connections = []
    try:
        while len(connections) < n:
            connections.append(Control(path))
            connections[-1].call("OpenMemory", name=vgpu)
            connections[-1].send("GetSlabs", name=vgpu)
            data = connections[-1].socket.recv(65536, socket.MSG_PEEK)
            if b"error" in data:
                raise Refused("NoRoom", {"message": data.decode()})
            connections[-1].socket.shutdown(socket.SHUT_WR)
            end = select.poll()
            end.register(connections[-1].socket, select.POLLRDHUP)
            end.poll(PATIENCE * 1000)
    except Refused as error:
        answer.send((len(connections), str(error)))
    else:
        answer.send((n, ""))
    answer.recv()


def connect_soon(path, kind=Packets):
    """When those that connected before have been looked at."""
    def attempt():
        with contextlib.suppress(BlockingIOError):
            return kind(path)

    return until(attempt, "a connection")


def is_hung_up(packets):
    poll = select.poll()
    poll.register(packets.socket, select.POLLRDHUP)
    return any(events & (select.POLLHUP | select.POLLRDHUP) for _, events in poll.poll(0))


def ask_twice(path, user, vgpu, answer):
    be(user)
    with Control(path) as control:
        control.call("OpenMemory", name=vgpu)
        control.call("GetSlabs", name=vgpu)
        try:
            control.call("GetSlabs", name=vgpu)
        except Refused as refused:
            answer.send(refused.name)
        else:
            answer.send("given again")
        control.call("CloseMemory", name=vgpu)
        control.call("OpenMemory", name=vgpu)
        answer.send(control.call("GetSlabs", name=vgpu)["count"])


def be_refused(path, user, n, pipe):
    be(user)
    with Control(path) as control:
        for _ in range(n):
            with contextlib.suppress(Refused):
                control.call("Frobnicate")
    pipe.send("refused")


def send_all(control, calls):
    messages = [{"method": Control.PREFIX + method, "parameters": parameters} for method, parameters in calls]
    control.send_bytes(b"".join(json.dumps(message).encode() + b"\0" for message in messages))


def collect_ids(controls, n):
    """Of the vGPUs that the answers to @n calls each are about; without those of who was turned away."""
    ids = []
    for control in controls:
        with contextlib.suppress(Refused, ConnectionError):
            ids += [control.answer()["vgpu"]["id"] for _ in range(n)]
    return ids


def ask_all(path, user, n_connections, calls, prefix, pipe):
    """@calls on each connection at once, when told so; the ids of the vGPUs that were created."""
    be(user)
    connections = [Control(path) for _ in range(n_connections)]
    for control in connections:
        control.call("GetInfo")
    pipe.send("ready")
    pipe.recv()
    for i, control in enumerate(connections):
        send_all(control, calls(f"{prefix}-{i}"))
    pipe.send("sent")
    pipe.send(collect_ids(connections, len(calls(""))))
    pipe.recv()


def create_and_remove(times):
    return lambda name: [("CreateVgpu", {"name": name, "frame_buffer": 2 * MIB, "transient": True}),
                         ("RemoveVgpu", {"name": name})] * times


def connect_and_ask(path, user, n_connections, calls, prefix, pipe):
    """The same with connections that are made now, as many as are to be had without waiting."""
    be(user)
    controls = []
    pipe.send("ready")
    pipe.recv()
    for i in range(n_connections):
        with contextlib.suppress(BlockingIOError):
            controls.append(Control(path, is_waiting=False))
            send_all(controls[-1], calls(f"{prefix}-{i}"))
    pipe.send("sent")
    pipe.send(collect_ids(controls, len(calls(""))))
    pipe.recv()


@unittest.skipIf(os.getuid() != 0, "needs root to be somebody else")
class Accounts(unittest.TestCase):
    OPTIONS = ("--pool-limit", "64M", "--slab-size", "8M")

    def setUp(self):
        self.host = self.enterContext(Host(fake=True, options=self.OPTIONS))
        os.chmod(self.host.root, 0o755)
        program = self.host.root / "vgpud"
        program.write_text(f"#!/bin/sh\nulimit -n {DESCRIPTORS}\nexec {os.environ['TEST_VGPUD']} \"$@\"\n")
        program.chmod(0o755)
        self.enterContext(mock.patch.dict(os.environ, TEST_VGPUD=str(program)))
        self.host.start()

    def run_as(self, function, *arguments):
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(target=function, args=(*arguments, theirs))
        process.start()
        theirs.close()
        self.addCleanup(process.join)
        self.addCleanup(process.kill)
        return ours

    def create(self, name, user):
        ours = self.run_as(self.create_as, self.host.run / "control.sock", name, user)
        self.assertEqual(ours.recv(), None)

    @staticmethod
    def create_as(path, name, user, answer):
        be(user)
        with Control(path) as control:
            control.call("CreateVgpu", name=name, frame_buffer=4 * MIB)
        answer.send(None)

    def expect(self, pipe, word):
        self.assertTrue(pipe.poll(PATIENCE), f"no '{word}'")
        self.assertEqual(pipe.recv(), word)

    def test_who_keeps_the_movers_pinning_lets_others_have_them(self):
        pipe = self.run_as(load_again_and_again, self.host.run / "control.sock", GREEDY)
        pause = self.host.driver / "pause-SLAB_ADD"
        for seconds in (2, 4, 8, 16):  # of which he has a second on credit
            pause.touch()
            pipe.send("load")
            self.assertFalse(pipe.poll(seconds))
            pause.unlink()
            self.expect(pipe, "loaded")
            pipe.send("load")  # on a machine that is so slow that he has paid by now: again
            self.expect(pipe, "loaded")
            if b"its user has had the movers" in (self.host.root / "log").read_bytes():
                break
        else:
            self.fail("a user has the movers all the time")

    def test_pieces_of_memory_leave_others_their_descriptors(self):
        self.create("other", OTHER)
        guest = self.host.fake_guest("other", 2 * MIB, user=OTHER)
        names, pipes, operations = [f"greedy-{i}" for i in range(3)], [], []
        for name in names:
            self.create(name, GREEDY)
            pipes.append(self.run_as(hoard, self.host.run / "gate.sock", name, GREEDY))
            self.expect(pipes[-1], "joined")
        for name, pipe in zip(names, pipes):
            operations.append(self.host.client())
            operations[-1].send("SuspendVgpu", name=name)
            self.expect(pipe, "sent")
        for _ in range(3):
            self.host.call("SuspendVgpu", name="other")
            self.host.call("ResumeVgpu", name="other")
        self.assertTrue(guest.is_intact())
        for pipe, operation in zip(pipes, operations):
            pipe.send("end")
            with self.assertRaises(Refused) as caught:
                operation.answer()
            self.assertEqual(caught.exception.name, "NoRoom")
            self.assertIn(f"user {GREEDY} has", caught.exception.parameters["message"])
            self.assertIn("ulimit -Hn", caught.exception.parameters["hint"])

    def test_suspended_memory_leaves_others_room_in_the_pool(self):
        names = [f"greedy-{i}" for i in range(5)]
        for name in names:
            self.create(name, GREEDY)
            self.host.fake_guest(name, 8 * MIB, user=GREEDY)
        for name in names[:4]:  # a slab each, half of them
            self.host.call("SuspendVgpu", name=name)
        error = expect_error("PoolTooSmall", self.host.call, "SuspendVgpu", name=names[4])
        self.assertIn("others need the rest", error.parameters["message"])
        self.create("other", OTHER)
        guest = self.host.fake_guest("other", 4 * MIB, user=OTHER)
        self.host.call("SuspendVgpu", name="other")
        self.host.call("ResumeVgpu", name="other")
        self.assertTrue(guest.is_intact())
        self.host.call("ResumeVgpu", name=names[0])
        until(lambda: self.host.call("GetInfo")["pool"]["used"] == 3 * 8 * MIB,  # it is let go after the answer
              "the memory of what was resumed to be let go")
        self.host.call("SuspendVgpu", name=names[4])

    def test_connections_leave_others_theirs(self):
        counts, pipes = [], []
        for user in range(OTHER - 6, OTHER):
            pipes.append(self.run_as(connect_all, self.host.run / "control.sock", user))
            self.assertTrue(pipes[-1].poll(PATIENCE), f"user {user} waits")
            n, name, parameters = pipes[-1].recv()
            self.assertEqual(name.removeprefix("org.openvgpu."), "NoRoom")
            self.assertIn(f"user {user} has", parameters["message"])
            counts.append(n)
        self.assertGreater(min(counts), 0)
        self.assertLessEqual(max(counts), DESCRIPTORS / 2)
        self.create("last", OTHER)
        self.assertTrue(self.host.fake_guest("last", 2 * MIB, user=OTHER).is_intact())
        self.assertIn("a limit is near", (self.host.root / "log").read_text())

    def test_processes_that_are_loaded_are_charged(self):
        pipe = self.run_as(load_and_hoard, self.host.run / "control.sock", GREEDY)
        self.expect(pipe, "NoRoom")

    def test_a_process_that_becomes_roots_is_not_loaded(self):
        program = self.host.root / "becomes-root"
        shutil.copy(shutil.which("cat"), program)  # ends with its input
        program.chmod(0o4755)
        if os.statvfs(program).f_flag & os.ST_NOSUID:
            self.skipTest("no program becomes root in /tmp")
        pipe = self.run_as(load_process, self.host.run / "control.sock", GREEDY, str(program))
        self.expect(pipe, "PermissionDenied")
        program.chmod(0o755)
        pipe = self.run_as(load_process, self.host.run / "control.sock", OTHER, str(program))
        self.expect(pipe, "loaded")

    def test_a_process_that_got_the_number_of_another_is_not_loaded(self):
        pipe = self.run_as(load_mortal, self.host.run / "control.sock", GREEDY)

        def attempt():
            (self.host.faults / "image.look=pause").touch()
            pipe.send("go")
            pid = pipe.recv()
            self.host.wait_paused("image.look")
            pipe.send("die")
            self.expect(pipe, "dead")
            victim = start_with_number(pid)
            self.host.go_on("image.look")
            try:
                self.expect(pipe, "GuestLost")
            finally:
                if victim:
                    victim.communicate()
            return victim

        until(attempt, "the number")
        pipe.send("end")

    def suspend_own(self):
        self.create("greedy", GREEDY)
        self.host.fake_guest("greedy", 4 * MIB, user=GREEDY)
        self.host.call("SuspendVgpu", name="greedy")

    def test_descriptors_that_nobody_receives_leave_others_theirs(self):
        self.suspend_own()
        pipe = self.run_as(leave_unread, self.host.run / "control.sock", GREEDY, "greedy", DESCRIPTORS)
        self.assertTrue(pipe.poll(PATIENCE), "no end")
        n, refusal = pipe.recv()
        self.assertLess(n, DESCRIPTORS / 2)
        self.assertIn(f"user {GREEDY} has", refusal)
        self.create("other", OTHER)
        guest = self.host.fake_guest("other", 2 * MIB, user=OTHER)
        self.host.call("SuspendVgpu", name="other")
        self.host.call("ResumeVgpu", name="other")
        self.assertTrue(guest.is_intact())
        pipe.send("end")
        until(lambda: self.can_open("greedy", GREEDY), "the descriptors to be given back")

    def can_open(self, vgpu, user):
        pipe = self.run_as(leave_unread, self.host.run / "control.sock", user, vgpu, 1)
        n, refusal = pipe.recv()
        pipe.send("end")
        return n == 1 and not refusal

    def test_a_session_gives_each_slab_once(self):
        self.suspend_own()
        pipe = self.run_as(ask_twice, self.host.run / "control.sock", GREEDY, "greedy")
        self.expect(pipe, "InvalidParameter")
        self.expect(pipe, 1)

    def count_refusals(self, user):
        lines = (self.host.root / "log").read_text().splitlines()
        return sum(line.startswith("vgpud: refused a request") and f" uid={user} " in line for line in lines)

    def test_a_user_cannot_fill_the_log(self):
        path = self.host.run / "control.sock"
        self.expect(self.run_as(be_refused, path, GREEDY, 3000), "refused")
        self.assertIn(f"leaving out more lines about what a user does uid={GREEDY} ",
                      (self.host.root / "log").read_text())
        self.assertLess(self.count_refusals(GREEDY), 3000)
        self.expect(self.run_as(be_refused, path, OTHER, 1), "refused")
        self.assertEqual(self.count_refusals(OTHER), 1)

    def race(self, function, crowd, other):
        """(ids of the crowd's vGPUs, of the other's): what both ask is there when vgpud begins to look."""
        path, ids = self.host.run / "control.sock", []
        pipes = [self.run_as(function, path, GREEDY, *crowd, "greedy"),
                 self.run_as(function, path, OTHER, *other, "other")]
        for pipe in pipes:
            self.expect(pipe, "ready")
        os.kill(self.host.manager.pid, signal.SIGSTOP)
        for pipe in pipes:
            pipe.send("go")
            self.expect(pipe, "sent")
        os.kill(self.host.manager.pid, signal.SIGCONT)
        for pipe in pipes:
            self.assertTrue(pipe.poll(PATIENCE), "no answers")
            ids.append(pipe.recv())
        return ids

    def test_a_crowd_of_calls_leaves_others_their_turns(self):
        ids = self.race(ask_all, (60, create_and_remove(20)), (1, create_and_remove(10)))
        self.assertEqual(len(ids[1]), 20)
        # The crowd reads slowly where many share a processor: for unread answers it is charged, and refused.
        self.assertGreater(len(set(ids[0])), 600)
        before = sum(one < max(ids[1]) for one in set(ids[0]))
        self.assertLess(before, 200, "of the crowd's vGPUs before the other's 10")

    def test_a_crowd_that_connects_leaves_others_their_turns(self):
        ids = self.race(connect_and_ask, (60, create_and_remove(1)), (1, create_and_remove(1)))
        self.assertEqual(len(ids[1]), 2)
        self.assertGreater(len(set(ids[0])), 30)
        before = sum(one < max(ids[1]) for one in set(ids[0]))
        self.assertLess(before, 20, "of the crowd's 60 vGPUs before the other's")


@unittest.skipIf(os.getuid() != 0, "needs root to be somebody else")
class Doors(unittest.TestCase):
    """What root of a container does at its door is not what root of the machine does."""

    run_as, create, create_as = Accounts.run_as, Accounts.create, staticmethod(Accounts.create_as)

    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.OPTIONS = Accounts.OPTIONS + ("--cdi", f"{folder}/cdi.json")
        usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # more than 1024, which is usual
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (usual, most))
        Accounts.setUp(self)

    def test_root_at_a_door_is_charged_to_the_owner(self):
        for owner in (0, GREEDY):
            uuid = self.host.call("CreateVgpu", name=f"of-{owner}", frame_buffer=2 * MIB, owner=owner)["vgpu"]["uuid"]
            connections = [connect_soon(self.host.run / "cdi" / uuid / "gate.sock") for _ in range(DESCRIPTORS)]
            until(lambda held=connections: sum(is_hung_up(one) for one in held) > DESCRIPTORS / 2, "a limit")
            self.create(f"beside-{owner}", OTHER)
            for one in connections:
                one.close()


def connect_and_hang_up(path, user, n, answer):
    """Has @n connections, which all end at once when it is told so."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * n, 2 * n))
    be(user)
    kept = [connect_soon(path, Control) for _ in range(n)]
    answer.send(len(kept))
    answer.recv()
    os._exit(0)  # the kernel closes them


@unittest.skipIf(os.getuid() != 0, "needs root to be somebody else")
@unittest.skipIf(daemons.BUILD, "a sanitizer takes time of its own")
class Crowd(unittest.TestCase):
    CLIENTS, SECONDS = 5000, 1
    run_as = Accounts.run_as

    def used_seconds(self):
        fields = pathlib.Path(f"/proc/{self.host.manager.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.host.manager.pid}/fd"))

    @unittest.skipIf(resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 4 * CLIENTS, "needs more descriptors")
    def test_a_crowd_that_hangs_up_at_once_does_not_hold_up_others(self):
        self.host = self.enterContext(Host(fake=True)).start()
        os.chmod(self.host.root, 0o755)
        before = self.descriptors()
        pipe = self.run_as(connect_and_hang_up, self.host.run / "control.sock", GREEDY, self.CLIENTS)
        self.assertEqual(pipe.recv(), self.CLIENTS)
        until(lambda: self.descriptors() > before + self.CLIENTS / 2, "vgpud to have them")
        used = self.used_seconds()
        pipe.send("end")
        until(lambda: self.descriptors() <= before, "vgpud to let them go")
        self.assertLess(self.used_seconds() - used, self.SECONDS)


@unittest.skipIf(daemons.BUILD, "a sanitizer keeps what was freed")
class Memory(unittest.TestCase):
    CLIENTS, BYTES = 300, 32000

    def test_what_a_crowd_of_clients_took_is_given_back(self):
        with Host(options=["--log-level", "warning"]) as host:
            host.start()

            def resident():
                return int(pathlib.Path(f"/proc/{host.manager.pid}/statm").read_text().split()[1]) * resource.getpagesize()
            before = resident()
            kept = self.CLIENTS * self.BYTES
            clients = [connect_soon(host.run / "control.sock", Control) for _ in range(self.CLIENTS)]
            for client in clients:
                client.send_bytes(b" " * self.BYTES)  # a call that does not end
            until(lambda: resident() > before + kept / 2, "vgpud to have what they sent")
            for client in clients[:-2]:
                client.close()
            until(lambda: resident() < before + kept / 4, "vgpud to give it back")
            for client in clients[-2:]:
                client.close()


if __name__ == "__main__":
    unittest.main()
