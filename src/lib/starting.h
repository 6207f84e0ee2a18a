/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_STARTING_H
#define LIB_STARTING_H

/* Tells a manager that has not opened its sockets yet from none. */

#include <stdbool.h>

/*
 * starting_is_under_way() - does a vgpud live that has locked the run directory?
 *
 * It has written its process id there. Before its sockets it opens the driver and what the manager before it left,
 * which takes seconds on a machine with many GPUs.
 */
bool starting_is_under_way(const char *run_directory);

#endif
