#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare.py NATIVE GATED: where two outputs of guest-compare differ, but for what docs/limits-in-detail.md lists.

The list is a table there: the line that differs, the driver's answer, ours, and why. A line is what
comes before the last colon, without which of several calls it was. A second answer after "or" is one
that a real driver gives and the simulated one does not.
"""
import difflib
import pathlib
import re
import sys

LIMITS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "limits-in-detail.md"
ROW = re.compile(r"\| `(?P<line>[^`]+)` \| (?P<native>[^|]*?) \| (?P<gated>[^|]*?) \| (?P<why>[^|]+?) \|$")


ONLY_REAL = "(real GPUs)"


def expected(with_real=True):
    """{line: (native, gated)} as docs/limits-in-detail.md has it; those of real GPUs alone as well, or not."""
    text = LIMITS.read_text().split("## Where the gate answers otherwise\n", 1)[1].split("\n## ")[0]
    rows = [ROW.match(line) for line in text.splitlines() if line.startswith("| `")]
    assert all(rows), "a row of the table is not as the others"
    return {row["line"]: (row["native"], row["gated"]) for row in rows
            if with_real or not row["why"].endswith(ONLY_REAL)}


def differences(native, gated):
    """[(line, native answers, gated answers)]; a line that only one has lacks the other's answer."""
    def answers(lines):
        found = {}
        for line in lines:
            what, _, answer = line.rpartition(": ")
            found.setdefault(what, []).append(answer)
        return found

    here, there = answers(native), answers(gated)
    return [(what, ", ".join(here.get(what, ["-"])), ", ".join(there.get(what, ["-"])))
            for what in dict.fromkeys([*here, *there]) if here.get(what) != there.get(what)]


def unexpected(native, gated):
    """Those of differences() that the table does not have."""
    known = expected()

    def is_known(what, ours, theirs):
        native_answer, gated_answers = known.get(what, (None, ""))
        return ours == native_answer and theirs in gated_answers.split(" or ")
    return [found for found in differences(native, gated) if not is_known(*found)]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    native, gated = (pathlib.Path(path).read_text().splitlines() for path in sys.argv[1:])
    found = unexpected(native, gated)
    for what, ours, theirs in found:
        print(f"{what}\n  driver: {ours}\n  gate:   {theirs}")
    print(f"{len(native)} lines, {len(differences(native, gated))} differ, {len(found)} of them not as"
          " docs/limits-in-detail.md says")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
