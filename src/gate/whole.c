/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/whole.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "gate/child.h"
#include "gate/log.h"
#include "gate/method.h"
#include "gate/object.h"
#include "gate/quota.h"
#include "gate/ring.h"
#include "gate/simulated.h"
#include "state/instance-page.h"
#include "wire/resource-manager.h"

#define CONTEXTS_MAX 64

/* Of one context; it has 8. */
#define RINGS_MAX 64

/* The process' turn may have to come before the device fetches anything. */
#define MEND_NS 3000000000u

/* Between two tries, while a ring is busy. */
#define BUSY_NS 1000000

enum context_state {
        CONTEXT_UNKNOWN, /* its beginning was not seen, or not understood */
        CONTEXT_BORN,    /* as its library made it; the words are known */
        CONTEXT_MENDED,
        CONTEXT_UNWHOLE, /* @reason */
};

struct context {
        uint32_t client, device, group;
        uint64_t serial; /* of the group: another one was made since */
        enum context_state state;
        enum instance_page_whole reason;
        size_t n_words;
        uint32_t word[METHOD_KEPT_MAX];
};

/* With the lock of object.h. */
static struct context contexts[CONTEXTS_MAX];
static size_t n_contexts;

static const char *const error_names[] = {
        [RING_OK] = "none",
        [RING_UNREADABLE] = "its ring is not mapped",
        [RING_BUSY] = "its ring is busy",
        [RING_STRANGE] = "its ring is not as expected",
        [RING_SLOW] = "the device does not fetch what was sent",
};

/* Its client may be another since, if that has no object left. */
static struct context *context_find_locked(const struct object *group)
{
        for (size_t i = 0; i < n_contexts; i++) {
                struct context *context = &contexts[i];

                if (context->group == group->object && context->device == group->parent &&
                    (context->client == group->client ||
                     !object_find_locked(OBJECT_GROUP, context->client, context->group)))
                        return context;
        }
        return NULL;
}

static bool context_is_there_locked(const struct context *context)
{
        return object_find_locked(OBJECT_GROUP, context->client, context->group) != NULL;
}

/* In place of one that is gone, where there is no other place. */
static struct context *context_add_locked(const struct object *group)
{
        struct context *context = NULL;

        for (size_t i = 0; n_contexts == CONTEXTS_MAX && i < n_contexts && !context; i++)
                if (!context_is_there_locked(&contexts[i]))
                        context = &contexts[i];
        if (!context && n_contexts < CONTEXTS_MAX)
                context = &contexts[n_contexts++];
        if (context)
                *context = (struct context){ .group = group->object, .device = group->parent };
        return context;
}

/* The registers that wake the device of @group up. */
static uint64_t doorbell_find_locked(const struct object *group)
{
        const struct object *subdevice = object_find_subdevice_locked(group), *one = NULL;

        while (subdevice && (one = object_next_locked(OBJECT_USERMODE, one)))
                if (one->client == group->client && one->parent == subdevice->object &&
                    one->map.address != 0)
                        return one->map.address;
        return 0;
}

static bool channel_has_compute_locked(const struct object *channel)
{
        const struct object *one = NULL;

        while ((one = object_next_locked(OBJECT_COMPUTE, one)))
                if (one->client == channel->client && one->parent == channel->object)
                        return true;
        return false;
}

/*
 * What is needed of a ring; false: the library has not told all. The end of the memory that has the rings is unused: the
 * library begins with as much room as it never needs.
 */
static bool ring_describe_locked(const struct object *group, const struct object *channel,
                                 struct ring *ret_ring)
{
        uint64_t end = channel->map.address + channel->map.length;

        *ret_ring = (struct ring){ .address = channel->ring,
                                   .n_entries = channel->n_entries,
                                   .token = channel->token,
                                   .user = channel->user,
                                   .doorbell = doorbell_find_locked(group),
                                   .scratch = end - RING_SCRATCH_SIZE };
        return channel->user != 0 && ret_ring->doorbell != 0 &&
               channel->ring >= channel->map.address &&
               channel->ring + channel->n_entries * sizeof(uint64_t) <= ret_ring->scratch;
}

/* Rings of the group's channels that run kernels; returns how many, 0 also where one of them is not as expected. */
static size_t rings_collect_locked(const struct object *group, struct ring rings[RINGS_MAX])
{
        const struct object *channel = NULL;
        size_t n = 0;

        while ((channel = object_next_locked(OBJECT_CHANNEL, channel))) {
                if (channel->client != group->client || channel->parent != group->object ||
                    !channel_has_compute_locked(channel))
                        continue;
                if (n == RINGS_MAX || !ring_describe_locked(group, channel, &rings[n++]))
                        return 0;
        }
        return n;
}

/* The library sends it to one channel, which shares with the others what it sets. */
static void context_learn_locked(struct context *context, const struct object *group)
{
        struct ring rings[RINGS_MAX];
        size_t n = rings_collect_locked(group, rings);
        struct method_scan scan;

        context->client = group->client;
        context->serial = group->serial;
        context->state = CONTEXT_UNKNOWN;
        context->n_words = 0;
        for (size_t i = 0; i < n; i++) {
                if (ring_scan(&rings[i], &scan) != RING_OK || !method_scan_is_whole(&scan))
                        continue;
                memcpy(context->word, scan.kept, scan.n_kept * sizeof(scan.kept[0]));
                context->n_words = scan.n_kept;
                context->state = CONTEXT_BORN;
                break;
        }
        log_write("context of group %x: %zu channels, %zu words", group->object, n,
                  context->n_words);
}

void whole_learn(void)
{
        const struct object *group = NULL;
        struct context *context;

        object_lock();
        while ((group = object_next_locked(OBJECT_GROUP, group))) {
                context = context_find_locked(group);
                if (context && context->serial == group->serial &&
                    context->state != CONTEXT_UNKNOWN)
                        continue;
                if (!context)
                        context = context_add_locked(group);
                if (context) /* again where another thread was in the middle of making it */
                        context_learn_locked(context, group);
        }
        object_unlock();
}

/* Not by ioctl(), which is the gate's own. */
static bool control_send(const struct object *group, const struct object_control *control)
{
        struct object_control copy = *control;
        struct rm_control call = { .client = group->client,
                                   .object = control->object,
                                   .command = control->command,
                                   .parameters = (uintptr_t)copy.parameters,
                                   .parameters_size = control->size };

        return syscall(SYS_ioctl, group->fd, RM_REQUEST_CONTROL, &call) == 0 &&
               call.status == RM_OK;
}

/* A mask is a debugger object's, which says of what device it is, and not of what context: sent twice it does no harm. */
static bool mask_belongs_locked(const struct object_control *control, const struct object *group)
{
        const struct object *debugger =
                object_find_locked(OBJECT_DEBUGGER, group->client, control->object);

        return debugger && debugger->parent == group->parent;
}

/* @client is the context's before the restore. */
static bool control_belongs_locked(const struct object_control *control, uint32_t client,
                                   const struct object *group)
{
        if (control->client != client)
                return false;
        if (control->command == RM_COMMAND_SET_EXCEPTION_MASK)
                return mask_belongs_locked(control, group);
        return control->group == group->object;
}

/* Returns how many were sent, -1 if one was refused. */
static int controls_send_locked(uint32_t client, const struct object *group)
{
        struct object_control *control = NULL;
        int n = 0;

        while ((control = object_next_control_locked(control))) {
                if (!control_belongs_locked(control, client, group))
                        continue;
                if (!control_send(group, control))
                        return -1;
                n++;
        }
        return n;
}

/* All rounds are begun before one is waited for. What a busy ring lacks is the least: that passes. */
static enum ring_error rings_send(const struct ring *rings, size_t n, const struct context *context,
                                  uint64_t deadline_ns)
{
        struct ring_round rounds[RINGS_MAX];
        enum ring_error error = RING_OK;

        for (size_t i = 0; i < n; i++)
                ring_begin(&rounds[i], &rings[i], context->word, context->n_words);
        for (size_t i = 0; i < n; i++) {
                enum ring_error one = ring_end(&rounds[i], deadline_ns);

                if (error == RING_OK || error == RING_BUSY)
                        error = one == RING_OK ? error : one;
        }
        for (size_t i = 0; i < n; i++)
                if (rounds[i].error == RING_OK)
                        ring_clear_scratch(&rings[i]);
        return error;
}

/* With every channel: what was sent twice does no harm. */
static enum ring_error rings_send_patiently(const struct ring *rings, size_t n,
                                            const struct context *context, uint64_t deadline_ns)
{
        const struct timespec nap = { .tv_nsec = BUSY_NS };
        enum ring_error error;

        while ((error = rings_send(rings, n, context, deadline_ns)) == RING_BUSY &&
               clock_now(CLOCK_MONOTONIC) < deadline_ns)
                nanosleep(&nap, NULL);
        return error;
}

static void context_mend_locked(struct context *context, const struct object *group,
                                uint64_t deadline_ns)
{
        struct ring rings[RINGS_MAX];
        bool is_known = context->n_words > 0 && !objects_are_incomplete_locked();
        size_t n = is_known ? rings_collect_locked(group, rings) : 0;
        uint64_t start_ns = clock_now(CLOCK_MONOTONIC);
        enum ring_error error = RING_UNREADABLE;
        int n_controls = 0;

        if (n > 0)
                error = rings_send_patiently(rings, n, context, deadline_ns);
        if (error == RING_OK)
                n_controls = controls_send_locked(context->client, group);
        context->serial = group->serial;
        context->state = n_controls > 0 ? CONTEXT_MENDED : CONTEXT_UNWHOLE;
        context->reason = context->n_words == 0 ? INSTANCE_PAGE_UNWHOLE_UNSEEN
                          : error != RING_OK    ? INSTANCE_PAGE_UNWHOLE_RING
                                                : INSTANCE_PAGE_UNWHOLE_REFUSED;
        if (context->state == CONTEXT_MENDED)
                log_write("context of group %x is whole again: %zu channels, %d calls, %.2f ms",
                          group->object, n, n_controls,
                          (double)(clock_now(CLOCK_MONOTONIC) - start_ns) / 1e6);
        else
                log_write("context of group %x is not whole: %s", group->object,
                          context->n_words == 0 ? "its beginning was not seen"
                          : error != RING_OK    ? error_names[error]
                                                : "a call was refused");
}

/* What was kept under the client before is the new one's from now on. */
static void controls_follow_locked(uint32_t before, uint32_t now)
{
        struct object_control *control = NULL;

        while ((control = object_next_control_locked(control)))
                if (control->client == before)
                        control->client = now;
}

/* Returns whether a restore has been. */
static bool contexts_mend_locked(void)
{
        const struct object *group = NULL;
        uint64_t deadline_ns = clock_now(CLOCK_MONOTONIC) + MEND_NS;
        struct context *context;
        bool is_restored = false;

        while ((group = object_next_locked(OBJECT_GROUP, group))) {
                context = context_find_locked(group);
                if (context && context->serial == group->serial)
                        continue;
                is_restored = true;
                if (context)
                        context_mend_locked(context, group, deadline_ns);
        }
        for (group = NULL; (group = object_next_locked(OBJECT_GROUP, group));) {
                context = context_find_locked(group);
                if (!context || context->client == group->client)
                        continue;
                controls_follow_locked(context->client, group->client);
                context->client = group->client;
        }
        return is_restored;
}

static enum instance_page_whole contexts_judge_locked(void)
{
        const struct object *group = NULL;

        while ((group = object_next_locked(OBJECT_GROUP, group))) {
                const struct context *context = context_find_locked(group);

                if (!context)
                        return INSTANCE_PAGE_UNWHOLE_UNSEEN;
                if (context->state == CONTEXT_UNWHOLE)
                        return context->reason;
        }
        return INSTANCE_PAGE_MENDED;
}

static void result_publish(enum instance_page_whole whole)
{
        uint32_t slot;
        struct instance_page *page = quota_get_page(&slot);

        if (page)
                atomic_store(&page->slot[slot].whole, whole);
}

void whole_mend(void)
{
        enum instance_page_whole whole;
        bool has_groups;

        object_lock();
        has_groups = object_next_locked(OBJECT_GROUP, NULL) != NULL;
        if (contexts_mend_locked())
                result_publish(contexts_judge_locked());
        object_unlock();
        if (!has_groups && simulated_mend(&whole))
                result_publish(whole);
}

void whole_forget(void)
{
        n_contexts = 0;
}
