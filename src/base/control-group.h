/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CONTROL_GROUP_H
#define BASE_CONTROL_GROUP_H

/* Control groups of the kernel's second version, as folders. */

#include <stdbool.h>
#include <sys/types.h>

#define CONTROL_GROUP_MAX 256

/* control_group_mount() - where they are: beside the first version, or alone. */
const char *control_group_mount(void);

/* control_group_find() - the folder of process @pid, 0: ours. false: it has none that we can see. errno stays. */
bool control_group_find(char path[CONTROL_GROUP_MAX], pid_t pid);

/* control_group_is_within() - is @path the folder @group, or below it? */
bool control_group_is_within(const char *path, const char *group);

/* control_group_has() - is @pid, 0: ours, in @group or below it? */
bool control_group_has(const char *group, pid_t pid);

/* control_group_move() - put process @pid into @group. Errors: those of open(2) and write(2). */
int control_group_move(const char *group, pid_t pid);

#endif
