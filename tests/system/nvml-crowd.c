/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml-crowd LIBRARY N VGPU: N processes that use our NVML library at the same time and never shut it down.
 *
 * Each asks READS times. When all have, it prints "ready"; at the end of its standard input it kills them and
 * prints "gone". It ends with 1 when one of them got no answer.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/nvml-vgpu-calls.h"

#define READS 1000

static struct {
        __typeof__(&nvmlInit_v2) init;
        __typeof__(&nvmlVgpuInstanceGetFbUsage) ask;
} nvml;

static void load(const char *path)
{
        void *library = dlopen(path, RTLD_NOW);

        if (!library) {
                fprintf(stderr, "nvml-crowd: %s\n", dlerror());
                exit(1);
        }
        *(void **)&nvml.init = dlsym(library, "nvmlInit_v2");
        *(void **)&nvml.ask = dlsym(library, "nvmlVgpuInstanceGetFbUsage");
}

_Noreturn static void be_one(int done, unsigned int vgpu)
{
        unsigned long long bytes;
        char is_good = nvml.init() == NVML_SUCCESS;

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < READS && is_good; i++)
                is_good = nvml.ask(vgpu, &bytes) == NVML_SUCCESS;
        if (write(done, &is_good, 1) != 1)
                _exit(1);
        for (;;)
                (void)pause();
}

int main(int argc, char **argv)
{
        long n = argc == 4 ? strtol(argv[2], NULL, 10) : 0;
        int pipes[2], n_good = 0;
        pid_t *members = calloc((size_t)n + 1, sizeof(*members));

        if (n < 1 || !members || pipe(pipes) < 0) {
                fprintf(stderr, "usage: nvml-crowd LIBRARY N VGPU\n");
                return 2;
        }
        load(argv[1]);
        for (long i = 0; i < n; i++) {
                members[i] = fork();
                if (members[i] == 0)
                        be_one(pipes[1], (unsigned int)strtoul(argv[3], NULL, 10));
        }
        for (long i = 0; i < n; i++) {
                char is_good = 0;

                if (members[i] > 0 && read(pipes[0], &is_good, 1) == 1)
                        n_good += is_good;
        }
        printf("ready %d\n", n_good);
        (void)fflush(stdout);
        while (getchar() != EOF)
                ;
        for (long i = 0; i < n; i++)
                if (members[i] > 0)
                        (void)kill(members[i], SIGKILL);
        while (wait(NULL) > 0)
                ;
        puts("gone");
        free(members);
        return n_good == n ? 0 : 1;
}
