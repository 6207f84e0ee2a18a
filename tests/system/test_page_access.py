#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The live page for who sees little, has no mouse, or is read to: contrast (WCAG 2.2, AA), keys and names, in a real browser."""
import unittest

import case
import webdriver
from browsing import READ_TABLE, SIZES, Browsing
from wait import until

# Of each text that is shown: its colour on what is behind it, and what is asked of it.
CONTRAST = """
const read = text => {
        const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
        return { rgb: [r, g, b], a };
};
const blend = (over, under, a) => over.map((value, i) => value * a + under[i] * (1 - a));
const light = rgb => {
        const [r, g, b] = rgb.map(value => value / 255).map(value => value <= .04045 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b;
};
const ratio = (a, b) => (Math.max(light(a), light(b)) + .05) / (Math.min(light(a), light(b)) + .05);
function ground(node) {
        if (!node)
                return [255, 255, 255];
        const { rgb, a } = read(getComputedStyle(node).backgroundColor);
        return a === 1 ? rgb : blend(rgb, ground(node.parentElement), a);
}
function opacity(node) {
        return node ? getComputedStyle(node).opacity * opacity(node.parentElement) : 1;
}
function look(node, pseudo, what) {
        const style = getComputedStyle(node, pseudo), behind = ground(node);
        const shown = blend(read(style.color).rgb, behind, read(style.color).a * opacity(node));
        const size = parseFloat(style.fontSize), isLarge = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
        return { what: what.slice(0, 40), ratio: ratio(shown, behind), least: isLarge ? 3 : 4.5 };
}
const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let text; (text = walker.nextNode());)
        if (text.data.trim() && text.parentElement.checkVisibility({ visibilityProperty: true }))
                found.push(look(text.parentElement, null, text.data.trim()));
for (const node of document.querySelectorAll('input'))
        if (node.checkVisibility())
                found.push(look(node, null, node.id), look(node, '::placeholder', node.id + ' placeholder'));
for (const node of document.querySelectorAll('[data-label]'))
        if (node.checkVisibility() && getComputedStyle(node, '::before').content !== 'none')
                found.push(look(node, '::before', node.dataset.label));
return found;
"""

# Colours of pictures, and of what can be pressed, on what they are drawn on.
GRAPHICS = """
const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const rgb = name => {
        canvas.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
        canvas.fillRect(0, 0, 1, 1);
        return canvas.getImageData(0, 0, 1, 1).data;
};
const light = name => {
        const [r, g, b] = Array.from(rgb(name)).map(value => value / 255)
                .map(value => value <= .04045 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b;
};
const found = [];
for (const ground of ['--back', '--card', '--free'])
        for (const name of ['--c0', '--c1', '--c2', '--c3', '--c4', '--c5', '--c6', '--c7', '--mark', '--edge', '--good', '--wait']) {
                const [a, b] = [light(name), light(ground)];
                found.push({ what: name + ' on ' + ground, ratio: (Math.max(a, b) + .05) / (Math.min(a, b) + .05), least: 3 });
        }
return found;
"""

# Where the focus is, and whether that can be seen.
FOCUS = """
const node = document.activeElement, style = getComputedStyle(node);
return { name: node === document.body ? '' : node.id || node.textContent.trim(), isOutlined: style.outlineStyle !== 'none' &&
         parseFloat(style.outlineWidth) >= 2, isSeen: node.getBoundingClientRect().bottom > 0 &&
         node.getBoundingClientRect().top < innerHeight };
"""

HEADINGS = """
return Array.from(document.querySelectorAll('h1, h2, h3')).filter(node => node.checkVisibility()).map(node => +node.tagName[1]);
"""


@unittest.skipIf(webdriver.why_not(), webdriver.why_not())
class Access(Browsing):
    """One vGPU runs, another one is suspended."""

    def setUp(self):
        super().setUp()
        self.host.create("train")
        self.host.create("away", "64M")
        self.host.run("train", "guest-busy", 3000, "4M").wait_ready()
        self.host.train("away", "--size", "4M")
        self.host.vgpu("suspend", "away")
        self.addCleanup(self.browser.resize, 1280, 800)

    def open_vgpu(self, name="train"):
        uuid = self.host.get(name)["uuid"]
        self.browser.run("location.hash = '#vgpu/' + arguments[0]", uuid)
        until(lambda: self.browser.run("return document.getElementById('vgpu-page').dataset.shown") == uuid, "the page of the vGPU")

    def pages(self):
        """Each page, with all that it can have."""
        self.open_live()
        until(lambda: self.browser.run("return document.querySelectorAll('#vgpus .text').length") == 10, "the vGPUs")
        until(lambda: "suspended" in "".join(self.browser.run(READ_TABLE)[1]), "the page to know what has happened last")
        yield "overview"
        self.browser.run("setStatus('bad', 'no connection')")
        yield "old overview"
        self.browser.run("setStatus('wait', 'connecting')")
        self.open_vgpu()
        yield "vGPU"

    def test_texts_and_pictures_can_be_told_from_what_is_behind(self):
        n = 0
        for page in self.pages():
            for width, height in SIZES[0], SIZES[2]:
                for is_dark in (False, True):
                    self.browser.resize(width, height, is_dark)
                    found = self.browser.run(CONTRAST) + self.browser.run(GRAPHICS)
                    n += len(found)
                    low = [(one["what"], round(one["ratio"], 2)) for one in found if not one["ratio"] >= one["least"]]
                    self.assertEqual(low, [], f"{page}, {width} x {height}, {'dark' if is_dark else 'light'}")
        self.assertGreater(n, 500)

    def walk(self, most=40):
        """What the key Tab comes to, until it begins anew."""
        self.browser.run("document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')")
        names = []
        for _ in range(most):
            self.browser.press("Tab")
            at = self.browser.run(FOCUS)
            if at["name"] == "" or at["name"] in names:
                return names
            self.assertTrue(at["isOutlined"] and at["isSeen"], at)
            names.append(at["name"])
        raise AssertionError(f"no end: {names}")

    def press_on(self, selector, key):
        self.browser.run("document.querySelector(arguments[0]).focus()", selector)
        self.browser.press(key)

    def test_all_can_be_done_with_keys(self):
        for i in range(30):
            self.host.create(f"v{i}", "2M")
        names = [f"v{i}" for i in range(30)]
        self.open_live()
        until(lambda: self.browser.run("return document.querySelectorAll('#vgpus tbody tr').length") == 32, "the vGPUs")
        self.assertEqual(self.walk(), ["Overview", "train", "away", *names, "metrics"])
        self.press_on("#vgpus tbody a", "Enter")
        until(lambda: self.browser.run(FOCUS)["name"] == "vgpu-title", "the page of the vGPU to be gone to")
        until(lambda: self.browser.run("return document.title") == "train - OpenVGPU", "its title")
        self.assertEqual(self.walk(), ["Overview", "metrics"])
        self.press_on("nav a", "Enter")
        until(lambda: self.browser.run(FOCUS)["name"] == "devices-title", "the overview to be gone to")

    def tree(self):
        """What a screen reader is told: (role, name) of each thing."""
        nodes = self.browser.command("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]

    def test_all_has_a_name(self):
        for page in self.pages():
            for size in SIZES[0], SIZES[2]:
                self.browser.resize(*size)
                tree = self.tree()
                named = ("link", "button", "textbox", "spinbutton", "combobox", "image", "img", "dialog", "table", "heading")
                self.assertEqual([one for one in tree if one[0] in named and not one[1].strip()], [], page)
                levels = self.browser.run(HEADINGS)
                self.assertEqual(levels[0], 1)
                self.assertTrue(all(after <= before + 1 for before, after in zip(levels, levels[1:])), (page, levels))
                if page != "overview":
                    continue
                roles = [role for role, _ in tree]
                self.assertEqual([roles.count(role) for role in ("table", "columnheader", "row", "cell")], [1, 7, 3, 14])
                self.assertTrue(any(role == "cell" and name.endswith("suspended") for role, name in tree), tree)


if __name__ == "__main__":
    case.main()
