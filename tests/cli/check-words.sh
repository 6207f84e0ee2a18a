#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-words.sh VGPU MAN-PAGE COMPLETION: the man page and the completion know every command and
# every option that the help knows, and the completion knows no others.
set -u
vgpu=$1 page=$2
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

commands=$("$vgpu" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p')
[ "$(wc -l <<<"$commands")" -ge 11 ] || complain "the help lists too few commands: $commands"

offered=$(complete_words "" | grep -v '^-')
[ "$offered" = "$(sort <<<"$commands")" ] || complain "completion offers as commands:" "$offered"

for command in $commands; do
        grep -q "^\.It Cm $command" "$page" || complain "$page does not describe '$command'"
        [ "$command" = help ] && continue

        options=$("$vgpu" help "$command" |
                sed -n '/^Options:/,$s/^  \(-.,\)\{0,1\} *--\([a-z-]*\).*/--\2/p' | sort)
        [ -n "$options" ] || complain "the help of '$command' has no options"
        offered=$(complete_words "$command" --)
        [ "$offered" = "$options" ] ||
                complain "$command has" "$options" "and completion offers" "$offered"

        section=$(sed -n "/^\.It Cm $command/,/^\.It Cm/p;/^Options that every/,/^\.El/p" "$page")
        for option in $options; do
                grep -qe "Fl -${option#--}\b" <<<"$section" ||
                        complain "$page does not describe $command $option"
        done
done
# Commands of two words are not in the list.
for pair in "checkpoint dump" "checkpoint load" "checkpoint check"; do
        read -ra words <<<"$pair"
        options=$("$vgpu" help "${words[@]}" |
                sed -n '/^Options:/,$s/^  \(-.,\)\{0,1\} *--\([a-z-]*\).*/--\2/p' | sort)
        [ -n "$options" ] || complain "the help of '$pair' has no options"
        offered=$(complete_words "${words[@]}" --)
        [ "$offered" = "$options" ] || complain "$pair has" "$options" "and completion offers" "$offered"
        section=$(sed -n "/^\.It Cm $pair/,/^\.It Cm/p;/^Options that every/,/^\.El/p" "$page")
        for option in $options; do
                grep -qe "Fl -${option#--}\b" <<<"$section" ||
                        complain "$page does not describe $pair $option"
        done
done

# synopsis COMMAND: how the page's synopsis writes it, once or more
synopsis() {
        awk -v command="$1" '
                /^\.Sh/ { inside = $2 == "SYNOPSIS"; next }
                !inside { next }
                $0 == ".Nm" { name = ""; next }
                name == "" { name = $0; sub(/^\.Cm /, "", name) }
                index(" " name " ", " " command " ") == 1 ||
                        (name ~ / \| / && index(" " name " ", " " command " ")) { print }' "$page"
}
for command in $commands; do
        lines=$(synopsis "$command")
        [ -n "$lines" ] || complain "the synopsis of $page lacks '$command'"
        [ "$command" = help ] && continue
        for option in $("$vgpu" help "$command" |
                sed -n '/^Options:/,$s/^  \(-.,\)\{0,1\} *--\([a-z-]*\).*/\2/p' | grep -vxE 'json|help|long|follow|output'); do
                grep -qe "Fl -$option\b" <<<"$lines" || complain "the synopsis of $page lacks $command --$option"
        done
done

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
expect_after "run --devices 2" "--fb --vgpu"
expect_after "run --devices" ""
expect_after "create --pool-group" ""
expect_after scheduler "log set show"
expect_after "scheduler set --policy" "best-effort equal-share fixed-share"
exit $bad
