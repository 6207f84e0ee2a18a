// SPDX-License-Identifier: Apache-2.0
// What is asked for, and not told by the stream: a vGPU's own page; and with the token its past, actions and usage.
"use strict";

// The token: in this tab only, until it is closed or forgets it.

let token = "";
let isOffered = null; // has this server one? null: it has not said so yet

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

const NO_TOKEN = "usage needs a token, and this server has none: start vgpu-exporter with --token-file FILE, which makes one";

function offerToken(has) {
        if (isOffered === Boolean(has))
                return;
        isOffered = Boolean(has);
        showToken();
}

function showToken() {
        const button = document.getElementById("token-button");
        for (const node of document.querySelectorAll(".private"))
                node.hidden = !token;
        if (!token)
                document.getElementById("containers").hidden = true;
        setText(button, token ? "Forget the token" : "Enter the token");
        button.hidden = !token && !isOffered;
        document.getElementById("no-token").hidden = Boolean(token) || isOffered !== false;
        if (!token && isOffered !== null)
                setText(document.getElementById("usage-said"), isOffered ? "usage needs the token of this server" : NO_TOKEN);
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

let opened = ""; // UUID of the vGPU whose page is opened
let asked = 0;   // the answer to an older question is not shown

// As the commands write it, whatever the browser's language: 2026-11-28 19:14:29.
function time(seconds) {
        const date = new Date(seconds * 1000), two = number => String(number).padStart(2, "0");
        return [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-") + " " +
               [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
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

function addShape(svg, name, values) {
        const shape = document.createElementNS(SVG, name);
        for (const [key, value] of Object.entries(values))
                shape.setAttribute(key, value);
        svg.append(shape);
        return shape;
}

// A line for each quarter of the day, with the hour below it, and one at half of the GPU.
function drawAxes(svg, day) {
        const axis = document.getElementById("day-axis");
        axis.replaceChildren();
        addShape(svg, "line", { x1: 0, x2: 480, y1: 50, y2: 50 });
        for (let quarter = 0; quarter < 4; quarter++) {
                const step = day[Math.floor(quarter * day.length / 4)], label = element(axis, "span");
                addShape(svg, "line", { x1: quarter * 120, x2: quarter * 120, y1: 0, y2: 100 });
                setText(element(label, "span"), step ? time(step.from).slice(11, 16) : "");
                if (quarter === 3)
                        setText(element(label, "span"), "now");
        }
}

function drawDay(day) {
        const svg = document.getElementById("day");
        svg.replaceChildren();
        drawAxes(svg, day);
        const width = 480 / Math.max(day.length, 1);
        day.forEach((step, i) => {
                const tall = Math.max(step.percent > 0 ? 1 : 0, Math.min(100, step.percent));
                const bar = addShape(svg, "rect", { x: i * width, y: 100 - tall, width: width - 1, height: tall });
                const title = document.createElementNS(SVG, "title");
                title.textContent = time(step.from) + ": " + step.percent.toFixed(1) + " %, " + step.gib.toFixed(1) + " GiB";
                bar.append(title);
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
                const cell = row(body, [time(event.time), String(event.device), event.message]).lastElementChild;
                drawParts(cell, event, longest);
        }
}

// Its devices. What it received and may count on, and its turns, the stream tells.

function findMinute(part) {
        const device = latest.devices.find(one => one.index === part.device);
        const { slices } = device && minutes.get(device.uuid) || NO_TURNS;
        let had = 0, span = 0;
        for (const slice of slices) {
                const mine = slice.parts.find(([id]) => id === part.id);
                had += (mine ? mine[1] : 0) * (slice.until - slice.from);
                span += slice.until - slice.from;
        }
        return span > 0 ? Math.round(had / span / 10) + " %" : "";
}

function drawDevices(vgpu) {
        const live = latest && latest.up && latest.vgpus.find(one => one.uuid === vgpu.uuid);
        fill(document.querySelector("#parts tbody"), vgpu.parts.map(part => {
                const now = live && partsOf(live).find(one => one.id === part.id);
                return [vgpu.state === "suspended" ? part.device + " (left)" : String(part.device), formatSize(part.used),
                        now ? now.gpu + " % / " + Math.round(now.entitled) + " %" : "",
                        now ? findMinute(part) : "", Number(part.gpu_seconds.toFixed(1))];
        }));
}

function drawFacts(vgpu, container) {
        const facts = document.getElementById("facts");
        facts.replaceChildren();
        const told = [["UUID", vgpu.uuid], ["Owner", vgpu.owner_name], ["State", vgpu.state],
                      ["GPU", vgpu.state === "suspended" ? "none" : whereIs(vgpu)],
                      ["Frame buffer", formatSize(vgpu.used) + " / " + formatSize(vgpu.quota * Math.max(1, vgpu.parts.length))],
                      ["Share", vgpu.share ? vgpu.share + " %" : "none"],
                      ["Host memory", formatSize(vgpu.host_memory)], ["Created", time(vgpu.created)]];
        if (container)
                told.push(["Container", container]);
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
        setTitle(told.vgpu.name);
        drawFacts(told.vgpu, told.container);
        drawDevices(told.vgpu);
        offerShare(told.vgpu);
        offerDevices(told.vgpu);
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

// What a reader has entered stays until the share is another one.
function offerShare(vgpu) {
        const field = document.getElementById("percent"), key = vgpu.uuid + " " + vgpu.share;
        if (field.shownKey === key)
                return;
        field.shownKey = key;
        field.value = vgpu.share;
}

let placed = { uuid: "", parts: [], state: "" }; // the vGPU that the choice is for

function makeChoice(parent, name, i) {
        const label = element(parent, "label");
        label.append(name + " ");
        const choice = element(label, "select");
        choice.id = i > 0 ? "to-device-" + i : "to-device";
        const none = element(choice, "option");
        none.value = "";
        for (const device of latest.devices) {
                const option = element(choice, "option");
                option.value = String(device.index);
                setText(option, device.index + ": " + device.name);
        }
}

// A choice for each of the vGPU's GPUs; what has been chosen stays while the GPUs do.
function offerDevices(vgpu = placed) {
        const parent = document.getElementById("to-devices"), n = Math.max(1, vgpu.parts.length);
        placed = vgpu;
        if (!latest || !latest.devices)
                return;
        const key = [vgpu.uuid, n].concat(latest.devices.map(device => device.index + " " + device.name)).join();
        if (parent.shownKey !== key) {
                parent.shownKey = key;
                parent.replaceChildren();
                for (let i = 0; i < n; i++)
                        makeChoice(parent, n > 1 ? "GPU of part " + (i + 1) : "GPU", i);
        }
        for (const none of parent.querySelectorAll("option:first-child"))
                setText(none, vgpu.state === "suspended" ? "the one it left" : "choose one");
}

// "0,1": of a vGPU of several. "": none has been chosen.
function readDevices() {
        const chosen = Array.from(document.querySelectorAll("#to-devices select"), choice => choice.value);
        return { device: chosen.filter(value => value).join(), isWhole: chosen.every(value => value) };
}

// What is missing, or "".
function findMissing(action, { device, isWhole }) {
        const mustChoose = action === "migrate" || (action === "resume" && device);
        return mustChoose && !isWhole ? action + ": choose the GPU first" : "";
}

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
        const choice = readDevices(), { device } = choice, percent = document.getElementById("percent").value;
        const said = document.getElementById("act-said"), missing = findMissing(action, choice);
        if (missing) {
                setText(said, missing);
                return;
        }
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
                        one => [one.tenant_name, one.gpu_seconds.toFixed(1), one.quota_gib_hours.toFixed(2),
                                one.used_gib_hours.toFixed(2)]));
                fill(document.querySelector("#containers tbody"), told.containers.map(
                        one => [one.name || one.container, one.tenant_name, one.gpu_seconds.toFixed(1),
                                one.used_gib_hours.toFixed(2)]));
                document.getElementById("containers").hidden = told.containers.length === 0;
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
