#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Root's simulated host is for all users: what any of them writes there ends no process that has rights."""
import os
import stat
import subprocess
import unittest

import case

# All that a user can do to the files that he may write, and to names in the folders that he may write.
VANDAL = r"""
import os, signal, socket, stat, sys, time
how, top = sys.argv[1:]

def files(mode):
    for folder, folders, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if stat.S_ISREG(os.lstat(path).st_mode) and os.access(path, mode):
                yield path

def write_all(byte):
    for path in files(os.W_OK):
        fd = os.open(path, os.O_RDWR)
        os.pwrite(fd, bytes([byte]) * max(os.fstat(fd).st_size, 1 << 20), 0)

def replace(make):
    for folder, folders, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            try:
                os.unlink(path)
                make(path)
            except OSError:
                pass
        for number in range(1, 4):  # as if it were exported memory
            try:
                make(os.path.join(folder, f"0-2097152-0-{number}"))
            except OSError:
                pass

changes = {
    "truncated": lambda: [os.truncate(path, 0) for path in files(os.W_OK)],
    "one byte": lambda: [os.truncate(path, 1) for path in files(os.W_OK)],
    "ones": lambda: write_all(0xff),
    "signed": lambda: write_all(0x7f),
    "removed": lambda: replace(lambda path: None),
    "FIFOs": lambda: replace(os.mkfifo),
    "links": lambda: replace(lambda path: os.symlink("/dev/full", path)),
    "directories": lambda: replace(os.mkdir),
}
changes[how]()
"""

WAYS = ("truncated", "one byte", "ones", "signed", "removed", "FIFOs", "links", "directories")


@unittest.skipUnless(os.geteuid() == 0, "needs root to be another user")
class SimulatedHost(case.Case):
    def setUp(self):
        self.directory = os.path.join(self.host.run_directory, "sim")
        self.manager = self.host.manager.pid

    def be_vandal(self, how):
        where = os.path.join(self.host.directory, "vandal.py")
        with open(where, "w", encoding="utf-8") as script:
            script.write(VANDAL)
        for directory in (self.directory, os.path.realpath(self.memory())):
            subprocess.run(["/usr/bin/python3", where, how, directory], check=True, user="nobody",
                           stdin=subprocess.DEVNULL)

    def memory(self):
        inside = os.path.join(self.directory, "memory")
        if os.path.isdir(inside):
            return inside
        with open(os.path.join(self.directory, "host"), "rb") as host:
            return host.read()[16 + 256:][:256].split(b"\0")[0].decode()

    def test_another_user_cannot_write_what_the_devices_are(self):
        for path in (self.directory, os.path.join(self.directory, "host")):
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode) & 0o022, 0, path)
        with self.assertRaises(subprocess.CalledProcessError):
            subprocess.run(["truncate", "-s", "0", os.path.join(self.directory, "host")], check=True,
                           user="nobody", stderr=subprocess.DEVNULL)

    def test_no_change_ends_vgpud(self):
        for how in WAYS:
            with self.subTest(how=how):
                self.host.create("train", "64M")
                guest = self.host.train("train", "--size", "8M")
                self.host.vgpu("suspend", "train")
                self.host.vgpu("resume", "train")
                self.host.vgpu("suspend", "train", "--keep-context")  # there is a mover
                self.be_vandal(how)
                for command in ("suspend", "resume", "ls", "top --once", "suspend", "resume"):
                    words = command.split()
                    names = ["train", "--timeout", "5"] if words[0] in ("suspend", "resume") else []
                    self.host.vgpu(*words, *names, code=None)
                self.assertEqual(self.host.manager.pid, self.manager)
                self.assertIsNone(self.host.manager.poll(), self.host.log())
                self.assertNotIn("signal", self.host.log())
                self.begin_anew(guest)

    def begin_anew(self, guest):
        """With a machine that nobody has written to: the simulated one is made again when it is empty."""
        guest.kill()
        self.host.vgpu("rm", "--force", "--yes", "train", code=None)
        self.host.stop()
        self.host.start()
        self.manager = self.host.manager.pid


if __name__ == "__main__":
    case.main()
