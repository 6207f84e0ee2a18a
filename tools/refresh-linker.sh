#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run by 'meson install': the linker finds a new library only after ldconfig. Not for a staged
# installation, and not for a user who may not.
[ -n "${DESTDIR:-}" ] || [ "$(id -u)" -ne 0 ] || ldconfig || true
