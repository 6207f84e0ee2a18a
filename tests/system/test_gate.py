#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gate socket: who may join, and what a guest can do there, which is harm to itself."""
import os
import random
import socket
import struct
import subprocess
import sys
import unittest

import fake_gate
from harness import MIB, Host, expect_error
from wait import PATIENCE, until

HEADER = fake_gate.HEADER


class Stranger:
    """A raw connection to the gate socket."""

    def __init__(self, host):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(str(host.run / "gate.sock"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def join(self, vgpu, version=fake_gate.VERSION, state=0, size=None):
        packet = HEADER.pack(fake_gate.MAGIC, version, fake_gate.JOIN) + \
            struct.pack("=64sIIQII", vgpu.encode(), state, 13000, 0, 0, 0)
        self.socket.send(packet[:size])
        return self.receive()

    def send(self, message, body=b"", fds=()):
        packet = HEADER.pack(fake_gate.MAGIC, fake_gate.VERSION, message) + body
        socket.send_fds(self.socket, [packet], list(fds))

    def receive(self):
        """(message, text of a refusal); (0, "") when vgpud hangs up."""
        try:
            data, fds, _, _ = socket.recv_fds(self.socket, 8192, 64)
        except ConnectionResetError:
            return 0, ""
        for fd in fds:
            os.close(fd)
        if not data:
            return 0, ""
        text = data[12:].split(b"\0")[0].decode() if HEADER.unpack_from(data)[2] == \
            fake_gate.REFUSED else ""
        return HEADER.unpack_from(data)[2], text

    def is_cut_off(self):
        while True:
            message, _ = self.receive()
            if message == 0:
                return True


class Gate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = cls.enterClassContext(Host(fake=True))
        cls.host.start()

    def setUp(self):
        vgpu = self.host.call("CreateVgpu", name="train", frame_buffer=64 * MIB)["vgpu"]
        self.uuid = vgpu["uuid"]
        self.honest = self.host.fake_guest("train", MIB)

    def tearDown(self):
        # The honest guest was harmed by nothing, and leaves nothing behind.
        self.host.call("SuspendVgpu", name="train")
        self.host.call("ResumeVgpu", name="train")
        self.assertTrue(self.honest.is_intact())
        self.honest.kill()
        self.host.wait_state("train", "idle")
        self.assertEqual(self.host.vgpu("train")["frame_buffer_used"], 0)
        self.host.call("RemoveVgpu", name="train")

    def child(self, function):
        """Run @function in a process of its own: a guest is a process. True when it returns that."""
        pid = os.fork()
        if pid == 0:
            code = 2
            try:
                code = 0 if function() else 1
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    def test_another_version_is_refused_with_words(self):
        with Stranger(self.host) as stranger:
            message, text = stranger.join("train", version=99)
            self.assertEqual(message, fake_gate.REFUSED)
            self.assertIn("version 99", text)
            self.assertTrue(stranger.is_cut_off())

    def test_an_unknown_vgpu_is_refused(self):
        with Stranger(self.host) as stranger:
            message, text = stranger.join("nobody")
            self.assertEqual(message, fake_gate.REFUSED)
            self.assertIn("nobody", text)

    def test_a_process_whose_memory_is_gone_is_refused(self):
        for state in (fake_gate.STATE_CLOSED, fake_gate.STATE_RELEASED):
            with Stranger(self.host) as stranger:
                message, text = stranger.join("train", state=state)
                self.assertEqual(message, fake_gate.REFUSED)
                self.assertIn("memory", text)

    @unittest.skipIf(os.getuid() != 0, "needs root to be somebody else")
    def test_only_the_owner_may_join(self):
        os.chmod(self.host.root, 0o755)

        def intrude():
            os.setgid(65534)
            os.setuid(65534)
            with Stranger(self.host) as stranger:
                message, text = stranger.join("train")
                return message == fake_gate.REFUSED and "belongs to" in text

        self.assertTrue(self.child(intrude))

    def test_nonsense_instead_of_a_join_is_cut_off(self):
        good = HEADER.pack(fake_gate.MAGIC, fake_gate.VERSION, fake_gate.JOIN)
        for packet in (b"x", b"\0" * 8192, good, good + b"x" * 8000,
                       good + struct.pack("=64sIIQII", b"a" * 64, 0, 0, 0, 0, 0),
                       good + struct.pack("=64sIIQII", b"train", 99, 0, 0, 0, 0),
                       HEADER.pack(fake_gate.MAGIC, fake_gate.VERSION, fake_gate.CLOSED) + b"\0" * 100,
                       HEADER.pack(1, fake_gate.VERSION, fake_gate.JOIN)):
            with Stranger(self.host) as stranger:
                stranger.socket.send(packet)
                self.assertTrue(stranger.is_cut_off(), packet[:20])
        with Stranger(self.host) as stranger:
            try:
                stranger.send(fake_gate.JOIN, b"\0" * 80, [0, 1, 2])
            except PermissionError:
                pass  # by the kernel, since Linux 6.16
            else:
                self.assertTrue(stranger.is_cut_off())

    def joined(self):
        """A stranger that is in. While descriptors that it sent are being closed, it is told to try again."""
        def attempt():
            stranger = Stranger(self.host)
            if stranger.join("train")[0] == fake_gate.WELCOME:
                return stranger
            stranger.socket.close()
            return None

        return until(attempt, "a welcome")

    def test_nonsense_after_a_join_is_cut_off(self):
        def misbehave():
            bodies = (b"", b"\0" * 64, b"\xff" * 1100, struct.pack("=II", 64, 0) + b"\0" * 1024)
            for message in [*range(0, 11), 12, 64, 70, 65535]:
                for body in bodies:
                    for fds in ((), (0,) * 30):
                        with self.joined() as stranger:
                            stranger.send(message, body, fds)
                            if not stranger.is_cut_off():
                                return False
            return True

        self.assertTrue(self.child(misbehave))

    def test_random_packets_harm_nobody_else(self):
        def misbehave():
            source = random.Random(4711)
            for _ in range(300):
                with Stranger(self.host) as stranger:
                    if source.random() < 0.8:
                        stranger.join("train")
                    try:
                        for _ in range(source.randrange(1, 4)):
                            head = HEADER.pack(fake_gate.MAGIC, fake_gate.VERSION, source.randrange(0, 10)) \
                                if source.random() < 0.9 else b""
                            stranger.socket.send(head + source.randbytes(source.randrange(1, 1200)))
                    except OSError:
                        pass
            return True

        self.assertTrue(self.child(misbehave))

    def test_a_flood_harms_nobody_else(self):
        def flood():
            for _ in range(50):
                with Stranger(self.host) as stranger:
                    stranger.join("train")
                    try:
                        while True:
                            stranger.send(fake_gate.EXPORTED, b"\0" * 80)
                    except OSError:
                        pass
            return True

        self.assertTrue(self.child(flood))
        self.assertTrue(self.host.call("GetInfo"))

    def test_many_silent_connections_hold_up_no_client(self):
        strangers = [Stranger(self.host) for _ in range(100)]
        self.assertTrue(self.host.call("GetInfo"))
        for stranger in strangers:
            stranger.socket.close()

    def test_lies_about_its_memory_end_its_part_only(self):
        """Answers to EXPORT that cannot be."""
        batch = struct.Struct("=II")
        entry = struct.Struct("=QQ")
        lies = {
            "a count without descriptors": (batch.pack(2, 0) + b"\0" * 1024, 1),
            "no entries": (batch.pack(0, 0) + b"\0" * 1024, 0),
            "too many entries": (batch.pack(65, 0) + b"\0" * 1024, 64),
            "an odd size": (batch.pack(1, 0) + entry.pack(4096, 4095) + b"\0" * 1008, 1),
            "an empty size": (batch.pack(1, 0) + entry.pack(4096, 0) + b"\0" * 1008, 1),
            "more than a device": (batch.pack(1, 0) + entry.pack(4096, 1 << 40) + b"\0" * 1008, 1),
            "a sum above the device": (batch.pack(64, 0) + entry.pack(4096, 512 * MIB) * 64, 64),
            "a short message": (batch.pack(1, 0), 1),
        }
        for name, (body, n_fds) in lies.items():
            with self.subTest(name):
                self.lie(body, n_fds)

    def lie(self, body, n_fds):
        read, write = os.pipe()
        held, hold = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(hold)
                with Stranger(self.host) as stranger:
                    stranger.join("train")
                    os.write(write, b"joined")
                    while True:
                        message, _ = stranger.receive()
                        if message == fake_gate.CLOSE:
                            stranger.send(fake_gate.CLOSED, b"\0" * 88)
                        elif message == fake_gate.EXPORT:
                            stranger.send(fake_gate.ALLOCATIONS, body, [0] * n_fds)
                        elif message == 0:
                            break
                os.read(held, 1)  # a liar that dies at once would be no failure of the others
            finally:
                os._exit(0)
        os.read(read, 10)
        expect_error("GuestLost", self.host.call, "SuspendVgpu", name="train")
        for fd in (read, write, held, hold):
            os.close(fd)
        os.waitpid(pid, 0)
        until(lambda: len(self.host.vgpu("train")["processes"]) == 1, "the liar to be forgotten")
        self.assertEqual(self.host.vgpu("train")["state"], "running")
        self.assertTrue(self.honest.is_intact())

    def test_garbage_in_the_instance_page_is_its_own_lie(self):
        """Quota is restored, numbers are cut off, and vgpud lives."""
        def scribble():
            with Stranger(self.host) as stranger:
                packet = HEADER.pack(fake_gate.MAGIC, fake_gate.VERSION, fake_gate.JOIN) + \
                    struct.pack("=64sIIQII", b"train", 0, 13000, 0, 0, 0)
                stranger.socket.send(packet)
                _, fds, _, _ = socket.recv_fds(stranger.socket, 8192, 64)
                size = os.fstat(fds[0]).st_size
                os.pwrite(fds[0], b"\xff" * size, 0)
                for length in (0, size * 2):
                    try:
                        os.ftruncate(fds[0], length)
                        return False
                    except PermissionError:
                        pass
                until(lambda: struct.unpack("=Q", os.pread(fds[0], 8, 16))[0] == 64 * MIB,
                      "the quota to be put right")
                vgpu = self.host.vgpu("train")
                return vgpu["frame_buffer"] == 64 * MIB and \
                    vgpu["frame_buffer_used"] <= 4 * 64 * MIB

        self.assertTrue(self.child(scribble))
        # What it wrote over the honest guest's slot, that one writes anew with its next charge.
        self.honest.tell("charge")
        until(lambda: self.host.vgpu("train")["frame_buffer_used"] == MIB,
              "the numbers to be right again")

    def test_who_joins_while_suspended_waits_for_the_resume(self):
        self.host.call("SuspendVgpu", name="train")
        process = subprocess.Popen([sys.executable, fake_gate.__file__, "train", "4096"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env=dict(os.environ, OPENVGPU_RUN=str(self.host.run)))
        until(lambda: len(self.host.vgpu("train")["processes"]) == 2, "two processes")
        self.host.call("ResumeVgpu", name="train")
        self.assertEqual(process.stdout.readline().split()[0], b"joined")
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
        until(lambda: len(self.host.vgpu("train")["processes"]) == 1, "one process")


class Slots(unittest.TestCase):
    def test_more_processes_than_slots_are_refused(self):
        with Host(fake=True) as host:
            host.start()
            host.call("CreateVgpu", name="train", frame_buffer=64 * MIB)
            children = []
            for i in range(129):
                read, write = os.pipe()
                pid = os.fork()
                if pid == 0:
                    stranger = Stranger(host)
                    message, text = stranger.join("train")
                    os.write(write, struct.pack("=I", message) + text.encode())
                    stranger.receive()
                    os._exit(0)
                os.close(write)
                answer = os.read(read, 1000)
                os.close(read)
                children.append(pid)
                wanted = fake_gate.WELCOME if i < 128 else fake_gate.REFUSED
                self.assertEqual(struct.unpack_from("=I", answer)[0], wanted, answer)
            for pid in children:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
            host.wait_state("train", "idle")


class OlderGates(unittest.TestCase):
    """A new vgpud with another protocol finds processes of a former one."""

    def setUp(self):
        self.host = self.enterContext(Host(fake=True))
        self.host.start()
        self.host.call("CreateVgpu", name="train", frame_buffer=64 * MIB)
        self.guest = self.host.fake_guest("train", MIB)

    def upgrade(self):
        self.guest.plan(f"speak {fake_gate.TOO_OLD}")
        self.host.kill_manager()
        self.host.start()
        self.guest.wait_for("refused")

    def go_back(self):
        self.guest.plan(f"speak {fake_gate.VERSION}")
        self.host.kill_manager()
        self.host.start()

    def check_refused(self, method, hint):
        error = expect_error("NotMovable", self.host.call, method, name="train")
        self.assertIn(f"process {self.guest.pid} (python3) has the gate of another release", error.parameters["message"])
        self.assertIn(hint, error.parameters["hint"])

    def test_what_was_suspended_is_kept_until_the_former_vgpud_is_back(self):
        self.host.call("SuspendVgpu", name="train")
        self.upgrade()
        self.check_refused("ResumeVgpu", "only a vgpud that speaks its version can resume it")
        self.host.wait_state("train", "suspended")
        self.go_back()
        self.host.call("ResumeVgpu", name="train")
        self.guest.wait_for("opened")
        self.assertTrue(self.guest.is_intact())

    def test_what_runs_runs_on_and_stays_where_it_is(self):
        self.upgrade()
        self.check_refused("SuspendVgpu", "it runs on")
        self.assertTrue(self.guest.is_intact())


if __name__ == "__main__":
    unittest.main(verbosity=2)
