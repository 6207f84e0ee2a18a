#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check-header.sh INCLUDE-DIR HEADER c99|c++17: a public header compiles alone, and twice
set -e
case $3 in
c++*) compiler=${CXX:-c++} language=c++ ;;
*) compiler=${CC:-cc} language=c ;;
esac
command -v "$compiler" >/dev/null || exit 77
printf '#include <%s>\n#include <%s>\ntypedef int not_empty;\n' "$2" "$2" |
        "$compiler" -std="$3" -x $language -I"$1" -Wall -Wextra -Wpedantic -Wshadow -Werror \
                -fsyntax-only -
