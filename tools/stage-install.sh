#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stage-install.sh BUILD FOLDER: what would be installed, below FOLDER.
#
# meson notes each installation in one file, by which 'ninja uninstall' finds what to remove. That of
# the user is put back, so that a test does not make it remove the wrong tree.
set -eu
build=$1 folder=$2
log=$build/meson-logs/install-log.txt
exec 9>"$build/install.lock"
flock 9

restore() {
        if [ -e "$log.kept" ]; then
                mv "$log.kept" "$log"
        else
                rm -f "$log"
        fi
}
[ ! -e "$log" ] || mv "$log" "$log.kept"
trap restore EXIT
meson install -C "$build" --no-rebuild --quiet --destdir "$folder" >/dev/null
