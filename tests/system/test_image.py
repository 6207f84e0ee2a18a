#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The GPU memory of a suspended vGPU on disk: what is loaded is what was dumped, or nothing is."""
import contextlib
import json
import mmap
import os
import socket
import subprocess
import sys
import threading
import unittest

import case
import reach
import stage
from images import ImageCase, entry_lines
from wait import until
from wire import Refused


# A process that came back: each line that it reads makes its gate join, with its memory released.
RESTORED = """
import socket, struct, sys
for line in sys.stdin:
    gate = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    gate.connect(sys.argv[1])
    gate.send(struct.pack("=IHH64sIIQII", 0x45544147, 5, 1, sys.argv[2].encode(), 2, 13000, 0, 0, 0))
    answer = gate.recv(8192)
    print({b"": "away", b"@": "welcome", b"A": "refused"}[answer[6:7]], flush=True)
"""


# A user who is not root, with a process that came back: himself. Prints what he could not do.
STRANGER = """
import json, mmap, os, socket, sys
sys.path.insert(0, sys.argv[2])
from wire import Control, Refused

control = Control(sys.argv[1])

def refused(method, **parameters):
    try:
        control.call(method, **parameters)
    except Refused as error:
        print(method, error.name)

def slabs():
    call = {"method": "org.openvgpu.GetSlabs", "parameters": {"name": "mine"}}
    control.socket.sendall(json.dumps(call).encode() + bytes(1))
    return socket.recv_fds(control.socket, 65536, 64)[1]

refused("OpenMemory", name="train")
refused("ReplaceMemory", name="train")
refused("CreateVgpu", frame_buffer=2 << 20, uuid="0d5c4b1e-8c4f-4e55-9d0a-0123456789ab")
control.call("CreateVgpu", name="mine", frame_buffer=8 << 20)
memory = [[0x7f0000000000, 4 << 20]]
refused("ReplaceMemory", name="mine", processes=[{"pid": os.getppid(), "allocations": memory}])
control.call("ReplaceMemory", name="mine", processes=[{"pid": os.getpid(), "allocations": memory}])
for fd in slabs():
    with mmap.mmap(fd, 0) as writable:
        data = len(writable) - (2 << 20)  # then come the stamps, of which there are none now
        found = writable[:data] + writable[data + 32:]
        print("found", "nothing" if found == bytes(len(found)) else "SOMETHING")
        writable[:4] = b"mine"
control.call("CommitMemory", name="mine")
control.call("OpenMemory", name="mine")
for fd in slabs():
    print("read", os.pread(fd, 4, 0).decode())
    for attempt in (lambda: os.write(fd, b"x"), lambda: os.ftruncate(fd, 0),
                    lambda: mmap.mmap(fd, 0), lambda: os.open(f"/proc/self/fd/{fd}", os.O_RDWR)):
        try:
            attempt()
            print("COULD WRITE")
        except OSError:
            pass
"""


# A user who keeps the pool's memory: asks for it again and again, as many bytes as sys.argv[3] says.
HOARDER = """
import json, os, socket, sys
sys.path.insert(0, sys.argv[2])
from wire import Control, Refused

control = Control(sys.argv[1])
size = int(sys.argv[3])
control.call("CreateVgpu", name="mine", frame_buffer=size)
process = {"pid": os.getpid(), "allocations": [[0x7f0000000000, size]]}
kept = set()
try:
    for _ in range(40):
        control.call("ReplaceMemory", name="mine", processes=[process])
        call = {"method": "org.openvgpu.GetSlabs", "parameters": {"name": "mine"}}
        control.socket.sendall(json.dumps(call).encode() + bytes(1))
        answer, fds, _, _ = socket.recv_fds(control.socket, 65536, 64)
        for fd in fds:
            kept.add(os.fstat(fd).st_ino)
            os.posix_fallocate(fd, 0, os.fstat(fd).st_size)
        if b"error" in answer:
            print(json.loads(answer[:-1])["error"], flush=True)
            break
        control.call("CloseMemory", name="mine")
    else:
        print("never", flush=True)
except Refused as error:
    print(error.name, flush=True)
control.close()
print(len(kept), flush=True)
sys.stdin.read()
"""


# Traces the process of which it gets the number, until its input ends.
TRACER = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(15, b"tracer", 0, 0, 0)
assert libc.ptrace(0x4206, int(sys.argv[1]), None, None) == 0, ctypes.get_errno()
print("traces", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def traced(pid):
    with subprocess.Popen([sys.executable, "-c", TRACER, str(pid)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as tracer:
        assert tracer.stdout.readline() == "traces\n"
        yield
        tracer.stdin.close()


class Images(ImageCase):
    def test_what_is_loaded_is_what_was_dumped(self):
        self.suspended()
        old = self.dump()
        self.step_on()
        new = self.dump("--compress", "zstd:3")
        self.load(old)
        self.load(new)
        self.check_goes_on()

    def test_memory_of_another_moment_really_is_loaded(self):
        self.suspended()
        old = self.dump()
        self.step_on()
        self.load(old)
        self.host.vgpu("resume", "train")
        # Its counter in host memory is ahead of its device memory now, and it notices.
        until(lambda: any("BAD" in line for line in self.guest.log_lines()),
              "the guest to notice", context=self.guest.context)

    def test_blocks_that_are_kept_once_are_all_in_the_image(self):
        self.suspended("--alike")
        other = self.host.train(self.host.create("other"), "--size", "20M", "--alike")
        self.host.vgpu("suspend", "other")
        self.assertGreater(self.host.info()["pool"]["saved"], 20 << 20)
        path = self.dump()
        self.host.vgpu("resume", "other")
        self.load(path)
        other.wait_steps()
        other.finish()
        self.check_goes_on()

    def test_several_processes_and_devices(self):
        self.suspended()
        self.host.vgpu("resume", "train")
        other = self.host.train("train", "--size", "9M")
        self.host.vgpu("suspend", "train")
        path = self.dump()
        answer = self.host.vgpu("checkpoint", "check", path, "--json").json
        self.assertEqual(answer["processes"], 2)
        self.host.vgpu("resume", "train", "--device", "1")
        self.host.vgpu("suspend", "train")
        self.load(self.dump())
        self.host.vgpu("resume", "train")
        other.wait_steps()
        other.finish()
        self.guest.finish()

    def test_the_report_and_the_manifest(self):
        self.suspended()
        answer = self.host.vgpu("checkpoint", "dump", "train", self.path(), "--json").json
        self.assertEqual(answer["vgpu"], "train")
        self.assertGreaterEqual(answer["memory_bytes"], 20 << 20)
        with open(os.path.join(answer["directory"], "manifest.json")) as file:
            manifest = json.load(file)
        self.assertEqual(manifest["format"], "openvgpu-checkpoint")
        self.assertEqual(manifest["image"]["processes"][0]["pid"], self.guest.pid)
        self.assertEqual(manifest["image"]["memory"]["size"], answer["memory_bytes"])
        self.assertEqual(oct(os.stat(answer["directory"]).st_mode & 0o777), "0o700")
        self.check_goes_on()

    # What was altered, cut off, or is another one.

    def test_an_image_that_was_altered_changes_nothing(self):
        self.suspended()
        path = self.dump()
        data = os.path.join(path, "memory.data")
        size = os.path.getsize(data)
        with open(data, "r+b") as file:
            file.seek(size - 5000)
            byte = file.read(1)
            file.seek(size - 5000)
            file.write(bytes([byte[0] ^ 1]))
        errors = self.load(path, code=1).errors
        self.assertIn("memory.data, chunk ", errors)
        self.assertIn("altered", errors)
        self.assertIn("altered", entry_lines(self.host, "checkpoint", "check", path, code=1))
        os.truncate(data, size - 4096)
        self.assertIn("cut off", self.load(path, code=1).errors)
        os.unlink(data)
        self.assertIn("memory.data is missing", self.load(path, code=1).errors)
        self.check_goes_on()

    def test_pipes_in_the_place_of_files_are_not_waited_for(self):
        self.suspended()
        for name, reason in (("memory.data", "is no plain file"),
                             ("manifest.json", "is no manifest: it is no plain file")):
            path = self.dump()
            os.unlink(os.path.join(path, name))
            os.mkfifo(os.path.join(path, name))
            self.assertIn(name + " " + reason, self.load(path, code=1).errors)
        self.check_goes_on()

    def test_an_image_that_was_never_finished(self):
        self.suspended()
        path = self.dump()
        os.rename(path, path + ".partial")
        self.assertIn("never finished", self.load(path, code=1).errors)
        os.unlink(os.path.join(path + ".partial", "manifest.json"))
        os.rename(path + ".partial", path)
        self.assertIn("no manifest", self.load(path, code=1).errors)
        self.check_goes_on()

    def test_an_image_of_others(self):
        self.suspended()
        path = self.dump()
        self.host.vgpu("resume", "train")
        other = self.host.train(self.host.create("other"), "--size", "20M", "--small", "30")
        self.host.vgpu("suspend", "other")
        errors = entry_lines(self.host, "checkpoint", "load", path, "--vgpu", "other", code=1)
        self.assertIn(f"process {other.pid} (guest-train) of vGPU other is not in the image", errors)
        self.host.vgpu("resume", "other")
        other.finish()
        self.guest.finish()

    def test_a_vgpu_whose_guest_has_ended(self):
        self.host.create("train")
        guest = self.host.run("train", "guest-alloc", 1, 20, 4 << 20, 7).wait_ready()
        self.host.vgpu("suspend", "train")
        path = self.dump()
        self.host.vgpu("resume", "train")
        self.assertEqual(guest.end_input(), 0, guest.context())
        self.host.wait_state("train", "idle")
        self.assertIn("has no processes", self.load(path, code=7).errors)

    # What is in the way.

    def test_only_what_is_suspended_can_be_dumped(self):
        self.guest = self.host.train(self.host.create("train"), "--size", "4M")
        errors = entry_lines(self.host, "checkpoint", "dump", "train", self.path(), code=7)
        self.assertIn("suspend it first", errors)
        self.assertEqual([], [e for e in os.listdir(self.host.directory) if e.startswith("image")])
        self.guest.finish()

    def test_nothing_is_overwritten(self):
        self.suspended()
        path = self.dump()
        errors = entry_lines(self.host, "checkpoint", "dump", "train", path, code=1)
        self.assertIn("exists already", errors)
        self.load(path)
        self.check_goes_on()

    def test_a_disk_that_is_full(self):
        self.suspended()
        with self.limited_files(8 << 20):
            for options in ([], ["--compress", "zstd"]):
                path = self.path()
                errors = entry_lines(self.host, "checkpoint", "dump", "train", path, *options,
                                     code=None)
                if "File too large" not in errors:
                    self.assertEqual(options, ["--compress", "zstd"], errors)
                    continue
                self.assertIn("memory.data", errors)
                self.assertFalse(os.path.exists(path) or os.path.exists(path + ".partial"))
        self.load(self.dump())
        self.check_goes_on()

    def test_a_dump_that_fails_at_its_end_leaves_nothing(self):
        self.suspended()
        path = self.path()
        for point in ("image.write", "image.commit"):
            errors = entry_lines(self.host, "checkpoint", "dump", "train", path, code=1,
                                 environment=self.host.environment(
                                     OPENVGPU_FAULT=f"{point}=fail"))
            self.assertIn("Input/output error", errors)
            self.assertFalse(os.path.exists(path) or os.path.exists(path + ".partial"))
        self.check_goes_on()

    def test_a_dump_that_is_killed_is_no_image_and_in_nobodys_way(self):
        self.suspended()
        path = self.path()
        entry_lines(self.host, "checkpoint", "dump", "train", path, code=-9,
                    environment=self.host.environment(OPENVGPU_FAULT="image.commit=kill"))
        self.assertTrue(os.path.exists(path + ".partial"))
        self.assertIn("never finished", self.load(path, code=1).errors)
        self.wait_free("train")
        self.host.vgpu("checkpoint", "dump", "train", path)
        self.load(path)
        self.assertFalse(os.path.exists(path + ".partial"))
        self.check_goes_on()

    def test_a_pool_without_room_to_load(self):
        self.suspended()
        path = self.dump()
        other = self.host.train(self.host.create("other"), "--size", "130M", "--piece", "10M")
        self.host.vgpu("suspend", "other")
        errors = self.load(path, code=1).errors
        self.assertIn("the pool has room for", errors)
        self.host.vgpu("resume", "other")
        other.finish()
        self.load(path)
        self.check_goes_on()

    def test_of_a_vgpu_without_processes_there_is_no_image(self):
        self.host.create("empty")
        errors = entry_lines(self.host, "checkpoint", "dump", "empty", self.path(), code=7)
        self.assertIn("vGPU empty has no processes: it has no memory", errors)

    # Sessions.

    def test_who_writes_an_image_is_not_disturbed(self):
        self.suspended()
        with self.host.connect() as control:
            control.call("OpenMemory", name="train")
            self.assertIn("image", entry_lines(self.host, "resume", "train", code=7))
            self.assertIn("image", entry_lines(self.host, "rm", "train", code=7))
            with self.host.connect() as other:
                for method in ("GetSlabs", "CloseMemory", "CommitMemory"):
                    with self.assertRaises(Refused) as refused:
                        other.call(method, name="train")
                    self.assertEqual(refused.exception.name, "WrongState")
            with self.assertRaises(Refused):
                control.call("CommitMemory", name="train")  # it was opened for reading
        self.wait_free("train")
        self.check_goes_on()

    def test_a_second_client_that_is_refused_takes_nothing_from_the_first(self):
        self.suspended()
        with self.host.connect() as first, self.host.connect() as second:
            used = self.host.info()["pool"]["used"]
            first.call("ReplaceMemory", name="train")
            for method in ("OpenMemory", "ReplaceMemory"):
                with self.assertRaises(Refused) as refused:
                    second.call(method, name="train")
                self.assertEqual(refused.exception.name, "Busy")
            self.assertIn("image", entry_lines(self.host, "resume", "train", code=7))
            self.assertIn("image", entry_lines(self.host, "rm", "train", code=7))
            first.call("CloseMemory", name="train")
            self.assertEqual(self.host.info()["pool"]["used"], used)
        self.check_goes_on()

    def test_who_hangs_up_has_changed_nothing(self):
        self.suspended()
        used = self.host.info()["pool"]["used"]
        with self.host.connect() as control:
            control.call("ReplaceMemory", name="train")
            self.assertEqual(self.host.info()["pool"]["used"], 2 * used)
        until(lambda: self.host.info()["pool"]["used"] == used, "the new memory to be given back",
              context=self.host.log)
        self.check_goes_on()

    def test_a_slab_that_was_given_away_goes_to_nobody_else(self):
        self.suspended()
        with self.host.connect() as control:
            control.call("OpenMemory", name="train")
            fds = self.get_slabs(control)
            for fd in fds:  # it can be read, and not written, nor opened for that
                with self.assertRaises(OSError):
                    os.write(fd, b"x")
                self.assertEqual(os.fstat(fd).st_mode & 0o777, 0o600)
            control.call("CloseMemory", name="train")
        inodes = {os.fstat(fd).st_ino for fd in fds}
        self.host.vgpu("resume", "train")
        until(lambda: not self.slabs_of_manager() & inodes, "the slabs to be let go",
              context=self.host.log)
        for fd in fds:
            os.close(fd)
        self.guest.wait_steps()
        self.guest.finish()

    @staticmethod
    def get_slabs(control):
        message = json.dumps({"method": "org.openvgpu.GetSlabs", "parameters": {"name": "train"}})
        control.socket.sendall(message.encode() + b"\0")
        _, fds, _, _ = socket.recv_fds(control.socket, 65536, 64)
        return fds

    def slabs_of_manager(self):
        folder = f"/proc/{self.host.manager.pid}/fd"
        found = set()
        for entry in os.listdir(folder):
            try:
                if "openvgpu-slab" in os.readlink(f"{folder}/{entry}"):
                    found.add(os.stat(f"{folder}/{entry}").st_ino)
            except FileNotFoundError:
                pass
        return found

    def hoard(self, size, user=None):
        """A hoarder of so many bytes at a time; what refused it, and how many slabs it has then."""
        python = stage.SYSTEM_PYTHON if user else sys.executable
        child = subprocess.Popen(
            [python, "-c", HOARDER, os.path.join(self.host.run_directory, "control.sock"),
             reach.scripts(), str(size)],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=user)

        def end():
            child.kill()
            child.communicate()

        self.addCleanup(end)
        return child, child.stdout.readline().strip(), int(child.stdout.readline())

    def held(self):
        return self.host.info()["pool"]["held"]

    def test_what_a_client_keeps_is_within_the_limit_of_the_pool(self):
        child, error, kept = self.hoard(24 << 20)
        self.assertEqual(error, "PoolTooSmall")
        self.assertIn(kept, range(15, 21))  # the pool has room for 20
        until(lambda: self.held() == kept * (8 << 20), "all that is kept to be counted",
              context=self.host.log)
        child.kill()
        until(lambda: self.held() == 0, "the kernel to say that it is gone", context=self.host.log)
        self.host.vgpu("rm", "mine")
        self.suspended()
        self.check_goes_on()

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
    def test_what_one_user_keeps_leaves_room_for_others(self):
        child, error, kept = self.hoard(8 << 20, user="nobody")
        self.assertEqual(error, "org.openvgpu.NoRoom")
        self.assertLess(kept, 15)
        self.suspended()
        self.check_goes_on()
        child.kill()
        until(lambda: self.held() == 0, "the kernel to say that it is gone", context=self.host.log)

    def test_a_guest_that_dies_while_its_image_is_loaded(self):
        self.suspended()
        with self.host.connect() as control:
            control.call("ReplaceMemory", name="train")
            self.guest.kill()
            with self.assertRaises(Refused) as refused:
                control.call("CommitMemory", name="train")
            self.assertEqual(refused.exception.name, "GuestLost")
        self.host.wait_state("train", "idle")

    def test_a_manager_that_dies_keeps_what_was_loaded(self):
        self.suspended()
        old = self.dump()
        self.step_on()
        new = self.dump()
        self.load(old)
        self.load(new)
        self.host.restart()
        self.host.wait_state("train", "suspended")
        self.check_goes_on()

    def test_dumps_at_the_same_time(self):
        self.suspended()
        codes = []

        def dump(path):
            def is_told():
                codes.append(self.host.vgpu("checkpoint", "dump", "train", path, code=None).code)
                return codes[-1] != 7  # busy: it waits for the others, but not for ever

            until(is_told, "a dump of its own")

        threads = [threading.Thread(target=dump, args=(self.path(),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([code for code in codes if code != 7], [0, 0, 0])
        self.check_goes_on()

    # Processes that came back, as CRIU makes them.

    def restored(self, name):
        gate = os.path.join(self.host.run_directory, "gate.sock")
        child = subprocess.Popen([sys.executable, "-c", RESTORED, gate, name], text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)

        def end():
            child.kill()
            child.communicate()

        self.addCleanup(end)
        return child

    @staticmethod
    def join(child):
        child.stdin.write("join\n")
        child.stdin.flush()
        return child.stdout.readline().strip()

    def fill(self, control, answer, byte):
        """All extents of the processes, through the slabs."""
        fds = self.get_slabs(control)
        for process in answer["processes"]:
            for slab, offset, length in process["extents"]:
                with mmap.mmap(fds[slab], 0) as memory:
                    memory[offset:offset + length] = byte * length
        for fd in fds:
            os.close(fd)

    def read(self, name):
        """What the pool has of the vGPU."""
        with self.host.connect() as control:
            answer = control.call("OpenMemory", name=name)
            fds = self.get_slabs(control)
            found = b""
            for process in answer["processes"]:
                for slab, offset, length in process["extents"]:
                    found += os.pread(fds[slab], length, offset)
            for fd in fds:
                os.close(fd)
            return answer, found

    def test_a_process_that_came_back_is_a_suspended_guest(self):
        self.host.create("train")
        child = self.restored("train")
        mappings = [[0x7f0000000000, 2 << 20], [0x7f0000400000, 6 << 20]]
        self.assertEqual(self.join(child), "refused")  # nobody knows of its memory
        with self.host.connect() as control:
            answer = control.call("ReplaceMemory", name="train", processes=[
                {"pid": child.pid, "allocations": mappings}])
            self.assertEqual(self.join(child), "away")  # it shall try again
            self.fill(control, answer, b"x")
            vgpu = control.call("CommitMemory", name="train")["vgpu"]
        self.assertEqual((vgpu["state"], vgpu["processes"][0]["pid"]), ("suspended", child.pid))
        self.assertEqual(self.join(child), "welcome")
        self.host.restart()  # it is in the store and in the keeper
        self.assertEqual(self.host.get("train")["state"], "suspended")
        answer, found = self.read("train")
        self.assertEqual(answer["processes"][0]["allocations"], mappings)
        self.assertEqual(found, b"x" * (8 << 20))
        child.kill()
        self.host.wait_state("train", "idle")

    def test_what_cannot_be_a_process_that_came_back(self):
        self.suspended()
        child = self.restored("other")
        self.host.create("other", "480M", device=1)
        good = [[0x7f0000000000, 2 << 20]]
        for processes, error in (
                ([], "InvalidParameter"),
                ([{"pid": child.pid}], "InvalidParameter"),
                ([{"pid": 0, "allocations": good}], "InvalidParameter"),
                ([{"pid": child.pid, "allocations": [[1, -5]]}], "InvalidParameter"),
                ([{"pid": child.pid, "allocations": [[4096, 100]]}], "InvalidParameter"),
                ([{"pid": child.pid, "allocations": good}] * 2, "InvalidParameter"),
                ([{"pid": child.pid, "allocations": good * 2}], "InvalidParameter"),
                ([{"pid": child.pid, "allocations": [[1 << 62, 1 << 62]]}], "InvalidParameter"),
                ([{"pid": child.pid, "allocations": [[4096, 1 << 50]]}], "NoRoom"),
                ([{"pid": child.pid, "allocations": [[4096, 400 << 20]]}], "PoolTooSmall"),
                ([{"pid": 2 ** 22 + 1, "allocations": good}], "GuestLost"),
                ([{"pid": self.guest.pid, "allocations": good}], "Busy")):
            with self.assertRaises(Refused) as refused:
                self.host.call("ReplaceMemory", name="other", processes=processes)
            self.assertEqual(refused.exception.name, error, refused.exception.parameters)
        self.check_goes_on()

    def test_a_process_does_not_come_back_into_two_vgpus(self):
        child = self.restored("first")
        process = {"pid": child.pid, "allocations": [[0x7f0000000000, 2 << 20]]}
        with self.host.connect() as first, self.host.connect() as second:
            for name, control in ("first", first), ("second", second):
                self.host.create(name, "64M")
                control.call("ReplaceMemory", name=name, processes=[process])
            first.call("CommitMemory", name="first")
            with self.assertRaises(Refused) as refused:
                second.call("CommitMemory", name="second")
        self.assertEqual(refused.exception.name, "Busy")
        self.assertEqual(self.host.get("second")["processes"], [])
        self.assertEqual(self.host.get("first")["processes"][0]["pid"], child.pid)
        child.kill()
        child.wait()

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
    def test_a_user_gets_at_his_own_memory_only(self):
        self.suspended()
        self.host.vgpu("resume", "train")  # what it had in the pool is there to be found
        self.guest.kill()
        done = subprocess.run([stage.SYSTEM_PYTHON, "-c", STRANGER,
                               os.path.join(self.host.run_directory, "control.sock"),
                               reach.scripts()],
                              user="nobody", capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout.split("\n"), [
            "OpenMemory PermissionDenied", "ReplaceMemory PermissionDenied",
            "CreateVgpu PermissionDenied", "ReplaceMemory PermissionDenied",
            "found nothing", "read mine", ""], f"{done.stderr}\n{self.host.log()}")
        self.host.wait_state("mine", "idle")

    def test_only_root_chooses_a_uuid(self):
        uuid = "0d5c4b1e-8c4f-4e55-9d0a-0123456789ab"
        vgpu = self.host.call("CreateVgpu", frame_buffer=2 << 20, uuid=uuid)["vgpu"]
        self.assertEqual(vgpu["uuid"], uuid)
        for wrong, error in ((uuid, "VgpuExists"), ("GPU-" + uuid[4:], "InvalidParameter"),
                             ("x", "InvalidParameter")):
            with self.assertRaises(Refused) as refused:
                self.host.call("CreateVgpu", frame_buffer=2 << 20, uuid=wrong)
            self.assertEqual(refused.exception.name, error)

    # The command line.

    def test_a_wrong_command_line(self):
        for words, reason in (
                (["dump", "train"], "is missing"),
                (["dump", "train", "x", "--compress", "rar"], "is no compression"),
                (["dump", "train", "x", "--compress", "zstd:99"], "is no level"),
                (["dump", "99999999", "x"], "there is no process"),
                (["load", "x", "y"], "unexpected"),
                (["check"], "is missing")):
            self.assertIn(reason, entry_lines(self.host, "checkpoint", *words, code=2))

    # Dumps of processes, with a CRIU that only says that it did, or did not.

    def test_a_process_that_criu_refuses_goes_on(self):
        pid = self.running().pid
        criu = self.fake_criu('echo "(00.1) Error (criu/x.c:1): cannot do it" > $work/log; exit 1')
        path = self.path()
        errors = entry_lines(self.host, "checkpoint", "dump", pid, path, "--cut-pipes", "--criu", criu, code=1)
        self.assertIn("criu dump failed: Error (criu/x.c:1): cannot do it", errors)
        self.assertFalse(os.path.exists(path) or os.path.exists(path + ".partial"))
        self.check_runs()

    def test_what_criu_says_comes_with_what_to_do(self):
        pid = self.running().pid
        for says, hint in (("Can't send ghost to image: No space left on device", "make room on"),
                           ("Can't dump ghost file /x of 9 size, increase limit", "ghost-limit"),
                           ("unix: External socket is used.", "outside of the tree"),
                           ("something else", "CRIU's web pages")):
            criu = self.fake_criu(f'echo "(00.1) Error (criu/x.c:1): {says}" > $work/log; exit 1')
            errors = entry_lines(self.host, "checkpoint", "dump", pid, self.path(), "--cut-pipes", "--criu", criu,
                                 code=1)
            self.assertRegex(errors, f"{says}\nhint: .*{hint}")
        self.check_runs()

    def test_criu_looks_from_another_directory(self):
        pid = self.running().pid
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.host.directory)
        path = os.path.basename(self.path())
        self.host.vgpu("checkpoint", "dump", pid, path, "--cut-pipes", "--leave-running", "--criu",
                       self.fake_criu("cd / && " + self.GOOD_DUMP))
        self.host.vgpu("checkpoint", "check", path)
        self.check_runs()

    def test_a_pipe_that_nobody_would_read_after_the_load_is_refused(self):
        pid = self.running().pid
        errors = entry_lines(self.host, "checkpoint", "dump", pid, self.path(), "--criu",
                             self.fake_criu(self.GOOD_DUMP), code=7)
        self.assertRegex(errors, rf"process {pid} writes to a pipe \(its descriptor [12]\) that "
                                 rf".* \(process {os.getpid()}\) reads")
        self.assertIn("--cut-pipes", errors)
        self.check_runs()

    def test_what_criu_could_not_stop_is_refused_at_once(self):
        pid = self.running().pid
        criu = self.fake_criu("exit 1")
        with traced(pid):
            errors = entry_lines(self.host, "checkpoint", "dump", pid, self.path(), "--cut-pipes", "--criu", criu,
                                 code=7)
            self.assertIn(f"process {pid} is traced by tracer (process ", errors)
        errors = entry_lines(self.host, "checkpoint", "dump", os.getpid(), self.path(), "--cut-pipes", "--criu",
                             criu, code=7)
        self.assertIn("this command itself is below it", errors)
        self.check_runs()

    def test_a_process_whose_image_cannot_be_finished_goes_on(self):
        pid = self.running().pid
        path = self.path()
        errors = entry_lines(self.host, "checkpoint", "dump", pid, path, "--cut-pipes", "--criu",
                             self.fake_criu(self.GOOD_DUMP), code=1,
                             environment=self.host.environment(OPENVGPU_FAULT="image.commit=fail"))
        self.assertIn("Input/output error", errors)
        self.assertFalse(os.path.exists(path) or os.path.exists(path + ".partial"))
        self.check_runs()

    def test_a_process_that_is_dumped_is_gone(self):
        pid = self.running().pid
        path = self.path()
        criu = self.fake_criu(self.GOOD_DUMP)
        answer = self.host.vgpu("checkpoint", "dump", pid, path, "--cut-pipes", "--criu", criu, "--json").json
        self.assertEqual((answer["pid"], answer["vgpu"]), (pid, "train"))
        self.assertGreater(answer["memory_bytes"], 0)
        self.assertEqual(self.guest.join(), -9)
        self.host.wait_state("train", "idle")
        self.host.vgpu("checkpoint", "check", path)
        with open(os.path.join(path, "criu", "pages-1.img"), "a") as file:
            file.write("x")
        self.assertIn("pages-1.img is too long",
                      entry_lines(self.host, "checkpoint", "load", path, "--criu", criu, code=1))

    def altered(self, path, change, back, says, criu):
        change(path)
        errors = entry_lines(self.host, "checkpoint", "load", path, "--criu", criu, code=None)
        back(path)
        self.assertRegex(errors, says)
        self.assertFalse(os.path.exists(self.restored_path), "nothing was made of it")

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_an_image_that_others_may_have_written_makes_no_process(self):
        pid = self.running().pid
        path = self.path()
        self.restored_path = os.path.join(self.host.directory, "restored")
        self.host.vgpu("checkpoint", "dump", pid, path, "--cut-pipes", "--criu",
                       self.fake_criu(self.GOOD_DUMP))
        self.guest.join()
        self.host.wait_state("train", "idle")
        criu = self.fake_criu("")
        with open(criu, "a") as file:
            file.write(f"""[ "$1" = restore ] || exit 0
while [ $# -gt 0 ]; do
        case $1 in --images-dir) folder=$2 ;; --libdir) plugins=$2 ;; esac
        shift
done
(cat $folder/pages-1.img; ls $plugins) > {self.restored_path}
""")
        for name in (".", "criu", "criu/pages-1.img", "manifest.json"):
            self.altered(path, lambda path: os.chown(os.path.join(path, name), 65534, 65534),
                         lambda path: os.chown(os.path.join(path, name), 0, 0),
                         "belongs to user 65534.*\nhint: .*its owner", criu)
            mode = os.stat(os.path.join(path, name)).st_mode & 0o777
            self.altered(path, lambda path: os.chmod(os.path.join(path, name), mode | 0o020),
                         lambda path: os.chmod(os.path.join(path, name), mode),
                         "can be altered by other users", criu)
        plugin = os.path.join(path, "criu", "plugin.so")
        self.altered(path, lambda _: os.symlink("/etc/passwd", plugin), lambda _: os.unlink(plugin),
                     "plugin.so is a link", criu)
        with open(plugin, "w"):
            pass
        self.host.vgpu("checkpoint", "load", path, "--criu", criu, code=None)
        with open(self.restored_path) as file:
            self.assertEqual(file.read(), "pages\n", "and no plugin of the image")

    def test_a_process_that_is_left_running_goes_on(self):
        pid = self.running().pid
        path = self.path()
        self.host.vgpu("checkpoint", "dump", pid, path, "--cut-pipes", "--leave-running", "--criu",
                       self.fake_criu(self.GOOD_DUMP))
        self.host.vgpu("checkpoint", "check", path)
        self.assertIn(f"there is a process {pid} already",
                      entry_lines(self.host, "checkpoint", "load", path, "--criu",
                                  self.fake_criu(""), code=7))
        self.check_runs()

    def test_the_whole_vgpu_or_nothing(self):
        pid = self.running().pid
        other = self.host.train("train", "--size", "4M")
        errors = entry_lines(self.host, "checkpoint", "dump", pid, self.path(), "--cut-pipes", "--criu",
                             self.fake_criu(self.GOOD_DUMP), code=7)
        self.assertIn(f"process {other.pid} is in vGPU train as well", errors)
        other.wait_steps()
        other.finish()
        self.check_runs()

    def test_a_process_without_a_usable_criu(self):
        self.guest = self.host.train(self.host.create("train"), "--size", "4M")
        fake = os.path.join(self.host.directory, "criu-old")
        with open(fake, "w") as file:
            file.write("#!/bin/sh\necho Version: 3.17.1\n")
        os.chmod(fake, 0o755)
        for criu, reason in ((fake, "is CRIU 3.17.1"), ("/nonexistent/criu", "there is no CRIU at"),
                             ("/bin/false", "does not start"), ("/bin/echo", "is not CRIU")):
            errors = entry_lines(self.host, "checkpoint", "dump", self.guest.pid, self.path(), "--cut-pipes",
                                 "--criu", criu, code=1)
            self.assertIn(reason, errors)
        self.assertEqual(self.host.get("train")["state"], "running")
        self.guest.wait_steps()
        self.guest.finish()


if __name__ == "__main__":
    case.main()
