/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GUESTS_DRIVER_H
#define GUESTS_DRIVER_H

/*
 * The CUDA driver for guest and benchmark programs: loaded at run time, so that one binary
 * runs on the real driver, on the simulated one and behind the gate.
 *
 * A program that cannot go on says what failed and ends: must().
 */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "abi/cuda.h"

/* DRIVER(cuInit)(0): the driver's function, typed by our declaration of it. */
#define DRIVER(name) ((__typeof__(&name))driver_symbol(#name))

static inline void *driver_symbol(const char *name)
{
        static void *library;
        void *symbol;

        if (!library)
                library = dlopen("libcuda.so.1", RTLD_NOW);
        symbol = library ? dlsym(library, name) : NULL;
        if (!symbol) {
                fprintf(stderr, "no %s: %s\n", name, dlerror());
                exit(1);
        }
        return symbol;
}

static inline void must_succeed(CUresult result, const char *what)
{
        const char *name = "?";

        if (result == CUDA_SUCCESS)
                return;
        DRIVER(cuGetErrorName)(result, &name);
        fprintf(stderr, "%s: %s (%d)\n", what, name, result);
        exit(1);
}

/* must(DRIVER(cuInit)(0)) */
#define must(call) must_succeed(call, #call)

static inline double now(void)
{
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

#endif
