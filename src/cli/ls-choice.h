/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_LS_CHOICE_H
#define CLI_LS_CHOICE_H

/* Which vGPUs 'vgpu ls' lists, in which order, and what they use now. */

#include <stddef.h>
#include <stdint.h>

#include <openvgpu/instance.h>
#include <openvgpu/usage.h>

#include "cli/arguments.h"

#define LS_CHOICE_SORT_HELP   "name, device, state, share, use, memory, created (default: as created)"
#define LS_CHOICE_STATES_HELP "idle, running, suspended, evicted, failed, ..., or away"

struct ls_choice {
        struct vgpu_instance **named; /* those that were asked for by name */
        size_t n_named;
        struct vgpu_instance_list *all;
        struct vgpu_usage_snapshot *use;        /* NULL: not asked for, or vgpud does not say */
        const struct vgpu_instance **instances; /* those to list */
        size_t n;
        int code; /* of a name that there is not, which has been said */
};

/*
 * ls_choice_find() - ask, leave out and sort as the options say. @has_use: their use as well. Returns a
 * negative errno, of the client's last call, or an exit code after it has said what is wrong with the
 * options. ls_choice_deinit() in any case.
 */
int ls_choice_find(struct ls_choice *choice, const struct arguments *arguments,
                   struct vgpu_client *client, bool has_use);
void ls_choice_deinit(struct ls_choice *choice);

/* ls_choice_get_use() - percent of its devices' time that it uses now; below 0: unknown, or it is on none. */
int ls_choice_get_use(const struct ls_choice *choice, const struct vgpu_instance *instance);

#endif
