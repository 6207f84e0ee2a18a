/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_LOADER_H
#define BASE_LOADER_H

/*
 * A library that is loaded at run time, for the functions in a table.
 *
 * For programs of ours. The gate and our NVML library do not use it: they forward hundreds of
 * functions through jump stubs, and look each of them up when it is called.
 */

#include <stdbool.h>
#include <stddef.h>

struct loader_function {
        const char *name;
        size_t offset;    /* of the pointer to it, in the caller's struct */
        bool is_optional; /* the pointer may stay NULL */
};

/* loader_get_driver() - the CUDA driver to load: $OPENVGPU_DRIVER, or the system's. */
const char *loader_get_driver(void);

/*
 * loader_load() - load the library @path, which stays loaded, and fill in the pointers of @table
 * @functions:    the first of several names for the same pointer that the library has is taken
 * @ret_missing:  -ENOSYS: the function that the library lacks
 *
 * Errors: -ENOENT, the library cannot be loaded, and dlerror() says why. -ENOSYS.
 */
int loader_load(const char *path, const struct loader_function *functions, size_t n, void *table,
                const char **ret_missing);

#endif
