#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check-help.py SOURCE: the programs in bench/ and scripts/ that have a usage text print it on --help, and only that."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PATIENCE = 60  # seconds


def find_programs(source):
    for folder in ("bench", "scripts"):
        for path in sorted((source / folder).iterdir()):
            if path.is_file() and os.access(path, os.X_OK):
                text = path.read_text(errors="replace")
                if text.startswith("#!") and re.search(r"usage: |argparse", text):
                    yield path


def run(path, folder):
    """What is wrong with its --help; None: nothing."""
    try:
        done = subprocess.run([path, "--help"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"), timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return "does not end"
    if done.returncode != 0 or "usage" not in done.stdout.lower():
        return f"ends with {done.returncode}\n{done.stdout}{done.stderr}"
    return f"makes {os.listdir(folder)}" if os.listdir(folder) else None


def main(source):
    bad, programs = False, list(find_programs(source))
    for path in programs:
        with tempfile.TemporaryDirectory() as folder:
            what = run(path, folder)
        if what:
            print(f"{path.relative_to(source)} --help {what}")
            bad = True
    print(f"{len(programs)} programs")
    return bad or len(programs) < 30


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
