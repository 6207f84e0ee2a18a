#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The control socket against clients that are wrong, slow, many or gone."""
import json
import os
import signal
import socket

import case
from wait import PATIENCE
from wire import Control, Refused

PREFIX = Control.PREFIX

# What is no call at all: the manager hangs up, for it cannot know what the client waits for.
NONSENSE = [b"\0", b"garbage\0", b"{}\0", b"[]\0", b"null\0", b"\"method\"\0", b"{\"method\":1}\0",
            b"{\"method\":\"\"}\0", b"{\"method\":\"org.openvgpu\"}\0", b"{\"method\":\"other.GetInfo\"}\0",
            b"\xff\xfe\0", b"{\"method\":\"org.openvgpu.GetInfo\",\"method\":\"x\"}\0",
            b"{\"method\":\"org.openvgpu.GetInfo\",\"parameters\":[]}\0",
            b"{\"method\":\"org.openvgpu.ListVgpus\",\"parameters\":{\"name\":\"x\\u0000y\"}}\0",
            b"{\"method\":\"org.openvgpu.GetInfo\"\0", b"[" * 100000 + b"\0", b"{\0", b"42\0", b"\"x\"\0",
            b"{\"method\":\"GetInfo\"}\0", b"{\"method\":\"org.openvgpu.GetInfo\",}\0",
            b"{\"method\":\"org.openvgpu.GetInfo\"}garbage\0"]

# (method, parameters, error, what the message names)
WRONG = [
    ("Frobnicate", {}, "MethodNotFound", "Frobnicate"),
    ("", {}, "MethodNotFound", ""),
    ("GetInfo", {"colour": "red"}, "InvalidParameter", "colour"),
    ("ListVgpus", {"name": 1}, "InvalidParameter", "name"),
    ("ListVgpus", {"name": "nobody"}, "NoSuchVgpu", "nobody"),
    ("CreateVgpu", {}, "InvalidParameter", "frame_buffer"),
    ("CreateVgpu", {"frame_buffer": "1G"}, "InvalidParameter", "frame_buffer"),
    ("CreateVgpu", {"frame_buffer": 0}, "InvalidParameter", "frame_buffer"),
    ("CreateVgpu", {"frame_buffer": -1}, "InvalidParameter", "frame_buffer"),
    ("CreateVgpu", {"frame_buffer": 1.5}, "InvalidParameter", "frame_buffer"),
    ("CreateVgpu", {"frame_buffer": 1 << 40}, "NoRoom", ""),
    ("CreateVgpu", {"frame_buffer": (1 << 63) - 1}, "NoRoom", ""),
    ("CreateVgpu", {"frame_buffer": 1 << 20, "name": "x" * 1000}, "InvalidParameter", "name"),
    ("CreateVgpu", {"frame_buffer": 1 << 20, "name": "a\nb"}, "InvalidParameter", "name"),
    ("CreateVgpu", {"frame_buffer": 1 << 20, "device": 0}, "InvalidParameter", "device"),
    ("CreateVgpu", {"frame_buffer": 1 << 20, "device": ""}, "NoSuchDevice", ""),
    ("CreateVgpu", {"frame_buffer": 1 << 20, "transient": "yes"}, "InvalidParameter", "transient"),
    ("RemoveVgpu", {}, "InvalidParameter", "name"),
    ("PrepareRun", {"name": "nobody"}, "NoSuchVgpu", "nobody"),
    ("SuspendVgpu", {"name": "idle", "timeout": 0}, "InvalidParameter", "timeout"),
    ("SuspendVgpu", {"name": "idle", "timeout": -3}, "InvalidParameter", "timeout"),
    ("SuspendVgpu", {"name": "idle", "timeout": 1e300}, "InvalidParameter", "timeout"),
    ("SuspendVgpu", {"name": "idle", "timeout": 86401}, "InvalidParameter", "above 0 and at most 86400"),
    ("SuspendVgpu", {"name": "idle", "keep_context": 1}, "InvalidParameter", "keep_context"),
    ("ResumeVgpu", {"name": "idle"}, "WrongState", "idle"),
    ("MigrateVgpu", {"name": "idle"}, "InvalidParameter", "device"),
]


class ControlSocket(case.Case):
    def setUp(self):
        self.host.create("idle", "64M")

    def test_nonsense_is_hung_up_on_and_harms_nobody(self):
        with self.host.connect() as bystander:
            for data in NONSENSE:
                with self.subTest(data=data[:60]), self.host.connect() as control:
                    control.send_bytes(data)
                    self.assertIsNone(control.receive())
                    bystander.call("GetInfo")

    def test_wrong_calls_are_refused_by_name(self):
        with self.host.connect() as control:
            for method, parameters, error, word in WRONG:
                with self.subTest(method=method, parameters=str(parameters)[:80]):
                    with self.assertRaises(Refused) as refused:
                        control.call(method, **parameters)
                    self.assertEqual(refused.exception.name, error)
                    self.assertIn(word, refused.exception.parameters["message"])
                    self.assertNotIn("\n", refused.exception.parameters["message"])
                    self.assertIn("hint", refused.exception.parameters)
        self.assertEqual(self.host.names(), ["idle"])

    def test_a_message_without_an_end_is_cut_off_at_one_mebibyte(self):
        with self.host.connect() as control:
            for _ in range(64):
                control.send_bytes(b"x" * (1 << 16))
            self.assertIsNone(control.receive())
        self.host.info()

    def test_answers_come_in_the_order_of_the_calls(self):
        with self.host.connect() as control:
            for i in range(200):
                control.send("ListVgpus", **{"name": "idle"} if i % 2 else {})
                control.send("GetInfo" if i % 2 else "Frobnicate")
            for i in range(200):
                self.assertEqual(len(control.answer()["vgpus"]), 1)
                if i % 2:
                    self.assertIn("pool", control.answer())
                else:
                    self.assertRaises(Refused, control.answer)

    def test_a_message_may_come_byte_by_byte(self):
        with self.host.connect() as control:
            call = json.dumps({"method": PREFIX + "GetInfo"}).encode() + b"\0"
            for i in range(len(call)):
                control.send_bytes(call[i:i + 1])
            self.assertIn("version", control.answer())
            control.send_bytes(call)
            control.socket.shutdown(socket.SHUT_WR)
            self.assertIn("version", control.answer(), "also after the last word")
            self.assertIsNone(control.receive())

    def test_a_client_that_never_reads_blocks_only_itself(self):
        with self.host.connect() as deaf:
            deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.socket.settimeout(0)
            call = json.dumps({"method": PREFIX + "ListDevices"}).encode() + b"\0"
            sent = 0
            try:
                while sent < 64 << 20:
                    sent += deaf.socket.send(call * 64)
            except (BlockingIOError, ConnectionError):
                pass
            self.assertLess(sent, 16 << 20, "vgpud stops to read from it")
            for _ in range(20):
                self.host.info()

    def test_who_asks_and_does_not_read_is_not_listened_to(self):
        call = json.dumps({"method": PREFIX + "ListDevices"}).encode() + b"\0"
        with self.host.connect() as deaf:
            sent, data = 0, call * 256
            deaf.socket.settimeout(1)
            try:
                while sent < 16 << 20:  # far more than all buffers on the way
                    sent += deaf.socket.send(data[sent % len(call):])
                self.fail("the manager keeps answers that nobody reads")
            except TimeoutError:
                pass
            deaf.socket.settimeout(PATIENCE)
            for _ in range(sent // len(call)):
                self.assertEqual(len(deaf.answer()["devices"]), 2)

    def test_a_client_may_leave_in_the_middle_of_everything(self):
        guest = self.host.train("idle", "--size", "8M")
        for data in (b"", b"{\"meth", json.dumps({"method": PREFIX + "ListDevices"}).encode() + b"\0"):
            with self.host.connect() as control:
                control.send_bytes(data)
        with self.host.connect() as control:
            control.send("SuspendVgpu", more=True, name="idle")
            self.assertIn("stage", control.receive()["parameters"])
        self.host.wait_state("idle", "suspended")
        self.host.vgpu("resume", "idle")
        guest.wait_steps()
        guest.finish()

    def test_what_a_client_asked_for_that_is_gone_is_not_worked_off(self):
        with self.host.connect() as control:
            control.call("GetInfo")
            os.kill(self.host.manager.pid, signal.SIGSTOP)
            try:
                for i in range(50):
                    control.send("CreateVgpu", name=f"gone-{i}", frame_buffer=2 << 20)
                control.close()
            finally:
                os.kill(self.host.manager.pid, signal.SIGCONT)
        for _ in range(100):  # each behind what its calls do, if they are done: all are of one user
            self.host.info()
        self.assertEqual(sorted(self.host.names()), ["gone-0", "idle"], "its first call was heard")
        self.host.vgpu("rm", "gone-0")

    def test_many_clients_at_once_are_all_answered(self):
        clients = [self.host.connect() for _ in range(200)]
        for client in clients:
            client.send("GetInfo")
        for client in clients:
            self.assertIn("version", client.answer())
            client.close()


if __name__ == "__main__":
    case.main()
