// SPDX-License-Identifier: Apache-2.0
// A card for each device: who holds what of it, who had it in the last minute, and the latest turns.
"use strict";

const MINUTE_MS = 60000;

const cards = new Map();   // by UUID
const minutes = new Map(); // UUID of a device: who had it, slice by slice
let nTold = 0;             // of these
const NO_TURNS = { slices: [], last: [], key: "" };
let ownersById = new Map(); // NVML's number of a vGPU, or of its part on a device: the vGPU

// What a vGPU has of each of its devices; one of a single device is its own part.
function partsOf(vgpu) {
        return vgpu.parts || [vgpu];
}

function whereIs(vgpu) {
        return vgpu.parts && vgpu.parts.length ? vgpu.parts.map(part => part.device).join(",") : String(vgpu.device);
}

function nameOf(id) {
        const vgpu = ownersById.get(id);
        return vgpu ? vgpu.name : "gone";
}

// Of all parts of a vGPU the same.
function paintOf(id) {
        const vgpu = ownersById.get(id);
        return colours().each[colourOf(vgpu ? vgpu.id : id)];
}

function makeFigure(card, name) {
        const label = element(card, "div", "label");
        setText(element(label, "span"), name);
        return { label, figure: element(label, "span", "figure") };
}

function makeStrip(card, name, className) {
        const strip = makeFigure(card, name);
        strip.canvas = makeCanvas(card, "strip " + className);
        strip.canvas.setAttribute("role", "img");
        strip.label.hidden = strip.canvas.hidden = true;
        return strip;
}

// Bars. The table of vGPUs says the same in words.

function makeBar(card, name) {
        const bar = makeFigure(card, name);
        bar.canvas = makeCanvas(card, "bar");
        bar.canvas.setAttribute("aria-hidden", "true");
        bar.canvas.addEventListener("mousemove", event => tellSegment(bar, event));
        bar.segments = [];
        return bar;
}

function tellSegment(bar, event) {
        let left = 100 * event.offsetX / Math.max(1, bar.canvas.shownSize[0]);
        const found = bar.segments.find(segment => (left -= segment.percent) < 0);
        setAttribute(bar.canvas, "title", found ? found.title() : "free");
}

function drawHatch(context, left, width, height, ratio) {
        context.save();
        context.beginPath();
        context.rect(left, 0, width, height);
        context.clip();
        context.beginPath();
        for (let x = left - left % (6 * ratio) - height; x < left + width; x += 6 * ratio) {
                context.moveTo(x, height);
                context.lineTo(x + height, 0);
        }
        context.lineWidth = 2 * ratio;
        context.stroke();
        context.restore();
}

function drawBar(bar, segments) {
        bar.segments = segments;
        const key = segments.map(({ id, percent, isPromised }) => id + " " + percent.toFixed(1) + isPromised).join();
        const drawing = beginCanvas(bar.canvas, key);
        if (!drawing)
                return;
        const { context, width, height, ratio } = drawing;
        let left = 0;
        for (const segment of segments) {
                const wide = width * segment.percent / 100;
                if (wide > 0) {
                        // Half a point of the ground between neighbours, who may be of one colour.
                        const shown = Math.max(wide / 2, wide - ratio / 2);
                        context.fillStyle = context.strokeStyle = paintOf(segment.id);
                        if (segment.isPromised)
                                drawHatch(context, left, shown, height, ratio);
                        else
                                context.fillRect(left, 0, shown, height);
                }
                left += wide;
        }
}

function memorySegments(device, holders) {
        const segments = [];
        for (const { vgpu, part } of holders) {
                if (vgpu.state === "suspended")
                        continue;
                const quota = vgpu.quota / partsOf(vgpu).length;
                const held = vgpu.state === "evicted" ? 0 : Math.min(part.used, quota);
                const title = () => vgpu.name + ": " + formatSize(part.used) + " / " + formatSize(quota);
                segments.push({ id: vgpu.id, percent: percent(held, device.total), isPromised: false, title },
                              { id: vgpu.id, percent: percent(quota - held, device.total), isPromised: true, title });
        }
        return segments;
}

function timeSegments(holders) {
        return holders.map(({ vgpu, part }) => ({ id: vgpu.id, percent: part.gpu, isPromised: false,
                                                  title: () => vgpu.name + ": " + part.gpu + " %" }));
}

// Turns.

function rememberTurns(uuid, turns) {
        const known = minutes.get(uuid) ? minutes.get(uuid).slices : [];
        const last = known.length ? known[known.length - 1].until : 0;
        // The exporter forgets when nobody looks: its slices then begin anew.
        const fresh = turns.slices.filter(slice => slice.until > last);
        minutes.set(uuid, { slices: known.concat(fresh).slice(-MINUTE_MS / 1000), last: turns.last,
                            key: String(++nTold) });
}

function drawSlice({ context, height }, slice, left, right) {
        let base = height;
        for (const [id, permille] of slice.parts) {
                const tall = Math.min(base, height * permille / 1000);
                context.fillStyle = paintOf(id);
                context.fillRect(left, base - tall, Math.max(1, right - left), tall);
                base -= tall;
        }
}

// A triangle: up for who left, down for who came; with an edge, whatever is below it.
function drawMark({ context, height, ratio }, id, move, at) {
        const size = height / 4, isLeft = move === "left";
        context.fillStyle = colours().mark;
        context.beginPath();
        context.moveTo(at - size, isLeft ? size : 0);
        context.lineTo(at + size, isLeft ? size : 0);
        context.lineTo(at, isLeft ? 0 : size);
        context.closePath();
        context.strokeStyle = colours().free;
        context.lineWidth = 2 * ratio;
        context.stroke();
        context.fill();
        context.fillStyle = paintOf(id);
        context.fillRect(at - 1, size, 2, height);
}

function drawSlices(drawing, slices) {
        const end = slices[slices.length - 1].until;
        const place = time => Math.round(drawing.width * Math.max(0, 1 - (end - time) / MINUTE_MS));
        for (const slice of slices)
                drawSlice(drawing, slice, place(slice.from), place(slice.until));
        for (const slice of slices)
                for (const [id, move] of slice.marks)
                        drawMark(drawing, id, move, place(slice.until));
}

function tellMinute(strip, slices) {
        const sums = new Map(), moves = { left: 0, came: 0 };
        for (const slice of slices) {
                for (const [id, permille] of slice.parts)
                        sums.set(id, (sums.get(id) || 0) + permille * (slice.until - slice.from));
                for (const [, move] of slice.marks)
                        moves[move]++;
        }
        const span = slices[slices.length - 1].until - slices[0].from;
        const parts = Array.from(sums).sort((a, b) => b[1] - a[1]).slice(0, 8)
                .map(([id, sum]) => nameOf(id) + " " + Math.round(sum / span / 10) + " %");
        const text = parts.length ? parts.join(", ") : "nobody";
        const swaps = moves.left || moves.came ? "\u25b2 " + moves.left + " left, \u25bc " + moves.came + " came" : "";
        setAttribute(strip.canvas, "aria-label", "GPU time of the last minute: " + text + (swaps && "; " + swaps));
        setAttribute(strip.canvas, "title", text);
        setText(strip.figure, swaps);
}

function drawMinute(strip, slices, key) {
        const drawing = beginCanvas(strip.canvas, key);
        if (drawing)
                drawSlices(drawing, slices);
}

function tellLast(strip, last) {
        const users = new Set(last.map(([id]) => nameOf(id)));
        setText(strip.figure, last.length + " turns in " + Math.round(last[0][1] / 1000) + " ms");
        setAttribute(strip.canvas, "aria-label", "the latest turns, of " + Array.from(users).join(", "));
}

function drawLast(strip, last, key) {
        const drawing = beginCanvas(strip.canvas, key);
        if (!drawing)
                return;
        const { context, width, height } = drawing, span = last[0][1];
        for (const [id, start, run] of last) {
                context.fillStyle = paintOf(id);
                context.fillRect(width * (1 - start / span), 0, Math.max(1, width * run / span - .5), height);
        }
}

function showStrip(strip, isShown) {
        if (strip.canvas.hidden === isShown)
                strip.label.hidden = strip.canvas.hidden = !isShown;
        return isShown;
}

// The card.

function drawFigures({ title, facts, memory, time }, device) {
        const told = [formatSize(device.total)];
        if (typeof device.celsius === "number")
                told.push(device.celsius + " \u00b0C");
        if (typeof device.watts === "number")
                told.push(Math.round(device.watts) + " W");
        setText(title, "GPU " + device.index + ": " + device.name);
        setText(facts, told.join(", "));
        setText(memory.figure, formatSize(device.used) + " / " + formatSize(device.promised));
        setText(time.figure, device.gpu + " % busy");
}

// Who is suspended has a hollow mark, so that no name moves for it.
function drawLegend(legend, holders) {
        while (legend.childElementCount > holders.length)
                legend.lastElementChild.remove();
        holders.forEach(({ vgpu }, i) => {
                const entry = legend.children[i] || element(legend, "li");
                setColour(entry, vgpu);
                setText(entry, vgpu.name);
                if (entry.shownState === vgpu.state)
                        return;
                entry.shownState = vgpu.state;
                entry.classList.toggle("away", vgpu.state === "suspended");
        });
}

function tellTurns({ minute, last }, { slices, last: turns }) {
        if (showStrip(minute, slices.length > 0))
                tellMinute(minute, slices);
        if (showStrip(last, slices.length > 0 && turns.length > 0))
                tellLast(last, turns);
}

function drawTurns({ minute, last }, { slices, last: turns, key }) {
        if (!minute.canvas.hidden)
                drawMinute(minute, slices, key);
        if (!last.canvas.hidden)
                drawLast(last, turns, key);
}

function makeCard() {
        const node = document.createElement("article");
        node.className = "device";
        const card = {
                title: element(node, "h3"),
                facts: element(node, "p", "facts"),
                memory: makeBar(node, "Frame buffer"),
                time: makeBar(node, "GPU time"),
                minute: makeStrip(node, "The last minute", "minute"),
                last: makeStrip(node, "Turns", "turns"),
                legend: element(node, "ul", "legend"),
        };

        let told; // the turns that are

        function update(device, isSeen) {
                drawFigures(card, device);
                drawLegend(card.legend, device.holders);
                const turns = minutes.get(device.uuid) || NO_TURNS;
                if (turns !== told)
                        tellTurns(card, told = turns);
                if (!isSeen)
                        return;
                drawTurns(card, turns);
                drawBar(card.memory, memorySegments(device, device.holders));
                drawBar(card.time, timeSegments(device.holders));
        }
        return { node, update };
}

// Which vGPUs have something of each device, by its index.
function findHolders(vgpus) {
        const holders = new Map();
        for (const vgpu of vgpus)
                for (const part of partsOf(vgpu)) {
                        if (!holders.has(part.device))
                                holders.set(part.device, []);
                        holders.get(part.device).push({ vgpu, part });
                }
        return holders;
}

function findOwners(vgpus) {
        ownersById = new Map();
        for (const vgpu of vgpus)
                for (const part of partsOf(vgpu))
                        ownersById.set(part.id, vgpu);
}
