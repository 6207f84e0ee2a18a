/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/room.h"

#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"

DEFINE_CLEANUP(struct vgpu_instance *, vgpu_instance_free);
DEFINE_CLEANUP(struct vgpu_instance_list *, vgpu_instance_list_free);

#define SECOND 1000000000ull

/* Between two tries: at first so long, later a part of the time since; vgpud writes a line for each. */
#define AGAIN_NS     100000000ull
#define AGAIN_NS_MAX (SECOND / 2)
#define AGAIN_PART   16

/* A job may be about to leave: Slurm has sent SIGTSTP, or will in a moment. Once it leaves, this no longer counts. */
#define NOTICE_SECONDS 8

/* A shorter wait is not worth a word. */
#define TELL_SECONDS 2

enum prospect {
        PROSPECT_NONE,    /* no job may make room */
        PROSPECT_NOTICE,  /* one is on a GPU, and may leave or not */
        PROSPECT_LEAVING, /* one is on its way */
};

static bool is_of_a_job(const char *name)
{
        return strncmp(name, "job-", 4) == 0;
}

/* @name is that of a vGPU that makes the prospect. */
static enum prospect look(struct vgpu_client *client, char name[64])
{
        CLEANUP(vgpu_instance_list_freep) struct vgpu_instance_list *list = NULL;
        enum prospect best = PROSPECT_NONE;

        if (vgpu_instance_lookup_all(client, &list) < 0)
                return PROSPECT_NONE;
        for (size_t i = 0; i < list->n_instances; i++) {
                const struct vgpu_instance *instance = list->instances[i];
                enum prospect prospect = instance->state == VGPU_INSTANCE_SUSPENDING
                                                 ? PROSPECT_LEAVING
                                                 : PROSPECT_NOTICE;

                if (!is_of_a_job(instance->name) || instance->state == VGPU_INSTANCE_SUSPENDED ||
                    prospect <= best)
                        continue;
                best = prospect;
                snprintf(name, 64, "%s", instance->name);
        }
        return best;
}

/* 'srun' and 'salloc' print it; the output of a script cannot be written yet. */
static void tell(const struct room_wait *wait, const char *name)
{
        char text[192];

        snprintf(text, sizeof(text),
                 "--vgpu: waiting for room: %s is leaving the GPU (for %u seconds at most)", name,
                 wait->seconds_max);
        slurm_info("%s", text);
        (void)slurm_notify_job(wait->job, text);
}

/* What is known while it waits. */
struct watch {
        uint64_t begin, last_leaving;
        bool has_told;
};

static bool is_worth_waiting(struct watch *watch, const struct room_wait *wait,
                             enum prospect prospect, const char *name)
{
        uint64_t now = clock_now(CLOCK_MONOTONIC);

        if (prospect == PROSPECT_LEAVING) {
                watch->last_leaving = now;
                if (!watch->has_told && now - watch->begin >= TELL_SECONDS * SECOND) {
                        watch->has_told = true;
                        tell(wait, name);
                }
        }
        return prospect != PROSPECT_NONE && now - watch->last_leaving < NOTICE_SECONDS * SECOND &&
               now - watch->begin < wait->seconds_max * SECOND;
}

static void pause_since(uint64_t begin)
{
        uint64_t ns = (clock_now(CLOCK_MONOTONIC) - begin) / AGAIN_PART;
        struct timespec pause = { .tv_nsec = AGAIN_NS };

        if (ns > AGAIN_NS)
                pause.tv_nsec = (long)(ns < AGAIN_NS_MAX ? ns : AGAIN_NS_MAX);
        (void)nanosleep(&pause, NULL);
}

int room_create(struct vgpu_client *client, const struct vgpu_instance_options *options,
                struct room_wait *wait)
{
        struct watch watch = { .begin = clock_now(CLOCK_MONOTONIC) };

        watch.last_leaving = watch.begin;
        for (;;) {
                CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
                char name[64] = "";
                /* Before the try: what leaves in between has made its room by then. */
                enum prospect prospect = look(client, name);
                int r = vgpu_instance_create(client, options, &instance);

                if (r == 0 || vgpu_client_get_error(client)->kind != VGPU_ERROR_NO_ROOM ||
                    !is_worth_waiting(&watch, wait, prospect, name)) {
                        wait->seconds +=
                                (uint32_t)((clock_now(CLOCK_MONOTONIC) - watch.begin) / SECOND);
                        return r;
                }
                pause_since(watch.begin);
        }
}
