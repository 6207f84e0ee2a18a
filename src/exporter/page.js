// SPDX-License-Identifier: Apache-2.0
// What /events tells, a few times a second (src/exporter/state.h), and which page is opened.
"use strict";

const RETRY_MS = 3000;

// For who has just begun to look: also after the connection was lost, when it has what was missed.
function showPast(told) {
        times = [];
        past.clear();
        rememberHistory(told.history);
        minutes.clear();
        for (const [uuid, turns] of Object.entries(told.turns))
                rememberTurns(uuid, turns);
}

// All of it.

let base = null;       // the state that changes are told of
let latest = null;     // the state that is shown
let listed = null;     // the state whose rows and cards there are
let hasNews = false;

function setStatus(kind, text) {
        const status = document.getElementById("status");
        setAttribute(status, "data-kind", kind);
        setText(status, text);
        document.body.classList.toggle("old", kind === "bad");
}

function takeState(state) {
        base = latest = state;
        hasNews = true;
        drawSoon();
}

function changeParts(parts, changes) {
        return parts.map((part, i) => {
                const [device, used, entitled, gpu] = changes[i];
                return { ...part, device, used, entitled, gpu };
        });
}

// One that is as it was stays the same object, and is not drawn again.
function changeVgpu(first, was, [, state, device, used, share, entitled, gpu, programs, parts]) {
        if (!parts && was.state === state && was.device === device && was.used === used && was.share === share &&
            was.entitled === entitled && was.gpu === gpu && was.programs === programs)
                return was;
        const now = { ...first, state, device, used, share, entitled, gpu, programs };
        if (parts)
                now.parts = changeParts(first.parts, parts);
        return now;
}

function takeChange(change) {
        if (!base || change.base !== base.number)
                return;
        const vgpus = base.vgpus.slice(), devices = base.devices.slice();
        for (const facts of change.vgpus) {
                const i = facts[0];
                vgpus[i] = changeVgpu(base.vgpus[i], latest.vgpus[i], facts);
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
        hasNews = true;
        drawSoon();
}

// Rows and cards are made, put in order and taken away.
function list(state) {
        keep(cards, document.getElementById("devices"), state.devices, makeCard);
        keep(rows, document.querySelector("#vgpus tbody"), state.vgpus, makeRow);
        document.getElementById("vgpus").hidden = state.vgpus.length === 0;
        document.getElementById("none").hidden = state.vgpus.length > 0;
        setText(document.getElementById("version"), "vgpud " + state.version);
}

function show(state) {
        setText(document.getElementById("host"), state.host);
        if (!state.up) {
                setStatus("bad", "vgpud does not run, or does not answer");
                return;
        }
        setStatus("good", state.simulated ? "live, simulated GPUs" : "live");
        if (listed !== base) {
                list(state);
                listed = base;
        }
        findOwners(state.vgpus);
        const holders = findHolders(state.vgpus);
        for (const device of state.devices)
                offer(cards.get(device.uuid), { ...device, holders: holders.get(device.index) || [] });
        for (const vgpu of state.vgpus)
                offer(rows.get(vgpu.uuid), vgpu);
        if (state.pool)
                setText(document.getElementById("pool"), "Host memory for suspended vGPUs: " +
                        formatSize(state.pool.used) + " / " + formatSize(state.pool.limit));
        if (opened)
                showVgpu();
        document.body.dataset.shown = state.number;
}

function takeNews() {
        if (!hasNews)
                return;
        hasNews = false;
        show(latest);
}

// Which page is opened stands behind the #.

function setTitle(name) {
        document.title = name ? name + " - OpenVGPU" : "OpenVGPU";
}

function route() {
        const [name, uuid] = location.hash.slice(1).split("/");
        opened = name === "vgpu" && uuid ? uuid : "";
        document.getElementById("overview").hidden = Boolean(opened);
        document.getElementById("vgpu-page").hidden = !opened;
        setTitle("");
        setText(document.getElementById("vgpu-title"), "");
        if (opened)
                showVgpu();
}

// Keys and screen readers go where the eye goes: to the page that has been opened.
function goTo() {
        route();
        document.querySelector("main > div:not([hidden]) h2").focus();
}

// The stream.

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
window.addEventListener("hashchange", goTo);
route();
