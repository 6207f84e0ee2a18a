/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_ENVIRONMENT_H
#define BASE_ENVIRONMENT_H

/* The environment of another process, as it was when the process began. */

#include <sys/types.h>

/* environment_read() - of process @pid, for free(); NULL: it is not ours to read, or gone. */
char *environment_read(pid_t pid);

/* environment_get() - the value of @name, in @environment; NULL: it has none. */
const char *environment_get(const char *environment, const char *name);

#endif
