#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check-page.sh MAN-PAGE: mandoc has no objection
command -v mandoc >/dev/null || exit 77
mandoc -Tlint -Wwarning "$1"
