#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check-example.sh BUILD PREFIX EXAMPLE VERSION EXAMPLE FAKE-NVML: programs outside of the tree find
# the installed library with pkg-config, compile, link, and run; the installed command runs from where
# it lies.
set -eu
build=$1 prefix=$2 example=$3 version=$4 report=$5 nvml=$6
command -v pkg-config >/dev/null || exit 77
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

"$(dirname "$0")/../../tools/stage-install.sh" "$build" "$stage"
pc=$(find "$stage" -name openvgpu.pc)
[ -n "$pc" ] || { echo "openvgpu.pc is not installed"; exit 1; }
libraries=$(dirname "$(dirname "$pc")")

# As a package builder would: what the file says is relative to the stage.
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
flags=$(pkg-config --define-variable=prefix="$stage$prefix" --cflags --libs openvgpu)
# shellcheck disable=SC2086 # flags are words
"${CC:-cc}" -std=c99 -Wall -Wextra -Wpedantic -Werror "$example" $flags -o "$stage/example"
[ "$(pkg-config --modversion openvgpu)" = "$version" ]
# shellcheck disable=SC2086
"${CC:-cc}" -std=c99 -Wall -Wextra -Wpedantic -Werror "$report" $flags -o "$stage/report"

# Nobody answers, which it must say and nothing else.
status=0
OPENVGPU_RUN=/nonexistent LD_LIBRARY_PATH=$libraries "$stage/example" 2>"$stage/said" || status=$?
[ $status -eq 1 ]
grep -qx "list-vgpus: no vgpud answers at /nonexistent/control.sock" "$stage/said"

# The other one asks a driver, which has three GPUs, the last of them off the bus.
status=0
OPENVGPU_NVML=$nvml LD_LIBRARY_PATH=$libraries "$stage/report" >"$stage/out" 2>"$stage/said" || status=$?
[ $status -eq 1 ]
grep -q "^vgpu-report: device 2: the device fell off the bus" "$stage/said"
grep -qx "e5c1b1a0-0000-4000-8000-000000000000 on GPU 0: NVIDIA H200-70C, 6144.0 MiB used, licensed" \
        "$stage/out"
grep -qx "e5c1b1a0-0000-4000-8000-000000000001 on GPU 0: NVIDIA H200-35C, 6144.0 MiB used" "$stage/out"
[ "$(wc -l <"$stage/out")" -eq 3 ]

# An installed tree can be moved: no search path is set here.
[ "$("$stage$prefix/bin/vgpu" --version)" = "vgpu $version" ]
for file in share/man/man1/vgpu.1 share/man/man7/openvgpu.7 share/man/man8/vgpud.8 share/man/man5/vgpud.conf.5 share/openvgpu/vgpud.conf \
        share/bash-completion/completions/vgpu; do
        [ -s "$stage$prefix/$file" ] || { echo "$file is not installed"; exit 1; }
done
