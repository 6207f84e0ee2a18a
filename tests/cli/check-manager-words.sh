#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check-manager-words.sh VGPUD MAN-PAGE CONFIGURATION-PAGE EXAMPLE: the man page has the options of the help,
# and no others; so has that of the configuration, without those that stand on the command line alone; the
# example is right, also with all of its comments taken off
help=$("$1" --help | sed -n 's/^ *--\([a-z-]*\).*/\1/p' | sort -u)
page=$(sed -n '/^\.Sh DESCRIPTION/,/^\.Sh SIGNALS/s/^\.It Fl -\(.*\)/\1/p' "$2" |
        tr ',' '\n' | sed 's/^ *Fl -//; s/ .*//' | sort -u)
if [ -z "$help" ] || [ "$help" != "$page" ]; then
        printf '%s\n' "the help has:" "$help" "the page has:" "$page"
        exit 1
fi
keys=$(echo "$help" | grep -vx -e config -e check-config -e help -e version)
page=$(sed -n '/^\.Sh KEYS/,/^\.Sh RELOADING/p' "$3" | grep '^\.It' | grep -o 'Cm [a-z-]* Li' |
        sed 's/Cm \(.*\) Li/\1/' | sort -u)
if [ "$keys" != "$page" ]; then
        printf '%s\n' "keys:" "$keys" "the page of the configuration has:" "$page"
        exit 1
fi
example=$(mktemp)
trap 'rm -f "$example"' EXIT
"$1" --config "$4" --check-config >"$example" || exit 1
grep -v -e '^#group' -e '^#watchers' -e '^#stewards' "$4" | sed 's/^#\([a-z]\)/\1/' >"$example"
"$1" --config "$example" --check-config
