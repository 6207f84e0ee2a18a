#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completion for vgpu(1) in bash, zsh and fish, made from what 'vgpu help --json' says.

usage: gen-completion.py bash|zsh|fish VGPU

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
    "device": "devices", "vgpu": "names", "output": "files", "owner": "users", "criu": "files", "storage": "files",
    "since": ["today", "7d"], "until": ["today", "7d"],
    "for": ["running", "locked", "checkpointed"],
    "policy": ["best-effort", "equal-share", "fixed-share"],
    "compress": ["zstd", "none"],
    "idle-after": ["30s", "5m", "1h"], "idle": ["suspend", "keep-context"],
    "class": ["batch", "interactive"],
}

# By the option of one command, where others mean something else by it.
VALUES_OF = {
    "wait --for": ["ended", "removed", "no-work", "running", "suspended", "evicted", "failed"],
    "ls --state": ["idle", "running", "suspended", "evicted", "failed", "away"],
    "ls --sort": ["name", "device", "state", "share", "use", "memory", "created"],
}

# By the command: what its words are. Commands whose usage begins with NAME take names of vGPUs.
WORDS = {
    "run": "program", "simulate": "scenarios", "help": "commands",
    "checkpoint": ["state", "tid", "wait", "lock", "checkpoint", "restore", "unlock", "suspend", "resume",
                   "toggle"],
    "apply": "files", "checkpoint dump": "files", "checkpoint load": "files", "checkpoint check": "files",
    "nvml heterogeneous": ["on", "off"],
    "nvml capabilities": ["set"], "nvml version-range": ["set"], "nvml metadata": ["export", "check"],
}

# Bash also knows what comes second, and after that nothing: by the command, or by it and its first word.
SECOND = {
    "share": ["10", "25", "50", "75", "none"], "idle": ["30s", "5m", "1h", "never"],
    "class": ["batch", "interactive"], "rename": [], "resize": [],
    "checkpoint": "processes", "nvml metadata export": "names", "nvml metadata check": "files",
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


def values_of(command, option):
    special = VALUES_OF.get(f"{command['name']} --{option['name']}")
    if special:
        return special
    if option["name"] in LISTED:
        return re.sub(r" \(.*?\)", "", option["help"]).split(", ")
    return VALUES.get(option["name"])


def words_of(command):
    name = command["name"]
    if command["seconds"]:
        return command["seconds"] + WORDS.get(name, [])
    if name in WORDS:
        return WORDS[name]
    return "names" if re.match(r"\[?NAME", command["usage"]) and name != "create" else None


def in_single_quotes(text):
    return text.replace("'", "'\\''")


# bash

BASH_LISTS = {"names": "$(_vgpu_ask ls --names)", "devices": "$(_vgpu_ask devices --names)",
              "scenarios": "$(_vgpu_ask simulate --list | sed 's/ .*//')", "commands": "$(_vgpu_commands)",
              "users": "$(compgen -u)", "processes": '$(ps -u "$(id -u)" -o pid= 2>/dev/null)'}


def bash_action(kind):
    if kind == "files":
        return "compopt -o default && return"
    if kind == "program":
        return 'choices="--vgpu --fb"'
    return f'choices="{" ".join(kind) if isinstance(kind, list) else BASH_LISTS[kind]}"' if kind else "return"


def bash_options(command):
    words = " ".join(f"--{option['name']}" for option in command["options"])
    return f"        '{command['name']}') echo {words} ;;"


def bash_value(command):
    """What follows its options."""
    lines = []
    for option in command["options"]:
        if "argument" in option:
            names = [f"'{command['name']} --{option['name']}'"]
            names += [f"'{command['name']} -{option['letter']}'"] if "letter" in option else []
            lines.append(f"        {' | '.join(names)}) {bash_action(values_of(command, option))} ;;")
    return lines


def bash_words(command):
    """By its name and how many words there are, or with the first of them."""
    kind, name = words_of(command), command["name"]
    if name not in SECOND:
        return [f"        '{name} '*) {bash_action(kind)} ;;"] if kind else []
    return [f"        '{name} 0'*) {bash_action(kind)} ;;", f"        '{name} 1'*) {bash_action(SECOND[name])} ;;"]


def bash(commands):
    listed = " ".join(c["name"] for c in commands if " " not in c["name"])
    pairs = " | ".join(f"'{c['name']}'" for c in commands if " " in c["name"])
    taking = " | ".join(sorted({f"--{option['name']}" for c in commands if c["name"] == "run"
                                for option in c["options"] if "argument" in option}))
    values = [line for command in commands for line in bash_value(command)]
    words = [f"        '{name} '*) {bash_action(kind)} ;;" for name, kind in SECOND.items() if name.count(" ") == 2]
    words += [line for command in sorted(commands, key=lambda c: -c["name"].count(" ")) for line in bash_words(command)]
    newline = "\n"
    return f"""# Completion for vgpu(1) in bash; made by tools/gen-completion.py.
# shellcheck shell=bash

_vgpu_commands() {{
        echo {listed}
}}

_vgpu_options() {{
        case $1 in
{newline.join(bash_options(command) for command in commands)}
        esac
}}

# What a manager has to say, which must not keep a person waiting.
_vgpu_ask() {{
        timeout 2 vgpu "$@" 2>/dev/null
}}

# Where the program of 'vgpu run' begins in COMP_WORDS; nothing if it is not there yet.
_vgpu_program() {{
        local i
        for ((i = 2; i < COMP_CWORD; i++)); do
                case ${{COMP_WORDS[i]}} in
                --) echo $((i + 1)) && return ;;
                {taking}) ((i++)) ;;
                -*) ;;
                *) echo "$i" && return ;;
                esac
        done
}}

# Sets choices; what returns has said it itself.
_vgpu_words() {{
        case "$1 $2" in
{newline.join(words)}
        esac
}}

_vgpu() {{
        local command=${{COMP_WORDS[1]}} word=${{COMP_WORDS[COMP_CWORD]}}
        local before=${{COMP_WORDS[COMP_CWORD - 1]}} choices="" program="" first=2 i n=0

        COMPREPLY=()
        if [ "$COMP_CWORD" -eq 1 ]; then
                mapfile -t COMPREPLY < <(compgen -W "$(_vgpu_commands) --help --version" -- "$word")
                return
        fi
        if [ "$COMP_CWORD" -gt 2 ]; then
                case "$command ${{COMP_WORDS[2]}}" in
                {pairs})
                        command+=" ${{COMP_WORDS[2]}}"
                        first=3
                        ;;
                esac
        fi
        [ "$command" != run ] || program=$(_vgpu_program)
        if [ -n "$program" ]; then
                if declare -F _command_offset >/dev/null; then
                        _command_offset "$program"
                else
                        compopt -o default
                fi
                return
        fi
        case "$command $before" in
{newline.join(values)}
        *)
                # How many words stand before, without options; the first of them names an action.
                for ((i = first; i < COMP_CWORD; i++)); do
                        [[ ${{COMP_WORDS[i]}} == -* ]] || ((n++))
                done
                if [[ $word == -* ]]; then
                        choices=$(_vgpu_options "$command")
                elif [ "$n" -gt 0 ] && [ "$command" = 'nvml metadata' ]; then
                        _vgpu_words "$command ${{COMP_WORDS[first]}}" "$n"
                else
                        _vgpu_words "$command" "$n"
                fi
                ;;
        esac
        mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
}}

complete -F _vgpu vgpu
"""


# zsh

ZSH_ACTIONS = {"users": "_users", "names": "_vgpu_names", "devices": "_vgpu_devices", "files": "_files",
               "scenarios": "_vgpu_scenarios", "commands": "_vgpu_commands"}


def zsh_action(kind):
    if isinstance(kind, list):
        return "(" + " ".join(kind) + ")"
    return ZSH_ACTIONS.get(kind, " ")


def zsh_text(text):
    return in_single_quotes(re.sub(r"([\[\]:\\])", r"\\\1", text))


def zsh_option(command, option):
    has_value = "argument" in option
    value = f":{zsh_text(option['argument'])}:{zsh_action(values_of(command, option))}" if has_value else ""
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
    specs = [spec for option in command["options"] for spec in zsh_option(command, option)] + zsh_words(command)
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

FISH_LISTS = {"users": "(__fish_complete_users)", "names": "(__vgpu_ask ls --names)", "devices": "(__vgpu_ask devices --names)",
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


def fish_option(command, condition, option):
    line = f"complete -c vgpu -n {fish_text(condition)} -l {option['name']}"
    if "letter" in option:
        line += f" -s {option['letter']}"
    if "argument" in option:
        kind = values_of(command, option)
        line += " -r -F" if kind == "files" else " -x" + fish_list(kind)
    return f"{line} -d {fish_text(option['help'])}"


def fish_command(command):
    condition = fish_condition(command)
    lines = [fish_option(command, condition, option) for option in command["options"]]
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
    print({"bash": bash, "zsh": zsh, "fish": fish}[shell](read_commands(vgpu)), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
