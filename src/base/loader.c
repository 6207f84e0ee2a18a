/* SPDX-License-Identifier: Apache-2.0 */
#include "base/loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *loader_get_driver(void)
{
        const char *given = secure_getenv("OPENVGPU_DRIVER");

        return given && *given ? given : "libcuda.so.1";
}

int loader_load(const char *path, const struct loader_function *functions, size_t n, void *table,
                const char **ret_missing)
{
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

        if (!library)
                return -ENOENT;
        for (size_t i = 0; i < n; i++) {
                char *member = (char *)table + functions[i].offset;
                void *function;

                memcpy(&function, member, sizeof(function));
                if (!function)
                        function = dlsym(library, functions[i].name);
                if (!function && !functions[i].is_optional) {
                        *ret_missing = functions[i].name;
                        return -ENOSYS;
                }
                memcpy(member, &function, sizeof(function));
        }
        return 0;
}
