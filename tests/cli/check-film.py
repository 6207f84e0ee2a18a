#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The film of the demo that the README shows is of the demo as it is now, and well-formed.

usage: check-film.py scripts/demo docs/figures/demo.svg
"""
import pathlib
import re
import sys
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def main(demo, film):
    texts = list(xml.etree.ElementTree.parse(film).iter(SVG + "text"))
    shown = [text.text for text in texts if text.get("class") == "command"]
    moments = [float(re.search(r"animation-delay: ([0-9.]+)s", text.get("style"))[1]) for text in texts]
    wrong = [] if texts and moments == sorted(moments) else ["its lines do not come one after another"]
    for command in re.findall(r"^\s*show (vgpu .*|nvidia-smi .*)$", pathlib.Path(demo).read_text(), re.M):
        if not any(line.startswith("$ " + command) for line in shown):
            wrong.append(f"it lacks: {command}")
    if any(text.text.lstrip().startswith("export ") for text in texts):
        wrong.append("it shows the paths of one machine")
    for words in wrong:
        print(f"{film}: {words}; make it anew with scripts/record-demo")
    sys.exit(bool(wrong))


main(*sys.argv[1:])
