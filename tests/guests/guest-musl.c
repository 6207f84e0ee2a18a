/* SPDX-License-Identifier: Apache-2.0 */
/* A program of musl that asks for a GPU as any other: it prints what CUDA and NVML answer. */
#include <dlfcn.h>
#include <stdio.h>

static void ask(const char *library, const char *name)
{
        void *handle = dlopen(library, RTLD_NOW);
        int (*function)(unsigned int);

        if (!handle) {
                printf("%s\n", dlerror());
                return;
        }
        *(void **)&function = dlsym(handle, name);
        printf("%s %d\n", name, function ? function(0) : -1);
        if (function)
                function(0);
}

int main(void)
{
        const char *(*describe)(int);
        void *nvml;

        ask("libcuda.so.1", "cuInit");
        ask("libnvidia-ml.so.1", "nvmlInitWithFlags");
        nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
        if (!nvml)
                return 1;
        *(void **)&describe = dlsym(nvml, "nvmlErrorString");
        printf("%s\n", describe(9));
        return 0;
}
