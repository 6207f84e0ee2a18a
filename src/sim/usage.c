/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "sim/host-layout.h"
#include "sim/slot-owner.h"

struct sim_usage {
        const struct host *host;
        int file;
        uint32_t namespace; /* ours, of processes */
};

static int map_host(const struct host **ret_host, int fd)
{
        struct stat status;
        void *map;

        if (fstat(fd, &status) < 0)
                return -errno;
        if (status.st_size != (off_t)sizeof(struct host))
                return -EPROTO;
        map = mmap(NULL, sizeof(struct host), PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return -errno;
        *ret_host = map;
        return 0;
}

int sim_usage_open(struct sim_usage **ret_usage, const char *directory)
{
        CLEANUP(sim_usage_closep) struct sim_usage *usage = calloc(1, sizeof(*usage));
        char path[PATHS_MAX];
        int r = paths_join(path, directory, "host");

        if (!usage)
                return -ENOMEM;
        usage->file = -1;
        usage->namespace = slot_owner_namespace();
        if (r < 0)
                return r;
        usage->file = open(path, O_RDONLY | O_CLOEXEC);
        if (usage->file < 0)
                return errno == ENOENT ? -EPROTO : -errno;
        r = map_host(&usage->host, usage->file);
        if (r < 0)
                return r;
        if (usage->host->magic != HOST_MAGIC || usage->host->version != HOST_VERSION)
                return -EPROTO;
        *ret_usage = TAKE(usage);
        return 0;
}

struct sim_usage *sim_usage_close(struct sim_usage *usage)
{
        if (!usage)
                return NULL;
        if (usage->host)
                (void)munmap((void *)(uintptr_t)usage->host, sizeof(struct host));
        fd_close(usage->file);
        free(usage);
        return NULL;
}

static struct sim_busy read_device(const struct host_slot *slot, uint32_t device)
{
        return (struct sim_busy){
                .kernel_ns = slot->busy[device][HOST_BUSY_KERNEL],
                .memory_ns = slot->busy[device][HOST_BUSY_MEMORY],
                .context_bytes = slot->contexts[device],
        };
}

static uint32_t least(uint32_t a, uint32_t b)
{
        return a < b ? a : b;
}

_Static_assert(SIM_USAGE_DEVICES == HOST_DEVICES_MAX, "all of them");

bool sim_usage_read(const struct sim_usage *usage, pid_t pid,
                    struct sim_busy ret_busy[SIM_USAGE_DEVICES])
{
        const struct host *host = usage->host;
        /* Anybody may write to the host of root. */
        uint32_t n_slots = least(host->n_slots, HOST_SLOTS);
        uint32_t n_devices = least(host->n_devices, HOST_DEVICES_MAX);

        for (uint32_t i = 0; i < n_slots; i++) {
                const struct host_slot *slot = &host->slot[i];

                if (!slot_owner_is(host, i, pid, usage->file, usage->namespace) &&
                    slot->last_pid != pid)
                        continue;
                for (uint32_t device = 0; device < SIM_USAGE_DEVICES; device++)
                        ret_busy[device] = device < n_devices ? read_device(slot, device)
                                                              : (struct sim_busy){ 0 };
                return true;
        }
        return false;
}
