#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-completion.sh SHELL VGPU COMPLETION: completion in bash knows every command and every option that the
# help knows, and no others, and what may follow them.
set -u
vgpu=$2
# shellcheck source=/dev/null
source "$3"
bad=0

complain() {
        echo "$*"
        bad=1
}

# complete_words WORD...: what completion offers for the last word
complete_words() {
        COMP_WORDS=(vgpu "$@")
        COMP_CWORD=$#
        _vgpu
        printf '%s\n' "${COMPREPLY[@]}" | sort
}

# list_commands JQ-FREE: the names that 'help --json' has, of one word and of two
commands=$("$vgpu" help --json | sed -n 's/^      "name": "\(.*\)",$/\1/p')
[ "$(wc -l <<<"$commands")" -ge 30 ] || complain "the help lists too few commands: $commands"
offered=$(complete_words "" | grep -v '^-')
wanted=$(grep -v ' ' <<<"$commands" | cat - <(echo help) | sort)
[ "$offered" = "$wanted" ] || complain "completion offers as commands:" "$offered"
while read -r command; do
        read -ra words <<<"$command"
        options=$("$vgpu" help "${words[@]}" |
                sed -n '/^Options:/,$s/^  \(-.,\)\{0,1\} *--\([a-z-]*\).*/--\2/p' | sort)
        [ -n "$options" ] || complain "the help of '$command' has no options"
        offered=$(complete_words "${words[@]}" --)
        [ "$offered" = "$options" ] || complain "$command has" "$options" "and completion offers" "$offered"
done <<<"$commands"

# What follows a command: names of vGPUs, as a manager would tell them, and what else there is.
# shellcheck disable=SC2317 # the completion calls it
_vgpu_ask() {
        [ "$1" = ls ] && printf '%s\n' serve train
        [ "$1" = devices ] && printf '%s\n' 0 1
}
# expect_after WORDS CHOICES
expect_after() {
        local words
        read -ra words <<<"$1"
        [ "$(complete_words "${words[@]}" "" | xargs)" = "$2" ] ||
                complain "after 'vgpu $1' completion offers $(complete_words "${words[@]}" "" | xargs)"
}
expect_after suspend "serve train"
expect_after "migrate train --device" "0 1"
expect_after share "serve train"
expect_after "share train" "10 25 50 75 none"
expect_after "share train 50" ""
expect_after "idle train" "1h 30s 5m never"
expect_after "create train --idle" "keep-context suspend"
# listed COMMAND OPTION: the words that the help lists for the option
listed() {
        "$vgpu" help "$1" | sed -n "s/ ([^)]*)//g; s/^  *--$2 [A-Z]* *//p" | tr -d , | xargs -n1 | sort | xargs
}
[[ $(listed usage by) == *container* ]] || complain "the help of 'usage' lists no words for --by: $(listed usage by)"
expect_after "usage --by" "$(listed usage by)"
expect_after "top --sort" "$(listed top sort)"
expect_after "wait train --for" "ended evicted failed no-work removed running suspended"
expect_after "ls --state" "away evicted failed idle running suspended"
expect_after "ls --sort" "created device memory name share state use"
expect_after "wait" "serve train"
expect_after "run --devices 2" "--fb --vgpu"
expect_after "run --devices" ""
expect_after "create --pool-group" ""
expect_after scheduler "log set show"
expect_after "nvml heterogeneous" "off on"
expect_after "nvml metadata" "check export"
expect_after "nvml metadata export" "serve train"
[[ " $(complete_words nvml "" | xargs) " == *" types "* ]] || complain "'vgpu nvml' lacks 'types'"
[[ " $(complete_words checkpoint "" | xargs) " == *" dump "*" suspend "* ]] || complain "'vgpu checkpoint' lacks 'dump'"
expect_after "scheduler set --policy" "best-effort equal-share fixed-share"
exit $bad
