#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-words.sh VGPU MAN-PAGE: the man page describes every command and every option that the help knows.
set -u
vgpu=$1 page=$2
bad=0

complain() {
        echo "$*"
        bad=1
}

commands=$("$vgpu" help --json | sed -n 's/^      "name": "\(.*\)",$/\1/p')
[ "$(wc -l <<<"$commands")" -ge 30 ] || complain "the help lists too few commands: $commands"

while read -r command; do
        grep -q "^\.It Cm $command" "$page" || complain "$page does not describe '$command'"
        read -ra words <<<"$command"
        options=$("$vgpu" help "${words[@]}" |
                sed -n '/^Options:/,$s/^  \(-.,\)\{0,1\} *--\([a-z-]*\).*/--\2/p' | sort)
        [ -n "$options" ] || complain "the help of '$command' has no options"
        section=$(sed -n "/^\.It Cm $command/,/^\.It Cm/p;/^Options that every/,/^\.El/p" "$page")
        for option in $options; do
                grep -qe "Fl -${option#--}\b" <<<"$section" ||
                        complain "$page does not describe $command $option"
        done
done <<<"$commands"
exit $bad
