/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PROCESS_MAPS_H
#define BASE_PROCESS_MAPS_H

#include <stdbool.h>
#include <sys/types.h>

/* process_maps() - has process @pid a file loaded with a name that begins with @name, as "libcupti.so"? False: or it is not ours to read. */
bool process_maps(pid_t pid, const char *name);

#endif
