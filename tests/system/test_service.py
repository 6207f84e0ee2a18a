#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpud as a service: watched, started by its sockets, with no more rights than it needs."""
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import unittest

from harness import MIB, Host
from wait import PATIENCE, until
from wire import Control

WATCHDOG_US = 300000


class Notified:
    """Where systemd listens to what a service says of itself."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def wait(self, word):
        self.socket.settimeout(PATIENCE)
        while word not in self.socket.recv(4096):
            pass

    def take(self):
        """What was said up to now."""
        said = []
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                said.append(self.socket.recv(4096))
        return said

    def is_silent(self, seconds):
        """Nothing is heard for so long, after what was said before."""
        self.take()
        self.socket.settimeout(seconds)
        try:
            return not self.socket.recv(4096)
        except TimeoutError:
            return True


class Reloaded(unittest.TestCase):
    def test_who_still_starts_does_not_say_ready(self):
        """SIGHUP during a recovery."""
        host = self.enterContext(Host(fake=True))
        notified = self.enterContext(Notified(host.root / "notify"))
        config = host.root / "vgpud.conf"
        config.write_text("")
        options = ("--config", str(config))
        host.start("suspend.closed=kill", options=options)
        host.call("CreateVgpu", name="train", frame_buffer=64 * MIB)
        guest = host.fake_guest("train", 2 * MIB)
        host.client().send("SuspendVgpu", name="train")
        host.wait_killed()
        guest.signal(signal.SIGSTOP)  # so it is not undone
        host.variables = {"NOTIFY_SOCKET": str(host.root / "notify")}
        log = host.root / "log"
        found = log.read_text().count("found device")
        host.start_only(options=options)
        until(lambda: log.read_text().count("found device") > found, "it to start")  # no signal ends it any more
        said = "the configuration was read again"

        def hang_up(times):
            host.manager.send_signal(signal.SIGHUP)
            until(lambda: log.read_text().count(said) == times, said)
        hang_up(1)
        self.assertEqual(notified.take(), [])
        guest.signal(signal.SIGCONT)
        notified.wait(b"READY=1")
        hang_up(2)
        notified.wait(b"RELOADING=1")
        notified.wait(b"READY=1")


class Watched(unittest.TestCase):
    def test_a_loop_that_hangs_says_nothing_and_guests_outlive_it(self):
        host = self.enterContext(Host(fake=True))
        notified = self.enterContext(Notified(host.root / "notify"))
        host.variables = {"NOTIFY_SOCKET": str(host.root / "notify"),
                          "WATCHDOG_USEC": str(WATCHDOG_US)}
        host.start()
        host.call("CreateVgpu", name="train", frame_buffer=64 * MIB)
        guest = host.fake_guest("train", 2 * MIB)
        for _ in range(3):
            notified.wait(b"WATCHDOG=1")
        (host.faults / "store.write=pause").touch()  # the loop waits there, its threads do not
        with Control(host.run / "control.sock") as control:
            control.send("CreateVgpu", name="late", frame_buffer=2 * MIB)
            host.wait_paused("store.write")
            self.assertTrue(notified.is_silent(4 * WATCHDOG_US / 1e6))
            keepers = host.keepers()
            host.manager.send_signal(signal.SIGABRT)  # as systemd does
            self.assertEqual(host.manager.wait(PATIENCE), -signal.SIGABRT)
        guest.wait_for("lost")
        self.assertEqual(host.keepers(), keepers, "what it holds outlives the manager")
        host.go_on("store.write")
        host.start()
        guest.wait_for("joined", 2)
        self.assertTrue(guest.is_intact())


class Activated(unittest.TestCase):
    """With sockets that somebody else listens on before, between and after managers."""

    def setUp(self):
        self.host = self.enterContext(Host(fake=True))
        self.host.run.mkdir()

    def listen(self, name, kind):
        listener = self.enterContext(contextlib.closing(socket.socket(socket.AF_UNIX, kind)))
        listener.bind(str(self.host.run / name))
        listener.listen()
        return listener

    def start(self, *listeners):
        """As systemd starts it: the descriptors begin with 3."""
        move = " ".join(f"{3 + i}<&{one.fileno()}" for i, one in enumerate(listeners))
        close = " ".join(f"{one.fileno()}<&-" for one in listeners
                         if one.fileno() >= 3 + len(listeners))
        script = self.host.root / "activate"
        script.write_text(f'#!/bin/bash\nexport LISTEN_FDS={len(listeners)} LISTEN_PID=$$\n'
                          f'exec "$0.vgpud" "$@" {move} {close}\n')
        script.chmod(0o755)
        program = script.with_suffix(".vgpud")
        if not program.exists():
            program.symlink_to(os.environ["TEST_VGPUD"])
        arguments = [script, "--run-dir", self.host.run, "--state-dir", self.host.state,
                     "--slab-size", "4M", "--driver", self.host.lib / "none"]
        (self.host.lib / "none").touch()
        self.host.manager = subprocess.Popen(
            list(map(str, arguments)), env=self.host.environment(), stdout=self.host.log,
            stderr=self.host.log, pass_fds=[one.fileno() for one in listeners])

    def both(self):
        # Above those that they become: a redirection in order overwrites none that comes later.
        with contextlib.ExitStack() as stack:
            for _ in range(8):
                stack.enter_context(open(os.devnull))
            return (self.listen("control.sock", socket.SOCK_STREAM),
                    self.listen("gate.sock", socket.SOCK_SEQPACKET))

    def inodes(self):
        return [os.stat(self.host.run / name).st_ino for name in ("control.sock", "gate.sock")]

    def test_who_connected_before_is_served_and_nobody_is_refused_in_between(self):
        listeners = self.both()
        inodes = self.inodes()
        early = self.enterContext(contextlib.closing(Control(self.host.run / "control.sock")))
        early.send("GetInfo")
        self.start(*listeners)
        self.assertTrue(early.receive())
        self.assertEqual(self.inodes(), inodes, "the sockets are those that were given")
        self.host.call("CreateVgpu", name="train", frame_buffer=64 * MIB)
        guest = self.host.fake_guest("train", 2 * MIB)

        self.host.stop_manager()
        guest.wait_for("lost")
        between = self.enterContext(contextlib.closing(Control(self.host.run / "control.sock")))
        between.send("GetInfo")
        self.start(*listeners)
        self.assertTrue(between.receive())
        guest.wait_for("joined", 2)
        self.assertTrue(guest.is_intact())

    def test_no_other_program_gets_them(self):
        self.start(*self.both())
        self.host.wait_ready()
        sockets = {os.readlink(f"/proc/{self.host.manager.pid}/fd/{fd}") for fd in (3, 4)}
        for pid in self.host.keepers():
            for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                self.assertNotIn(os.readlink(entry), sockets)

    def test_a_peer_sees_the_manager_and_not_who_made_the_socket(self):
        self.start(*self.both())
        self.host.wait_ready()
        with Control(self.host.run / "control.sock") as control:
            peer = control.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self.assertEqual(int.from_bytes(peer[:4], "little"), self.host.manager.pid)

    def test_one_of_them_is_enough(self):
        with contextlib.ExitStack() as stack:
            for _ in range(8):
                stack.enter_context(open(os.devnull))
            listener = self.listen("control.sock", socket.SOCK_STREAM)
        self.start(listener)
        self.host.wait_ready()
        self.host.call("CreateVgpu", name="train", frame_buffer=64 * MIB)
        self.assertTrue(self.host.fake_guest("train", 2 * MIB).is_intact())

    def test_a_socket_that_is_somewhere_else_is_named(self):
        with contextlib.ExitStack() as stack:
            for _ in range(8):
                stack.enter_context(open(os.devnull))
            other = self.listen("elsewhere.sock", socket.SOCK_STREAM)
        self.start(other)
        self.assertEqual(self.host.manager.wait(PATIENCE), 1)
        text = (self.host.root / "log").read_text()
        self.assertIn("descriptor 3", text)
        self.assertIn(str(self.host.run / "control.sock"), text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
