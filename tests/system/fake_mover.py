#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A mover without a driver (src/wire/mover.h): "device memory" is any file that can be read.

It lets the tests of the manager run where nothing else is built, and say what a driver answers.
FAKE_MOVER is a directory; what is in it is the driver's state and survives this process:

    context-PID   the state of a process (cuCheckpoint*), and the device that it is on
    fail-NAME     a CUresult: the next request NAME (CHECKPOINT, JOB_RUN, ...) fails with it
    pause-NAME    while it is there, a request NAME is not begun; of those behind it only INFO is answered
    free          free memory of each device, in bytes, but for what its mover holds or has staged
"""
import os
import select
import socket
import struct
import sys

from wait import until

MAGIC, VERSION = 0x45564F4D, 10
INFO, SLAB_ADD, SLAB_ZERO, SLAB_REMOVE, JOB_BEGIN, JOB_MEMORY, JOB_SEGMENTS, JOB_RUN, JOB_END, \
    CHECKPOINT, CONTEXT, JOB_SOURCE, JOB_STAGE, HOLD, KEY, JOB_HASHES = range(1, 17)
NAMES = {CHECKPOINT: "CHECKPOINT", JOB_RUN: "JOB_RUN", SLAB_ADD: "SLAB_ADD", SLAB_ZERO: "SLAB_ZERO", CONTEXT: "CONTEXT",
         INFO: "INFO"}
INFO_IS, PROGRESS, DONE = 64, 65, 66
OUT, IN, PEER = 1, 2, 3
RUNNING, LOCKED, CHECKPOINTED = 0, 1, 2
SUSPEND, RESUME = 2, 3
EIO, ENOMEM, EOPNOTSUPP, ETIMEDOUT = 5, 12, 95, 110

HEADER = struct.Struct("=IHHII")
UUIDS = ["11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"]
TOTAL = 1 << 30


def probe():
    for i, uuid in enumerate(UUIDS):
        print(f"GPU-{uuid}\t00000000:0{i + 1}:00.0\t{TOTAL}\t13000\tFake GPU {i}")


class Job:
    def __init__(self, kind, n_hashes):
        self.kind, self.n_hashes, self.memory, self.source, self.segments = kind, n_hashes, [], [], []


class Mover:
    def __init__(self, device):
        self.socket = socket.socket(fileno=3)
        self.state = os.environ["FAKE_MOVER"]
        self.device, self.slabs, self.jobs, self.has_context = device, {}, {}, False
        self.holds, self.staged = {}, {}
        self.waiting = []  # packets that came behind one that is paused

    def path(self, name):
        return os.path.join(self.state, name)

    def take_failure(self, message):
        path = self.path("fail-" + NAMES.get(message, "?"))
        try:
            with open(path) as file:
                code = int(file.read())
            os.unlink(path)
            return code
        except FileNotFoundError:
            return 0

    def send(self, message, header, body):
        self.socket.send(HEADER.pack(MAGIC, VERSION, message, *header) + body)

    def done(self, header, error=0, code=0, call=b"", state=-1, hash_error=0):
        self.send(DONE, header, struct.pack("=ii64siIQQQQiIQQQQQ", error, code, call, state, 0, 0, 0, 0, 0,
                                            hash_error, 0, 1000, 2000, 0, 3000, 4000))

    # contexts

    def context(self, pid):
        try:
            with open(self.path(f"context-{pid}")) as file:
                state, device = file.read().split()
                return int(state), device
        except FileNotFoundError:
            return RUNNING, None

    def set_context(self, pid, state, device):
        with open(self.path(f"context-{pid}.new"), "w") as file:
            file.write(f"{state} {device}")
        os.rename(self.path(f"context-{pid}.new"), self.path(f"context-{pid}"))

    def checkpoint(self, header, body):
        pid, action, _, n_pairs = struct.unpack_from("=iIII", body)
        state, device = self.context(pid)
        if action == SUSPEND:
            state = CHECKPOINTED
        elif action == RESUME:
            if n_pairs and state == CHECKPOINTED:
                if n_pairs != len(UUIDS):
                    return self.done(header, -EIO, 1, b"cuCheckpointProcessRestore", state)
                for i in range(n_pairs):
                    old, new = struct.unpack_from("16s16s", body, 16 + 32 * i)
                    if device is None or old.hex() == device.replace("-", ""):
                        device = "-".join([new.hex()[:8], new.hex()[8:12], new.hex()[12:16],
                                           new.hex()[16:20], new.hex()[20:]])
                        break
            state = RUNNING
        self.set_context(pid, state, device)
        return self.done(header, state=state)

    # jobs

    def run(self, job):
        if job.kind == PEER:
            for source, target in zip(job.source, job.memory):
                size = os.fstat(source).st_size
                os.pwrite(target, os.pread(source, size, 0), 0)
            return
        for memory, slab, memory_offset, slab_offset, length in job.segments:
            fd, slab_fd = job.memory[memory], self.slabs[slab]
            if job.kind == OUT:
                os.pwrite(slab_fd, os.pread(fd, length, memory_offset), slab_offset)
            else:
                os.pwrite(fd, os.pread(slab_fd, length, slab_offset), memory_offset)

    def is_paused(self, message):
        """Meanwhile, INFO is answered as by a lane of its own; the others wait."""
        if not os.path.exists(self.path("pause-" + NAMES.get(message, "?"))):
            return False
        while select.select([self.socket], [], [], 0)[0]:
            data, fds, _, _ = socket.recv_fds(self.socket, 8192, 64)
            if not data:
                sys.exit()
            if HEADER.unpack_from(data)[2] == INFO:
                self.serve(data, fds)
            else:
                self.waiting.append((data, fds))
        return True

    def handle(self, message, request, job_id, body, fds):
        header = (request, job_id)
        until(lambda: not self.is_paused(message), "the pause to end")
        code = self.take_failure(message)
        if code:
            state = self.context(struct.unpack_from("=i", body)[0])[0] if message == CHECKPOINT \
                else -1
            return self.done(header, {600: -ETIMEDOUT, 2: -ENOMEM}.get(code, -EIO), code, b"cuFake", state)
        if message == INFO:
            free = TOTAL
            if os.path.exists(self.path("free")):
                with open(self.path("free")) as file:
                    free = int(file.read())
            free = max(0, free - sum(self.holds.values()) - sum(self.staged.values()))
            return self.send(INFO_IS, header,
                             struct.pack("=QQII", TOTAL, free, self.has_context, 13000))
        if message == CONTEXT:
            self.has_context = True
        elif message == SLAB_ADD:
            slab = struct.unpack_from("=I", body)[0]
            self.slabs[slab] = fds.pop()
        elif message == SLAB_ZERO:
            slab = self.slabs[struct.unpack_from("=I", body)[0]]
            os.pwrite(slab, bytes(os.fstat(slab).st_size), 0)
        elif message == SLAB_REMOVE:
            os.close(self.slabs.pop(struct.unpack_from("=I", body)[0]))
        elif message == JOB_BEGIN:
            kind, _, _, n_hashes = struct.unpack_from("=IIII", body)
            self.jobs[job_id] = Job(kind, n_hashes)
            return None
        elif message in (JOB_MEMORY, JOB_SOURCE):
            job = self.jobs[job_id]
            (job.memory if message == JOB_MEMORY else job.source).extend(fds)
            fds.clear()
            return None
        elif message == JOB_SEGMENTS:
            count = struct.unpack_from("=I", body)[0]
            for i in range(count):
                self.jobs[job_id].segments.append(struct.unpack_from("=IIQQQ", body, 8 + 32 * i))
            return None
        elif message == JOB_STAGE:
            self.staged[job_id] = struct.unpack_from("=Q", body)[0]
            return None
        elif message == JOB_HASHES:
            return None
        elif message == HOLD:
            pid, _, size = struct.unpack_from("=iIQ", body)
            self.holds[pid] = size
        elif message == JOB_RUN:
            self.run(self.jobs[job_id])
            if self.jobs[job_id].n_hashes:  # it copies everything, and says that it cannot hash
                return self.done(header, hash_error=-EOPNOTSUPP)
        elif message == JOB_END:
            job = self.jobs.pop(job_id)
            self.staged.pop(job_id, None)
            for fd in job.memory + job.source:
                os.close(fd)
        elif message == CHECKPOINT:
            return self.checkpoint(header, body)
        return self.done(header)

    def loop(self):
        while True:
            data, fds = self.waiting.pop(0) if self.waiting else socket.recv_fds(self.socket, 8192, 64)[:2]
            if not data:
                return
            self.serve(data, fds)

    def serve(self, data, fds):
        _, _, message, request, job_id = HEADER.unpack_from(data)
        left = list(fds)
        self.handle(message, request, job_id, data[HEADER.size:], left)
        for fd in left:  # a pidfd
            os.close(fd)


if __name__ == "__main__":
    if "--probe" in sys.argv:
        probe()
    else:
        Mover(sys.argv[-1]).loop()
