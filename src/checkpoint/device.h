/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_DEVICE_H
#define CHECKPOINT_DEVICE_H

/*
 * The devices of the host, and the target of each device in a restore.
 *
 * Measured on driver 580: the pairs of a restore must name every device of the host, also those
 * that CUDA_VISIBLE_DEVICES hides from the process, each once as old and once as new. A user's
 * moves are therefore completed: a chain of moves is closed to a ring, and all other devices stay.
 */

#include <stddef.h>

#include "abi/cuda.h"
#include "wire/checkpoint.h"

#define DEVICE_UUID_MAX 41 /* "GPU-" and 36 characters, with NUL */

struct device {
        CUuuid uuid;
        char name[96];
        uint64_t memory; /* bytes in all */
};

struct device_list {
        unsigned int n; /* 0: not read yet */
        struct device device[CHECKPOINT_PAIRS_MAX];
};

struct pairs {
        unsigned int n; /* 0, or the number of all devices */
        CUcheckpointGpuPair pair[CHECKPOINT_PAIRS_MAX];
        unsigned int to[CHECKPOINT_PAIRS_MAX]; /* place of device i */
};

/* device_list_read() - list the host's devices. Errors: -EIO; *ret_call and *ret_code say what failed. */
int device_list_read(struct device_list *list, const char **ret_call, CUresult *ret_code);

/* device_format_uuid() - write "GPU-..." into @text of DEVICE_UUID_MAX bytes. Returns @text. */
char *device_format_uuid(char *text, const CUuuid *uuid);

/*
 * pairs_make() - make a permutation of @list's devices that contains every one of @moves
 * @problem: on failure gets a text of at most @room bytes: what is wrong with the moves
 *
 * Errors: -EINVAL.
 */
int pairs_make(struct pairs *pairs, const struct device_list *list,
               const struct checkpoint_wire_pair *moves, size_t n_moves, char *problem,
               size_t room);

#endif
