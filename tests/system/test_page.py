#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The live page in a real browser: what it shows is what `vgpu ls` says, and hostile names do nothing."""
import re
import select
import socket
import threading
import unittest
import urllib.parse

import case
import webdriver
from browsing import READ_TABLE, SIZES, Browsing
from exporter import Exporter
from wait import PATIENCE, until

HOSTILE = '<img src=x onerror="window.evil=1">'


@unittest.skipIf(webdriver.why_not(), webdriver.why_not())
class Page(Browsing):
    def listed(self):
        """{name: (device, state, frame buffer, programs)} as `vgpu ls` prints them."""
        rows = [line.split("  ") for line in self.host.vgpu("ls").output.splitlines()[1:]]
        cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
        return {name: (device, state, memory, programs) for name, device, state, _, _, memory, programs in cells}

    def shown(self):
        return {row[0]: (row[1], row[2], row[3], row[6]) for row in self.browser.run(READ_TABLE)}

    def wait_shown(self, what):
        """Until the page shows what the command prints."""
        return until(lambda: self.shown() == self.listed() and self.shown() or None, what,
                     context=lambda: f"shown {self.shown()}\nlisted {self.listed()}\n{self.host.log()}")

    def test_it_shows_what_the_command_prints(self):
        self.open_live()
        until(lambda: self.browser.run("return !document.getElementById('none').hidden"), "'no vGPU yet'")
        self.host.create("train")
        self.host.create("moved", "64M", device=1)
        self.host.vgpu("share", "train", 60)
        self.host.train("train", "--size", "8M")
        self.host.train("moved", "--size", "4M")
        self.wait_shown("two running vGPUs")
        self.host.vgpu("suspend", "moved")
        self.assertEqual(self.wait_shown("a suspended vGPU")["moved"][:2], ("-", "suspended"))
        self.host.vgpu("resume", "moved", "--device", 0)
        self.assertEqual(self.wait_shown("a vGPU on the other device")["moved"][:2], ("0", "running"))
        used = self.browser.run("return document.querySelector('.device .label span:last-child').textContent")
        self.assertEqual(used, "12 MiB / 320 MiB")
        for guest in self.host.guests:
            guest.kill()
        self.host.wait_state("moved", "idle")
        self.host.vgpu("rm", "moved")
        self.wait_shown("one vGPU less")
        self.assertEqual(self.browser.complaints(), [])

    def test_it_fits_a_telephone(self):
        self.host.create("a-name-that-is-as-long-as-a-name-may-be-" + "x" * 23)
        self.open()
        self.addCleanup(self.browser.resize, 1280, 800)
        for width, height in SIZES:
            for is_dark in (False, True):
                self.browser.resize(width, height, is_dark)
                self.wait_shown("the vGPU")
                self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)

    def test_a_manager_that_goes_and_comes(self):
        self.open_live()
        self.host.kill()
        until(lambda: self.status() == "vgpud does not run, or does not answer", "the page to say so", context=self.status)
        self.host.start()
        until(lambda: self.status() == "live, simulated GPUs", "the page to be live again", context=self.status)

    def test_an_exporter_that_goes_and_comes(self):
        exporter = Exporter(self.host)
        self.addCleanup(lambda: exporter.close())
        self.host.create("train")
        self.browser.open(urllib.parse.urljoin(exporter.url, "/"))
        self.wait_shown("the vGPU")
        exporter.close()
        until(lambda: self.status().startswith("no connection to vgpu-exporter"), "the page to say so",
              context=self.status)
        self.host.vgpu("rename", "train", "renamed")
        exporter = Exporter(self.host, "--listen", urllib.parse.urlsplit(exporter.url).netloc)
        self.wait_shown("the new name")
        self.assertEqual(self.status(), "live, simulated GPUs")

    def test_too_many_look(self):
        """It says so, and goes on when one of them has left."""
        address = urllib.parse.urlsplit(self.exporter.url)
        others = []
        self.addCleanup(lambda: [other.close() for other in others])

        def take_place():
            other = socket.create_connection((address.hostname, address.port), PATIENCE)
            other.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            is_placed = b" 200 " in other.recv(4096)
            if is_placed:
                others.append(other)
            else:
                other.close()
            return is_placed

        def read():
            """One that does not read loses its place."""
            while not is_over.is_set():
                for other in select.select(list(others), [], [], 0.1)[0]:
                    other.recv(1 << 16)
        is_over = threading.Event()
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        until(lambda: not take_place(), "all places to be taken")
        self.open()
        until(lambda: self.status() == "too many look at the page; close another one; trying again",
              "the page to say so", context=self.status)
        is_over.set()
        reader.join()
        for other in others:
            other.close()
        until(lambda: self.status() == "live, simulated GPUs", "the page to be live", context=self.status)

    def test_a_slow_network(self):
        self.browser.slow_down(300, 16000)
        self.addCleanup(self.browser.slow_down)
        for i in range(20):
            self.host.create(f"v{i}", "2M")
        self.open()
        self.wait_shown("twenty vGPUs")
        self.host.vgpu("share", "v7", 60)
        self.host.vgpu("rename", "v3", "renamed")
        self.host.vgpu("rm", "v5")
        self.wait_shown("what has changed")
        until(lambda: "(share 60)" in dict((row[0], row[4]) for row in self.browser.run(READ_TABLE))["v7"],
              "the share", context=lambda: self.browser.run(READ_TABLE))

    def test_a_full_table(self):
        for i in range(200):
            self.host.call("CreateVgpu", name=f"v{i}", frame_buffer=2 << 20, device=str(i % 2))
        self.open()
        self.wait_shown("200 vGPUs")
        self.host.train("v17", "--size", "1M")
        self.host.vgpu("suspend", "v17")
        self.host.vgpu("rm", "v99")
        self.assertEqual(self.wait_shown("one suspended, one gone")["v17"][1], "suspended")
        self.assertEqual(self.browser.run("return document.querySelectorAll('.device .legend li').length"), 199)
        self.assertEqual(self.browser.complaints(), [])

    def test_what_is_in_sight_comes_first(self):
        """Of 200 rows the few in sight are drawn with the next frames, and the others a few at a time."""
        for i in range(200):
            self.host.call("CreateVgpu", name=f"v{i}", frame_buffer=2 << 20, device=str(i % 2))
        self.open()
        self.wait_shown("200 vGPUs")
        state = self.browser.run_async("""
                const done = arguments[0], text = row => row.cells[3].textContent;
                events.close();
                document.getElementById('vgpus').scrollIntoView();
                const wait = n => requestAnimationFrame(() => n ? wait(n - 1) : change());
                const change = () => {
                        takeChange({ base: base.number, number: latest.number + 1, time: Date.now(), devices: [],
                                vgpus: latest.vgpus.map((vgpu, i) => [i, "running", vgpu.device, 1 << 20, 0, 0, 0, 0]) });
                        look(2);
                };
                const look = n => requestAnimationFrame(() => n ? look(n - 1) :
                        done([text(document.querySelector('#vgpus tbody').rows[2]),
                              text(document.querySelector('#vgpus tbody').rows[199])]));
                wait(5);
                """)
        self.assertEqual(state, ["1 MiB / 2 MiB", "0 B / 2 MiB"])
        until(lambda: self.browser.run(READ_TABLE)[199][3] == "1 MiB / 2 MiB", "the last row to be drawn")

    def test_no_figure_is_cut(self):
        """The longest ones, from a telephone to a laptop, on a page of a vGPU as well."""
        self.addCleanup(self.browser.resize, 1280, 800)
        self.host.create("train")
        self.open_live()
        self.wait_shown("the vGPU")
        self.browser.run("""
                events.close();
                takeState({ ...base, number: 1000000, vgpus: [{ ...base.vgpus[0], state: "suspending", quota: 1023.9 * 2 ** 30,
                            used: 1023.8 * 2 ** 30, share: 100, entitled: 100, gpu: 100, programs: 1000 }] });
                """)
        until(lambda: self.browser.run(READ_TABLE)[0][4] == "100 % / 100 % (share 100)", "the share",
              context=lambda: self.browser.run(READ_TABLE))
        for width in (360, 390, 543, 545, 700, 820, 959, 961, 1023, 1025, 1280):
            self.browser.resize(width, 800)
            cut = self.browser.run("""
                    return Array.from(document.querySelectorAll('#vgpus tbody td:not(.name) .text')).filter(node => {
                            const range = document.createRange();
                            range.selectNodeContents(node);
                            return range.getBoundingClientRect().right > node.parentElement.getBoundingClientRect().right + .5;
                    }).map(node => node.textContent);
                    """)
            self.assertEqual(cut, [], width)
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)

    def show(self, name, n=1):
        """Makes the page show @n vGPUs, a device and a host of that name."""
        self.open_live()
        self.browser.run("""
                const [name, n] = arguments, vgpus = [];
                for (let id = 1; id <= n; id++)
                        vgpus.push({id, name, uuid: name + id, owner: 0, device: 0, state: name, quota: 1, used: 1, share: 0,
                                    entitled: 1, gpu: 1, programs: 1});
                events.close();
                takeState({up: true, number: 1000000, time: Date.now(), host: name, version: name, simulated: false, vgpus,
                      devices: [{index: 0, uuid: name, name, total: 1, promised: 1, used: 1, gpu: 1}]});
                """, name, n)
        until(lambda: [row[0] for row in self.browser.run(READ_TABLE)] == [name] * n, "the names to be shown",
              context=lambda: self.browser.run(READ_TABLE))

    def test_hostile_names_do_nothing(self):
        """vgpud refuses such names. Others are shown as they are."""
        self.show(HOSTILE)
        self.browser.run("location.hash = '#vgpu/' + arguments[0]", HOSTILE + "1")
        self.browser.run("takeNews(); showVgpu()")
        self.assertIn(HOSTILE, self.browser.run("return document.querySelector('.device h3').textContent"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('img').length"), 0)
        self.assertIsNone(self.browser.run("return window.evil"))

    def test_long_names_break_nothing(self):
        self.addCleanup(self.browser.resize, 1280, 800)
        self.show("W" * 300, 3)
        for width, height in SIZES:
            self.browser.resize(width, height)
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)
            heights = self.browser.run("""
                    return Array.from(document.querySelectorAll('#vgpus tbody tr, .device h3')).map(
                            node => [node.clientHeight, node.scrollHeight]);
                    """)
            self.assertEqual([pair[0] for pair in heights], [pair[1] for pair in heights], (width, height))

    def test_nothing_from_elsewhere_may_be_loaded(self):
        self.open_live()
        self.browser.run("""
                const script = document.createElement('script');
                script.textContent = 'window.evil = 1';
                document.body.append(script);
                document.body.setAttribute('onclick', 'window.evil = 1');
                document.body.click();
                """)
        self.assertIsNone(self.browser.run("return window.evil"))
        self.assertIn("Content Security Policy", str(self.browser.complaints()))


@unittest.skipIf(webdriver.why_not(), webdriver.why_not())
class Turns(Browsing):
    def strips(self):
        """What a screen reader says of the strips of each GPU: the last minute, and the turns."""
        return self.browser.run("""
                return Array.from(document.querySelectorAll('.device')).map(device =>
                        Array.from(device.querySelectorAll('canvas.strip:not([hidden])')).map(
                                canvas => canvas.getAttribute('aria-label')));
                """)

    def test_turns_and_swaps_of_the_last_minute(self):
        for name, share in (("train", 75), ("serve", 25)):
            self.host.create(name, "64M")
            self.host.vgpu("share", name, share)
        guests = [self.host.run(name, "guest-busy", 3000, "4M").wait_ready() for name in ("train", "serve")]
        self.open()

        def look():
            strips = self.strips()
            if not strips or len(strips[0]) < 2:
                return None
            return re.search(r"minute: train \d+ %, serve \d+ %", strips[0][0]) and \
                re.fullmatch("the latest turns, of (train, serve|serve, train)", strips[0][1])
        until(look, "both to have had turns", context=lambda: f"{self.strips()}\n{self.host.log()}")
        self.assertEqual(len(self.strips()[1]), 1, "nobody takes turns there")
        self.host.vgpu("suspend", "serve")
        until(lambda: "1 left, \u25bc 0 came" in self.strips()[0][0], "the swap", context=self.strips)
        self.host.vgpu("resume", "serve", "--device", 1)
        until(lambda: "1 came" in self.strips()[1][0], "the other GPU", context=self.strips)
        for guest in guests:
            guest.kill()


@unittest.skipIf(webdriver.why_not(), webdriver.why_not())
class OneVgpu(Browsing):
    """A vGPU's own page."""

    def text(self, selector):
        return self.browser.run("return document.querySelector(arguments[0]).textContent", selector)

    def press(self, selector):
        self.browser.run("document.querySelector(arguments[0]).click()", selector)

    def wait_text(self, selector, pattern):
        until(lambda: re.search(pattern, self.text(selector)), f"{selector} to say {pattern}",
              context=lambda: f"{self.text(selector)}\n{self.browser.complaints()}\n{self.host.log()}")

    def open_vgpu(self, name):
        self.open_live()
        find = f"#vgpus tr[data-uuid='{self.host.get(name)['uuid']}'] a"
        until(lambda: self.browser.run("return !!document.querySelector(arguments[0])", find), "the vGPU")
        self.press(find)
        self.wait_text("#vgpu-title", f"^{name}$")

    def test_it_follows_its_vgpu(self):
        self.host.create("train")
        self.host.vgpu("share", "train", 75)
        guest = self.host.train("train", "--size", "8M")
        self.open_vgpu("train")
        self.wait_text("#facts", "Staterunning.*8 MiB / .*Share75 %Programs1$")
        self.host.vgpu("suspend", "train")
        self.wait_text("#facts", "StatesuspendedGPUnone")
        self.host.vgpu("resume", "train", "--device", 1)
        self.wait_text("#facts", "StaterunningGPU1")
        guest.kill()
        self.host.wait_state("train", "idle")
        self.host.vgpu("rm", "train")
        self.wait_text("#vgpu-said", "no such vGPU any more")
        self.press("nav a")
        until(lambda: self.browser.run("return document.getElementById('overview').checkVisibility()"), "the overview")
        self.assertEqual(self.browser.complaints(), [])

    def parts(self):
        return self.browser.run("""
                return Array.from(document.querySelectorAll('#parts tbody tr')).map(
                        row => Array.from(row.cells).map(cell => cell.textContent));
                """)

    def bars(self):
        """What the mouse says at the left end of each device's memory."""
        return self.browser.run("""
                return Array.from(document.querySelectorAll('.device')).map(device => {
                        const bar = device.querySelector('canvas.bar'), place = bar.getBoundingClientRect();
                        bar.dispatchEvent(new MouseEvent('mousemove', { clientX: place.left + 1, clientY: place.top + 1 }));
                        return bar.title;
                });
                """)

    def test_a_vgpu_of_several_gpus_is_shown_on_each(self):
        self.exporter = Exporter(self.host)  # one that remembers no other test's minute
        self.addCleanup(self.exporter.close)
        self.host.call("CreateVgpu", name="pair", frame_buffer=64 << 20, device="0,1")
        guest = self.host.run("pair", "guest-devices").wait_ready()
        for device, size in ((0, "4M"), (1, "8M")):
            guest.write(f"hold {device} {size}")
            guest.wait_line("held")
        self.open()
        until(lambda: self.bars() == ["pair: 4 MiB / 64 MiB", "pair: 8 MiB / 64 MiB"], "both bars", context=self.bars)
        self.assertEqual(self.browser.run(READ_TABLE)[0][1], "0,1")
        legends = self.browser.run("return Array.from(document.querySelectorAll('.legend')).map(node => node.textContent)")
        self.assertEqual(legends, ["pair", "pair"])
        self.open_vgpu("pair")
        until(lambda: [part[:2] for part in self.parts()] == [["0", "4 MiB"], ["1", "8 MiB"]], "its GPUs", context=self.parts)
        until(lambda: all(re.fullmatch(r"\d+ % / \d+ %", part[2]) for part in self.parts()), "its time", context=self.parts)
        self.host.vgpu("suspend", "pair")
        until(lambda: [part[0] for part in self.parts()] == ["0 (left)", "1 (left)"], "it to be suspended",
              context=self.parts)
        self.press("nav a[href='#']")

        def minutes():
            return self.browser.run("return Array.from(document.querySelectorAll('.minute'), node => node.ariaLabel)")
        until(lambda: all("1 left" in text for text in minutes()), "both to say so", context=minutes)
        self.host.vgpu("resume", "pair")
        self.assertEqual(guest.end_input(), 0, guest.context())


if __name__ == "__main__":
    case.main()
