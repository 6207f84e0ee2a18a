#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check-exporter-unit.sh SERVICE SOCKET: the port is held while the exporter is started anew, and systemd finds little
# that the exporter could be used for. Tenths, of 100.
set -eu
grep -qx "Sockets=$(basename "$2")" "$1"
grep -qx 'ListenStream=127.0.0.1:9477' "$2"
if grep -q '^ExecStart=.*--listen' "$1"; then
	echo "the service says where to listen: the exporter refuses that beside a socket"
	exit 1
fi
command -v systemd-analyze >/dev/null || exit 77
systemd-analyze --help | grep -q -e --threshold || exit 77
status=0
said=$(systemd-analyze security --offline=true --no-pager --threshold=20 "$1" 2>&1) || status=$?
printf '%s\n' "$said" | tail -3
exit $status
