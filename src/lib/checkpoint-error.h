/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_CHECKPOINT_ERROR_H
#define LIB_CHECKPOINT_ERROR_H

/* The error of the last call with a struct vgpu_checkpoint, with the storage for its texts. */

#include <openvgpu/checkpoint.h>

#include "wire/checkpoint.h"

struct checkpoint_error {
        struct vgpu_checkpoint_error value; /* its texts point to the members below */
        char message[512];
        char hint[256];
        char driver_call[48];
        char driver_name[64];
        char driver_text[96];
};

void checkpoint_error_clear(struct checkpoint_error *error);

/* checkpoint_error_set() - set an error before which nothing was changed. Returns the negative errno of @kind. */
__attribute__((format(printf, 4, 5))) int checkpoint_error_set(struct checkpoint_error *error,
                                                               enum vgpu_checkpoint_error_kind kind,
                                                               const char *hint,
                                                               const char *message, ...);

/* checkpoint_error_set_answer() - set the error that the helper answered. Returns the errno of its kind. */
int checkpoint_error_set_answer(struct checkpoint_error *error,
                                const struct checkpoint_wire_answer *answer);

#endif
