#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the documents tell a reader to type works as it is typed, for root and for anybody else.

Each document is one session on a simulated host of its own: its blocks are typed in their order. A block
that cannot be typed here says why in the source (tests/system/blocks.py); what was left out is listed.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

import blocks
import case
import stage
from shell import Shell

DOCUMENTS = blocks.documents(pathlib.Path(__file__).resolve().parents[2])
OTHER_USER = "nobody"

# What a command may say or not, as things are: where a document shows it, it must be so.
SAYINGS = ("the rest had not changed", "its context stays on")

# "NAME  DEVICE  STATE": the titles of a table.
TITLES = re.compile(r"[A-Z][A-Z/]+( +[A-Z][A-Z/]*)+")


class Session(unittest.TestCase):
    def open_shell(self, user=None):
        directory = tempfile.mkdtemp(prefix="vg-", dir="/tmp")
        os.chmod(directory, 0o755)
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("OPENVGPU_", "CUDA_", "TEST_", "XDG_", "LD_"))}
        environment.update(OPENVGPU_RUN=f"{directory}/run", OPENVGPU_STATE=f"{directory}/state")
        shell = Shell(directory, environment, user)
        self.addCleanup(self.sweep_memory, f"{directory}/run/sim")
        self.addCleanup(shell.close)
        return shell

    def sweep_memory(self, host):
        """A mover that is about to end can keep vgpud from removing all of its machine's memory."""
        for link in pathlib.Path("/dev/shm").glob("openvgpu-sim-*/.host"):
            with contextlib.suppress(OSError):  # of another test, and gone
                if os.readlink(link) == host:
                    shutil.rmtree(link.parent)

    def check(self, where, answer, printed):
        """The exit status that the document shows, or 0; its titles of tables, and its sayings."""
        shown = re.search(r'"exit_code": (\d+)', "\n".join(printed))
        expected = int(shown[1]) if shown else 0
        self.assertEqual(answer.code, expected, f"{where}\n{answer.output}{answer.errors}")
        lines = [" ".join(line.split()) for line in answer.output.splitlines()]
        for line in printed:
            if TITLES.fullmatch(line.strip()):
                self.assertIn(" ".join(line.split()), lines, f"{where}\n{answer.output}")
            for saying in SAYINGS:
                if saying in line:
                    self.assertIn(saying, answer.output, where)


class Documents(Session):
    def type_block(self, shell, path, block):
        if block.is_afresh:
            shell.end_manager()
        commands = block.commands()
        lacking = block.lines_without(shell.has)
        for i, (command, printed) in enumerate(commands):
            where = f"{path.name}:{block.line}: {command}"
            if command in lacking:
                print(f"# not typed: {where} ({block.needs[0]} is not installed: {block.needs[1]})")
                continue
            is_endless = block.is_endless and i == len(commands) - 1
            answer = shell.type_and_interrupt(command) if is_endless else shell.type(command)
            self.check(where, answer, printed)

    def type_document(self, path, user=None):
        found = blocks.in_document(path)
        for block in found:
            if block.skipped:
                print(f"# not typed: {path.name}:{block.line} ({block.skipped})")
        typed = [block for block in found if not block.skipped]
        if not typed:
            return
        shell = self.open_shell(user)
        text = "\n".join(line for block in typed for line in block.text)
        if not re.search(r"\bvgpud .*&", text):
            shell.type("vgpud &")
            if not re.search(r"\bvgpu create train\b", text):
                shell.type("vgpu create train --fb 40G; vgpu run --vgpu train -- python3 train.py &")
        for block in typed:
            self.type_block(shell, path, block)

    def type_all(self, user=None):
        for path in DOCUMENTS:
            with self.subTest(path.name):
                self.type_document(path, user)
            self.doCleanups()  # one host at a time

    def test_this_user_types_them(self):
        self.type_all()

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
    def test_another_user_types_them(self):
        self.type_all(OTHER_USER)


class Examples(Session):
    """Those of every command's help, each on a host with a running vGPU "train" on GPU 0."""

    def commands(self, shell):
        described = json.loads(shell.type("vgpu help --json").output)["commands"]
        return [command["name"] for command in described]

    def set_up(self, shell):
        """As before the first command, whatever the one before has done."""
        vgpus = json.loads(shell.type("vgpu ls --json").output)["vgpus"]
        train = [vgpu for vgpu in vgpus if vgpu["name"] == "train"][0]
        if train["state"] != "running":
            self.assertEqual(shell.type("vgpu resume train --device 0").code, 0)
        elif train["device"] != 0:
            self.assertEqual(shell.type("vgpu migrate train --device 0").code, 0)
        for vgpu in vgpus:
            if vgpu["name"] != "train" and not vgpu["transient"]:  # such a one goes by itself
                self.assertEqual(shell.type(f"vgpu rm {vgpu['name']}").code, 0)
        shutil.rmtree(f"{shell.work}/train-1", ignore_errors=True)

    def test_they_work_as_typed(self):
        shell = self.open_shell()
        shell.type("vgpud --cdi containers.json &")
        shell.type("vgpu create train --fb 40G; vgpu run --vgpu train -- python3 train.py &")
        for name in self.commands(shell):
            with self.subTest(name):
                self.set_up(shell)
                block = blocks.in_help(shell.type(f"vgpu help {name}").output)
                self.assertTrue(1 <= len(block.text) <= 3, f"the help of '{name}' has {block.text}")
                self.assertTrue(any(f"vgpu {name}" in line for line in block.text), block.text)
                for line, _ in block.commands():
                    self.check(f"vgpu help {name}: {line}", shell.type(line), [])


class Marks(unittest.TestCase):
    """The reader of the documents leaves nothing out by itself."""

    def test_a_block_is_typed_unless_it_is_marked(self):
        found = blocks.in_markdown("```\none\n```\n<!-- not typed: why -->\n```\ntwo\n```\n\n"
                                   "```text\nthree\n```\n```\n$ four &\nfour's\n```\n")
        self.assertEqual([block.commands() for block in found],
                         [[("one", [])], [("two", [])], [("four &", ["four's"])]])
        self.assertEqual([block.skipped for block in found], [None, "why", None])

    def test_what_nobody_could_tell_is_refused(self):
        for text in ("words\n\n    indented\n", "```\nwithout an end\n", "<!-- not typed -->\n```\none\n```\n"):
            with self.assertRaises(ValueError, msg=text):
                blocks.in_markdown(text)

    def test_what_a_line_that_is_not_typed_would_have_set_is_not_used(self):
        (block,) = blocks.in_markdown("<!-- needs jq: Debian -->\n```\nls\npid=$(ls | jq .)\nkill $pid; wait $pid\nrm\n```\n")
        self.assertEqual(block.lines_without(lambda program: program != "jq"),
                         ["pid=$(ls | jq .)", "kill $pid; wait $pid", "rm"])
        self.assertEqual(block.lines_without(lambda program: True), [])

    def test_a_man_page(self):
        found = blocks.in_man_page('.Dl vgpu \\(dqone\\(dq\n.\\" not typed: why\n.Bd -literal\ntwo\n.Ed\n')
        self.assertEqual([block.text for block in found], [['vgpu "one"'], ["two"]])
        self.assertEqual([block.skipped for block in found], [None, "why"])


if __name__ == "__main__":
    case.main()
