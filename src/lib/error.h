/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_ERROR_H
#define LIB_ERROR_H

/*
 * The error of the last call of a client or of a host, with the storage for its texts.
 *
 * One table (error.c) has everything that follows from a kind: its name in the protocol, the errno
 * that the call returns, and the message to use when the manager gave none.
 */

#include <jansson.h>

#include <openvgpu/error.h>

struct error {
        struct vgpu_error value; /* its texts are those below */
        char message[512];
        char hint[256];
        char parameter[64];
        char driver_call[64];
};

void error_clear(struct error *error);

/* error_set() - returns the errno of @kind, negative. */
__attribute__((format(printf, 4, 5))) int error_set(struct error *error, enum vgpu_error_kind kind,
                                                    const char *hint, const char *message, ...);

/* error_set_parameter() - VGPU_ERROR_INVALID_PARAMETER, and which; returns its errno. */
__attribute__((format(printf, 3, 4))) int
error_set_parameter(struct error *error, const char *parameter, const char *message, ...);

int error_set_no_memory(struct error *error);

/*
 * error_set_answer() - what the manager answered: @name with or without a prefix, and @parameters,
 * which may be anything or NULL. Returns the errno of the kind.
 */
int error_set_answer(struct error *error, const char *name, const json_t *parameters);

/*
 * error_copy_options() - the caller's options struct, of whatever size it was compiled with, into
 * ours, zeroed. Errors: VGPU_ERROR_INVALID_PARAMETER, it wants what this library does not know.
 */
int error_copy_options(struct error *error, void *to, size_t to_size, const void *from,
                       size_t from_size);

#endif
