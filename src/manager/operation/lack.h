/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_LACK_H
#define MANAGER_LACK_H

/* The words for a lack of room, on a device and in the pool: the step of an operation has failed for it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device;
struct guest;
struct operation;

#define LACK_TEXT_MAX 512

/*
 * What there is of a device, in bytes: @owed of what is free are promised to others, and may be more than that; for @asked the
 * processes that are there ask the driver just now.
 */
struct lack {
        uint64_t free, owed, asked, needed;
        bool is_refused; /* by the driver, which says that so much is free */
        char to[160];    /* whom they are promised to: "vGPU one"; "": others */
};

/*
 * lack_describe() - "device 0 has 3 GiB free, of which 2 GiB are promised to vGPU one and 1 GiB are left, 2 GiB are needed";
 * where that is enough, why it was not.
 */
void lack_describe(const struct lack *lack, uint32_t device, char ret_text[LACK_TEXT_MAX]);

/* lack_fail() - in these words; it finds out whom room is promised to. */
void lack_fail(struct operation *operation, const struct device *device, struct lack *lack);

/* lack_fail_turn() - it waited until its time was over for others to leave @part of its target, of which it needs @bytes. */
void lack_fail_turn(struct operation *operation, size_t part, uint64_t bytes, uint64_t waited_ns);

/*
 * lack_fail_taken() - what others left for @guest, somebody has taken. lack_fail_memory() - likewise of what it was to create.
 * lack_fail_context() - its context finds too little. lack_fail_copy() - the mover finds too little.
 */
void lack_fail_taken(struct operation *operation, const struct device *device,
                     const struct guest *guest);
void lack_fail_memory(struct operation *operation, const struct guest *guest);
void lack_fail_context(struct operation *operation, const struct device *device,
                       const struct guest *guest);
void lack_fail_copy(struct operation *operation, const struct device *device);

/* lack_fail_mover() - the mover has no context there, without which nothing can leave. */
void lack_fail_mover(struct operation *operation, const struct device *device);

/* lack_fail_return() - neither the device nor the pool has room for what is to come back to @guest. */
void lack_fail_return(struct operation *operation, const struct device *device,
                      const struct guest *guest);

/* lack_fail_pool() - the pool has no room for @bytes; @why: or NULL. */
void lack_fail_pool(struct operation *operation, uint64_t bytes, const char *why);

#endif
