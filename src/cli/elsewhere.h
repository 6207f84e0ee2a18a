/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_ELSEWHERE_H
#define CLI_ELSEWHERE_H

/* Finds a manager elsewhere when none answers in the expected run directory. */

#include <stdbool.h>
#include <stddef.h>

#define ELSEWHERE_HINT_MAX 512

/*
 * elsewhere_hint() - names the run directory of a manager that answers, and how to reach it
 *
 * Managers of this user come first, then those of root. Those of others are not asked: who used one would have to
 * trust that user as himself. False: none answers, and @hint is untouched.
 */
bool elsewhere_hint(char *hint, size_t room);

#endif
