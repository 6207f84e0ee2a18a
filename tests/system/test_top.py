#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu top on a terminal, and accounting and usage as a user meets them."""
import csv
import io
import re
import signal
import time
import unittest

import case
import stage
from host import Host
from screen import Terminal
from wait import until

KERNEL_US = 3000


class Top(case.Case):
    HOST = {"devices": "2xH200:512M", "pool": "64M", "slab": "4M"}

    def top(self, *options, **terminal):
        terminal = Terminal([stage.VGPU, "top", "--delay", "0.1", *options],
                            self.host.environment(), **terminal)
        self.addCleanup(terminal.close)
        return terminal

    def busy(self, name="train"):
        return self.host.run(name, "guest-busy", KERNEL_US, "4M").wait_ready()

    def row_of(self, screen, name):
        found = [row for row in screen.text() if row.startswith(name)]
        return found[0] if found else None

    def wait_row(self, terminal, name, word):
        return terminal.wait(lambda s: word in (self.row_of(s, name) or ""),
                             f"the row of {name} to say {word}")

    # Tables.

    def test_a_table_is_as_wide_as_its_terminal(self):
        """Numbers are never cut, and a pipe gets all."""
        self.host.create("train")
        for command in (["ls", "-l"], ["devices"], ["usage", "--by", "part"]):
            whole = self.host.vgpu(*command).output.splitlines()
            for columns in (60, 80, 300):
                terminal = Terminal([stage.VGPU, *command], self.host.environment(), columns=columns)
                self.addCleanup(terminal.close)
                terminal.join()
                rows = terminal.raw.decode().replace("\r\n", "\n").splitlines()
                self.assertEqual(len(rows), len(whole), rows)
                last = max((whole[0].find(title) + len(title) for title in ("PROCESSES", "VGPUS", "USED GiB h")
                            if title in whole[0]), default=0)
                for row, line in zip(rows, whole):
                    if last + 3 >= columns or len(line) <= columns:
                        self.assertEqual(row, line)
                    else:
                        self.assertEqual(row, line[:columns - 3] + "...")
        self.assertNotIn("...", "".join(whole))

    # The screen.

    def test_it_shows_vgpus_and_programs_and_ends(self):
        guest = self.busy(self.host.create("train"))
        self.host.create("idle-one", device=1)
        terminal = self.top()
        screen = self.wait_row(terminal, "train", "running")
        self.assertTrue(screen.is_alternate)
        terminal.wait(lambda s: "100%" in self.row_of(s, "train").split("running")[1].split()[1],
                      "train to be entitled to all")
        terminal.wait_text(f"{guest.pid} guest-busy")
        self.wait_row(terminal, "idle-one", "idle")
        text = terminal.read().text()
        self.assertTrue(text[0].startswith("vgpu top"), text)
        self.assertTrue(text[1].startswith("GPU 0"), text)
        self.assertTrue(text[2].startswith("GPU 1"), text)
        self.assertTrue(text[3].startswith("VGPU / PROGRAM"), text)
        self.assertIn("q quit", text[-1])
        terminal.wait(lambda s: s.was_coloured, "a busy vGPU in colour")
        terminal.press("q")
        self.assertEqual(terminal.join(), 0)
        self.assertFalse(terminal.screen.is_alternate)

    def test_keys_sort_choose_and_hide(self):
        for name in ("aaa", "bbb", "ccc"):
            self.host.create(name, "64M")
        self.busy("bbb")
        terminal = self.top()

        def order(screen):
            return [row[:3] for row in screen.text() if row[:3] in ("aaa", "bbb", "ccc")]
        terminal.wait(lambda s: order(s) == ["bbb", "aaa", "ccc"], "the busy one first")
        terminal.press("n")
        terminal.wait(lambda s: order(s) == ["aaa", "bbb", "ccc"], "the order of names")
        terminal.wait_text("sorted by name")
        terminal.wait_text("guest-busy")
        terminal.press("p")
        terminal.wait(lambda s: not any("guest-busy" in row for row in s.text()), "no programs")
        terminal.wait(lambda s: s.reversed_rows() == [3, 4], "the first one chosen")
        terminal.press("\x1bOB\x1bOB")
        terminal.wait(lambda s: s.reversed_rows() == [3, 6], "the third one chosen")
        terminal.press("\x1bOB\x1bOA")
        terminal.wait(lambda s: s.reversed_rows() == [3, 5], "the second one chosen")
        terminal.press("h")
        terminal.wait_text("suspend the chosen vGPU")
        terminal.press("h")
        terminal.wait(lambda s: order(s) == ["aaa", "bbb", "ccc"], "the vGPUs again")

    def test_a_graph_of_the_last_minutes(self):
        def has_column(screen, ends):
            return any(row.startswith("   0% |") and row[-1] in ends for row in screen.text())
        self.busy(self.host.create("train"))
        self.host.create("idle-one", device=1)
        terminal = self.top(rows=30)
        self.wait_row(terminal, "train", "running")
        self.wait_row(terminal, "idle-one", "idle")
        terminal.press("u")
        terminal.wait(lambda s: s.text()[4].startswith("train"), "the busy one to be the first row")
        terminal.press("\x1bOA" * 3)
        terminal.press("g")
        screen = terminal.wait(lambda s: has_column(s, "#:."), "a graph of a busy vGPU")
        text = screen.text()
        self.assertTrue(text[4].startswith("train"), text)
        self.assertIsNone(self.row_of(screen, "idle-one"))
        self.assertTrue([row for row in text if re.search(r" ago +now$", row)], text)
        terminal.press("\x1bOB" * 3)
        terminal.wait(lambda s: self.row_of(s, "idle-one") and has_column(s, "_"), "a graph of the idle one")
        terminal.press("g")
        self.wait_row(terminal, "train", "running")

    def test_turns_are_a_strip_below_the_graph(self):
        for name, share in (("train", 75), ("serve", 25)):
            self.busy(self.host.create(name))
            self.host.vgpu("share", name, share)
        terminal = self.top("--sort", "name", rows=30)
        self.wait_row(terminal, "serve", "running")
        terminal.press("g")
        terminal.wait(lambda s: re.fullmatch(r"turns \|[#o ]*#[#o ]*o[#o ]*", s.text()[-3]) and
                      re.search(r"\d+ turns in [\d.]+ s: # its own", s.text()[-2]), "turns of both")

    def test_keys_suspend_and_resume(self):
        guest = self.busy(self.host.create("train"))
        terminal = self.top("--sort", "name")
        self.wait_row(terminal, "train", "running")
        terminal.press("s")
        self.wait_row(terminal, "train", "suspended")
        terminal.wait_text("suspended train: ")
        terminal.press("r")
        self.wait_row(terminal, "train", "running")
        terminal.wait_text("resumed train: ")
        terminal.press("r")
        terminal.wait_text("is running") # what 'vgpu resume' says of it
        self.assertTrue(guest.is_alive())

    def test_keys_change_the_share(self):
        self.busy(self.host.create("train"))
        self.host.create("with-train")  # without one a share changes nothing, and says so
        self.host.vgpu("share", "train", "40")
        terminal = self.top("--sort", "name")
        self.wait_row(terminal, "train", "running")
        terminal.press("+")
        until(lambda: self.host.get("train")["share"] == 45, "a share of 45 %")
        terminal.wait(lambda s: "45 %" in s.text()[-1], "what 'vgpu share' says")
        terminal.press("-")
        until(lambda: self.host.get("train")["share"] == 40, "a share of 40 %")

    def test_it_fits_wherever_it_is(self):
        for i in range(12):
            self.host.create(f"vgpu{i:02}", "16M")
        terminal = self.top("--sort", "name", rows=10, columns=40)
        terminal.wait(lambda s: self.row_of(s, "vgpu04"), "five vGPUs")
        self.assertIsNone(self.row_of(terminal.screen, "vgpu05"))
        terminal.press("\x1b[6~\x1b[6~\x1b[6~")
        terminal.wait(lambda s: self.row_of(s, "vgpu11") and not self.row_of(s, "vgpu06"),
                      "the last five")
        terminal.resize(30, 120)
        terminal.wait(lambda s: self.row_of(s, "vgpu00") and self.row_of(s, "vgpu11") and
                      "q quit" in s.text()[29], "all on a larger screen")
        for rows, columns in ((1, 1), (2, 5), (3, 200), (24, 80)):
            terminal.resize(rows, columns)
            terminal.wait(lambda s, n=columns: s.text()[0].startswith("vgpu top"[:n - 1]),
                          f"{rows}x{columns}")
        terminal.wait(lambda s: self.row_of(s, "vgpu11"), "all at 24x80")
        terminal.press("q")
        self.assertEqual(terminal.join(), 0)

    def test_no_word_is_cut_on_a_narrow_terminal(self):
        name = "a-vgpu-with-a-name-of-some-length"
        self.busy(self.host.create(name))
        terminal = self.top("--sort", "name", columns=40)
        terminal.wait(lambda s: "running" in (self.row_of(s, name[:8]) or ""), "the row")
        text = terminal.read().text()
        self.assertRegex(text[0], r"^vgpu top  \d\d:\d\d:\d\d  sorted by name$")
        self.assertRegex(text[1], r"^GPU 0  NVIDIA H200 +\d+%  +\w+/512M$")
        self.assertEqual(text[3].split(), ["VGPU", "STATE", "USE", "MEMORY"])
        self.assertEqual(text[4].split()[:2], [name[:len(text[4].split()[0]) - 1] + "+", "running"])
        self.assertEqual(text[-1], "q quit  h help  s suspend  r resume")
        terminal.press("h")

        def words_of(screen):
            return " ".join(" ".join(screen.text()[4:-1]).split())
        terminal.wait(lambda s: "s suspend the chosen vGPU: off its GPU, its programs wait" in words_of(s),
                      "the help")
        words = words_of(terminal.screen)
        self.assertNotIn("+", words.replace("+ - give", ""))

    def test_a_wide_terminal_shows_all_columns_and_whole_names(self):
        name = "a-vgpu-with-a-name-of-some-length"
        guest = self.busy(self.host.create(name))
        terminal = self.top(columns=200)
        terminal.wait(lambda s: "running" in (self.row_of(s, name) or ""), "the whole name")
        titles = terminal.read().text()[3]
        self.assertEqual(titles.split(), "VGPU / PROGRAM STATE GPU ENTITL USE MEM ENC DEC JPEG OFA "
                                         "MEMORY GPU TIME".split())
        self.assertIn("p programs", terminal.screen.text()[-1])
        self.assertGreater(len(terminal.screen.text()[1]), 100)
        once = self.host.vgpu("top", "--once").output.splitlines()
        self.assertIn(titles.split(), [line.split() for line in once])
        self.assertTrue(any(line.startswith(f"{name} ") for line in once), once)
        self.assertTrue(any(f"  {guest.pid} guest-busy " in line for line in once), once)
        terminal.resize(24, 40)
        terminal.wait(lambda s: s.text()[3].split() == ["VGPU", "STATE", "USE", "MEMORY"],
                      "fewer columns")

    def test_without_colours(self):
        self.busy(self.host.create("train"))
        terminal = self.top(term="vt100")
        self.wait_row(terminal, "train", "running")
        terminal.wait(lambda s: any("%" in row and "|" in row for row in s.text()), "a bar")
        self.assertFalse(terminal.screen.was_coloured)
        terminal.press("q")
        self.assertEqual(terminal.join(), 0)
        unknown = self.top(term="no-such-terminal")
        self.assertEqual(unknown.join(), 1)
        self.assertIn(b"set TERM", unknown.raw)

    def test_signals_end_it_with_the_terminal_as_it_was(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            terminal = self.top()
            terminal.wait_text("vgpu top")
            terminal.process.send_signal(number)
            self.assertEqual(terminal.join(), 0)
            self.assertFalse(terminal.screen.is_alternate)

    def test_it_outlives_the_manager(self):
        guest = self.busy(self.host.create("train"))
        terminal = self.top()
        self.wait_row(terminal, "train", "running")
        self.host.kill()
        terminal.wait_text("vgpud does not answer")
        terminal.wait_text("trying again")
        self.assertTrue(self.row_of(terminal.screen, "train"))  # what was known last
        self.host.start()
        terminal.wait(lambda s: not any("does not answer" in row for row in s.text()),
                      "the manager to be found again")
        self.wait_row(terminal, "train", "running")
        terminal.press("q")
        self.assertEqual(terminal.join(), 0)
        self.assertTrue(guest.is_alive())

    # Without a screen.

    def test_once_and_without_a_manager(self):
        guest = self.busy(self.host.create("train"))
        output = self.host.vgpu("top").output  # a pipe
        self.assertIn("train ", output)
        self.assertIn(f"{guest.pid} guest-busy", output)
        document = self.host.vgpu("top", "--json").json
        self.assertEqual(document["vgpus"][0]["processes"][0]["pid"], guest.pid)
        self.assertEqual(document["devices"][0]["source"], "engine")
        nobody = {**self.host.environment(), "OPENVGPU_RUN": "/nonexistent"}
        self.host.vgpu("top", "--once", code=5, environment=nobody)

    def test_accounting_and_usage(self):
        begin = time.strftime("%Y-%m-%d %H:%M", time.localtime(time.time() - 120))
        guest = self.busy(self.host.create("train"))
        until(lambda: self.host.vgpu("accounting", "train", "--json").json["records"]
              [0]["gpu_seconds"] > 0.05, "GPU time")
        guest.kill()
        self.assertIn(" ended ", until(lambda: [
            line for line in self.host.vgpu("accounting", "train").output.splitlines()
            if str(guest.pid) in line and "ended" in line], "the end of the guest")[0])
        record = self.host.vgpu("accounting", "train", "--json").json["records"][0]

        def bill(by):
            text = self.host.vgpu("usage", "--since", begin, "--by", by, "--csv").output
            return list(csv.DictReader(io.StringIO(text)))
        mine = [row for row in bill("process") if int(row["pid"]) == guest.pid]
        self.assertAlmostEqual(float(mine[0]["gpu_seconds"]), record["gpu_seconds"], places=8)
        self.assertEqual(mine[0]["name"], "guest-busy")
        for by in ("tenant", "vgpu", "device"):
            total = sum(float(row["gpu_seconds"]) for row in bill(by))
            self.assertGreaterEqual(total, record["gpu_seconds"])
        self.assertIn("train", self.host.vgpu("usage", "--since", "1h").output)
        empty = self.host.vgpu("usage", "--since", "2001-01-01", "--until", "2001-01-02", "--json")
        self.assertEqual(empty.json["rows"], [])
        self.host.vgpu("usage", "--since", "today", "--until", "7d", code=2)
        self.host.vgpu("accounting", "nobody", code=3)
        self.assertIn("forgot 1 process", self.host.vgpu("accounting", "train", "--clear").output)
        self.assertEqual(self.host.vgpu("accounting", "train", "--json").json["records"], [])


class Demand(unittest.TestCase):
    """What vGPUs of an overcommitted GPU do by themselves: vgpu ls and vgpu top say so in words. One fits at a time."""

    MEMORY = ("--size", "160M", "--piece", "8M")

    def setUp(self):
        self.host = Host(devices="1xH200:256M", pool="1G", options=("--overcommit", "all", "--swap-time", "100"))
        self.addCleanup(self.host.close, expect_clean=False)
        self.host.start()

    def guest(self, name, *options):
        self.host.create(name, "200M")
        self.host.vgpu("idle", name, "1h", "--keep-context")
        return self.host.train(name, *self.MEMORY, "--seed", 1000 * self.host.n_guests, "--on-demand", *options)

    def row(self, command, name):
        return next(line for line in self.host.vgpu(*command).output.splitlines() if line.startswith(name))

    def wait_shown(self, name, ls, top):
        """Both tables, one after the other."""
        until(lambda: re.search(ls, self.row(["ls"], name)), f"ls to say {ls}", context=lambda: self.row(["ls"], name))
        until(lambda: re.search(top, self.row(["top", "--once"], name)), f"top to say {top}",
              context=lambda: self.row(["top", "--once"], name))

    def test_on_the_way(self):
        first, second = self.guest("first"), self.guest("second")
        self.host.wait_state("first", "evicted")
        self.wait_shown("second", r"running, idle \d+ s", r"idle \d+ s")
        self.host.arm("mover.passed", "pause")  # the other one has let go of a part
        first.write("")
        try:
            self.host.wait_paused("mover.passed")
            self.wait_shown("first", r"coming in, \d+ %", r"coming \d+%")
            self.wait_shown("second", "leaving", "leaving|leaves")
        finally:
            self.host.remove_pause("mover.passed")
        until(lambda: first.steps() == 2, "the step")
        self.wait_shown("first", "running", r"running|idle \d+ s")
        self.wait_shown("second", "away", "away")

    def test_who_waits_is_told_for_whom(self):
        waits = self.guest("waits")
        self.host.create("held", "200M")
        held = self.host.run("held", "guest-hold", "120M").wait_ready()
        held.hold("device")
        self.host.wait_state("waits", "evicted")
        held.hold("imported")
        waits.write("")
        self.wait_shown("waits", "waiting for memory", "waits: mem")
        until(lambda: re.search("held .*without a gate", self.host.vgpu("ls").output), "the reason",
              context=lambda: self.host.vgpu("ls").output)
        held.hold("nothing")
        until(lambda: waits.steps() == 2, "the step")


if __name__ == "__main__":
    case.main()
