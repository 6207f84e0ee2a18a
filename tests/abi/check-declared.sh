#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check-declared.sh SYM-FILE HEADER...: what the headers declare is what the library promises
sym=$1
shift
# A declaration begins a line with its type, or with its name if the type is the line before; a name
# in a comment does not count.
want=$(cat "$@" | sed -n 's/^\([a-z].*[ *]\)\?\(vgpu_[a-z0-9_]*\)(.*/\2/p' | sort -u)
have=$(grep -o 'vgpu_[a-z0-9_]*;' "$sym" | tr -d ';' | sort -u)
[ -n "$want" ] && [ "$want" = "$have" ] && exit 0
printf "%s\n" "declared:" "$want"
printf "%s\n" "promised:" "$have"
exit 1
