#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the words of comments and documents: what a stranger understands at the first reading.

usage: tools/check-words.py [--update]

Refused are, in comments and documents: "who" and its kin, "somebody", "nobody" and theirs (name the process, the
vGPU, the user, the thread), "likewise"; a comment that begins with "What", "Who", "Whose" or "Of" and is no
question; in documents lines of over 110 columns. Code, quotations and tables of documents do not count.

What was there before the check is in words-left.txt, a number for each file: no file may have more. With --update
the numbers become what they are now, where that is less.
"""
import io
import pathlib
import re
import subprocess
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEFT = ROOT / "tools" / "words-left.txt"
COLUMNS = 110

PERSONS = re.compile(r"\b(who|whose|whom|whoever|(?:some|no|any|every)body|likewise)\b", re.IGNORECASE)
BEGINNING = re.compile(r"(What|Who|Whose|Whoever|Of)\b[^?]*$")
C_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`\n]*`|\"[^\"\n]*\"|<!--.*?-->", re.DOTALL)


def get_c_comments(text):
    """(line, comment)"""
    for match in C_COMMENT.finditer(text):
        if match[0].startswith("/"):
            yield text.count("\n", 0, match.start()) + 1, match[0].strip("/*")


def get_python_comments(text):
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_document = token.type == tokenize.STRING and token.string.startswith('"""')
        if is_document or token.type == tokenize.COMMENT:
            yield token.start[0], token.string.strip('"# ')


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def check_prose(line, text):
    for match in PERSONS.finditer(CODE.sub(blank, text)):
        yield line + text.count("\n", 0, match.start()), f"'{match[0]}'"


def check_comment(line, text):
    plain = re.sub(r"\s*\n\s*\*?\s*", " ", text).strip()
    yield from check_prose(line, text)
    if BEGINNING.match(plain.split(". ")[0]):
        yield line, f"begins with '{plain.split()[0]}'"


def check_document(text):
    yield from check_prose(1, text)
    lines = CODE.sub(blank, text).splitlines()
    for number, (line, plain) in enumerate(zip(text.splitlines(), lines), 1):
        if len(line) > COLUMNS and plain.strip() and not line.startswith(("|", "[")):
            yield number, f"{len(line)} columns"


def is_python(path, text):
    return path.suffix == ".py" or text.startswith("#!/usr/bin/env python3")


def check_file(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md" and not path.name.endswith(".zh-CN.md"):
        yield from check_document(text)
        return
    if path.suffix in (".c", ".h", ".S"):
        comments = get_c_comments(text)
    elif is_python(path, text) and path.name != "check-words.py":
        comments = get_python_comments(text)
    else:
        return
    for line, comment in comments:
        yield from check_comment(line, comment)


def check_itself():
    """What it is for: it sees what it must, and nothing else."""
    samples = {" Who waits comes first. ": 2, " Nobody else has it. ": 1, " The device's owner? ": 0,
               " `nobody` and \"who\" are quoted. ": 0, " Of three the first. ": 1}
    for text, number in samples.items():
        assert len(list(check_comment(1, text))) == number, text
    assert [fault for _, fault in check_document("x" * 120 + "\n| " + "y" * 120 + "\n")] == ["120 columns"]


def list_files():
    done = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(77)  # no checkout
    names = [name for name in done.stdout.split("\0") if name]
    return [name for name in names if (ROOT / name).is_file() and not (ROOT / name).is_symlink()
            and not name.startswith("tests/data/")]


def read_left():
    if not LEFT.exists():
        return {}
    return {name: int(number) for number, name in (line.split(" ", 1) for line in LEFT.read_text().splitlines())}


def update(left, found):
    now = {name: len(faults) for name, faults in found.items() if faults}
    kept = {name: min(number, left.get(name, number)) for name, number in now.items()}
    LEFT.write_text("".join(f"{number} {name}\n" for name, number in sorted(kept.items())))


def main():
    check_itself()
    found = {}
    for name in list_files():
        try:
            found[name] = sorted(set(check_file(ROOT / name)))
        except UnicodeDecodeError:
            continue
    left = read_left()
    if sys.argv[1:] == ["--update"]:
        update(left, found)
        return 0
    worse = {name: faults for name, faults in found.items() if len(faults) > left.get(name, 0)}
    for name, faults in worse.items():
        print(f"{name}: {len(faults)} words or lines that say too little, {left.get(name, 0)} before:")
        for line, fault in faults:
            print(f"  {name}:{line}: {fault}")
    print(f"{sum(map(len, found.values()))} are left in {sum(map(bool, found.values()))} files; "
          "CONTRIBUTING.md says how to put it better")
    return bool(worse)


if __name__ == "__main__":
    sys.exit(main())
