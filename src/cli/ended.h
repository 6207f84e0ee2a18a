/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_ENDED_H
#define CLI_ENDED_H

/* What is known of a manager that has ended: its socket and its state page are still there. */

#include <stdbool.h>

/* ended_has_vgpus() - did the manager of that run directory have any? True where that is not known. */
bool ended_has_vgpus(const char *directory);

/* ended_say_own() - that this user's own manager has ended, where that of the machine answers instead of it. */
void ended_say_own(void);

#endif
