// SPDX-License-Identifier: Apache-2.0
// The page of one vGPU, from what the stream tells.
"use strict";

let opened = ""; // UUID of the vGPU, or ""

function fill(body, rows) {
        body.replaceChildren();
        for (const cells of rows) {
                const row = element(body, "tr");
                for (const cell of cells)
                        setText(element(row, "td"), cell);
        }
}

// The part of the last minute that it had of the device.
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

function drawParts(vgpu) {
        fill(document.querySelector("#parts tbody"), partsOf(vgpu).map(part => [
                vgpu.state === "suspended" ? part.device + " (left)" : String(part.device), formatSize(part.used),
                part.gpu + " % / " + Math.round(part.entitled) + " %", findMinute(part)]));
}

function drawFacts(vgpu) {
        const facts = document.getElementById("facts");
        facts.replaceChildren();
        for (const [name, value] of [["UUID", vgpu.uuid], ["State", vgpu.state],
                                     ["GPU", vgpu.state === "suspended" ? "none" : whereIs(vgpu)],
                                     ["Frame buffer", formatSize(vgpu.used) + " / " + formatSize(vgpu.quota)],
                                     ["Share", vgpu.share ? vgpu.share + " %" : "none"],
                                     ["Programs", String(vgpu.programs)]]) {
                setText(element(facts, "dt"), name);
                setText(element(facts, "dd"), value);
        }
}

// While it is opened; one that has been removed is said to be gone.
function showVgpu() {
        const vgpu = latest && latest.up && latest.vgpus.find(one => one.uuid === opened);
        setText(document.getElementById("vgpu-said"), latest && latest.up && !vgpu ? "there is no such vGPU any more" : "");
        if (!vgpu)
                return;
        setText(document.getElementById("vgpu-title"), vgpu.name);
        setTitle(vgpu.name);
        drawFacts(vgpu);
        drawParts(vgpu);
        document.getElementById("vgpu-page").dataset.shown = opened;
}
