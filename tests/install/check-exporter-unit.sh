#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check-exporter-unit.sh SERVICE: systemd finds little that the exporter could be used for. Tenths, of 100.
set -eu
command -v systemd-analyze >/dev/null || exit 77
systemd-analyze --help | grep -q -e --threshold || exit 77
status=0
said=$(systemd-analyze security --offline=true --no-pager --threshold=20 "$1" 2>&1) || status=$?
printf '%s\n' "$said" | tail -3
exit $status
