// SPDX-License-Identifier: Apache-2.0
// The table of vGPUs, a row for each, and the last hour of each.
"use strict";

const HOUR_MS = 3600000;
const LEAST_MS = 300000; // the line of the last hour begins with so much, and grows

const rows = new Map(); // by UUID
const past = new Map(); // UUID of a vGPU: percents, null where it was not there
let times = [];         // of the samples, ms: each is the mean since the one before

// The columns: what a cell is called where there is no head, on a telephone.
const COLUMNS = [["name", "", "name"], ["device", "GPU", "number"], ["state", "State", ""], ["memory", "Frame buffer", "meters"],
                 ["time", "GPU time", "meters"], ["spark", "Last hour, 0 to 100 %", "spark"], ["programs", "Programs", "number"]];

// A text with a bar below it, which is a background: to change it moves nothing.
function makeMeter(cell, kind) {
        const text = element(cell, "span", "text");
        const meter = element(cell, "span", "meter " + kind);
        meter.setAttribute("aria-hidden", "true"); // the text says the same
        return { text, meter };
}

function setLength(node, name, percent) {
        const text = percent.toFixed(1) + "%";
        node.shownLengths ||= {};
        if (node.shownLengths[name] === text)
                return;
        node.shownLengths[name] = text;
        node.style.setProperty(name, text);
}

function makeSpark(cell) {
        const svg = document.createElementNS(SVG, "svg");
        for (const [name, value] of [["class", "spark"], ["viewBox", "0 0 120 28"], ["preserveAspectRatio", "none"],
                                     ["role", "img"]])
                svg.setAttribute(name, value);
        cell.append(svg);
        const base = document.createElementNS(SVG, "line");
        for (const [name, value] of [["x1", 0], ["x2", 120], ["y1", 27.5], ["y2", 27.5]])
                base.setAttribute(name, value);
        svg.append(base);
        return svg;
}

// A step for each sample; a line for each stretch in which the vGPU was there.
function makeLines(values) {
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
        return lines;
}

function drawSpark(svg, values) {
        const lines = makeLines(values);
        while (svg.childElementCount - 1 > lines.length)
                svg.lastElementChild.remove();
        lines.forEach((line, i) => {
                let drawn = svg.children[i + 1];
                if (!drawn)
                        svg.append(drawn = document.createElementNS(SVG, "polyline"));
                setAttribute(drawn, "points", line.join(" "));
        });
        const known = values.filter(value => value !== null);
        const text = known.length ? Math.min(...known) + " to " + Math.max(...known) + " %" : "not known yet";
        setAttribute(svg, "aria-label", "GPU time of the last hour: " + text);
}

function makeRow(vgpu) {
        const node = document.createElement("tr");
        const cells = {};
        node.setAttribute("role", "row");
        for (const [name, label, kind] of COLUMNS) {
                const cell = cells[name] = element(node, "td", kind);
                cell.setAttribute("role", "cell");
                if (label)
                        cell.dataset.label = label;
        }
        node.dataset.uuid = vgpu.uuid;
        node.title = vgpu.name + ", " + vgpu.uuid;
        const link = element(cells.name, "a");
        link.href = "#vgpu/" + encodeURIComponent(vgpu.uuid);
        const device = element(cells.device, "span", "text"), programs = element(cells.programs, "span", "text");
        const state = element(cells.state, "span", "state text");
        const memory = makeMeter(cells.memory, "held"), time = makeMeter(cells.time, "received");
        const spark = makeSpark(cells.spark);
        let drawn = null; // the time of the newest sample that is drawn

        function update(now) {
                setColour(node, now);
                if (link.shownText !== now.name)
                        node.title = now.name + ", " + now.uuid;
                setText(link, now.name);
                setText(device, now.state === "suspended" ? "-" : whereIs(now));
                setText(state, now.state);
                setAttribute(state, "data-state", now.state);
                setText(memory.text, formatSize(now.used) + " / " + formatSize(now.quota));
                setLength(memory.meter, "--fill", percent(now.used, now.quota));
                setText(time.text, now.gpu + " % / " + Math.round(now.entitled) + " %" +
                                   (now.share ? " (share " + now.share + ")" : ""));
                setLength(time.meter, "--fill", Math.min(now.gpu, 100));
                setLength(time.meter, "--entitled", Math.min(now.entitled, 100));
                setText(programs, String(now.programs));
                const newest = times[times.length - 1] || 0;
                if (drawn !== newest) {
                        drawn = newest;
                        drawSpark(spark, past.get(now.uuid) || []);
                }
        }
        return { node, update };
}

// The last hour.

function addSample(time, told, i) {
        times.push(time);
        for (const values of past.values())
                values.push(null);
        for (const [uuid, values] of Object.entries(told)) {
                if (!past.has(uuid))
                        past.set(uuid, new Array(times.length).fill(null));
                past.get(uuid)[times.length - 1] = values[i];
        }
}

// @told has all samples that there are, or the latest ones.
function rememberHistory(told) {
        told.times.forEach((time, i) => {
                if (times.length === 0 || time > times[times.length - 1])
                        addSample(time, told.gpu, i);
        });
        while (times.length && times[times.length - 1] - times[0] > HOUR_MS) {
                times.shift();
                for (const values of past.values())
                        values.shift();
        }
        for (const [uuid, values] of past)
                if (values.every(value => value === null))
                        past.delete(uuid);
        for (const view of rows.values())
                makeStale(view);
}
