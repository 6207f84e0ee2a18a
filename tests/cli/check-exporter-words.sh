#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check-exporter-words.sh PROGRAM MAN-PAGE: the man page has the options of the help, and no others
help=$("$1" --help | sed -n 's/^ *--\([a-z-]*\).*/\1/p' | sort -u)
page=$(sed -n '/^\.Sh DESCRIPTION/,/^\.Sh ENVIRONMENT/s/^\.It Fl -\([a-z-]*\).*/\1/p' "$2" | sort -u)
[ -n "$help" ] && [ "$help" = "$page" ] && exit 0
printf '%s\n' "the help has:" "$help" "the page has:" "$page"
exit 1
