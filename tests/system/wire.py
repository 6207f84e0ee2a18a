# SPDX-License-Identifier: Apache-2.0
"""Our protocols as a stranger would speak them: docs/control-protocol.md, src/wire/*.h."""
import array
import contextlib
import json
import os
import socket
import struct

from wait import PATIENCE


class Refused(Exception):
    """An error answer of the manager."""

    def __init__(self, name, parameters):
        super().__init__(f"{name}: {parameters.get('message')}")
        self.name = name
        self.parameters = parameters


class Control:
    """A connection to the control socket."""

    PREFIX = "org.openvgpu."

    def __init__(self, path, is_waiting=True):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE if is_waiting else 0)
        self.buffer = b""
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise
        self.socket.settimeout(PATIENCE)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send_bytes(self, data):
        """A manager that hung up has said why before: the next answer tells."""
        with contextlib.suppress(BrokenPipeError):
            self.socket.sendall(data)

    def send(self, method, more=False, **parameters):
        call = {"method": self.PREFIX + method, "parameters": parameters}
        if more:
            call["more"] = True
        self.send_bytes(json.dumps(call).encode() + b"\0")

    def receive(self):
        """The next message, or None when the manager has hung up."""
        while b"\0" not in self.buffer:
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def answer(self, progress=None):
        """The parameters of the next final answer; Refused for an error. Before it: to the list progress."""
        while True:
            message = self.receive()
            if message is None:
                raise ConnectionError("the manager hung up")
            if "error" in message:
                raise Refused(message["error"].removeprefix(self.PREFIX), message["parameters"])
            if not message.get("continues"):
                return message["parameters"]
            if progress is not None:
                progress.append(message["parameters"])

    def call(self, method, **parameters):
        self.send(method, **parameters)
        return self.answer()

    def call_more(self, method, **parameters):
        """The answer and all progress before it."""
        progress = []
        self.send(method, more=True, **parameters)
        return self.answer(progress), progress


class Packets:
    """A SOCK_SEQPACKET connection that carries descriptors."""

    def __init__(self, path, connected=None):
        self.socket = connected or socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE)
        if not connected:
            self.socket.connect(str(path))

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data, fds=()):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([data], rights)

    def receive(self):
        """(bytes, descriptors); (b"", []) when the other side has hung up."""
        try:
            data, rights, _, _ = self.socket.recvmsg(8192, socket.CMSG_SPACE(64 * 4))
        except ConnectionResetError:
            return b"", []
        fds = array.array("i")
        for level, kind, content in rights:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(content[:len(content) - len(content) % 4])
        return data, list(fds)


class Gate(Packets):
    """What a process says that claims to be a guest."""

    MAGIC, VERSION = 0x45544147, 5  # the oldest that vgpud lets in: of vGPUs of one device
    NEWEST = 10
    SEEN_SINCE, SEEN_MAX = 8, 32  # devices that the driver sees, in JOIN; since 9 also a message
    JOIN, CLOSED, ALLOCATIONS, EXPORTED, RELEASED, MAPPED, OPENED, CREATED, WAITING, TAKEN, IMPORT, OFFERED, USES, ORDER, SEEN = \
        range(1, 16)
    IMPORTS_MAX, USES_MAX = 65536, 64
    WELCOME, REFUSED, CLOSE, EXPORT, RELEASE, MAP, OPEN, CREATE = range(64, 72)
    WATCH, STEP, TAKE, IMPORTED, OFFER = range(72, 77)
    OPEN_STATE, CLOSED_STATE, RELEASED_STATE = range(3)

    def header(self, message, magic=MAGIC, version=None):
        return struct.pack("<IHH", magic, self.VERSION if version is None else version, message)

    def join(self, vgpu, state=OPEN_STATE, version=VERSION, driver_version=13000, imports=0,
             ticket_slot=0):
        seen = bytes(4 * self.SEEN_MAX) if version >= self.SEEN_SINCE else b""
        self.send(self.header(self.JOIN, version=version) +
                  struct.pack("<64sIIQII", vgpu.encode(), state, driver_version, 0, imports, ticket_slot) + seen)

    def send_import(self, number, ticket):
        self.send(self.header(self.IMPORT) + struct.pack("<Q", number) + ticket)

    def send_seen(self, marks, version=NEWEST, fds=()):
        self.send(self.header(self.SEEN, version=version) + struct.pack(f"<{len(marks)}I", *marks), fds)

    def send_uses(self, count, processes=b""):
        self.send(self.header(self.USES) + struct.pack("<II", count, 0) + processes.ljust(64 * 32, b"\0"))

    def send_closed(self, error=0, movable=0, allocations=0, holds=0, imports=0):
        self.send(self.header(self.CLOSED) +
                  struct.pack("<iiQIIIIII64s", error, 0, movable, allocations, holds, 0, 0, imports, 0, b""))

    def send_allocations(self, allocations, fds, last=0, count=None):
        """allocations: (address, size) each."""
        body = b"".join(struct.pack("<QQ", *one) for one in allocations).ljust(64 * 16, b"\0")
        self.send(self.header(self.ALLOCATIONS) +
                  struct.pack("<II", len(allocations) if count is None else count, last) + body, fds)

    def send_result(self, message, error=0, size=0, state=CLOSED_STATE):
        self.send(self.header(message) + struct.pack("<iiQII64s", error, 0, size, 0, state, b""))

    def receive_message(self):
        """(message number, body, descriptors); number None when hung up."""
        data, fds = self.receive()
        if not data:
            return None, b"", []
        return struct.unpack_from("<IHH", data)[2], data[8:], fds

    @staticmethod
    def refusal(body):
        """(errno, text) of REFUSED."""
        error, text = struct.unpack("<i256s", body)
        return error, text.split(b"\0")[0].decode()


class Keeper(Packets):
    """What a manager says to the keeper."""

    MAGIC, VERSION = 0x5045454B, 2
    PUT, DROP, LIST, DONE, ITEMS = range(1, 6)
    HEADER = struct.Struct("<IHHiI")
    LABEL = 120

    def drop(self, label):
        """Lets go of one; the keeper's error, 0 if it had it."""
        self.send(self.HEADER.pack(self.MAGIC, self.VERSION, self.DROP, 0, 1) + label.encode().ljust(self.LABEL, b"\0"))
        return self.HEADER.unpack_from(self.receive()[0])[3]

    def labels(self):
        """The labels of all that it holds."""
        found = []
        self.send(self.HEADER.pack(self.MAGIC, self.VERSION, self.LIST, 0, 0))
        while True:
            data, fds = self.receive()
            for fd in fds:
                os.close(fd)
            if not data:
                raise ConnectionError("the keeper hung up")
            _, _, message, _, count = self.HEADER.unpack_from(data)
            if message == self.DONE:
                return sorted(found)
            for i in range(count):
                label = data[self.HEADER.size + i * self.LABEL:][:self.LABEL]
                found.append(label.split(b"\0")[0].decode())
