/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_DRIVER_PATH_H
#define DAEMON_DRIVER_PATH_H

/*
 * Finds NVIDIA's libraries. The manager needs only their paths; movers and gates open them.
 * dlopen() would search better, but it would also run the driver's code in this process.
 */

/*
 * driver_path_find() - find the full path of @library ("libcuda.so.1")
 * @path:       of PATHS_MAX bytes
 * @not_below:  the folder of our own libraries of the same names, which are never found
 * Errors: -ENOENT.
 */
int driver_path_find(char *path, const char *library, const char *not_below);

/*
 * driver_path_get_load() - get a text that distinguishes this load of the driver from all others; "" if
 * it is unknown
 * @simulation:  the directory of the simulated machine that takes the driver's place, or ""
 */
void driver_path_get_load(char *load, int size, const char *simulation);

/* driver_path_get_version() - get the version of the kernel module, "580.159.04"; "" if there is none. */
void driver_path_get_version(char *version, int size);

#endif
