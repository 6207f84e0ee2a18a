#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images with a parent: only what differs is written, and nothing is loaded without the right parents."""
import contextlib
import os
import shutil
import subprocess
import unittest

import case
import stage
from images import ImageCase, entry_lines
from wait import until

MIB = 1 << 20
SIZE, STILL = 20 * MIB, 16 * MIB  # of five pieces the steps change one


class Parents(ImageCase):
    def suspended(self, *arguments):
        return super().suspended(*arguments, "--piece", "4M", "--still", "4")

    def dump_on(self, parent, *options):
        """The path of the image, and what the command says."""
        path = self.path()
        said = self.host.vgpu("checkpoint", "dump", "train", path, "--parent", parent, *options,
                              "--json").json
        return path, said

    def stored(self, path):
        return os.path.getsize(os.path.join(path, "memory.data"))

    @contextlib.contextmanager
    def paused(self, point, *words):
        """The command, which waits there; it continues at the end."""
        self.host.arm(point, "pause")
        with subprocess.Popen([str(stage.VGPU), *words], env=self.host.environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            self.host.wait_paused(point)
            yield child
            self.host.remove_pause(point)
            child.errors = child.communicate()[1]

    def test_a_chain_of_images_is_loaded_in_any_order(self):
        self.suspended()
        first = self.dump()
        self.step_on()
        second, said = self.dump_on(first)
        self.assertGreaterEqual(said["inherited_bytes"], STILL - 2 * MIB)
        self.assertEqual(said["ancestors"], [first])
        self.assertLess(self.stored(second), SIZE // 2)
        self.step_on()
        third, said = self.dump_on(second, "--compress", "zstd")
        self.assertEqual(said["ancestors"], [second, first])
        for path in (first, second, third):
            answer = self.host.vgpu("checkpoint", "check", path, "--json").json
            self.assertEqual(answer["memory_bytes"], said["memory_bytes"])
            self.load(path)
        self.assertEqual(self.host.vgpu("checkpoint", "check", third).output.splitlines()[1:],
                         [f"  needs {second}", f"  needs {first}"])
        self.check_goes_on()

    def test_what_is_loaded_is_of_the_moment_of_its_dump(self):
        self.suspended()
        first = self.dump()
        second, _ = self.dump_on(first)
        self.assertEqual(self.stored(second), 0)
        self.step_on()
        self.load(second)
        self.host.vgpu("resume", "train")
        until(lambda: any("BAD" in line for line in self.guest.log_lines()),
              "the guest to notice", context=self.guest.context)

    # Parents that are not there, or not the ones.

    def test_a_parent_that_is_not_there_or_another_changes_nothing(self):
        self.suspended()
        first = self.dump()
        second, _ = self.dump_on(first)
        moved = first + "-elsewhere"
        os.rename(first, moved)
        for command in (("load", second, "--vgpu", "train"), ("check", second),
                        ("dump", "train", self.path(), "--parent", second)):
            errors = entry_lines(self.host, "checkpoint", *command, code=1)
            self.assertIn(f"{second} needs its parent {first}, which is not there", errors)
            self.assertIn("hint: put the parent there, or beside", errors)
        self.host.vgpu("checkpoint", "dump", "train", first)
        errors = self.load(second, code=1).errors
        self.assertIn(f"needs its parent {first}, which is another image now", errors)
        shutil.rmtree(first)
        os.rename(moved, first)
        self.load(second)
        self.check_goes_on()

    def test_a_parent_that_is_none_says_what_to_do(self):
        self.suspended()
        missing, loop = self.path(), self.path()
        os.symlink(loop, loop)
        for parent, why in ((missing, "No such file or directory"), (loop, "it is a symbolic link, or")):
            errors = entry_lines(self.host, "checkpoint", "dump", "train", self.path(), "--parent", parent, code=1)
            self.assertIn(f"cannot open the image {parent}: {why}", errors)
            self.assertIn("hint: name ", errors)
        os.unlink(loop)
        self.check_goes_on()

    def test_what_cannot_be_a_parent_of_this_image(self):
        self.suspended()
        other = self.host.train(self.host.create("other"), "--size", "4M")
        self.host.vgpu("suspend", "other")
        foreign = self.path()
        self.host.vgpu("checkpoint", "dump", "other", foreign)
        readable = self.dump()
        os.chmod(os.path.join(readable, "memory.hashes"), 0o644)
        for parent, reason in ((foreign, "can be no parent: it is an image of vGPU other"),
                               (readable, "memory.hashes is open to other users"),
                               ("/nonexistent", "cannot open the image /nonexistent"),
                               ("/tmp", "/tmp has no manifest")):
            path = self.path()
            errors = entry_lines(self.host, "checkpoint", "dump", "train", path, "--parent", parent,
                                 code=None)
            self.assertIn(reason, errors)
            self.assertFalse(os.path.exists(path) or os.path.exists(path + ".partial"))
        self.host.vgpu("resume", "other")
        other.finish()
        self.check_goes_on()

    # What ends, or fails, in the middle.

    def test_a_parent_that_is_removed_while_it_is_needed(self):
        self.suspended()
        first = self.dump()
        self.step_on()
        path = self.path()
        with self.paused("image.write", "checkpoint", "dump", "train", path, "--parent", first) as dump:
            shutil.rmtree(first)
        self.assertIn(f"{first}, which the image needs, was removed", dump.errors)
        self.assertEqual(dump.returncode, 1)
        self.assertFalse(os.path.exists(path) or os.path.exists(path + ".partial"))
        self.check_goes_on()

    def test_a_parent_that_is_removed_while_it_is_loaded(self):
        self.suspended()
        first = self.dump()
        second, _ = self.dump_on(first)
        with self.paused("image.read", "checkpoint", "load", second, "--vgpu", "train") as load:
            shutil.rmtree(first)
        self.assertEqual(load.returncode, 0, load.errors)
        self.check_goes_on()

    def test_a_dump_that_fails_or_is_killed_leaves_no_image(self):
        self.suspended()
        first = self.dump()
        self.step_on()
        path = self.path()
        for point in ("image.write", "image.hashes", "image.commit"):
            for action, code in (("fail", 1), ("kill", -9)):
                environment = self.host.environment(OPENVGPU_FAULT=f"{point}={action}")

                def is_told():
                    done = self.host.vgpu("checkpoint", "dump", "train", path, "--parent", first,
                                          code=None, environment=environment)
                    return done.code != 7 and done  # busy: it has not heard of the last one's end

                self.assertEqual(until(is_told, "the manager to be free").code, code, point)
                self.assertFalse(os.path.exists(path), point)
        until(lambda: self.host.vgpu("checkpoint", "dump", "train", path, "--parent", first,
                                     code=None).code == 0, "the manager to be free")
        self.load(path)
        self.check_goes_on()

    # Dumps of processes.

    def test_a_process_is_dumped_on_its_last_image(self):
        pid = self.running().pid
        criu = self.fake_criu(self.GOOD_DUMP)
        first, second = self.path(), self.path()
        dump = ("checkpoint", "dump", pid, first, "--cut-pipes", "--leave-running", "--criu", criu)
        self.host.vgpu(*dump)
        said = self.host.vgpu(*dump[:3], second, *dump[4:], "--parent", first, "--json").json
        self.assertEqual(said["ancestors"], [first])
        self.host.vgpu("checkpoint", "check", second)
        self.check_runs()

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_a_parent_that_others_may_have_written_makes_no_process(self):
        pid = self.running().pid
        criu = self.fake_criu(self.GOOD_DUMP)
        first, second = self.path(), self.path()
        dump = ("checkpoint", "dump", pid, first, "--cut-pipes", "--criu", criu)
        self.host.vgpu(*dump, "--leave-running")
        self.host.vgpu(*dump[:3], second, *dump[4:], "--parent", first)
        self.guest.join()
        self.host.wait_state("train", "idle")
        for name in (".", "memory.data"):
            os.chown(os.path.join(first, name), 65534, 65534)
            errors = entry_lines(self.host, "checkpoint", "load", second, "--criu", criu, code=None)
            self.assertIn(f"{first}/{name} belongs to user 65534", errors)
            os.chown(os.path.join(first, name), 0, 0)

    def test_a_process_that_is_no_guest_has_no_parent(self):
        child = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        errors = entry_lines(self.host, "checkpoint", "dump", child.pid, self.path(), "--cut-pipes",
                             "--parent", self.host.directory, "--criu", self.fake_criu("exit 1"),
                             code=1)
        self.assertIn("it is no guest of a vGPU", errors)


if __name__ == "__main__":
    case.main()
