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
exit $bad
