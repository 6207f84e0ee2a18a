/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a simulated host: its engine looks at a word of their slot. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/paths.h"
#include "channels/channels-internal.h"
#include "sim/host-layout.h"
#include "sim/slot-owner.h"

int simulated_open(struct channels_host *host, const char *directory)
{
        CLEANUP(fd_closep) int fd = -1;
        char path[PATHS_MAX];
        struct stat status;
        void *map;
        int r = paths_join(path, directory, "host");

        if (r < 0)
                return r;
        fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (status.st_size != (off_t)sizeof(struct host))
                return -EPROTO;
        map = mmap(NULL, sizeof(struct host), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return -errno;
        host->simulated = map;
        host->fd = TAKE_FD(fd);
        if (host->simulated->magic == HOST_MAGIC && host->simulated->version == HOST_VERSION)
                return 0;
        simulated_close(host);
        return -EPROTO;
}

void simulated_close(struct channels_host *host)
{
        if (host->simulated)
                munmap(host->simulated, sizeof(struct host));
        host->simulated = NULL;
        host->fd = fd_close(host->fd);
}

int simulated_set(struct channels *channels, bool is_off)
{
        const struct channels_host *opened = channels->host;
        struct host *host = opened->simulated;
        uint32_t n_slots = host->n_slots, ours = slot_owner_namespace();

        /* Anybody may write to the host of root. */
        for (uint32_t i = 0; i < n_slots && i < HOST_SLOTS; i++) {
                if (!slot_owner_is(host, i, channels->pid, opened->fd, ours))
                        continue;
                channels->plan->offset = offsetof(struct host, slot) +
                                         i * sizeof(struct host_slot) +
                                         offsetof(struct host_slot, is_off);
                if (is_off)
                        atomic_store(&channels->plan->is_off, 1); /* first, should we die here */
                else if (fault_point("channels.on"))
                        return -EIO;
                atomic_store(&host->slot[i].is_off, is_off);
                atomic_store(&channels->plan->is_off, is_off);
                return 0;
        }
        return -ESRCH;
}
