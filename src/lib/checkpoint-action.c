/* SPDX-License-Identifier: Apache-2.0 */
/* The actions: turns the caller's options into a request to the helper. */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "lib/checkpoint-guest.h"
#include "lib/checkpoint-handle.h"
#include "lib/process-tree.h"

uint32_t checkpoint_milliseconds(double seconds)
{
        double exact = seconds * 1000;

        if (!(exact >= 0 && exact < CHECKPOINT_FOREVER_MS - 1))
                return CHECKPOINT_FOREVER_MS;
        return (uint32_t)exact + ((uint32_t)exact < exact);
}

static int fail_invalid(struct vgpu_checkpoint *checkpoint, const char *what)
{
        checkpoint->n_results = 0;
        return checkpoint_error_set(&checkpoint->error, VGPU_CHECKPOINT_ERROR_INVALID, "", "%s",
                                    what);
}

static int set_pairs(struct vgpu_checkpoint *checkpoint, struct checkpoint_wire_request *request,
                     const struct vgpu_checkpoint_options *options)
{
        if (options->n_pairs > CHECKPOINT_PAIRS_MAX)
                return fail_invalid(checkpoint, "more pairs than a host has devices");
        if (options->n_pairs > 0 && !options->pairs)
                return fail_invalid(checkpoint, "a number of pairs, but no pairs");
        for (size_t i = 0; i < options->n_pairs; i++) {
                const struct vgpu_checkpoint_pair *pair = &options->pairs[i];

                if (!pair->from || !pair->to || strlen(pair->from) >= CHECKPOINT_DEVICE_MAX ||
                    strlen(pair->to) >= CHECKPOINT_DEVICE_MAX)
                        return fail_invalid(checkpoint, "a pair without two devices");
                strcpy(request->pair[i].from, pair->from);
                strcpy(request->pair[i].to, pair->to);
        }
        request->n_pairs = (uint32_t)options->n_pairs;
        return 0;
}

/*
 * What a manager looks after is handled by it: its gate closes first, and its memory moves faster.
 * Returns 0 or -ETIMEDOUT: a manager did not answer, and need not be asked of another one; or the error.
 */
static int refuse_guest(struct vgpu_checkpoint *checkpoint, pid_t pid)
{
        char name[CHECKPOINT_GUEST_NAME_MAX], hint[192];
        int r = checkpoint_guest_find(pid, name);

        if (r <= 0)
                return r;
        checkpoint->n_results = 0;
        snprintf(hint, sizeof(hint), "use 'vgpu suspend %s' and 'vgpu resume %s'", name, name);
        return checkpoint_error_set(&checkpoint->error, VGPU_CHECKPOINT_ERROR_GUEST, hint,
                                    "process %d is a program of the vGPU %s", pid, name);
}

/* Of a tree that is too large for us the first ones. */
static int refuse_guests_below(struct vgpu_checkpoint *checkpoint, pid_t root)
{
        CLEANUP(freep) struct process_tree *tree = malloc(sizeof(*tree));
        int r = 0;

        if (!tree)
                return checkpoint_error_set(&checkpoint->error, VGPU_CHECKPOINT_ERROR_OUT_OF_MEMORY,
                                            "", "out of memory");
        (void)process_tree_read(tree, root);
        for (size_t i = 0; i < tree->n && r == 0; i++)
                r = refuse_guest(checkpoint, tree->pids[i]);
        return r;
}

static int refuse_guests(struct vgpu_checkpoint *checkpoint, bool with_children)
{
        int r = 0;

        for (size_t i = 0; i < checkpoint->n && r == 0; i++)
                r = with_children ? refuse_guests_below(checkpoint, checkpoint->pid[i])
                                  : refuse_guest(checkpoint, checkpoint->pid[i]);
        return r == -ETIMEDOUT ? 0 : r;
}

static int act(struct vgpu_checkpoint *checkpoint, enum checkpoint_action action,
               const struct vgpu_checkpoint_options *given)
{
        struct vgpu_checkpoint_options options = VGPU_CHECKPOINT_OPTIONS_INIT;
        struct checkpoint_wire_request request = { .action = action };
        int r;

        if (given && given->size > sizeof(options))
                return fail_invalid(checkpoint, "options of a newer version of the library");
        if (given)
                memcpy(&options, given, given->size);
        if (isnan(options.timeout_seconds))
                return fail_invalid(checkpoint, "timeout_seconds is not a number");
        r = set_pairs(checkpoint, &request, &options);
        if (r == 0 && !options.is_forced && action != CHECKPOINT_STATE)
                r = refuse_guests(checkpoint, options.with_children);
        if (r < 0)
                return r;
        request.timeout_ms = checkpoint_milliseconds(options.timeout_seconds);
        request.flags = (options.with_children ? CHECKPOINT_WITH_CHILDREN : 0) |
                        (options.is_careful ? CHECKPOINT_CAREFUL : 0) |
                        (options.is_forced ? CHECKPOINT_FORCED : 0);
        return checkpoint_ask(checkpoint, &request);
}

int vgpu_checkpoint_look(struct vgpu_checkpoint *checkpoint,
                         const struct vgpu_checkpoint_options *options)
{
        return act(checkpoint, CHECKPOINT_STATE, options);
}

int vgpu_checkpoint_lock(struct vgpu_checkpoint *checkpoint,
                         const struct vgpu_checkpoint_options *options)
{
        return act(checkpoint, CHECKPOINT_LOCK, options);
}

bool vgpu_checkpoint_try_lock(struct vgpu_checkpoint *checkpoint,
                              const struct vgpu_checkpoint_options *options)
{
        return act(checkpoint, CHECKPOINT_LOCK, options) == 0;
}

int vgpu_checkpoint_checkpoint(struct vgpu_checkpoint *checkpoint,
                               const struct vgpu_checkpoint_options *options)
{
        return act(checkpoint, CHECKPOINT_CHECKPOINT, options);
}

int vgpu_checkpoint_restore(struct vgpu_checkpoint *checkpoint,
                            const struct vgpu_checkpoint_options *options)
{
        return act(checkpoint, CHECKPOINT_RESTORE, options);
}

int vgpu_checkpoint_unlock(struct vgpu_checkpoint *checkpoint,
                           const struct vgpu_checkpoint_options *options)
{
        return act(checkpoint, CHECKPOINT_UNLOCK, options);
}

int vgpu_checkpoint_suspend(struct vgpu_checkpoint *checkpoint,
                            const struct vgpu_checkpoint_options *options)
{
        return act(checkpoint, CHECKPOINT_SUSPEND, options);
}

int vgpu_checkpoint_resume(struct vgpu_checkpoint *checkpoint,
                           const struct vgpu_checkpoint_options *options)
{
        return act(checkpoint, CHECKPOINT_RESUME, options);
}

int vgpu_checkpoint_toggle(struct vgpu_checkpoint *checkpoint,
                           const struct vgpu_checkpoint_options *options)
{
        int r = act(checkpoint, CHECKPOINT_TOGGLE, options);

        return r < 0 ? r : (int)checkpoint->result[0].state;
}
