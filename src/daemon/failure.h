/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_FAILURE_H
#define DAEMON_FAILURE_H

/*
 * A failure: why a request was refused or failed, in the words of docs/control-protocol.md.
 *
 * Functions that work for a client take a failure, fill it in where the reason is known best, and
 * return a negative errno, which their callers pass on.
 */

#include <stdbool.h>
#include <sys/types.h>

struct failure {
        const char *name; /* an error of the control protocol, without its prefix; NULL: none */
        char message[1024];
        char hint[224];
        char parameter[32]; /* InvalidParameter */
        char call[64];      /* DriverFailed */
        int code;           /* DriverFailed */
        pid_t process;      /* DriverFailed, GuestLost */
};

/* failure_set() - fill in @failure, unless it has a reason already. Returns @error. */
__attribute__((format(printf, 5, 6))) int failure_set(struct failure *failure, int error,
                                                      const char *name, const char *hint,
                                                      const char *message, ...);

/* failure_parameter() - fill in InvalidParameter for @parameter. Returns -EINVAL. */
__attribute__((format(printf, 4, 5))) int failure_parameter(struct failure *failure,
                                                            const char *parameter, const char *hint,
                                                            const char *message, ...);

/* failure_from_errno() - fill in Failed while doing @what, unless @failure has a reason already. */
int failure_from_errno(struct failure *failure, int error, const char *what);

#endif
