#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completion for vgpu(1) in zsh and in fish, made from what 'vgpu help --json' says.

usage: gen-completion.py zsh|fish VGPU

Commands, options and their help come from the command itself. What may follow an option or a command is
in the tables here; what they do not name takes any text.
"""
import json
import re
import subprocess
import sys

# Options whose help is the list of the words that they take.
LISTED = ("by", "sort")

# By the name of the option: names of vGPUs, of devices, files, or these words.
VALUES = {
    "device": "devices", "vgpu": "names", "output": "files", "criu": "files", "storage": "files",
    "since": ["today", "7d"], "until": ["today", "7d"],
    "for": ["running", "locked", "checkpointed"],
    "policy": ["best-effort", "equal-share", "fixed-share"],
    "compress": ["zstd", "none"],
    "idle-after": ["30s", "5m", "1h"], "idle": ["suspend", "keep-context"],
    "class": ["batch", "interactive"],
}

# By the command: what its words are. Commands whose usage begins with NAME take names of vGPUs.
WORDS = {
    "run": "program", "simulate": "scenarios", "help": "commands",
    "checkpoint": ["state", "tid", "wait", "lock", "checkpoint", "restore", "unlock", "suspend", "resume",
                   "toggle", "dump", "load", "check"],
    "apply": "files", "checkpoint dump": "files", "checkpoint load": "files", "checkpoint check": "files",
    "scheduler": ["show", "set", "log"], "heterogeneous": ["on", "off"],
    "capabilities": ["set"], "version-range": ["set"], "metadata": ["export", "check"],
}

COMMON = [{"name": "json", "help": "print one JSON document; errors are JSON as well"},
          {"name": "help", "letter": "h", "help": "show this"}]


def read_commands(vgpu):
    done = subprocess.run([vgpu, "help", "--json"], capture_output=True, text=True, check=True)
    commands = json.loads(done.stdout)["commands"]
    commands.append({"name": "help", "usage": "", "options": [],
                     "summary": "explain a command: vgpu help COMMAND"})
    for command in commands:
        command["options"] = command["options"] + COMMON
        command["seconds"] = [other["name"].split()[1] for other in commands
                              if other["name"].split()[0] == command["name"] and " " in other["name"]]
    return commands


def values_of(option):
    if option["name"] in LISTED:
        return re.sub(r" \(.*?\)", "", option["help"]).split(", ")
    return VALUES.get(option["name"])


def words_of(command):
    name = command["name"]
    if name in WORDS:
        return WORDS[name]
    return "names" if re.match(r"\[?NAME", command["usage"]) and name != "create" else None


def in_single_quotes(text):
    return text.replace("'", "'\\''")


# zsh

ZSH_ACTIONS = {"names": "_vgpu_names", "devices": "_vgpu_devices", "files": "_files",
               "scenarios": "_vgpu_scenarios", "commands": "_vgpu_commands"}


def zsh_action(kind):
    if isinstance(kind, list):
        return "(" + " ".join(kind) + ")"
    return ZSH_ACTIONS.get(kind, " ")


def zsh_text(text):
    return in_single_quotes(re.sub(r"([\[\]:\\])", r"\\\1", text))


def zsh_option(option):
    has_value = "argument" in option
    value = f":{zsh_text(option['argument'])}:{zsh_action(values_of(option))}" if has_value else ""
    names = [f"--{option['name']}" + ("=" if has_value else "")]
    if "letter" in option:
        names.append(f"-{option['letter']}")
    return [f"'*{name}[{zsh_text(option['help'])}]{value}'" for name in names]


def zsh_words(command):
    kind = words_of(command)
    if kind == "program":
        return ["'(-)1:program:_command_names -e'", "'*::argument:_normal'"]
    return [f"'*:word:{zsh_action(kind)}'"] if kind else []


def zsh_case(command):
    specs = [spec for option in command["options"] for spec in zsh_option(option)] + zsh_words(command)
    return f"        '{command['name']}') _arguments {(' ' + chr(92) + chr(10) + ' ' * 16).join(specs)} ;;"


def zsh(commands):
    listed = "\n".join(f"                '{c['name']}:{zsh_text(c['summary'])}'"
                       for c in commands if " " not in c["name"])
    pairs = "|".join(f"'{c['name']}'" for c in commands if " " in c["name"])
    cases = "\n".join(zsh_case(command) for command in commands)
    return f"""#compdef vgpu
# Completion for vgpu(1) in zsh; made by tools/gen-completion.py.

# What a manager has to say, which must not keep a person waiting.
_vgpu_ask() {{
        local -a found
        found=(${{(f)"$(timeout 2 vgpu "$@" 2>/dev/null)"}})
        compadd -a found
}}
_vgpu_names() {{ _vgpu_ask ls --names }}
_vgpu_devices() {{ _vgpu_ask devices --names }}
_vgpu_scenarios() {{
        local -a found
        found=(${{${{(f)"$(timeout 2 vgpu simulate --list 2>/dev/null)"}}%% *}})
        compadd -a found
}}
_vgpu_commands() {{
        local -a commands
        commands=(
{listed}
        )
        _describe command commands
}}

_vgpu() {{
        if (( CURRENT == 2 )); then
                _vgpu_commands
                return
        fi
        local command=$words[2]
        shift words
        (( CURRENT-- ))
        if (( CURRENT > 2 )); then
                case "$words[1] $words[2]" in
                {pairs})
                        command="$words[1] $words[2]"
                        shift words
                        (( CURRENT-- ))
                        ;;
                esac
        fi
        case $command in
{cases}
        esac
}}

# Loaded by the completion system, which then wants an answer; or read by somebody who calls it.
if [[ $funcstack[1] == _vgpu ]]; then
        _vgpu "$@"
fi
"""


# fish

FISH_LISTS = {"names": "(__vgpu_ask ls --names)", "devices": "(__vgpu_ask devices --names)",
              "scenarios": "(__vgpu_ask simulate --list | string replace -r ' .*' '')",
              "commands": "(__vgpu_commands)", "program": "(__fish_complete_subcommand --fcs-skip=2)"}


def fish_text(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_list(kind):
    if isinstance(kind, list):
        return f" -a {fish_text(' '.join(kind))}"
    return f" -a {fish_text(FISH_LISTS[kind])}" if kind in FISH_LISTS else ""


def fish_condition(command):
    first, *second = command["name"].split()
    if second:
        return f"__vgpu_is {first} {second[0]}"
    return f"__vgpu_is {first}" + (f"; and not __vgpu_is {first} {' '.join(command['seconds'])}"
                                   if command["seconds"] else "")


def fish_option(condition, option):
    line = f"complete -c vgpu -n {fish_text(condition)} -l {option['name']}"
    if "letter" in option:
        line += f" -s {option['letter']}"
    if "argument" in option:
        kind = values_of(option)
        line += " -r -F" if kind == "files" else " -x" + fish_list(kind)
    return f"{line} -d {fish_text(option['help'])}"


def fish_command(command):
    condition = fish_condition(command)
    lines = [fish_option(condition, option) for option in command["options"]]
    kind = words_of(command)
    if kind == "files":
        lines.append(f"complete -c vgpu -n {fish_text(condition)} -F")
    elif kind:
        lines.append(f"complete -c vgpu -n {fish_text(condition)}{fish_list(kind)}")
    return lines


def fish(commands):
    listed = [c for c in commands if " " not in c["name"]]
    lines = [f"complete -c vgpu -n __vgpu_begins -a {c['name']} -d {fish_text(c['summary'])}" for c in listed]
    for command in commands:
        lines += fish_command(command)
    return """# Completion for vgpu(1) in fish; made by tools/gen-completion.py.

# What a manager has to say, which must not keep a person waiting.
function __vgpu_ask
    timeout 2 vgpu $argv 2>/dev/null
end

function __vgpu_begins
    test (count (commandline -opc)) -eq 1
end

# __vgpu_is COMMAND [SECOND...]: is it that command, and the word behind it one of these?
function __vgpu_is
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test $words[2] = $argv[1]; or return 1
    test (count $argv) -eq 1; and return 0
    test (count $words) -gt 2; and contains -- $words[3] $argv[2..-1]
end

function __vgpu_commands
    printf '%s\\n' """ + " ".join(c["name"] for c in listed) + """
end

complete -c vgpu -f
""" + "\n".join(lines) + "\n"


def main(shell, vgpu):
    print({"zsh": zsh, "fish": fish}[shell](read_commands(vgpu)), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
