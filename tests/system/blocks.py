# SPDX-License-Identifier: Apache-2.0
"""The command blocks of a document: a Markdown file, a man page, or the examples of a command's help.

A fenced block without a language is a command block: what a reader types. If any line of it begins with
"$ ", those lines are typed and the others are what the commands print; else every line is typed. A block
that nobody types has a language: text, json, c.

An HTML comment (in a man page a comment line) right above a block says what else is to be known:

    <!-- not typed: REASON -->              the block is not run
    <!-- needs PROGRAM: WHERE FROM -->      lines that name the program are run where it is installed
    <!-- afresh -->                         a manager that runs is ended first: the block starts another one
    <!-- until Ctrl-C -->                   the last command does not end by itself

    blocks.py SOURCE    fails on a block that is written so that nobody could tell what it is
"""
import pathlib
import re
import sys

FENCE = re.compile(r"^```(\w*)\s*$")
MARK = re.compile(r'^(?:<!--|\.\\") (not typed|needs|afresh|until Ctrl-C)(?: ?([\w-]+)?: (.*?))?(?: -->)?$')


class Block:
    def __init__(self, line, language=""):
        self.line = line
        self.language = language
        self.skipped = None     # why it is not typed
        self.needs = None       # (program, where it comes from)
        self.is_afresh = False
        self.is_endless = False
        self.text = []

    def mark(self, kind, word, reason):
        if kind in ("not typed", "needs") and not reason:
            raise ValueError(f"line {self.line}: '{kind}' without a reason")
        if kind == "not typed":
            self.skipped = reason
        elif kind == "needs":
            self.needs = (word, reason)
        elif kind == "afresh":
            self.is_afresh = True
        else:
            self.is_endless = True

    def lines_without(self, has):
        """Those that need a program that @has() does not find; where such a line sets a variable, all from its first use."""
        if not self.needs or has(self.needs[0]):
            return []
        lacking, unset, is_over = [], [], False
        for line, _ in self.commands():
            is_over = is_over or any(re.search(rf"\${name}\b", line) for name in unset)
            if is_over or re.search(rf"\b{self.needs[0]}\b", line):
                lacking.append(line)
                unset += re.findall(r"^(\w+)=", line)
        return lacking

    def commands(self):
        """(what is typed, what the document says that it prints)"""
        is_session = any(line.startswith("$ ") for line in self.text)
        found = []
        for line in self.text:
            if not is_session and line.strip():
                found.append((line, []))
            elif is_session and line.startswith("$ "):
                found.append((line[2:], []))
            elif is_session and found:
                found[-1][1].append(line)
        return found


def _apply_marks(block, marks):
    for mark in marks:
        block.mark(*mark)
    return block


def in_markdown(text):
    """All command blocks; ValueError: one that is written so that nobody could tell what it is."""
    found, marks, block, before = [], [], None, ""
    for number, line in enumerate(text.splitlines(), 1):
        fence, mark = FENCE.match(line), MARK.match(line)
        if block:
            if line.startswith("```"):
                if not block.language:
                    found.append(block)
                block, marks = None, []
            else:
                block.text.append(line)
        elif fence:
            block = _apply_marks(Block(number, fence[1]), marks)
        elif line.startswith("```"):
            raise ValueError(f"line {number}: '{line}' begins no block")
        elif mark:
            marks.append(mark.groups())
        else:
            marks = []
            if line.startswith("    ") and not before.strip():
                raise ValueError(f"line {number}: a block that is only indented: put it between ```")
        before = line
    if block:
        raise ValueError(f"line {block.line}: the block does not end")
    return found


def _from_roff(line):
    return line.replace(r"\(dq", '"').replace(r"\(aq", "'").replace(r"\e", "\\").replace(r"\-", "-")


def in_man_page(text):
    """What stands in .Dl lines and between .Bd -literal and .Ed."""
    found, marks, block = [], [], None
    for number, line in enumerate(text.splitlines(), 1):
        mark = MARK.match(line)
        if block:
            if line == ".Ed":
                found.append(block)
                block, marks = None, []
            else:
                block.text.append(_from_roff(line))
        elif mark:
            marks.append(mark.groups())
        elif line.startswith(".Bd -literal"):
            block = _apply_marks(Block(number), marks)
        elif line.startswith(".Dl "):
            one = _apply_marks(Block(number), marks)
            one.text.append(_from_roff(line[4:]))
            found.append(one)
            marks = []
        else:
            marks = []
    return found


def in_help(text):
    """The lines below "Examples:"."""
    block = Block(0)
    lines = text.splitlines()
    if "Examples:" in lines:
        for line in lines[lines.index("Examples:") + 1:]:
            if not line.startswith("  "):
                break
            block.text.append(line[2:])
    return block


def documents(source):
    return [*sorted(source.glob("*.md")), *sorted((source / "docs").glob("*.md")),
            *sorted((source / "docs" / "man").glob("*.[1-8]"))]


def in_document(path):
    return (in_markdown if path.suffix == ".md" else in_man_page)(path.read_text())


def main(source):
    bad = 0
    for path in documents(pathlib.Path(source)):
        try:
            in_document(path)
        except ValueError as error:
            bad = 1
            print(f"{path}: {error}")
    sys.exit(bad)


if __name__ == "__main__":
    main(*sys.argv[1:])
