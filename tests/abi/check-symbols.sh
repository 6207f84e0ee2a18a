#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check-symbols.sh LIBRARY SYM-FILE: the library exports the names in the file and no others
want=$(grep -o 'vgpu_[a-z0-9_]*;' "$2" | tr -d ';' | sort)
have=$(nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort)
[ -n "$want" ] && [ "$want" = "$have" ] && exit 0
printf "%s\n" "$2 says:" "$want"
printf "%s\n" "the library has:" "$have"
exit 1
