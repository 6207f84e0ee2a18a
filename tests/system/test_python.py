#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: what vgpud answers as objects, operations, and what is undone at the end of a block."""
import contextlib
import copy
import importlib.util
import inspect
import io
import os
import pathlib
import pickle
import re
import subprocess
import sys
import time
import unittest

import case
import stage
from wait import PATIENCE, until

openvgpu = stage.package()

MIB = 1 << 20


class Python(case.Case):
    def setUp(self):
        self.client = openvgpu.Client(self.host.run_directory)
        self.addCleanup(self.client.close)

    def test_a_vgpu_is_created_suspended_moved_and_removed(self):
        vgpu = self.client.create("train", "64M", device=1)
        self.assertEqual((vgpu.name, vgpu.frame_buffer, vgpu.device, vgpu.state, vgpu.processes),
                         ("train", 64 * MIB, 1, "idle", ()))
        self.assertEqual([device.memory_promised for device in self.client.devices()], [0, 64 * MIB])
        self.assertEqual(self.client.rename("train", "other").uuid, vgpu.uuid)
        self.client.rename("other", "train")
        self.assertEqual(self.client.resize("train", "80M").frame_buffer, 80 * MIB)
        guest = self.host.train("train", "--size", "4M")
        stages = []
        report = self.client.suspend("train", progress=lambda progress: stages.append(progress.stage))
        self.assertEqual((report.vgpu.state, report.processes, report.from_device), ("suspended", 1, 1))
        self.assertGreaterEqual(report.bytes, 4 * MIB)
        self.assertIn("copying", stages)
        self.assertEqual(self.client.resume("train", device=0).to_device, 0)
        self.assertEqual(self.client.migrate("train", 1).vgpu.device, 1)
        guest.wait_steps()
        self.assertEqual([process.pid for process in self.client.vgpu("train").processes], [guest.pid])
        with self.assertRaises(openvgpu.Busy) as refused:
            self.client.remove("train")
        self.assertIn("train", refused.exception.message)
        self.assertTrue(refused.exception.hint)
        guest.kill()
        self.host.wait_state("train", "idle")
        self.assertEqual(self.client.remove("train").name, "train")
        self.assertEqual(self.client.vgpus(), [])

    def test_when_a_vgpu_leaves_and_how_it_waits(self):
        vgpu = self.client.create("nb", "32M", idle_after=60, swap_class="interactive")
        self.assertEqual((vgpu.idle_after, vgpu.swap_class, vgpu.swaps, vgpu.demand_percent), (60, "interactive", 0, 0))
        vgpu = self.client.set_idle("nb", 30, keep_context=True)
        self.assertEqual((vgpu.idle_after, vgpu.idle_keep_context), (30, True))
        self.assertEqual(self.client.set_idle("nb", None).idle_after, 0)
        self.assertEqual(self.client.set_class("nb", "batch").swap_class, "batch")
        used = [used for used in self.client.utilization().vgpus if used.name == "nb"][0]
        self.assertEqual((used.swap_class, used.swaps, used.host_memory), ("batch", 0, 0))
        self.client.remove("nb")

    def test_what_a_newer_vgpud_answers_is_there(self):
        vgpu = openvgpu.Vgpu.from_answer({"id": 1, "name": "train", "uuid": "u", "device": 0, "state": "idle",
                                          "a_later_member": 7})
        self.assertEqual((vgpu.a_later_member, vgpu.idle_after, copy.copy(vgpu)), (7, 0, vgpu))
        self.assertEqual(pickle.loads(pickle.dumps(vgpu)).a_later_member, 7)
        with self.assertRaisesRegex(AttributeError, "another_member"):
            print(vgpu.another_member)

    def test_a_block_ends_with_what_it_began_undone(self):
        with self.client.created("train", "64M", device=0):
            guest = self.host.train("train", "--size", "4M")
            with self.assertRaisesRegex(RuntimeError, "in the block"):
                with self.client.suspended("train", device=1) as report:
                    self.assertEqual(self.client.vgpu("train").state, "suspended")
                    self.assertEqual(report.from_device, 0)
                    with self.assertRaises(openvgpu.WrongState):
                        with self.client.suspended("train"):
                            self.fail("it is suspended already")
                    raise RuntimeError("in the block")
            self.assertEqual((self.client.vgpu("train").state, self.client.vgpu("train").device), ("running", 1))
            guest.wait_steps()
            guest.finish()
            self.host.wait_state("train", "idle")
        self.assertEqual(self.client.vgpus(), [])

    def test_a_program_is_started_in_a_vgpu(self):
        self.client.create("train", "64M")
        program = self.client.start("train", [stage.GUESTS / "guest-hold"], stdin=subprocess.PIPE,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.host.wait_for("train", lambda vgpu: vgpu["processes"], "to have a program")
            self.assertEqual([process.pid for process in self.client.vgpu("train").processes], [program.pid])
        finally:
            program.kill()
            program.communicate()

    def test_the_document_is_right(self):
        """Its blocks, one after another, with a program of ours."""
        source = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
        text = "\n".join(re.findall(r"^```python\n(.*?)^```", source.read_text(), flags=re.M | re.S))
        log = os.path.join(self.host.directory, "steps-document")
        command = [str(stage.GUESTS / "guest-train"), "--size", "4M", "--log", log]
        text = text.replace('["python3", "train.py"]', f"{command}, stdout=subprocess.PIPE")
        text = text.replace('"40G"', '"64M"').replace("subprocess.PIPE)", "subprocess.PIPE)\n"
                                                     "program.stdout.readline()  # it is ready")
        os.environ["OPENVGPU_RUN"] = self.host.run_directory
        self.addCleanup(os.environ.pop, "OPENVGPU_RUN")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            names = {"subprocess": subprocess}
            exec(compile(text, str(source), "exec"), names)  # pylint: disable=exec-used
        names["program"].stdout.close()
        self.assertIn("vGPU train has 1 process", printed.getvalue())
        self.assertIn("on GPU 1", printed.getvalue())

    def test_what_is_used_is_told(self):
        self.client.create("train", "64M")
        guest = self.host.train("train", "--size", "4M")
        self.client.set_share("train", 30)
        use = self.client.utilization()
        self.assertEqual([device.index for device in use.devices], [0, 1])
        self.assertEqual([(vgpu.name, vgpu.share) for vgpu in use.vgpus], [("train", 30)])
        self.assertEqual([process.pid for process in use.vgpus[0].processes], [guest.pid])
        self.assertIsInstance(use.vgpus[0].seconds.gpu_seconds, float)
        self.assertEqual([(account.pid, account.running) for account in self.client.accounting("train")],
                         [(guest.pid, True)])
        until(lambda: guest.pid in [row.pid for row in self.client.usage(time.time() - 3600, by="process")],
              "the ledger to have it")
        self.assertGreater(self.client.info().pool.limit, 0)
        events = self.client.events("train")
        self.assertEqual([(event.event, event.pid) for event in events], [("created", 0), ("process-began", guest.pid), ("share", 0)])
        self.assertEqual(self.client.events("train", after=events[0].id), events[1:])

    def test_errors_have_classes(self):
        with self.assertRaises(openvgpu.NoSuchVgpu) as refused:
            self.client.suspend("nobody")
        self.assertEqual(refused.exception.name, "NoSuchVgpu")
        with self.assertRaises(openvgpu.InvalidParameter):
            self.client.create("no good name", "64M")
        with self.assertRaises(ValueError):
            self.client.create("train", "much")
        with self.assertRaises(openvgpu.NoManager):
            openvgpu.Client("/nonexistent").vgpus()
        self.assertEqual(self.client.vgpus(), [], "the connection is as good as before")

    def test_a_new_manager_is_found_and_a_child_has_its_own_connection(self):
        self.assertEqual(self.client.vgpus(), [])
        pid = os.fork()
        if pid == 0:
            os._exit(0 if self.client.vgpus() == [] else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertEqual(self.client.vgpus(), [])
        self.host.restart()
        with self.assertRaises(openvgpu.ConnectionLost):
            self.client.vgpus()
        self.assertEqual(self.client.vgpus(), [])

    def test_the_module_has_what_a_client_has(self):
        names = {name for name, _ in inspect.getmembers(openvgpu.Client, inspect.isfunction)
                 if name[0] != "_"} - {"call", "close"}
        for name in names:
            self.assertEqual(getattr(openvgpu, name).__doc__, getattr(openvgpu.Client, name).__doc__)
            self.assertTrue(getattr(openvgpu, name).__doc__, name)
        self.assertLessEqual(names, set(openvgpu.__all__))
        os.environ["OPENVGPU_RUN"] = self.host.run_directory
        self.addCleanup(os.environ.pop, "OPENVGPU_RUN")
        self.assertEqual(openvgpu.vgpus(), [])
        with openvgpu.created(frame_buffer=4 * MIB) as vgpu:
            self.assertEqual(openvgpu.vgpu(vgpu.uuid), vgpu)

    def test_the_wheel_is_installed_into_an_environment_of_its_own(self):
        """Without the network: pip comes with Python, and the package needs no other."""
        if not importlib.util.find_spec("ensurepip"):
            self.skipTest("needs ensurepip: apt-get install python3-venv")
        source = pathlib.Path(__file__).resolve().parents[2]
        folder = pathlib.Path(self.host.directory) / "wheel"
        wheel = subprocess.run([sys.executable, source / "scripts" / "wheel", folder], check=True,
                               capture_output=True, text=True).stdout.strip()
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, timeout=10 * PATIENCE)
        python = folder / "venv" / "bin" / "python"
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
        clean["OPENVGPU_RUN"] = self.host.run_directory

        def pip(*arguments):
            return subprocess.run([python, "-m", "pip", "--disable-pip-version-check", *arguments], check=True,
                                  capture_output=True, text=True, env=clean, timeout=10 * PATIENCE).stdout
        pip("install", "--no-index", wheel)
        self.assertIn("openvgpu", pip("list"))
        with openvgpu.Client(self.host.run_directory).created("wheel", "64M"):
            listed = subprocess.run([python, "-c", "import openvgpu; print(openvgpu.__file__, openvgpu.vgpu('wheel').name)"],
                                    check=True, capture_output=True, text=True, env=clean).stdout.split()
        self.assertTrue(listed[0].startswith(str(folder / "venv")), listed)
        self.assertEqual(listed[1], "wheel")
        pip("uninstall", "--yes", "openvgpu")
        self.assertNotIn("openvgpu", pip("list"))


if __name__ == "__main__":
    case.main()
