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
        struct vgpu_error value; /* its texts point to the members below */
        char message[512];
        char hint[256];
        char parameter[64];
        char driver_call[64];
};

void error_clear(struct error *error);

/* error_set() - set the error. Returns the negative errno of @kind. */
__attribute__((format(printf, 4, 5))) int error_set(struct error *error, enum vgpu_error_kind kind,
                                                    const char *hint, const char *message, ...);

/* error_set_parameter() - set VGPU_ERROR_INVALID_PARAMETER, and name the parameter. Returns its errno. */
__attribute__((format(printf, 3, 4))) int
error_set_parameter(struct error *error, const char *parameter, const char *message, ...);

int error_set_no_memory(struct error *error);

/*
 * error_set_answer() - set the error that the manager answered: @name has a prefix or none, @parameters
 * may be anything or NULL. Returns the errno of the kind.
 */
int error_set_answer(struct error *error, const char *name, const json_t *parameters);

/*
 * error_copy_options() - copy the caller's options struct, of the size that the caller was compiled with,
 * into ours, and zero the rest. Errors: VGPU_ERROR_INVALID_PARAMETER, this library does not know an option.
 */
int error_copy_options(struct error *error, void *to, size_t to_size, const void *from,
                       size_t from_size);

#endif
