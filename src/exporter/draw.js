// SPDX-License-Identifier: Apache-2.0
// What the parts of the page draw with: elements that change only where they differ, canvases, and frames. Every text of
// somebody else's goes through a text node or an attribute; nothing is ever read as HTML.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = 8;
const FRAME_MS = 4;     // of the 16 that a frame has: the browser needs the rest to lay out and paint it
const SEEN_MOST = 10;   // views a frame
const HIDDEN_MS = 100;  // after so long, some of what is out of sight
const HIDDEN_MOST = 26; // 256 vGPUs in a second

function element(parent, name, className) {
        const made = document.createElement(name);
        if (className)
                made.className = className;
        parent.append(made);
        return made;
}

// What is as it was is left alone, so that nothing is laid out again for it; and the text's node stays.
function setText(node, text) {
        if (node.shownText === text)
                return;
        node.shownText = text;
        if (node.firstChild)
                node.firstChild.data = text;
        else
                node.textContent = text;
}

function setAttribute(node, name, value) {
        if (node.getAttribute(name) !== value)
                node.setAttribute(name, value);
}

// As `vgpu ls` writes it.
function formatSize(bytes) {
        for (const [power, letter] of [[40, "T"], [30, "G"], [20, "M"], [10, "K"]]) {
                const unit = 2 ** power;
                if (bytes >= unit)
                        return (bytes % unit ? (bytes / unit).toFixed(1) : String(bytes / unit)) + " " + letter + "iB";
        }
        return bytes + " B";
}

function percent(part, whole) {
        return whole > 0 ? Math.max(0, Math.min(100, 100 * part / whole)) : 0;
}

// Colours: the same for as long as a vGPU lives. Those of one GPU may be every eighth: they differ too.

function colourOf(id) {
        const i = Math.max(0, id - 1);
        return (i + Math.floor(i / COLOURS)) % COLOURS;
}

let paints = null; // for canvases

function colours() {
        if (!paints) {
                const style = getComputedStyle(document.documentElement);
                const read = name => style.getPropertyValue(name);
                paints = { mark: read("--mark"), free: read("--free"), each: [] };
                for (let i = 0; i < COLOURS; i++)
                        paints.each.push(read("--c" + i));
        }
        return paints;
}

function setColour(node, vgpu) {
        if (node.shownId === vgpu.id)
                return;
        node.shownId = vgpu.id;
        node.style.setProperty("--colour", "var(--c" + colourOf(vgpu.id) + ")");
}

// A view is a piece of the page that shows one thing. When it is stale it is drawn with one of the next frames: at once
// what is in sight, as much as a frame has time for; of the rest a little at a time, for who searches or is read to.

const views = new Map(); // by node
const stale = new Set(); // the one that waits longest first
let isAsked = false;     // for a frame
let hiddenAt = 0;        // when some of what is out of sight was drawn

const sight = new IntersectionObserver(changes => {
        for (const change of changes) {
                const view = views.get(change.target);
                if (!view)
                        continue;
                view.isSeen = change.isIntersecting;
                if (view.isSeen)
                        drawView(view);
        }
}, { rootMargin: "50px" });

// To ask an element for its size would lay out the page at once: a canvas is told its own.
const sizes = new ResizeObserver(changes => {
        for (const change of changes) {
                const canvas = change.target, view = views.get(canvas.closest("article"));
                canvas.shownSize = [change.contentRect.width, change.contentRect.height];
                canvas.shownKey = "";
                if (view)
                        makeStale(view);
        }
});

function makeStale(view) {
        stale.add(view);
        drawSoon();
}

function drawView(view) {
        stale.delete(view);
        if (view.item)
                view.update(view.item, view.isSeen);
}

// Is there more of it?
function drawSeen(until) {
        let n = 0;
        for (const view of stale) {
                if (!view.isSeen)
                        continue;
                if (n++ === SEEN_MOST || performance.now() > until)
                        return true;
                drawView(view);
        }
        return false;
}

function drawHidden(now, until) {
        if (now - hiddenAt < HIDDEN_MS)
                return;
        hiddenAt = now;
        let n = 0;
        for (const view of stale) {
                drawView(view);
                if (++n === HIDDEN_MOST || performance.now() > until)
                        return;
        }
}

function drawFrame() {
        const now = performance.now(), until = now + FRAME_MS;
        isAsked = false;
        takeNews();
        const isMore = drawSeen(until);
        if (!isMore)
                drawHidden(now, until);
        if (isMore)
                drawSoon();
        else if (stale.size > 0)
                setTimeout(drawSoon, HIDDEN_MS);
}

// As often as the screen shows something new, and no more.
function drawSoon() {
        if (isAsked)
                return;
        isAsked = true;
        requestAnimationFrame(drawFrame);
}

// What is there stays in its place: a screen reader and a selection are not torn away.
function keep(map, parent, items, make) {
        const there = new Set();
        let before = parent.firstElementChild;
        for (const item of items) {
                let view = map.get(item.uuid);
                if (!view) {
                        map.set(item.uuid, view = make(item));
                        views.set(view.node, view);
                        sight.observe(view.node);
                }
                there.add(item.uuid);
                if (view.node !== before)
                        parent.insertBefore(view.node, before);
                else
                        before = before.nextElementSibling;
        }
        for (const [uuid, view] of map)
                if (!there.has(uuid)) {
                        sight.unobserve(view.node);
                        views.delete(view.node);
                        stale.delete(view);
                        view.node.remove();
                        map.delete(uuid);
                }
}

// A view that has @item already stays as it is.
function offer(view, item) {
        if (view.item === item)
                return;
        view.item = item;
        makeStale(view);
}

// Canvases.

function makeCanvas(parent, className) {
        const canvas = element(parent, "canvas", className);
        canvas.shownSize = [0, 0];
        sizes.observe(canvas);
        return canvas;
}

// In the pixels of the screen; null: @key says that it is drawn already, or nobody can see it.
function beginCanvas(canvas, key) {
        const ratio = window.devicePixelRatio || 1;
        const [width, height] = canvas.shownSize.map(length => Math.round(length * ratio));
        if (width === 0 || canvas.shownKey === key)
                return null;
        canvas.shownKey = key;
        if (canvas.width !== width || canvas.height !== height) {
                canvas.width = width;
                canvas.height = height;
        }
        const context = canvas.getContext("2d");
        context.clearRect(0, 0, width, height);
        return { context, width, height, ratio };
}

function redrawCanvases() {
        paints = null;
        for (const canvas of document.querySelectorAll("canvas"))
                canvas.shownKey = "";
        for (const view of views.values())
                makeStale(view);
}

window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCanvases);
