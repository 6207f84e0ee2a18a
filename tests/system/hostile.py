#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A process that joins a vGPU and then behaves badly: hostile.py RUN_DIRECTORY VGPU BEHAVIOUR

Prints "joined" and "ready", or what became of it: "refused ERRNO TEXT", "hung up". It then waits
for the end of standard input, so that it is its connection and not its death that is looked at.
"""
import errno
import mmap
import os
import random
import resource
import socket
import struct
import sys
import time

from wire import Gate

PAGE_SIZE = 64 + (128 + 64 + 16 * 64) * 128  # slots, and the channels of each
MIB = 1 << 20

random.seed(0)


def say(text):
    print(text, flush=True)


def memory(size=2 * MIB):
    fd = os.memfd_create("hostile")
    os.truncate(fd, size)
    return fd


def lingerer():
    """A socket whose close waits for a peer that reads nothing; with little room, for there are hundreds to be filled."""
    ours = socket.socket()
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)  # the least that there is
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        ours.connect(server.getsockname())
        peers.append(server.accept()[0])
    ours.setblocking(False)
    try:
        while True:
            ours.send(bytes(1 << 16))
    except BlockingIOError:
        pass
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    return ours.detach()


peers = []


class Hostile:
    def __init__(self, run_directory, vgpu):
        self.path = os.path.join(run_directory, "gate.sock")
        self.vgpu = vgpu
        self.gate = Gate(self.path)
        self.gate.socket.settimeout(None)

    # What becomes of us.

    def join(self, **how):
        self.gate.join(self.vgpu, **how)
        message, body, fds = self.gate.receive_message()
        if message == Gate.WELCOME:
            say("joined")
            self.page = mmap.mmap(fds[0], PAGE_SIZE)
            self.page_fd = fds[0]
            self.slot = struct.unpack_from("<I", body)[0]
            return True
        self.tell(message, body)
        return False

    def tell(self, message, body):
        if message is None:
            say("hung up")
        elif message == Gate.REFUSED:
            say("refused %d %s" % Gate.refusal(body))
        else:
            say(f"answered {message}")

    def await_hang_up(self):
        while True:
            message, body, _ = self.gate.receive_message()
            if message is None:
                break
        say("hung up")

    def send_until_hung_up(self, data, fds=()):
        while True:
            try:
                self.gate.send(data, fds)
            except (BrokenPipeError, ConnectionResetError):
                say("hung up")
                return
            except OSError as error:
                # The kernel lets a user who is not root send so many descriptors that nobody has received yet.
                if error.errno != errno.ETOOMANYREFS:
                    raise
                time.sleep(0.01)

    def expect(self, wanted):
        message, body, _ = self.gate.receive_message()
        if message != wanted:
            say(f"expected {wanted}, got {message}")
            sys.exit(1)
        return body

    # Before and instead of joining.

    def other_version(self):
        self.join(version=Gate.NEWEST + 1)

    def older_version(self):
        self.join(version=0)

    def claims_imports_and_tells_of_none(self):
        self.join(imports=1)

    def claims_suspended_memory(self):
        self.join(state=Gate.RELEASED_STATE)

    def impossible_state(self):
        self.join(state=77)

    def garbage_for_join(self):
        self.gate.send(random.randbytes(88))
        self.await_hang_up()

    def empty_packet(self):
        self.gate.send(b"")
        self.await_hang_up()

    def short_join(self):
        self.gate.send(self.gate.header(Gate.JOIN))
        self.await_hang_up()

    def name_without_end(self):
        self.gate.send(self.gate.header(Gate.JOIN) + struct.pack("<64sIIQII", b"x" * 64, 0, 0, 0, 0, 0))
        self.await_hang_up()

    def join_with_descriptors(self):
        fds = [memory() for _ in range(64)]
        try:
            self.gate.send(self.gate.header(Gate.JOIN) +
                           struct.pack("<64sIIQII", self.vgpu.encode(), 0, 0, 0, 0, 0), fds)
        except PermissionError:  # by the kernel
            self.gate.socket.shutdown(socket.SHUT_WR)
        self.await_hang_up()

    def seen_before_join(self):
        self.gate.send_seen([1] * Gate.SEEN_MAX)
        self.await_hang_up()

    def great_packet(self):
        try:
            self.gate.send(b"x" * 100000)
        except OSError:
            pass
        self.await_hang_up()

    def claims_too_many_imports(self):
        self.join(imports=Gate.IMPORTS_MAX + 1)

    def silent_strangers(self):
        """Connections that never say who they are; more than the manager lets in."""
        self.strangers = []
        for _ in range(300):
            stranger = Gate(self.path)
            self.strangers.append(stranger)

    def stranger_sends(self, name, kind, fds):
        """Descriptors: the last to have them is whoever is to receive them."""
        stranger = socket.socket(socket.AF_UNIX, kind)
        stranger.connect(os.path.join(os.path.dirname(self.path), name))
        try:
            socket.send_fds(stranger, [b"x"], fds)
        except PermissionError:
            say("not allowed")
            stranger.shutdown(socket.SHUT_WR)
            return stranger
        for fd in fds:
            os.close(fd)
        return stranger

    def strangers_that_linger(self):
        sockets = ("gate.sock", socket.SOCK_SEQPACKET), ("control.sock", socket.SOCK_STREAM)
        for name, kind in sockets:
            self.stranger_sends(name, kind, [lingerer()]).recv(1)
            self.stranger_sends(name, kind, [lingerer() for _ in range(253)]).recv(1)
            self.stranger_sends(name, kind, [lingerer()]).close()
        say("all are hung up on")

    # As a guest.

    def joined(self):
        self.join()

    def crowd(self):
        """128 processes that end when this one does."""
        end, keep = os.pipe()
        told, tell = os.pipe()
        for _ in range(128):
            if os.fork() == 0:
                os.close(keep)
                self.gate = Gate(self.path)
                self.gate.socket.settimeout(None)
                self.gate.join(self.vgpu)
                message, _, _ = self.gate.receive_message()
                os.write(tell, b"+" if message == Gate.WELCOME else b"-")
                os.read(end, 1)
                os._exit(0)
        answers = b""
        while len(answers) < 128:
            answers += os.read(told, 128)
        say(f"welcome {answers.count(b'+')}")

    def waiting_crowd(self):
        """More processes than fit, all of which wait for a suspended vGPU."""
        end, keep = os.pipe()
        told, tell = os.pipe()
        for _ in range(140):
            if os.fork() == 0:
                os.close(keep)
                self.gate = Gate(self.path)
                self.gate.socket.settimeout(None)
                self.gate.join(self.vgpu)
                os.write(tell, b"j")
                message, _, _ = self.gate.receive_message()
                os.write(tell, b"+" if message == Gate.WELCOME else b"-")
                os.read(end, 1)
                os._exit(0)
        answers = b""
        while answers.count(b"j") < 140:
            answers += os.read(told, 140)
        say("all wait")
        while len(answers) < 280:
            answers += os.read(told, 140)
        say(f"welcome {answers.count(b'+')} refused {answers.count(b'-')}")

    def joins_twice(self):
        self.join()
        self.gate.join(self.vgpu)
        self.await_hang_up()

    def floods(self):
        self.join()
        self.send_until_hung_up(self.gate.header(Gate.OPENED) + bytes(80))

    def floods_with_descriptors(self):
        self.join()
        fds = [memory() for _ in range(64)]
        self.send_until_hung_up(self.gate.header(Gate.ALLOCATIONS) +
                                struct.pack("<II", 64, 0) + bytes(1024), fds)

    def tells_whose_memory_it_has(self):
        """As often as it may, and of as many processes of vGPUs that are not there as fit."""
        self.join(imports=Gate.IMPORTS_MAX)
        process = struct.pack("<16sQII", random.randbytes(16), 1, 2, 0x544b5456)
        self.send_until_hung_up(self.gate.header(Gate.USES) + struct.pack("<II", Gate.USES_MAX, 0) +
                                process * Gate.USES_MAX)

    def seen_of_too_few(self):
        self.join(version=Gate.NEWEST)
        self.gate.send_seen([1] * (Gate.SEEN_MAX - 1))
        self.await_hang_up()

    def seen_of_too_many(self):
        self.join(version=Gate.NEWEST)
        self.gate.send_seen([1] * (Gate.SEEN_MAX + 1))
        self.await_hang_up()

    def seen_with_a_descriptor(self):
        self.join(version=Gate.NEWEST)
        self.gate.send_seen([1] * Gate.SEEN_MAX, fds=[memory()])
        self.await_hang_up()

    def seen_of_an_older_gate(self):
        self.join(version=Gate.SEEN_SINCE)
        self.gate.send_seen([1] * Gate.SEEN_MAX, version=Gate.SEEN_SINCE)
        self.await_hang_up()

    def seen_for_ever(self):
        """It may say so as often as it likes, and whatever it likes."""
        self.join(version=Gate.NEWEST)
        say("ready")
        while True:
            self.gate.send_seen([random.getrandbits(32) for _ in range(Gate.SEEN_MAX)])

    def speaks_garbage(self):
        self.join()
        self.send_until_hung_up(random.randbytes(200))

    def scribbles(self):
        """Garbage all over the instance page, then the greatest numbers in its own slot."""
        self.join()
        self.page[:] = random.randbytes(PAGE_SIZE)
        self.page[64 + 128 * self.slot:192 + 128 * self.slot] = b"\xff" * 128

    def scribbles_and_hangs_up(self):
        self.scribbles()
        self.gate.close()

    def resizes_page(self):
        self.join()
        for size in (0, 1 << 30):
            try:
                os.ftruncate(self.page_fd, size)
                say("resized")
            except OSError:
                pass

    def rejoins_for_ever(self):
        self.join()
        for _ in range(500):
            self.gate.close()
            self.gate = Gate(self.path)
            self.gate.socket.settimeout(None)
            self.gate.join(self.vgpu)
            self.gate.receive_message()

    # In the middle of a suspend: each answers some steps, then does its worst.

    def close(self):
        self.expect(Gate.CLOSE)

    def silent_at_close(self):
        self.close()

    def hangs_up_at_close(self):
        self.close()
        self.gate.close()

    def lies_about_size(self):
        self.close()
        self.gate.send_closed(movable=(1 << 63) + 1, allocations=0xFFFFFFFF)

    def closes_with_too_many_imports(self):
        self.close()
        self.gate.send_closed(imports=Gate.IMPORTS_MAX + 1)
        self.await_hang_up()

    def closes_with_strange_error(self):
        self.close()
        self.gate.send_closed(error=-2 ** 31)
        self.await_hang_up()

    def out_of_turn(self):
        self.close()
        self.gate.send_result(Gate.RELEASED)
        self.await_hang_up()

    def export(self, movable=4 * MIB, allocations=2):
        self.close()
        self.gate.send_closed(movable=movable, allocations=allocations)
        self.expect(Gate.EXPORT)

    def exports_what_is_no_memory(self):
        self.export()
        null = os.open("/dev/null", os.O_RDWR)
        self.gate.send_allocations([(0x1000000, 2 * MIB), (0x2000000, 2 * MIB)], [null, null])
        self.gate.send_result(Gate.EXPORTED, size=4 * MIB)
        self.expect(Gate.RELEASE)
        self.gate.send_result(Gate.RELEASED)

    def exports_plain_memory(self):
        self.export()
        self.gate.send_allocations([(0x1000000, 2 * MIB), (0x2000000, 2 * MIB)], [memory(), memory()])
        self.gate.send_result(Gate.EXPORTED, size=4 * MIB)
        self.expect(Gate.RELEASE)
        self.gate.send_result(Gate.RELEASED)

    def exports_what_lingers(self):
        self.export()
        fds = [lingerer(), lingerer()]
        self.gate.send_allocations([(0x1000000, 2 * MIB), (0x2000000, 2 * MIB)], fds)
        for fd in fds:
            os.close(fd)
        self.await_hang_up()

    def exports_too_much_that_lingers(self):
        self.export()
        fds = [memory(4096) for _ in range(252)] + [lingerer()]
        self.gate.send_allocations([(0x1000000, 2 * MIB)], fds)
        os.close(fds[-1])
        self.await_hang_up()

    def exports_the_same_address_twice(self):
        self.export()
        self.gate.send_allocations([(0x1000000, 2 * MIB)] * 2, [memory(), memory()])
        self.await_hang_up()

    def exports_overlapping_memory(self):
        self.export()
        self.gate.send_allocations([(0x1000000, 4 * MIB), (0x1200000, 2 * MIB)], [memory(), memory()])
        self.await_hang_up()

    def exports_in_no_order(self):
        self.export()
        self.gate.send_allocations([(0x2000000, 2 * MIB), (0x1000000, 2 * MIB)], [memory(), memory()])
        self.await_hang_up()

    def exports_great_sizes(self):
        self.export()
        self.gate.send_allocations([(0x1000000, (1 << 64) - 4096)], [memory()])
        self.await_hang_up()

    def exports_odd_sizes(self):
        self.export()
        self.gate.send_allocations([(0x1000000, 4097)], [memory()])
        self.await_hang_up()

    def exports_without_descriptors(self):
        self.export()
        self.gate.send_allocations([(0x1000000, 2 * MIB)], [])
        self.await_hang_up()

    def exports_great_count(self):
        self.export()
        self.gate.send_allocations([(0x1000000, 2 * MIB)], [memory()], count=0xFFFFFFFF)
        self.await_hang_up()

    def exports_without_end(self):
        self.export()
        fds = [memory(4096) for _ in range(64)]
        batch = self.gate.header(Gate.ALLOCATIONS) + struct.pack("<II", 64, 0)
        address = 0x1000000
        try:
            while True:
                sizes = b"".join(struct.pack("<QQ", address + i * 4096, 4096) for i in range(64))
                self.gate.send(batch + sizes, fds)
                address += 64 * 4096
        except (BrokenPipeError, ConnectionResetError):
            say("hung up")

    def exports_less_than_it_said(self):
        self.export(movable=64 * MIB, allocations=32)
        self.gate.send_result(Gate.EXPORTED, size=64 * MIB)

    def dies_at_release(self):
        self.export(movable=2 * MIB, allocations=1)
        self.gate.send_allocations([(0x1000000, 2 * MIB)], [memory()])
        self.gate.send_result(Gate.EXPORTED, size=2 * MIB)
        self.expect(Gate.RELEASE)
        sys.exit(0)


def main():
    run_directory, vgpu, behaviour = sys.argv[1:]
    # The usual soft limit is too low for some of what is done here.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    hostile = Hostile(run_directory, vgpu)
    begin = Hostile.joined if behaviour.startswith(SUSPENDED) else None
    if begin:
        begin(hostile)
        say("ready")
    getattr(hostile, behaviour)()
    if not begin:
        say("ready")
    elif behaviour.startswith(("exports", "lies")):
        hostile.gate.receive_message()  # the manager has gone on; now it dies
        return
    sys.stdin.read()


SUSPENDED = ("silent_at", "hangs_up_at", "dies_at", "lies", "closes", "out_of_turn", "exports")

if __name__ == "__main__":
    main()
