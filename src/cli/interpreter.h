/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_INTERPRETER_H
#define CLI_INTERPRETER_H

/* Which loader a program names: the gate is for glibc's. */

#include <stdbool.h>

/* interpreter_is_musl() - would execvp() of @program start it with the loader of musl? */
bool interpreter_is_musl(const char *program);

#endif
