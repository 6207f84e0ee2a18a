#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tickets for memory of other processes: forged, used again, of another owner, and asked for without end."""
import errno
import fcntl
import os
import random
import socket
import struct
import traceback
import unittest
import uuid

import case
from wait import PATIENCE, until
from wire import Gate, Refused

MARK = 0x544b5456
TICKET = struct.Struct("<16sQII16sQQ")  # vGPU, start time, slot, mark, name, offset, size


def start_time():
    with open("/proc/self/stat", encoding="utf-8") as file:
        return int(file.read().rpartition(")")[2].split()[19])


def make_ticket(vgpu, slot=0, name=b"n" * 16, time=None, mark=MARK):
    return TICKET.pack(uuid.UUID(vgpu).bytes, start_time() if time is None else time, slot, mark, name, 0,
                       2 << 20)


class Asker(Gate):
    """A process of a vGPU that sends what it wants."""

    def begin(self, vgpu, **how):
        self.number = 0
        self.socket.settimeout(PATIENCE)
        self.join(vgpu, **how)
        message, _, _ = self.receive_message()
        assert message == self.WELCOME, message

    def expect(self, wanted):
        """The next message but for those that any gate gets; its body and its descriptors."""
        message = self.WATCH
        while message == self.WATCH:
            message, body, fds = self.receive_message()
        assert message == wanted, (message, wanted)
        return body, fds

    def ask(self, ticket):
        """0 or an errno; with a descriptor in the first case only."""
        self.number += 1
        self.send_import(self.number, ticket)
        body, fds = self.expect(self.IMPORTED)
        number, error, _ = struct.unpack("<Qii", body)
        assert number == self.number, (number, self.number)
        assert len(fds) == (error == 0), (fds, error)
        for fd in fds:
            os.close(fd)
        return error


class Tickets(case.Case):
    HOST = {"devices": "1xH200:512M", "pool": "64M", "slab": "4M"}

    def setUp(self):
        self.host.create("job")
        self.uuid = self.host.get("job")["uuid"]

    def maker(self, vgpu="job", **how):
        """A process that has made memory, and its ticket."""
        path = f"{self.host.directory}/{random.getrandbits(32)}"
        guest = self.host.run(vgpu, "guest-share", "make", "descriptor", path, "2M", **how).wait_ready()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect(path)
            _, fds, _, _ = socket.recv_fds(connection, 64, 1)
            ticket = os.pread(fds[0], 64, 0)
            os.close(fds[0])
        return guest, ticket

    def as_process(self, act, vgpu=None, **how):
        """Does @act(asker) in a process of its own: a guest is a process."""
        pid = os.fork()
        if pid == 0:
            try:
                asker = self.host.connect_gate()
                asker.__class__ = Asker
                asker.begin(vgpu or self.uuid, **how)
                act(asker)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        return pid

    def check(self, act, **how):
        self.wait(self.as_process(act, **how))

    def wait(self, pid):
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)

    def test_what_was_not_given_out_is_worth_nothing(self):
        maker, good = self.maker()
        fields = TICKET.unpack(good)

        def other(**changes):
            names = ("vgpu", "time", "slot", "mark", "name", "offset", "size")
            return TICKET.pack(*(changes.get(name, value) for name, value in zip(names, fields)))

        forged = [(other(name=os.urandom(16)), errno.ENOENT), (other(vgpu=os.urandom(16)), errno.ESRCH),
                  (other(slot=fields[2] + 1), errno.ESRCH), (other(slot=0xffffffff), errno.ESRCH),
                  (other(time=fields[1] + 1), errno.ESRCH), (other(time=0), errno.ESRCH)]

        def act(asker):
            for ticket, error in forged:
                assert asker.ask(ticket) == error, (ticket, error)
            for _ in range(200):
                assert asker.ask(os.urandom(64)) == errno.ESRCH
            assert asker.ask(good) == 0

        self.check(act)
        self.assertEqual(maker.end_input(), 0)

    @unittest.skipIf(os.getuid() != 0, "needs root to be somebody else")
    def test_a_ticket_of_another_owner_is_refused(self):
        os.chmod(self.host.directory, 0o777)
        self.host.vgpu("create", "theirs", "--fb", "64M", user="nobody")
        maker, ticket = self.maker("theirs", user="nobody")

        def act(asker):
            assert asker.ask(ticket) == errno.EPERM
            asker.send_uses(1, ticket[:32])  # nor is it believed to have some
            assert asker.ask(ticket) == errno.EPERM

        self.check(act)
        self.assertIn("another owner's", self.host.log())
        self.host.vgpu("suspend", "theirs")
        self.host.vgpu("resume", "theirs")
        maker.hold("fill=1")
        maker.hold("check=1")
        self.assertEqual(maker.end_input(), 0)

    @unittest.skipIf(os.getuid() != 0, "needs root to be somebody else")
    def test_a_pool_of_another_owner_is_worth_nothing(self):
        os.chmod(self.host.directory, 0o777)
        self.host.vgpu("create", "theirs", "--fb", "64M", user="nobody")
        path = f"{self.host.directory}/pool"
        maker = self.host.run("theirs", "guest-share", "make", "pool", path, "2M", user="nobody").wait_ready()
        user = self.host.run("job", "guest-share", "use", "pool", path, "2M")
        self.assertEqual(user.join(), 1, user.context())
        self.assertRegex("".join(user.errors), "cuMemPoolImportPointer.*: CUDA_ERROR_NOT_PERMITTED ")
        self.assertIn("another owner's", self.host.log())
        self.assertEqual(maker.end_input(), 0)

    def test_a_ticket_ends_with_its_memory(self):
        maker, ticket = self.maker()
        self.check(lambda asker: self.assertEqual([asker.ask(ticket) for _ in range(3)], [0, 0, 0]))
        maker.hold("drop")
        self.check(lambda asker: self.assertEqual(asker.ask(ticket), errno.ENOENT))
        maker.kill()
        self.host.wait_state("job", "idle")
        successor, other = self.maker()
        self.assertEqual(TICKET.unpack(ticket)[2], TICKET.unpack(other)[2], "the slot is used again")
        self.check(lambda asker: self.assertEqual(asker.ask(ticket), errno.ESRCH))
        self.assertEqual(successor.end_input(), 0)

    def test_a_silent_gate_does_not_delay_the_answer_to_a_group(self):
        """Who asked hears at the deadline who is missing; the gate may answer later, and is not cut off."""
        self.host.create("other", "64M")
        maker, ticket = self.maker()
        is_partner, says = os.pipe(), os.pipe()

        def act(asker):
            assert asker.ask(ticket) == 0
            os.write(is_partner[1], b"x")
            asker.expect(asker.CLOSE)
            os.read(says[0], 1)
            asker.send_closed(error=errno.ETIMEDOUT)
            asker.expect(asker.CLOSE)  # of the next one
            asker.send_closed(error=errno.ETIMEDOUT)
            os.read(says[0], 1)

        pid = self.as_process(act, vgpu=self.host.get("other")["uuid"])
        os.read(is_partner[0], 1)
        for _ in range(2):
            with self.assertRaises(Refused) as refused:
                self.host.call("SuspendVgpu", name="job", group=True, timeout=0.5)
            self.assertEqual(refused.exception.name, "TimedOut", refused.exception.parameters)
            message = refused.exception.parameters["message"]
            self.assertRegex(message, f"process {pid} .* of vGPU other did not come to rest within 500 ms")
            self.assertIn(f"at rest meanwhile: {maker.pid} in job", message)
            maker.hold("fill=1")  # it runs
            os.write(says[1], b"x")
        self.wait(pid)
        self.assertEqual(maker.end_input(), 0)
        for fd in is_partner + says:
            os.close(fd)

    def test_the_newest_question_is_answered_also_after_a_full_socket(self):
        maker, ticket = self.maker()
        forged = make_ticket(self.uuid, slot=77)

        def act(asker):
            n = 1500  # answers, more than a socket takes
            with self.host.connect() as control:
                for number in range(1, n + 1):
                    asker.send_import(number, forged)
                    control.call("GetInfo")  # is behind it in the same queue
            number = 0
            while number < n:
                body, fds = asker.expect(asker.IMPORTED)
                number, error, _ = struct.unpack("<Qii", body)
                for fd in fds:
                    os.close(fd)
            assert error == errno.ESRCH, error
            asker.number = n
            assert asker.ask(ticket) == 0

        self.check(act)
        self.assertEqual(maker.end_input(), 0)

    def test_who_asks_without_end_holds_nobody_up(self):
        maker, ticket = self.maker()
        asking, told = os.pipe()

        def act(asker):
            os.write(told, b"x")
            asker.socket.settimeout(None)
            while True:
                asker.ask(ticket)

        pid = self.as_process(act)
        os.read(asking, 1)
        self.host.create("other", "64M")
        train = self.host.train("other", "--size", "4M")
        for _ in range(5):
            self.host.vgpu("suspend", "other")
            self.host.vgpu("resume", "other")
        train.finish()
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        self.assertEqual(maker.end_input(), 0)

    def test_tickets_stay_with_a_process_that_joins_anew(self):
        """It may have got another slot, but it has given out tickets that bear the first."""
        path = f"{self.host.directory}/anew"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(listener.close)
        listener.bind(path)
        listener.listen()

        def act(asker):
            fd = os.memfd_create("ticket", os.MFD_ALLOW_SEALING)
            os.write(fd, make_ticket(self.uuid, slot=50, name=b"0123456789abcdef"))
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS,
                        fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
            connection, _ = listener.accept()
            socket.send_fds(connection, [bytes(64)], [fd])
            body, _ = asker.expect(asker.OFFER)
            number, name = struct.unpack("<Q16s", body)
            assert name == b"0123456789abcdef", name
            asker.send(asker.header(asker.OFFERED) + struct.pack("<Qii", number, errno.ENOENT, 0))

        pid = self.as_process(act, ticket_slot=51)
        user = self.host.run("job", "guest-share", "use", "descriptor", path)
        self.wait(pid)
        self.assertNotEqual(user.join(), 0)


if __name__ == "__main__":
    case.main()
