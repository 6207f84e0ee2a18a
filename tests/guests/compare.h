/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GUESTS_COMPARE_H
#define GUESTS_COMPARE_H

/*
 * What a program sees of the driver, a line for each answer: the same lines with and without the gate.
 *
 *     static void sizes(void)
 *     {
 *             CUdeviceptr pointer;
 *
 *             compare_start();
 *             if (CALL(cuMemAlloc_v2, "1 byte", &pointer, 1) == CUDA_SUCCESS)
 *                     SAY("aligned to 512: %d", pointer % 512 == 0);
 *     }
 *
 * prints "memory/sizes: cuMemAlloc_v2 (1 byte): 0" and "memory/sizes: aligned to 512: 1". Only what does
 * not depend on the process or the moment may be printed: no addresses, handles or times.
 *
 * Each case runs in a process of its own, which has not called cuInit(): it may do harm.
 */

#include "tests/guests/driver.h"

struct compare_case {
        const char *name;
        void (*run)(void); /* NULL: behind the last */
};

/* The groups: a file each, named in guest-compare.c. */
extern const struct compare_case compare_array[], compare_capture[], compare_context[],
        compare_entry[], compare_memory[], compare_module[], compare_pointer[], compare_pool[],
        compare_share[], compare_stream[], compare_texture[], compare_virtual[];

/* CALL(cuInit, "no flags", 0) - make the call and print what it answers; evaluates to that. */
#define CALL(name, remark, ...)       \
        compare_answer(#name, remark, \
                       compare_has(#name) ? DRIVER(name)(__VA_ARGS__) : COMPARE_NOT_THERE)

/* SAY(format, ...) - a line about something else. */
#define SAY(...) compare_say(__VA_ARGS__)

#define COMPARE_NOT_THERE ((CUresult)-1)

/* compare_has() - does the driver export it? */
_Bool compare_has(const char *name);
CUresult compare_answer(const char *name, const char *remark, CUresult result);
void compare_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* compare_start() - initialise CUDA; the primary context of device 0 is the thread's. */
CUcontext compare_start(void);

/* compare_count() - of the rows of an array */
#define compare_count(array) (sizeof(array) / sizeof((array)[0]))

#endif
