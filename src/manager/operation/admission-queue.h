/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_ADMISSION_QUEUE_H
#define MANAGER_ADMISSION_QUEUE_H

/*
 * The operations that wait for room on a device (admission.h), in the order in which they came. Only the first is looked
 * at. One that finds no room may wait as long as its caller likes, so after ADMISSION_QUEUE_FIRST_MOST_US it keeps no
 * operation of another owner waiting: it goes to the end, and its turn comes again.
 */

#include <stdbool.h>

struct device;
struct operation;

#define ADMISSION_QUEUE_FIRST_MOST_US 1000000

/* admission_queue_has() - does it wait in one? */
bool admission_queue_has(const struct operation *operation);

/* admission_queue_get_first() - NULL: none waits. */
struct operation *admission_queue_get_first(struct device *device);

/* admission_queue_has_strangers_behind() - does one of another owner wait behind it? */
bool admission_queue_has_strangers_behind(const struct operation *operation);

/* admission_queue_let_others_pass() - if it is the first, and has been for long enough */
void admission_queue_let_others_pass(struct operation *first);

#endif
