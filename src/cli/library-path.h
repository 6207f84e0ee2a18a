/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_LIBRARY_PATH_H
#define CLI_LIBRARY_PATH_H

/* The variable that makes programs find our NVML library first. */

#include <stdbool.h>

#define LIBRARY_PATH_MAX 4096

/*
 * library_path_make() - @directory before what $LD_LIBRARY_PATH has, into @value of
 * LIBRARY_PATH_MAX bytes; as it is, if that begins with @directory already. false: too long.
 */
bool library_path_make(char *value, const char *directory);

/* library_path_has_nvml() - is our NVML library in @directory? It is a package of its own. */
bool library_path_has_nvml(const char *directory);

#define LIBRARY_PATH_NVML_HINT "install the package openvgpu-nvml, or all that 'meson install' has"

#endif
