#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the plots of the documents from the measured figures.

usage: bench/plot.py [--check]

Reads bench/figures/*.csv and writes docs/figures/*.svg. The CSV files repeat figures of the documents, and
the column "source" names the document. With --check the script writes nothing, and fails if a plot differs
from its figures or if a figure is not in its document.
"""
import csv
import pathlib
import re
import sys
from xml.sax.saxutils import escape

SOURCE = pathlib.Path(__file__).resolve().parents[1]
WIDTH = 760
LEFT = 24           # of all text and bars
COLUMNS_THAT_ARE_MEASURED = re.compile(r"openvgpu_s|peer_s|ratio|received_\w+|work|suspend_ms|\w+_percent")

# The card behind a plot follows the reader's colours, so its text can be read on any page.
STYLE = """
  text { font: 14px system-ui, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: #1f2328 }
  .title { font-size: 16px; font-weight: 600 }
  .name { font-weight: 600 }
  .ratio { font-size: 22px; font-weight: 700; fill: #0b6e4f }
  .note { font-size: 12px; fill: #59636e }
  .inside { font-size: 13px; font-weight: 600; fill: #ffffff }
  .card { fill: #ffffff; stroke: #d1d9e0 }
  .grid { stroke: #d1d9e0 }
  .ours { fill: #12805c }
  .peer { fill: #8c959f }
  .host { fill: #ffffff; stroke: #1f2328; stroke-width: 1.5 }
  .entitled { stroke: #1f2328; stroke-width: 2 }
  .due { stroke: #1f2328; stroke-dasharray: 3 3 }
  .path { fill: none; stroke-width: 2.5 }
  .path.ours { stroke: #12805c }
  .path.peer { stroke: #8c959f }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .ratio { fill: #4ac99b }
    .note { fill: #9198a1 }
    .card { fill: #0d1117; stroke: #3d444d }
    .grid { stroke: #3d444d }
    .ours { fill: #1f9d72 }
    .peer { fill: #656c76 }
    .host { fill: #0d1117; stroke: #f0f6fc }
    .entitled, .due { stroke: #f0f6fc }
    .path.ours { stroke: #1f9d72; fill: none }
    .path.peer { stroke: #8c959f; fill: none }
  }
"""


class Drawing:
    def __init__(self, height, description):
        self.height = height
        self.description = description
        self.shapes = []

    def text(self, x, y, words, kind=None, anchor="start"):
        kind = f' class="{kind}"' if kind else ""
        place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
        self.shapes.append(f"<text {place}{kind}>{escape(words)}</text>")

    def bar(self, x, y, width, height, kind):
        place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}"'
        self.shapes.append(f'<rect {place} class="{kind}"/>')

    def line(self, x1, y1, x2, y2, kind):
        self.shapes.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>')

    def path(self, points, kind):
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.shapes.append(f'<polyline points="{places}" class="path {kind}"/>')

    def dot(self, x, y):
        self.shapes.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" class="host"/>')

    def svg(self):
        shapes = "\n".join(f"  {shape}" for shape in self.shapes)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.height}" '
                f'viewBox="0 0 {WIDTH} {self.height}" role="img">\n'
                f"  <!-- drawn by bench/plot.py: do not edit -->\n"
                f"  <title>{escape(self.description)}</title>\n"
                f"  <style>{STYLE}  </style>\n"
                f'  <rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{self.height - 1}" rx="8" '
                f'class="card"/>\n'
                f"{shapes}\n</svg>\n")


def span(values):
    """The least and the greatest, as they are written in the figures."""
    least, greatest = min(values, key=float), max(values, key=float)
    return least if least == greatest else f"{least} to {greatest}"


def draw_operation(drawing, y, operation, rows, scale):
    """One operation: the driver's bar, with a circle for each other host, ours, and the ratio."""
    first, others = rows[0], rows[1:]
    drawing.text(LEFT, y, operation[0].upper() + operation[1:], "name")
    for bar_y, column, kind, who in ((y + 10, "peer_s", "peer", "driver"),
                                     (y + 38, "openvgpu_s", "ours", "OpenVGPU")):
        drawing.bar(LEFT, bar_y, float(first[column]) * scale, 22, kind)
        end = LEFT + float(first[column]) * scale
        if kind == "peer":
            for row in others:
                drawing.dot(LEFT + float(row[column]) * scale, bar_y + 11)
            end = max(end, *(LEFT + float(row[column]) * scale for row in others))
        drawing.text(end + 12, bar_y + 16, f"{who}: {first[column]} s")
    drawing.text(WIDTH - LEFT, y + 42, f"{first['ratio']} times", "ratio", "end")
    drawing.text(WIDTH - LEFT, y + 60, f"all hosts: {span([row['ratio'] for row in rows])}", "note", "end")


def draw_operations(rows):
    """How long suspend, resume and migrate take, ours and the driver's."""
    operations = {}
    for row in rows:
        operations.setdefault(row["operation"], []).append(row)
    scale = 420 / max(float(row["peer_s"]) for row in rows)
    drawing = Drawing(122 + 92 * len(operations),
                      "Suspend, resume and migrate with 32 GiB: OpenVGPU against the driver's own checkpoint")
    drawing.text(LEFT, 34, "Time to move 32 GiB off a GPU, back, and to another GPU", "title")
    drawing.text(LEFT, 54, "Shorter is better. Driver: the driver's own checkpoint of the same program. "
                 "Bars: medians on the first host.", "note")
    drawing.text(LEFT, 70, "Circles: the driver's medians on the other hosts. "
                 f"OpenVGPU takes {span([row['openvgpu_s'] for row in rows])} s on all hosts.", "note")
    for i, (operation, its_rows) in enumerate(operations.items()):
        draw_operation(drawing, 100 + 92 * i, operation, its_rows, scale)
    drawing.text(LEFT, drawing.height - 18, "2 H200, driver 580.159.04, 2026-11-21 and 22; CUDA context "
                 "included; bench/run --gib 32 --rounds 3", "note")
    return drawing.svg()


def draw_size_panel(drawing, left, operation, rows):
    """One operation: seconds over GiB, the driver's and ours."""
    top, bottom, width = 96, 296, 180
    drawing.text(left, top - 16, operation[0].upper() + operation[1:], "name")
    for seconds in (0, 5, 10, 15, 20):
        y = bottom - (bottom - top) * seconds / 20
        drawing.line(left, y, left + width, y, "grid")
        drawing.text(left - 6, y + 4, f"{seconds}", "note", "end")
    for column, kind in (("peer_s", "peer"), ("openvgpu_s", "ours")):
        points = [(left + width * int(row["gib"]) / 32, bottom - (bottom - top) * float(row[column]) / 20) for row in rows]
        drawing.path(points, kind)
        for x, y in points:
            drawing.dot(x, y)
    for row in rows:
        drawing.text(left + width * int(row["gib"]) / 32, bottom + 18, row["gib"], "note", "middle")


def draw_sizes(rows):
    """How long suspend, resume and migrate take by the size of the memory, ours and the driver's."""
    drawing = Drawing(366, "Suspend, resume and migrate by size of memory: OpenVGPU against the driver's own checkpoint")
    drawing.text(LEFT, 34, "Seconds by GiB of device memory", "title")
    drawing.text(LEFT, 54, "Lower is better. Grey: the driver's own checkpoint. Green: OpenVGPU.", "note")
    operations = {}
    for row in rows:
        operations.setdefault(row["operation"], []).append(row)
    for i, (operation, its_rows) in enumerate(operations.items()):
        draw_size_panel(drawing, LEFT + 20 + 242 * i, operation, its_rows)
    drawing.text(LEFT, 336, "2 H200, driver 580.159.04, 2026-11-21 and 23; CUDA context included; bench/run --gib N", "note")
    drawing.text(LEFT, 352, "Suspends of 4 and 16 GiB are second ones, which copied only what had changed.", "note")
    return drawing.svg()


def draw_share(drawing, y, row):
    """One pair of guests: what each received, and a line where the first one's entitlement ends."""
    left, width = 300, WIDTH - LEFT - 56 - 300
    first = float(row["received_first"]) / 100 * width
    drawing.text(LEFT, y + 16, row["case"])
    drawing.bar(left, y, first, 24, "ours")
    drawing.bar(left + first, y, width - first, 24, "peer")
    drawing.text(left + 8, y + 17, f"{row['received_first']} %", "inside")
    drawing.text(WIDTH - LEFT, y + 17, f"{row['received_second']} %", None, "end")
    entitled = left + float(row["entitled"]) / 100 * width
    drawing.line(entitled, y - 5, entitled, y + 29, "entitled")


def draw_shares(rows):
    """What two guests received of a GPU's time, against their entitlement."""
    drawing = Drawing(106 + 42 * len(rows),
                      "GPU time that two busy guests received, against their entitlement")
    drawing.text(LEFT, 34, "GPU time that two busy guests received, in percent", "title")
    drawing.text(LEFT, 54, "The line marks the entitlement of the first guest. "
                 "Green: what the first guest received.", "note")
    for i, row in enumerate(rows):
        draw_share(drawing, 78 + 42 * i, row)
    drawing.text(LEFT, drawing.height - 16, "H200, driver 580.159.04; bench/scheduler/run --scale 0.45",
                 "note")
    return drawing.svg()


def draw_second_suspend(rows):
    """The second suspend: unchanged memory is hashed on the device, the rest is copied."""
    scale = 420 / max(float(row["suspend_ms"]) for row in rows)
    drawing = Drawing(106 + 42 * len(rows), "The second suspend of 32 GiB: hashing against copying")
    drawing.text(LEFT, 34, "The second suspend of 32 GiB", "title")
    drawing.text(LEFT, 54, "Shorter is better. The device hashes all of the memory, and only what has changed is copied.",
                 "note")
    for i, row in enumerate(rows):
        y = 78 + 42 * i
        width = float(row["suspend_ms"]) * scale
        drawing.text(LEFT, y + 16, row["case"])
        drawing.bar(190, y, width, 24, "peer" if row["unchanged"] == "0" else "ours")
        drawing.text(190 + width + 12, y + 17, f"{row['suspend_ms']} ms")
    drawing.text(LEFT, drawing.height - 16, "H100, driver 580.159.04, 2026-11-23; CUDA context kept; "
                 "bench/clean-copies --gib 32", "note")
    return drawing.svg()


def draw_throughput_case(drawing, y, row):
    drawing.text(LEFT, y, row["case"], "name")
    drawing.text(WIDTH - LEFT, y, row["measure"], "note", "end")
    for i, (column, kind, who) in enumerate((("openvgpu_percent", "ours", "OpenVGPU"),
                                             ("driver_percent", "peer", "driver"), ("mps_percent", "peer", "MPS"))):
        if not row[column]:
            continue
        width = float(row[column]) * 4.5
        drawing.bar(LEFT + 80, y + 10 + 24 * i, width, 18, kind)
        drawing.text(LEFT, y + 24 + 24 * i, who)
        drawing.text(LEFT + 80 + width + 10, y + 24 + 24 * i, f"{row[column]} %")


def draw_throughput(rows):
    """What guests get done beside each other, with turns and with the driver's own time slicing."""
    drawing = Drawing(96 + 100 * len(rows), "Work of guests that share a GPU: OpenVGPU's turns, the driver's time "
                      "slicing, and MPS")
    drawing.text(LEFT, 34, "Work of guests that share a GPU, in percent of what each does alone", "title")
    drawing.text(LEFT, 54, "Driver: its own time slicing. The same programs in the same run.", "note")
    for i, row in enumerate(rows):
        draw_throughput_case(drawing, 86 + 100 * i, row)
    drawing.text(LEFT, drawing.height - 14, "H200, driver 580.159.04; bench/scheduler/run --scale 0.45", "note")
    return drawing.svg()


def draw_shares_over_time(rows):
    """What two vGPUs received second by second, and what they were entitled to."""
    left, top, height = LEFT + 56, 96, 200
    width = WIDTH - LEFT - left
    drawing = Drawing(top + height + 76, "GPU time that two vGPUs received, second by second, against what they were entitled to")
    last = float(rows[-1]["second"])

    def x(second):
        return left + width * second / last

    def y(percent):
        return top + height * (1 - float(percent) / 100)
    drawing.text(LEFT, 34, "GPU time received while a vGPU comes and goes and shares change", "title")
    drawing.text(LEFT, 54, "Percent of each second. Green: train. Grey: serve. Dashed: what each was entitled to while its "
                 "program ran.", "note")
    for percent in (0, 25, 50, 75, 100):
        drawing.line(left, y(percent), left + width, y(percent), "grid")
        drawing.text(left - 8, y(percent) + 5, f"{percent} %", "note", "end")
    began, parts = 0.0, []
    for row in rows:
        if not parts or parts[-1][0] != row["part"]:
            parts.append((row["part"], began))
        for name in ("train", "serve"):
            due = float(row[f"{name}_entitled"])
            if due:
                drawing.line(x(began), y(due), x(float(row["second"])), y(due), "due")
        began = float(row["second"])
    for part, second in parts:
        drawing.line(x(second), top - 22, x(second), top + height, "grid")
        drawing.text(x(second) + 6, top - 10, part, "note")
    for name, kind in (("serve", "peer"), ("train", "ours")):
        drawing.path([(x(float(row["second"]) - 0.5), y(row[f"{name}_received"])) for row in rows], kind)
    for second in range(0, int(last) + 1, 10):
        drawing.text(x(second), top + height + 18, f"{second} s", "note", "middle")
    drawing.text(LEFT, drawing.height - 16, f"{rows[0]['machine']}, turns in simulated hardware, two busy cores, {rows[0]['date']}; "
                 f"{rows[0]['command']}", "note")
    return drawing.svg()


PLOTS = {"operations": draw_operations, "sizes": draw_sizes, "shares": draw_shares, "second-suspend": draw_second_suspend,
         "throughput": draw_throughput, "shares-over-time": draw_shares_over_time}


def read_figures(name):
    with open(SOURCE / "bench" / "figures" / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def missing_figures(name):
    """The figures that the document does not have."""
    for row in read_figures(name):
        known = set(re.findall(r"\d+(?:\.\d+)?", (SOURCE / row["source"]).read_text(encoding="utf-8")))
        for column, value in row.items():
            if value and COLUMNS_THAT_ARE_MEASURED.fullmatch(column) and value not in known:
                yield f"bench/figures/{name}.csv: {row['source']} has no {value} ({column})"


def main(arguments):
    if arguments == ["--help"]:
        print(__doc__)
        return
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    complaints = []
    for name, draw in PLOTS.items():
        plot = SOURCE / "docs" / "figures" / f"{name}.svg"
        drawn = draw(read_figures(name))
        complaints += missing_figures(name)
        if not arguments:
            plot.write_text(drawn, encoding="utf-8")
        elif not plot.exists() or plot.read_text(encoding="utf-8") != drawn:
            complaints.append(f"docs/figures/{name}.svg differs from its figures: run bench/plot.py")
    sys.exit("\n".join(complaints) or 0)


if __name__ == "__main__":
    main(sys.argv[1:])
