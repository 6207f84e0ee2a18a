#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completion in zsh and fish offers the commands and the options of 'vgpu help --json', and no others.

usage: check-completion.py zsh|fish VGPU FILE

The shell itself is asked what it would offer; exit 77 where it is not installed.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# zsh's own helpers print what they were given.
ZSH = """
_arguments() { print -rl -- "$@" }
_describe() { print -rl -- "${(@P)2}" }
_normal() { : }
source "$1"
while read -r line; do
        words=(${(z)line} "")
        CURRENT=$#words
        print -r -- "? $line"
        _vgpu
done
"""
FISH = """
source $argv[1]
while read -l line
    echo "? $line"
    complete -C "$line"(test "$line" = vgpu; and echo ' '; or echo ' -')
end
"""


def ask(shell, path, lines):
    """What the shell offers behind each line: a set of words."""
    command = {"zsh": ["zsh", "-f", "-c", ZSH, "zsh", path],
               "fish": ["fish", "--no-config", "-c", FISH, path]}[shell]
    with tempfile.TemporaryDirectory() as home:  # fish makes folders there
        places = {name: home for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")}
        done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True,
                              timeout=60, check=False, env={**os.environ, **places})
    assert done.returncode == 0 and not done.stderr, done.stderr
    answers = {}
    for line in done.stdout.splitlines():
        if line.startswith("? "):
            words = answers[line[2:]] = set()
        elif shell == "zsh":
            words.add(line.removeprefix("*").split("[")[0].rstrip("=") if line.startswith("*-")
                      else line.split(":")[0])
        else:
            words.add(line.split("\t")[0])
    return answers


def main(shell, vgpu, path):
    if not shutil.which(shell):
        print(f"{shell} is not installed")
        sys.exit(77)
    done = subprocess.run([vgpu, "help", "--json"], capture_output=True, text=True, check=True)
    commands = json.loads(done.stdout)["commands"]
    offered = ask(shell, path, ["vgpu"] + [f"vgpu {command['name']}" for command in commands])

    wanted = {command["name"] for command in commands if " " not in command["name"]} | {"help"}
    assert offered["vgpu"] == wanted, f"commands: {offered['vgpu'] ^ wanted}"
    for command in commands:
        wanted = {f"--{option['name']}" for option in command["options"]} | {"--json", "--help"}
        found = {word for word in offered[f"vgpu {command['name']}"] if word.startswith("--")}
        assert found == wanted, f"{command['name']}: {found ^ wanted}"
        letters = {f"-{option['letter']}" for option in command["options"] if "letter" in option} | {"-h"}
        found = {word for word in offered[f"vgpu {command['name']}"] if len(word) == 2 and word[0] == "-"}
        assert found == letters, f"{command['name']}: {found ^ letters}"
    (by,) = [option["help"] for command in commands if command["name"] == "usage"
             for option in command["options"] if option["name"] == "by"]
    words = re.sub(r" \(.*?\)|,", "", by)
    assert words in pathlib.Path(path).read_text(), f"behind --by: not '{words}'"


if __name__ == "__main__":
    main(*sys.argv[1:])
