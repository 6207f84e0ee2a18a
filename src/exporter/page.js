// SPDX-License-Identifier: Apache-2.0
// What /events tells, a few times a second, as a page (src/exporter/state.h). Every text of somebody else's goes through textContent or an
// attribute; nothing is ever read as HTML.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const HOUR_MS = 3600000;
const LEAST_MS = 300000; // the line of the last hour begins with so much, and grows
const COLOURS = 8;
const MINUTE_MS = 60000;
const RETRY_MS = 3000;

const rows = new Map();    // of vGPUs, by UUID
const cards = new Map();   // of devices, by UUID
const history = new Map(); // UUID of a vGPU: percents, null where it was not there
let times = [];            // of the samples, ms: each is the mean since the one before
let drawn = 0;             // the time of the newest sample that is drawn
let namesById = new Map(); // of vGPUs
const minutes = new Map(); // UUID of a device: who had it, slice by slice

function element(parent, name, className) {
        const made = document.createElement(name);
        if (className)
                made.className = className;
        parent.append(made);
        return made;
}

// What is as it was is left alone, so that nothing is laid out again for it.
function setText(node, text) {
        if (node.shownText !== text)
                node.textContent = node.shownText = text;
}

function setWidth(node, percent) {
        if (node.shownWidth !== percent) {
                node.shownWidth = percent;
                node.style.width = percent.toFixed(2) + "%";
        }
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

// The same for as long as it lives, and for different ones as different as can be.
function colourOf(vgpu) {
        return "var(--c" + vgpu.id % COLOURS + ")";
}

function setColour(node, vgpu) {
        if (node.shownId === vgpu.id)
                return;
        node.shownId = vgpu.id;
        node.style.setProperty("--colour", colourOf(vgpu));
}

// What is there stays in its place: a screen reader and a selection are not torn away.
function keep(map, parent, items, make) {
        const seen = new Set();
        let before = parent.firstElementChild;
        for (const item of items) {
                let entry = map.get(item.uuid);
                if (!entry)
                        map.set(item.uuid, entry = make(item));
                seen.add(item.uuid);
                if (entry.node !== before)
                        parent.insertBefore(entry.node, before);
                else
                        before = before.nextElementSibling;
                entry.update(item);
        }
        for (const [uuid, entry] of map)
                if (!seen.has(uuid)) {
                        entry.node.remove();
                        map.delete(uuid);
                }
}

// Devices.

function drawBar(bar, segments) {
        while (bar.childElementCount > segments.length)
                bar.lastElementChild.remove();
        segments.forEach((segment, i) => {
                const part = bar.children[i] || element(bar, "span");
                setWidth(part, segment.percent);
                if (part.title === segment.title && part.className === segment.kind)
                        return;
                part.className = segment.kind;
                part.style.setProperty("--colour", segment.colour);
                part.title = segment.title;
        });
}

function makeBar(card, name) {
        const label = element(card, "div", "label");
        setText(element(label, "span"), name);
        const figure = element(label, "span");
        const bar = element(card, "div", "bar");
        bar.setAttribute("aria-hidden", "true"); // the table of vGPUs says the same in words
        return { figure, bar };
}

// Turns: who had the device in the last minute, and the latest turns one by one.

function makeStrip(card, name, height) {
        const label = element(card, "div", "label");
        setText(element(label, "span"), name);
        const figure = element(label, "span");
        const canvas = element(card, "canvas", "strip");
        canvas.setAttribute("role", "img");
        canvas.style.height = height + "px";
        return { label, figure, canvas };
}

// Its size is that of the page, in the pixels of the screen.
function beginStrip(canvas) {
        const ratio = window.devicePixelRatio || 1;
        const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
        if (canvas.width !== width || canvas.height !== height) {
                canvas.width = width;
                canvas.height = height;
        }
        const context = canvas.getContext("2d");
        context.clearRect(0, 0, width, height);
        return { context, width, height };
}

function colours() {
        const style = getComputedStyle(document.documentElement);
        return { of: id => style.getPropertyValue("--c" + id % COLOURS), mark: style.getPropertyValue("--mark") };
}

function rememberTurns(uuid, turns) {
        const known = minutes.get(uuid) ? minutes.get(uuid).slices : [];
        const last = known.length ? known[known.length - 1].until : 0;
        // The exporter forgets when nobody looks: its slices then begin anew.
        const fresh = turns.slices.filter(slice => slice.until > last);
        minutes.set(uuid, { slices: known.concat(fresh).slice(-MINUTE_MS / 1000), last: turns.last, isNew: true });
}

function drawMinute(strip, slices, names) {
        const { context, width, height } = beginStrip(strip.canvas);
        const paint = colours();
        const end = slices[slices.length - 1].until;
        const place = time => Math.round(width * Math.max(0, 1 - (end - time) / MINUTE_MS));
        const sums = new Map(), moves = { left: 0, came: 0 };
        for (const slice of slices) {
                const left = place(slice.from), right = place(slice.until);
                let base = height;
                for (const [id, permille] of slice.parts) {
                        const tall = Math.min(base, height * permille / 1000);
                        context.fillStyle = paint.of(id);
                        context.fillRect(left, base - tall, Math.max(1, right - left), tall);
                        base -= tall;
                        sums.set(id, (sums.get(id) || 0) + permille * (slice.until - slice.from));
                }
        }
        for (const slice of slices)
                for (const [id, move] of slice.marks) {
                        // A triangle: up for who left, down for who came.
                        const at = place(slice.until), size = height / 4, isLeft = move === "left";
                        context.fillStyle = paint.mark;
                        context.beginPath();
                        context.moveTo(at - size, isLeft ? size : 0);
                        context.lineTo(at + size, isLeft ? size : 0);
                        context.lineTo(at, isLeft ? 0 : size);
                        context.fill();
                        context.fillStyle = paint.of(id);
                        context.fillRect(at - 1, size, 2, height);
                        moves[move]++;
                }
        const span = end - slices[0].from;
        const parts = Array.from(sums).sort((a, b) => b[1] - a[1]).slice(0, 8)
                .map(([id, sum]) => (names.get(id) || "gone") + " " + Math.round(sum / span / 10) + " %");
        const text = parts.length ? parts.join(", ") : "nobody";
        const swaps = moves.left || moves.came ? "\u25b2 " + moves.left + " left, \u25bc " + moves.came + " came" : "";
        strip.canvas.setAttribute("aria-label", "GPU time of the last minute: " + text + (swaps && "; " + swaps));
        strip.canvas.title = text;
        setText(strip.figure, swaps);
}

function drawLast(strip, last, names) {
        strip.label.hidden = strip.canvas.hidden = last.length === 0;
        if (last.length === 0)
                return;
        const { context, width, height } = beginStrip(strip.canvas);
        const paint = colours();
        const span = last[0][1];
        const users = new Set();
        for (const [id, start, run] of last) {
                context.fillStyle = paint.of(id);
                context.fillRect(width * (1 - start / span), 0, Math.max(1, width * run / span - .5), height);
                users.add(names.get(id) || "gone");
        }
        setText(strip.figure, last.length + " turns in " + Math.round(span / 1000) + " ms");
        strip.canvas.setAttribute("aria-label", "the latest turns, of " + Array.from(users).join(", "));
}

function memorySegments(device, vgpus) {
        const segments = [];
        for (const vgpu of vgpus) {
                const isThere = vgpu.state !== "suspended" && vgpu.state !== "evicted";
                const held = isThere ? Math.min(vgpu.used, vgpu.quota) : 0;
                const title = vgpu.name + ": " + formatSize(vgpu.used) + " / " + formatSize(vgpu.quota);
                segments.push({ kind: "held", percent: percent(held, device.total), colour: colourOf(vgpu), title });
                if (vgpu.state !== "suspended")
                        segments.push({ kind: "promised", percent: percent(vgpu.quota - held, device.total),
                                        colour: colourOf(vgpu), title });
        }
        return segments;
}

function makeCard() {
        const node = document.createElement("article");
        node.className = "device";
        const title = element(node, "h3");
        const facts = element(node, "p", "facts");
        const memory = makeBar(node, "Frame buffer (hatched: promised)");
        const time = makeBar(node, "GPU time");
        const minute = makeStrip(node, "The last minute", 40);
        const last = makeStrip(node, "Turns", 14);
        const legend = element(node, "ul", "legend");

        function update(device) {
                const vgpus = device.vgpus;
                const told = [formatSize(device.total)];
                if (typeof device.celsius === "number")
                        told.push(device.celsius + " \u00b0C");
                if (typeof device.watts === "number")
                        told.push(Math.round(device.watts) + " W");
                setText(title, "GPU " + device.index + ": " + device.name);
                setText(facts, told.join(", "));
                setText(memory.figure, formatSize(device.used) + " / " + formatSize(device.promised));
                setText(time.figure, device.gpu + " % busy");
                drawBar(memory.bar, memorySegments(device, vgpus));
                drawBar(time.bar, vgpus.map(vgpu => ({ kind: "held", percent: vgpu.gpu, colour: colourOf(vgpu),
                                                       title: vgpu.name + ": " + vgpu.gpu + " %" })));
                const turns = minutes.get(device.uuid);
                minute.label.hidden = minute.canvas.hidden = !turns || turns.slices.length === 0;
                if (!turns)
                        last.label.hidden = last.canvas.hidden = true;
                if (turns && turns.slices.length > 0 && turns.isNew) {
                        drawMinute(minute, turns.slices, namesById);
                        drawLast(last, turns.last, namesById);
                        turns.isNew = false;
                }
                while (legend.childElementCount > vgpus.length)
                        legend.lastElementChild.remove();
                vgpus.forEach((vgpu, i) => {
                        const entry = legend.children[i] || element(legend, "li");
                        setColour(entry, vgpu);
                        setText(entry, vgpu.name + (vgpu.state === "suspended" ? " (suspended)" : ""));
                });
        }
        return { node, update };
}

// vGPUs.

function makeMeter(cell) {
        const text = element(cell, "span");
        const meter = element(cell, "div", "meter");
        meter.setAttribute("aria-hidden", "true");
        return { text, meter, fill: element(meter, "span", "fill") };
}

function makeSpark(cell) {
        const svg = document.createElementNS(SVG, "svg");
        svg.setAttribute("class", "spark");
        svg.setAttribute("viewBox", "0 0 120 28");
        svg.setAttribute("preserveAspectRatio", "none");
        svg.setAttribute("role", "img");
        cell.append(svg);
        const base = document.createElementNS(SVG, "line");
        for (const [name, value] of [["x1", 0], ["x2", 120], ["y1", 27.5], ["y2", 27.5]])
                base.setAttribute(name, value);
        svg.append(base);
        return svg;
}

// A step for each sample; a line for each stretch in which the vGPU was there.
function drawSpark(svg, values) {
        const end = times[times.length - 1] || 0, span = Math.max(end - (times[0] || 0), LEAST_MS);
        const lines = [];
        let points = null;
        values.forEach((value, i) => {
                if (value === null || i === 0) {
                        points = null;
                        return;
                }
                if (!points)
                        lines.push(points = []);
                for (const time of [times[i - 1], times[i]])
                        points.push((120 - 120 * (end - time) / span).toFixed(1) + "," + (27 - 26 * value / 100).toFixed(1));
        });
        while (svg.childElementCount - 1 > lines.length)
                svg.lastElementChild.remove();
        lines.forEach((line, i) => {
                let drawn = svg.children[i + 1];
                if (!drawn)
                        svg.append(drawn = document.createElementNS(SVG, "polyline"));
                drawn.setAttribute("points", line.join(" "));
        });
        const known = values.filter(value => value !== null);
        const text = known.length ? Math.min(...known) + " to " + Math.max(...known) + " %" : "not known yet";
        svg.setAttribute("aria-label", "GPU time of the last hour: " + text);
}

function makeRow(vgpu) {
        const node = document.createElement("tr");
        const cells = {};
        for (const [name, label, kind] of [["name", "", "name"], ["device", "GPU", "number"], ["state", "State", ""],
                                           ["memory", "Frame buffer", ""], ["time", "GPU time", ""],
                                           ["spark", "Last hour", "spark"], ["programs", "Programs", "number"]]) {
                cells[name] = element(node, "td", kind);
                if (label)
                        cells[name].dataset.label = label;
        }
        node.dataset.uuid = vgpu.uuid;
        const state = element(cells.state, "span", "state");
        const memory = makeMeter(cells.memory), time = makeMeter(cells.time);
        const entitled = element(time.meter, "span", "entitled");
        const spark = makeSpark(cells.spark);
        const link = element(cells.name, "a");
        link.href = "#vgpu/" + encodeURIComponent(vgpu.uuid);
        let seen = -1, shown = null; // of the history; of the vGPU

        function update(now) {
                if (shown === now && seen === drawn)
                        return;
                shown = now;
                setColour(node, now);
                setText(link, now.name);
                if (node.title === "")
                        node.title = now.uuid + ", user " + now.owner;
                setText(cells.device, now.state === "suspended" ? "-" : String(now.device));
                setText(state, now.state);
                state.dataset.state = now.state;
                setText(memory.text, formatSize(now.used) + " / " + formatSize(now.quota));
                setWidth(memory.fill, percent(now.used, now.quota));
                setText(time.text, now.gpu + " % / " + Math.round(now.entitled) + " %" +
                                   (now.share ? " (share " + now.share + ")" : ""));
                setWidth(time.fill, Math.min(now.gpu, 100));
                if (entitled.shownAt !== now.entitled) {
                        entitled.shownAt = now.entitled;
                        entitled.style.left = Math.min(now.entitled, 100) + "%";
                }
                setText(cells.programs, String(now.programs));
                if (seen !== drawn) {
                        drawSpark(spark, history.get(now.uuid) || []);
                        seen = drawn;
                }
        }
        return { node, update };
}

// The last hour.

// @past has all samples that there are, or the latest ones.
function rememberHistory(past) {
        past.times.forEach((time, i) => {
                if (times.length && time <= times[times.length - 1])
                        return;
                times.push(time);
                for (const values of history.values())
                        values.push(null);
                for (const [uuid, values] of Object.entries(past.gpu)) {
                        if (!history.has(uuid))
                                history.set(uuid, new Array(times.length).fill(null));
                        history.get(uuid)[times.length - 1] = values[i];
                }
        });
        while (times.length && times[times.length - 1] - times[0] > HOUR_MS) {
                times.shift();
                for (const values of history.values())
                        values.shift();
        }
        for (const [uuid, values] of history)
                if (values.every(value => value === null))
                        history.delete(uuid);
        drawn = times.length ? times[times.length - 1] : 0;
}

// For who has just begun to look: also after the connection was lost, when it has what was missed.
function showPast(past) {
        times = [];
        history.clear();
        rememberHistory(past.history);
        minutes.clear();
        for (const [uuid, turns] of Object.entries(past.turns))
                rememberTurns(uuid, turns);
}

// All of it.

function setStatus(kind, text) {
        const status = document.getElementById("status");
        if (status.dataset.kind !== kind)
                status.dataset.kind = kind;
        setText(status, text);
        document.body.classList.toggle("old", kind === "bad");
}

let base = null;     // the state that changes are told of
let isAsked = false; // to draw what is the latest

// As often as the screen shows something new, and no more.
function drawSoon() {
        if (isAsked)
                return;
        isAsked = true;
        requestAnimationFrame(() => {
                isAsked = false;
                show(latest);
        });
}

function takeState(state) {
        base = latest = state;
        drawSoon();
}

function takeChange(change) {
        if (!base || change.base !== base.number)
                return;
        const vgpus = base.vgpus.slice(), devices = base.devices.slice();
        for (const [i, state, device, used, share, entitled, gpu, programs] of change.vgpus) {
                const was = latest.vgpus[i];
                const isSame = was.state === state && was.device === device && was.used === used && was.share === share &&
                        was.entitled === entitled && was.gpu === gpu && was.programs === programs;
                vgpus[i] = isSame ? was : { ...vgpus[i], state, device, used, share, entitled, gpu, programs };
        }
        for (const [i, promised, used, gpu, celsius, watts, turns] of change.devices) {
                devices[i] = { ...devices[i], promised, used, gpu, celsius, watts };
                if (turns)
                        rememberTurns(devices[i].uuid, turns);
        }
        if (change.history)
                rememberHistory(change.history);
        latest = { ...base, number: change.number, time: change.time, vgpus, devices };
        if (change.pool)
                latest.pool = { used: change.pool[0], limit: change.pool[1] };
        drawSoon();
}

function show(state) {
        setText(document.getElementById("host"), state.host);
        if (!state.up) {
                setStatus("bad", "vgpud does not run, or does not answer");
                return;
        }
        setStatus("good", state.simulated ? "live, simulated GPUs" : "live");
        namesById = new Map(state.vgpus.map(vgpu => [vgpu.id, vgpu.name]));
        for (const device of state.devices)
                device.vgpus = state.vgpus.filter(vgpu => vgpu.device === device.index);
        draw(state);
        showDevices();
        setText(document.getElementById("version"), "vgpud " + state.version);
        if (state.pool)
                setText(document.getElementById("pool"), "Host memory for suspended vGPUs: " +
                        formatSize(state.pool.used) + " / " + formatSize(state.pool.limit));
        document.body.dataset.shown = state.number;
}

// What is hidden has no size, and is drawn when it is shown.
function draw(state) {
        if (document.getElementById("overview").hidden)
                return;
        keep(cards, document.getElementById("devices"), state.devices, makeCard);
        keep(rows, document.querySelector("#vgpus tbody"), state.vgpus, makeRow);
        document.getElementById("vgpus").hidden = state.vgpus.length === 0;
        document.getElementById("none").hidden = state.vgpus.length > 0;
}

// The token: in this tab only, until it is closed or forgets it.

let token = "";

async function ask(path, options = {}) {
        const headers = { ...options.headers };
        if (token)
                headers.Authorization = "Bearer " + token;
        const answer = await fetch(path, { ...options, headers, cache: "no-store" });
        const text = await answer.text();
        if (answer.ok)
                return text;
        let message = text.trim();
        try {
                const told = JSON.parse(text);
                message = told.message + (told.hint ? " (" + told.hint + ")" : "");
        } catch {
                // It was no JSON: the text is the message.
        }
        throw new Error(message || "status " + answer.status);
}

function showToken() {
        for (const node of document.querySelectorAll(".private"))
                node.hidden = !token;
        document.getElementById("token-button").textContent = token ? "Forget the token" : "Enter the token";
}

async function enterToken(event) {
        event.preventDefault();
        const field = document.getElementById("token"), said = document.getElementById("token-said");
        token = field.value.trim();
        field.value = "";
        try {
                await ask("usage?month=" + thisMonth());
                setText(said, "");
                document.getElementById("token-dialog").close();
        } catch (error) {
                token = "";
                setText(said, error.message);
        }
        showToken();
        route();
}

function pressToken() {
        if (token) {
                token = "";
                showToken();
                route();
        } else {
                setText(document.getElementById("token-said"), "");
                document.getElementById("token-dialog").showModal();
        }
}

// A vGPU's own page.

let latest = null; // the state that is shown
let opened = "";     // UUID of the vGPU whose page is opened
let asked = 0;     // the answer to an older question is not shown

function time(seconds) {
        return new Date(seconds * 1000).toLocaleString();
}

function row(table, cells, className) {
        const node = element(table, "tr", className);
        for (const cell of cells)
                setText(element(node, "td", typeof cell === "number" ? "number" : ""), String(cell));
        return node;
}

function fill(body, rows) {
        body.replaceChildren();
        for (const cells of rows)
                row(body, cells);
}

function drawDay(day) {
        const svg = document.getElementById("day");
        svg.replaceChildren();
        const width = 480 / Math.max(day.length, 1);
        day.forEach((step, i) => {
                const tall = Math.max(step.percent > 0 ? 1 : 0, Math.min(100, step.percent));
                const bar = document.createElementNS(SVG, "rect");
                for (const [name, value] of [["x", i * width], ["y", 100 - tall], ["width", width - 1], ["height", tall]])
                        bar.setAttribute(name, value);
                const title = document.createElementNS(SVG, "title");
                title.textContent = time(step.from) + ": " + step.percent.toFixed(1) + " %, " + step.gib.toFixed(1) + " GiB";
                bar.append(title);
                svg.append(bar);
        });
        const sum = day.reduce((sum, step) => sum + step.percent, 0) / Math.max(day.length, 1);
        svg.setAttribute("aria-label", "GPU time of the last 24 hours: " + sum.toFixed(1) + " % on average");
        fill(document.querySelector("#day-table tbody"),
             day.map(step => [time(step.from), step.percent.toFixed(1) + " %", step.gib.toFixed(2) + " GiB"]));
}

const PARTS = [["drain", "coming to rest"], ["copy", "copying"], ["context", "context"]];

// Copies and the driver's checkpoint run at the same time, so each part is a bar of its own.
function drawParts(cell, event, longest) {
        for (const [part, name] of PARTS) {
                const seconds = event[part];
                if (!(seconds > 0))
                        continue;
                const line = element(cell, "div", "part " + part);
                const bar = element(line, "span", "amount");
                bar.style.width = Math.max(1, 50 * seconds / longest) + "%";
                bar.setAttribute("aria-hidden", "true");
                setText(element(line, "span"), name + " " + seconds.toFixed(2) + " s");
        }
}

function drawEvents(list) {
        const body = document.querySelector("#events tbody");
        const longest = Math.max(...list.map(event => event.seconds), 0.001);
        body.replaceChildren();
        for (const event of list.slice().reverse()) {
                const cell = row(body, [time(event.time), event.message]).lastElementChild;
                drawParts(cell, event, longest);
        }
}

function drawFacts(vgpu) {
        const facts = document.getElementById("facts");
        facts.replaceChildren();
        const told = [["UUID", vgpu.uuid], ["Owner", "user " + vgpu.owner], ["State", vgpu.state],
                      ["GPU", vgpu.state === "suspended" ? "none" : String(vgpu.device)],
                      ["Frame buffer", formatSize(vgpu.used) + " / " + formatSize(vgpu.quota)],
                      ["Share", vgpu.share ? vgpu.share + " %" : "none"],
                      ["Host memory", formatSize(vgpu.host_memory)], ["Created", time(vgpu.created)]];
        for (const [name, value] of told) {
                setText(element(facts, "dt"), name);
                setText(element(facts, "dd"), value);
        }
}

async function showVgpu(uuid) {
        const mine = ++asked, said = document.getElementById("vgpu-said");
        let told;
        try {
                told = JSON.parse(await ask("vgpu?uuid=" + encodeURIComponent(uuid)));
        } catch (error) {
                if (mine === asked)
                        setText(said, error.message);
                return;
        }
        if (mine !== asked)
                return;
        setText(said, "");
        setText(document.getElementById("vgpu-title"), told.vgpu.name);
        drawFacts(told.vgpu);
        fill(document.querySelector("#processes tbody"), told.processes.map(
                one => [one.pid, one.name, formatSize(one.memory), one.launches]));
        document.getElementById("no-processes").hidden = told.processes.length > 0;
        if (told.day)
                drawDay(told.day);
        if (told.events)
                drawEvents(told.events);
        document.getElementById("vgpu-page").dataset.shown = uuid + (told.day ? " private" : "");
}

// Actions.

const ACTIONS = {
        suspend: name => "Suspend " + name + "? It leaves its GPU, and its programs wait until it is resumed.",
        resume: (name, device) => "Resume " + name + (device ? " on GPU " + device : "") + "?",
        migrate: (name, device) => "Move " + name + " to GPU " + device + "? Its programs pause meanwhile.",
        share: (name, device, percent) => (+percent ? "Promise " + name + " " + percent + " % of its GPU's time?"
                                                    : "Take the share of " + name + " away?"),
};

let answerBack = null; // of the question that is asked

// The answer is told at once: the event that a dialog has closed may come when it asks something else already.
function finish(isYes) {
        const answer = answerBack;
        answerBack = null;
        document.getElementById("confirm").close();
        if (answer)
                answer(isYes);
}

function askBack(question, verb) {
        setText(document.getElementById("confirm-text"), question);
        setText(document.getElementById("confirm-yes"), verb);
        document.getElementById("confirm").showModal();
        return new Promise(resolve => {
                answerBack = resolve;
        });
}

async function act(action) {
        const name = document.getElementById("vgpu-title").textContent, uuid = opened;
        const device = document.getElementById("to-device").value.trim(), percent = document.getElementById("percent").value;
        const said = document.getElementById("act-said");
        if (!await askBack(ACTIONS[action](name, device, percent), action[0].toUpperCase() + action.slice(1)))
                return;
        const body = { action, vgpu: uuid };
        if ((action === "resume" || action === "migrate") && device)
                body.device = device;
        if (action === "share")
                body.percent = Number(percent);
        setText(said, action + " ...");
        try {
                const report = JSON.parse(await ask("actions", { method: "POST", body: JSON.stringify(body),
                                                                 headers: { "Content-Type": "application/json" } }));
                setText(said, action + ": done" + (report.seconds ? " in " + report.seconds.toFixed(2) + " s" : ""));
        } catch (error) {
                setText(said, action + ": " + error.message);
        }
        if (opened === uuid)
                showVgpu(uuid);
}

function showDevices() {
        const list = document.getElementById("gpus");
        if (!latest || list.childElementCount === latest.devices.length)
                return;
        list.replaceChildren();
        for (const device of latest.devices) {
                const option = element(list, "option");
                option.value = String(device.index);
                setText(option, String(device.index));
        }
}

// Usage.

function thisMonth() {
        const now = new Date();
        return now.getFullYear() + "-" + String(now.getMonth() + 1).padStart(2, "0");
}

async function showUsage() {
        const month = document.getElementById("month"), said = document.getElementById("usage-said");
        if (!month.value)
                month.value = thisMonth();
        if (!token)
                return;
        try {
                const told = JSON.parse(await ask("usage?month=" + encodeURIComponent(month.value)));
                setText(said, told.rows.length ? "" : "nobody used a GPU in that month");
                fill(document.querySelector("#usage tbody"), told.rows.map(
                        one => ["user " + one.tenant, one.gpu_seconds.toFixed(1), one.quota_gib_hours.toFixed(2),
                                one.used_gib_hours.toFixed(2)]));
                document.getElementById("usage").dataset.shown = month.value;
        } catch (error) {
                setText(said, error.message);
        }
}

async function saveUsage() {
        const month = document.getElementById("month").value;
        const text = await ask("usage?format=csv&month=" + encodeURIComponent(month));
        const link = document.createElement("a");
        link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
        link.download = "usage-" + month + ".csv";
        link.click();
        URL.revokeObjectURL(link.href);
}

// Which page is opened stands behind the #.

function route() {
        const [name, uuid] = location.hash.slice(1).split("/");
        const page = name === "vgpu" && uuid ? "vgpu-page" : name === "usage" ? "usage-page" : "overview";
        for (const node of document.querySelectorAll("main > div"))
                node.hidden = node.id !== page;
        if (opened !== (page === "vgpu-page" ? uuid : "")) {
                opened = page === "vgpu-page" ? uuid : "";
                setText(document.getElementById("act-said"), "");
                setText(document.getElementById("vgpu-title"), "");
        }
        if (opened)
                showVgpu(opened);
        if (page === "usage-page")
                showUsage();
        if (page === "overview" && latest && latest.up) {
                for (const turns of minutes.values())
                        turns.isNew = true;
                drawSoon();
        }
}

// The stream, and what a reader may press.

let events = null;

// After an answer that is no stream, the browser neither says which one it was nor tries again.
async function sayWhy() {
        const enough = new AbortController();
        try {
                const answer = await fetch("events", { cache: "no-store", signal: enough.signal });
                if (!answer.ok)
                        setStatus("bad", (await answer.text()).trim() + "; trying again");
        } catch {
                // It cannot be reached, which has been said.
        }
        enough.abort();
        setTimeout(connect, RETRY_MS);
}

function connect() {
        events = new EventSource("events");
        events.onmessage = event => takeState(JSON.parse(event.data));
        events.addEventListener("change", event => takeChange(JSON.parse(event.data)));
        events.addEventListener("past", event => showPast(JSON.parse(event.data)));
        events.onerror = () => {
                setStatus("bad", "no connection to vgpu-exporter; trying again");
                if (events.readyState === EventSource.CLOSED)
                        sayWhy();
        };
}

connect();
document.getElementById("token-button").addEventListener("click", pressToken);
document.getElementById("token-form").addEventListener("submit", enterToken);
document.getElementById("token-cancel").addEventListener("click", () => document.getElementById("token-dialog").close());
document.getElementById("month").addEventListener("change", showUsage);
document.getElementById("save-usage").addEventListener("click", saveUsage);
for (const button of document.querySelectorAll("[data-action]"))
        button.addEventListener("click", () => act(button.dataset.action));
document.getElementById("confirm-yes").addEventListener("click", () => finish(true));
document.getElementById("confirm-no").addEventListener("click", () => finish(false));
document.getElementById("confirm").addEventListener("cancel", () => finish(false)); // the key Esc
window.addEventListener("hashchange", route);
window.addEventListener("resize", () => {
        for (const turns of minutes.values())
                turns.isNew = true;
        if (latest)
                drawSoon();
});
setInterval(() => {
        if (opened && !document.hidden && !token)
                showVgpu(opened);
}, 2000);
showToken();
route();
