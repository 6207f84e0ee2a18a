/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_PLACEMENT_H
#define MANAGER_PLACEMENT_H

/* Which devices a vGPU of several devices gets, where nobody has chosen them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device;

/* A device that has room for it. */
struct placement_candidate {
        struct device *device;
        int64_t left; /* bytes that it has not promised; below 0: it is overcommitted, and so far */
};

/*
 * placement_choose() - choose @n of @candidates: those that can use each other's memory, as far as there are
 * such, and of these the ones with the most left. They come in the order of their indices. False: there
 * are not as many.
 */
bool placement_choose(struct device **ret_devices, size_t n,
                      const struct placement_candidate *candidates, size_t n_candidates);

#endif
