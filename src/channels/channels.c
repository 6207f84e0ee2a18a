/* SPDX-License-Identifier: Apache-2.0 */
#include "channels/channels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "channels/channels-internal.h"

/* Tries to read a table that the process keeps writing. */
#define READ_TRIES 3

/* Processes in one switch; more are switched in several steps. */
#define SWITCH_MAX 64

int channels_host_new(struct channels_host **ret_host, const char *simulation)
{
        CLEANUP(channels_host_freep) struct channels_host *host = calloc(1, sizeof(*host));
        int r = 0;

        if (!host)
                return -ENOMEM;
        host->simulated = HOST_VIEW_NONE;
        if (simulation[0])
                r = simulated_open(host, simulation);
        if (r < 0)
                return r;
        *ret_host = TAKE(host);
        return 0;
}

void channels_host_set_joint(struct channels_host *host, bool is_joint)
{
        host->is_joint = is_joint;
}

struct channels_host *channels_host_free(struct channels_host *host)
{
        if (!host)
                return NULL;
        simulated_close(host);
        free(host);
        return NULL;
}

int channels_new(struct channels **ret_channels, struct channels_host *host, pid_t pid, int pidfd,
                 const struct instance_page_channels *told)
{
        struct channels *channels = calloc(1, sizeof(*channels));
        int r;

        if (!channels)
                return -ENOMEM;
        channels->host = host;
        channels->pid = pid;
        channels->told = told;
        channels->sequence = UINT32_MAX;
        channels->process.pidfd = pidfd;
        channels->process.pid = pid;
        channels->plan_fd = -1;
        r = plan_create(&channels->plan, &channels->plan_fd,
                        host->is_simulated ? PLAN_SIMULATED : PLAN_RESOURCE_MANAGER);
        if (r < 0) {
                channels_free(channels);
                return r;
        }
        *ret_channels = channels;
        return 0;
}

struct channels *channels_free(struct channels *channels)
{
        if (!channels)
                return NULL;
        plan_unmap(channels->plan);
        fd_close(channels->plan_fd);
        free(channels);
        return NULL;
}

int channels_get_plan_fd(const struct channels *channels)
{
        return channels->plan_fd;
}

int channels_get_process_fd(const struct channels *channels)
{
        return channels->host->is_simulated ? channels->host->simulated.slots
                                            : channels->process.pidfd;
}

bool channels_are_off(const struct channels *channels)
{
        return channels->is_off;
}

int channels_get_error(const struct channels *channels)
{
        return channels->error;
}

bool channels_have_changed(const struct channels *channels)
{
        return !channels->host->is_simulated &&
               atomic_load_explicit(&channels->told->sequence, memory_order_relaxed) !=
                       channels->sequence;
}

/* A copy that nobody writes any more; a table that is always being written stays as it was. */
static int read_table(struct channels *channels)
{
        const struct instance_page_channels *told = channels->told;

        for (int i = 0; i < READ_TRIES; i++) {
                uint32_t sequence = atomic_load_explicit(&told->sequence, memory_order_acquire);
                uint32_t n = atomic_load(&told->n);

                if (n > INSTANCE_PAGE_CHANNELS)
                        return -E2BIG;
                for (uint32_t at = 0; at < n; at++)
                        instance_page_copy_channel(&channels->process.channel[at],
                                                   &told->channel[at]);
                if (sequence % 2 ||
                    atomic_load_explicit(&told->sequence, memory_order_relaxed) != sequence)
                        continue;
                channels->process.n = n;
                channels->sequence = sequence;
                memcpy(channels->plan->channel, channels->process.channel,
                       n * sizeof(told->channel[0]));
                atomic_store(&channels->plan->n, n);
                return 0;
        }
        return -EAGAIN;
}

static void switch_simulated(struct channels **channels, uint32_t n, bool is_off)
{
        for (uint32_t i = 0; i < n; i++) {
                int error = simulated_set(channels[i], is_off);

                channels[i]->error = error;
                channels[i]->is_off = is_off ? error == 0 : error < 0 && error != -ESRCH;
        }
}

/* Before anything is done: should we die in the middle, the keeper shall undo it. */
static uint32_t prepare(struct channels **channels, uint32_t n, bool is_off,
                        struct rm_process **ret_processes)
{
        uint32_t n_ready = 0;

        for (uint32_t i = 0; i < n; i++) {
                channels[i]->error =
                        channels_have_changed(channels[i]) ? read_table(channels[i]) : 0;
                if (channels[i]->error == -EAGAIN)
                        channels[i]->error = 0; /* as last read; it is read again soon */
                if (is_off)
                        atomic_store(&channels[i]->plan->is_off, 1);
                if (channels[i]->error == 0 || !is_off)
                        ret_processes[n_ready++] = &channels[i]->process;
        }
        return n_ready;
}

/* Letting on is done by what was read last: that the table cannot be read does not matter to it. */
static void conclude_one(struct channels *channels, bool is_off)
{
        const struct rm_process *process = &channels->process;

        if (!is_off || channels->error == 0) {
                channels->error = process->error;
                if (!is_off || process->is_touched) /* else it is as it was */
                        channels->is_off = process->is_stuck || (is_off && process->error == 0);
        }
        atomic_store(&channels->plan->is_off, channels->is_off);
}

static void conclude(struct channels **channels, uint32_t n, bool is_off)
{
        for (uint32_t i = 0; i < n; i++)
                conclude_one(channels[i], is_off);
}

void channels_switch(struct channels **on, uint32_t n_on, struct channels **off, uint32_t n_off)
{
        struct rm_process *on_process[SWITCH_MAX], *off_process[SWITCH_MAX];
        uint32_t now_on, now_off;
        bool is_joint = n_on + n_off > 0 && (n_on ? on[0] : off[0])->host->is_joint;

        while (n_on + n_off > 0) {
                now_on = n_on < SWITCH_MAX ? n_on : SWITCH_MAX;
                now_off = n_off < SWITCH_MAX ? n_off : SWITCH_MAX;
                if ((n_on ? on[0] : off[0])->host->is_simulated) {
                        switch_simulated(on, now_on, false);
                        switch_simulated(off, now_off, true);
                } else {
                        uint32_t ready_on = prepare(on, now_on, false, on_process);
                        uint32_t ready_off = prepare(off, now_off, true, off_process);

                        (void)rm_switch(on_process, ready_on, off_process, ready_off, is_joint);
                        conclude(on, now_on, false);
                        conclude(off, now_off, true);
                }
                on += now_on;
                n_on -= now_on;
                off += now_off;
                n_off -= now_off;
        }
}
