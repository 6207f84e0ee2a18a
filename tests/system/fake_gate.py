#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A guest process with a gate but without CUDA (src/wire/gate.h): its memory is memfds.

Usage: fake_gate.py VGPU SIZE...   with OPENVGPU_RUN set; FAKE_GATE_USER: as the user with that number

Each SIZE is one allocation, filled with a pattern of its own. The program prints what happens, one
word a line ("joined", "closed", "opened", ...), and at the end of each "opened" whether its memory
is what it was: "intact" or "DAMAGED". It ends when its standard input does. Lines on standard
input change how it behaves (a change is confirmed: "planned"):

    refuse-close ERROR    the next CLOSE answers ERROR
    refuse MESSAGE CODE   the next request MESSAGE fails with the CUresult CODE
    hang MESSAGE          the next request MESSAGE is never answered
    stop MESSAGE          it stops itself (SIGSTOP) before it deals with the next request MESSAGE
    lose MESSAGE          the connection breaks when the next request MESSAGE arrives, which is not read
    end MESSAGE           likewise, and the process takes some seconds to end
    leave MESSAGE         its driver has ended: says so, and hangs up although there is more to read
    grow MESSAGE SIZE     it allocates SIZE bytes more right before it deals with the next request MESSAGE
    speak VERSION         it joins with that version, and again and again if it is refused
    check                 print "intact" or "DAMAGED"
    charge                write the memory that it holds into the instance page again
    deny                  write there that it holds none ("denied")
"""
import os
import select
import signal
import socket
import struct
import sys
import time

from wait import until

MAGIC, VERSION = 0x45544147, 5
SLOW_END_S = 4  # longer than a process that has hung up takes on an idle machine
TOO_OLD = 4  # less than GATE_WIRE_OLDEST
JOIN, CLOSED, ALLOCATIONS, EXPORTED, RELEASED, MAPPED, OPENED, CREATED = range(1, 9)
WELCOME, REFUSED, CLOSE, EXPORT, RELEASE, MAP, OPEN, CREATE, WATCH = range(64, 73)
NAMES = {CLOSE: "CLOSE", EXPORT: "EXPORT", RELEASE: "RELEASE", MAP: "MAP", OPEN: "OPEN",
         CREATE: "CREATE"}
STATE_OPEN, STATE_CLOSED, STATE_RELEASED = range(3)
HEADER = struct.Struct("=IHH")
BATCH, SENT = 64, 16  # allocations in a message: at most, and as we send them


def say(*words):
    print(*words, flush=True)


class Gate:
    def __init__(self, vgpu, sizes):
        self.vgpu, self.state, self.must_stay = vgpu, STATE_OPEN, False
        self.sizes, self.fds, self.plan = sizes, [], {}
        self.socket, self.slot, self.page = None, None, -1
        self.version = self.spoke = VERSION
        for i, size in enumerate(sizes):
            self.fds.append(self.create(size))
            self.fill(i)

    @staticmethod
    def create(size):
        fd = os.memfd_create("fake-device-memory", os.MFD_CLOEXEC)
        os.ftruncate(fd, size)
        return fd

    @staticmethod
    def address(index):
        return 0x700000000000 + index * 0x10000000

    def pattern(self, index):
        """Each block of 2 MiB is another, so that no two are kept as one."""
        size, block = self.sizes[index], 2 << 20
        return b"".join(struct.pack("=II", os.getpid(), index + (at // block << 16)) * (min(block, size - at) // 8)
                        for at in range(0, size, block))

    def fill(self, index):
        os.pwrite(self.fds[index], self.pattern(index), 0)

    def check(self):
        good = all(fd >= 0 and os.pread(fd, self.sizes[i], 0) == self.pattern(i)
                   for i, fd in enumerate(self.fds))
        say("intact" if good else "DAMAGED")

    def grow(self, size):
        self.sizes.append(size)
        self.fds.append(self.create(size))
        self.fill(len(self.sizes) - 1)
        self.charge(self.page)

    # the connection

    def connect(self):
        path = os.path.join(os.environ["OPENVGPU_RUN"], "gate.sock")

        def is_connected():
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                self.socket.connect(path)
            except OSError:
                self.socket.close()
                return False
            return True

        until(is_connected, "vgpud")
        self.is_welcome = False
        self.spoke = self.version
        self.socket.send(HEADER.pack(MAGIC, self.spoke, JOIN) +
                         struct.pack("=64sIIQII", self.vgpu.encode(), self.state, 13000, 0, 0, 0))

    def lost(self):
        self.socket.close()
        if not self.must_stay and self.state != STATE_OPEN:
            self.state = STATE_OPEN
            say("opened-alone")
        say("lost")
        self.connect()

    def charge(self, fd, size=None):
        """Say in the instance page what we hold, as a gate does; or something else."""
        self.page = fd
        os.pwrite(fd, struct.pack("=QQ", sum(self.sizes) if size is None else size, 0), 64 + 128 * self.slot)

    # requests

    def answer(self, message, error=0, code=0, fate=0):
        self.socket.send(HEADER.pack(MAGIC, VERSION, message) +
                         struct.pack("=iiQII64s", error, code, sum(self.sizes), fate, self.state,
                                     b"cuFake" if code else b""))

    def within(self, body):
        """The indices of the range that a command is for."""
        first, last = struct.unpack("=QQ", body)
        return [i for i in range(len(self.sizes)) if first <= self.address(i) < last]

    def send_allocations(self, indices):
        for first in range(0, len(indices), SENT):
            batch = indices[first:first + SENT]
            fds = [self.fds[i] for i in batch]
            body = b"".join(struct.pack("=QQ", self.address(i), self.sizes[i]) for i in batch)
            packet = HEADER.pack(MAGIC, VERSION, ALLOCATIONS) + struct.pack("=II", len(fds), 0) + \
                body.ljust(16 * BATCH, b"\0")
            socket.send_fds(self.socket, [packet], fds)

    def release(self, indices):
        for i in indices:
            if self.fds[i] >= 0:
                os.close(self.fds[i])
            self.fds[i] = -1
        self.state, self.must_stay = STATE_RELEASED, True

    def make(self, indices):
        made = [i for i in indices if self.fds[i] < 0]
        for i in made:
            self.fds[i] = self.create(self.sizes[i])
        self.state = STATE_RELEASED if -1 in self.fds else STATE_CLOSED
        self.send_allocations(made)

    def map(self, body, fds):
        count, last = struct.unpack_from("=II", body)
        for i in range(count):
            address, size = struct.unpack_from("=QQ", body, 8 + 16 * i)
            index = (address - self.address(0)) // 0x10000000
            assert self.sizes[index] == size
            self.fds[index] = fds[i]
        if last:
            self.state = STATE_CLOSED
            self.answer(MAPPED)
            say("mapped")

    def closed(self, error=0):
        if not error:
            self.state = STATE_CLOSED
        self.socket.send(HEADER.pack(MAGIC, VERSION, CLOSED) +
                         struct.pack("=iiQIIIIII64s", error, 0, sum(self.sizes), len(self.sizes), 0,
                                     0, 0, 0, 0, b"cuFakeCall" if error else b""))
        say("closed" if not error else "kept-open")

    def handle(self, message, body, fds):
        assert self.is_welcome or message in (WELCOME, REFUSED), "asked before we were welcome"
        self.is_welcome = True
        behaviour = self.plan.pop(message, None)
        if behaviour == "hang":
            say("hangs")
            return
        if behaviour == "lose":
            self.lost()
            return
        if behaviour == "end":
            self.socket.close()
            time.sleep(SLOW_END_S)
            sys.exit(0)
        if behaviour == "leave":
            say("leaves")
            select.select([self.socket], [], [])
            self.answer({CREATE: CREATED}[message], 5, 4, fate=1)
            self.socket.close()
            sys.stdin.read()
            sys.exit(0)
        if behaviour == "stop":
            say("stops")
            os.kill(os.getpid(), signal.SIGSTOP)
            behaviour = None
        if isinstance(behaviour, tuple):
            self.grow(behaviour[1])
            behaviour = None
        if message == WELCOME:
            self.slot = struct.unpack_from("=I", body)[0]
            self.charge(fds[0])
            say("joined", struct.unpack_from("=48s", body, 8)[0].rstrip(b"\0").decode())
        elif message == REFUSED:
            say("refused", body[4:].split(b"\0")[0].decode())
            if self.spoke == VERSION:
                sys.exit(1)
            time.sleep(0.1)  # as a gate does, which waits longer each time
            self.lost()
        elif message == WATCH:
            say("watch", *struct.unpack("=II", body))
        elif message == CLOSE:
            self.closed(behaviour or 0)
        elif behaviour:
            self.answer({EXPORT: EXPORTED, RELEASE: RELEASED, MAP: MAPPED, OPEN: OPENED,
                         CREATE: CREATED}[message], 5, behaviour)
            say("refused-" + NAMES[message])
        elif message == EXPORT:
            self.send_allocations(range(len(self.sizes)))
            self.answer(EXPORTED)
            say("exported")
        elif message == RELEASE:
            self.release(self.within(body))
            self.answer(RELEASED)
            say("released")
        elif message == CREATE:
            self.make(self.within(body))
            self.answer(CREATED)
            say("created")
        elif message == MAP:
            self.map(body, fds)
        elif message == OPEN:
            self.state, self.must_stay = STATE_OPEN, False
            self.answer(OPENED)
            say("opened")
            self.check()

    def command(self, line):
        words = line.split()
        codes = {name: message for message, name in NAMES.items()}
        if words[0] == "check":
            self.check()
        elif words[0] == "charge":
            self.charge(self.page)
        elif words[0] == "deny":
            self.charge(self.page, 0)
            say("denied")
        elif words[0] == "refuse-close":
            self.plan[CLOSE] = int(words[1])
        elif words[0] == "refuse":
            self.plan[codes[words[1]]] = int(words[2])
        elif words[0] == "hang":
            self.plan[codes[words[1]]] = "hang"
        elif words[0] == "grow":
            self.plan[codes[words[1]]] = ("grow", int(words[2]))
        elif words[0] in ("end", "leave", "lose", "stop"):
            self.plan[codes[words[1]]] = words[0]
        elif words[0] == "speak":
            self.version = int(words[1])
        if words[0].startswith(("end", "grow", "refuse", "hang", "leave", "lose", "stop", "speak")):
            say("planned")

    def loop(self):
        self.connect()
        while True:
            ready, _, _ = select.select([self.socket, sys.stdin], [], [])
            if sys.stdin in ready:
                lines = os.read(sys.stdin.fileno(), 4096).decode()
                if not lines:
                    return
                for line in lines.splitlines():
                    self.command(line)
            if self.socket in ready:
                try:
                    data, fds, _, _ = socket.recv_fds(self.socket, 8192, 64)
                except OSError:
                    data, fds = b"", []
                if not data:
                    self.lost()
                    continue
                _, _, message = HEADER.unpack_from(data)
                try:
                    self.handle(message, data[HEADER.size:], list(fds))
                except (BrokenPipeError, ConnectionResetError):
                    self.lost()


if __name__ == "__main__":
    if "FAKE_GATE_USER" in os.environ:
        os.setuid(int(os.environ["FAKE_GATE_USER"]))
    Gate(sys.argv[1], [int(size) for size in sys.argv[2:]]).loop()
