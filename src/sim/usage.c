/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/usage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/host-view.h"

struct sim_usage {
        struct host_view view;
};

int sim_usage_open(struct sim_usage **ret_usage, const char *directory)
{
        CLEANUP(sim_usage_closep) struct sim_usage *usage = malloc(sizeof(*usage));
        int r;

        if (!usage)
                return -ENOMEM;
        r = host_view_open_path(&usage->view, directory);
        if (r < 0)
                return r;
        *ret_usage = TAKE(usage);
        return 0;
}

struct sim_usage *sim_usage_close(struct sim_usage *usage)
{
        if (usage)
                host_view_close(&usage->view);
        free(usage);
        return NULL;
}

static uint64_t least(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

static void read_slot(const struct host_view *view, int number,
                      struct sim_busy ret_busy[SIM_USAGE_DEVICES])
{
        uint64_t busy[HOST_DEVICES_MAX][HOST_BUSY_KINDS], contexts[HOST_DEVICES_MAX];

        memset(ret_busy, 0, SIM_USAGE_DEVICES * sizeof(ret_busy[0]));
        host_view_read(view, busy, sizeof(busy), HOST_SLOTS_AT(busy[number]));
        host_view_read(view, contexts, sizeof(contexts), HOST_SLOTS_AT(contexts[number]));
        for (uint32_t device = 0; device < view->host->n_devices; device++)
                ret_busy[device] = (struct sim_busy){
                        .kernel_ns = busy[device][HOST_BUSY_KERNEL],
                        .memory_ns = busy[device][HOST_BUSY_MEMORY],
                        .context_bytes = least(contexts[device], view->host->device[device].memory),
                };
}

size_t sim_usage_list(const struct sim_usage *usage, pid_t *ret_pids, size_t room)
{
        return host_view_list(&usage->view, ret_pids, room);
}

_Static_assert(SIM_USAGE_DEVICES == HOST_DEVICES_MAX, "all of them");

bool sim_usage_read(const struct sim_usage *usage, pid_t pid,
                    struct sim_busy ret_busy[SIM_USAGE_DEVICES])
{
        int number = host_view_find(&usage->view, pid);

        if (number < 0)
                number = host_view_find_last(&usage->view, pid);
        if (number < 0)
                return false;
        read_slot(&usage->view, number, ret_busy);
        return true;
}
