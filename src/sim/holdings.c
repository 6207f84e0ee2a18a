/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The holdings say how much memory of each device of the simulated host each process holds.
 *
 * Sums over all slots are cheap; looking which processes and exported files are
 * still alive costs system calls, so a charge does that only when it would fail
 * otherwise: what is counted is never less than what is held.
 */

#include "sim/holdings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "sim/host.h"
#include "sim/limit.h"
#include "sim/slot-owner.h"

static void lock(struct holdings *holdings)
{
        while (flock(holdings->lock, LOCK_EX) < 0 && errno == EINTR)
                ;
}

static void unlock(struct holdings *holdings)
{
        (void)flock(holdings->lock, LOCK_UN);
}

/* A record lock of our own process is never in our own way: our slot counts as alive here. */
static bool is_dead(struct holdings *holdings, struct host_slot *slot)
{
        struct flock record = { .l_type = F_WRLCK,
                                .l_whence = SEEK_SET,
                                .l_start = holdings_slot_number(holdings, slot),
                                .l_len = 1 };

        return slot != holdings->slot && fcntl(holdings->file, F_GETLK, &record) == 0 &&
               record.l_type == F_UNLCK;
}

static void clear(struct host_slot *slot)
{
        for (uint32_t i = 0; i < HOST_DEVICES_MAX; i++)
                slot->used[i] = slot->contexts[i] = 0;
        slot->state = 0;
        slot->service_thread = 0;
        slot->last_pid = slot->pid;
        slot->pid = 0;
}

static void clear_busy(struct host_slot *slot)
{
        for (uint32_t i = 0; i < HOST_DEVICES_MAX; i++)
                for (uint32_t kind = 0; kind < HOST_BUSY_KINDS; kind++)
                        slot->busy[i][kind] = 0;
}

static void clear_dead_slots(struct holdings *holdings)
{
        for (uint32_t i = 0; i < holdings->host->n_slots; i++) {
                struct host_slot *slot = &holdings->host->slot[i];

                if (slot->pid && is_dead(holdings, slot))
                        clear(slot);
        }
}

/* True when nobody holds the file @name any more; then it is gone. */
static bool remove_unheld(struct holdings *holdings, const char *name)
{
        CLEANUP(fd_closep) int fd = openat(holdings->memory, name, O_RDWR | O_CLOEXEC);

        if (fd < 0)
                return true;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return false;
        (void)unlinkat(holdings->memory, name, 0);
        return true;
}

struct shared {
        uint32_t device, limit;
        uint64_t size;
};

/* DEVICE-SIZE-LIMIT-INODE */
static bool read_name(const char *name, struct shared *ret_shared)
{
        return sscanf(name, "%u-%lu-%u-", &ret_shared->device, &ret_shared->size,
                      &ret_shared->limit) == 3 &&
               ret_shared->device < HOST_DEVICES_MAX && ret_shared->limit <= HOST_LIMITS;
}

/* Row 0 is of those without a limit. */
static void add_files(struct holdings *holdings, DIR *folder, uint64_t (*sum)[HOST_DEVICES_MAX],
                      uint32_t n_limits)
{
        struct dirent *entry;
        struct shared shared;

        while ((entry = readdir(folder)))
                if (read_name(entry->d_name, &shared) && !remove_unheld(holdings, entry->d_name))
                        sum[shared.limit <= n_limits ? shared.limit : 0][shared.device] +=
                                shared.size;
}

static void count_shared(struct holdings *holdings)
{
        struct host *host = holdings->host;
        uint32_t n_limits = host->n_limits < HOST_LIMITS ? host->n_limits : HOST_LIMITS;
        uint64_t(*sum)[HOST_DEVICES_MAX] = calloc(n_limits + 1, sizeof(*sum));
        int fd = openat(holdings->memory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *folder = fd < 0 ? NULL : fdopendir(fd);

        if (!folder || !sum) {
                if (folder)
                        (void)closedir(folder);
                else
                        (void)fd_close(fd);
                free(sum);
                return;
        }
        add_files(holdings, folder, sum, n_limits);
        (void)closedir(folder);
        for (uint32_t device = 0; device < host->n_devices; device++) {
                uint64_t all = sum[0][device];

                for (uint32_t i = 0; i < n_limits; i++) {
                        host->limit[i].shared[device] = sum[i + 1][device];
                        all += sum[i + 1][device];
                }
                host->device[device].shared = all;
        }
        free(sum);
}

static uint64_t sum_used(struct holdings *holdings, int device)
{
        uint64_t sum = holdings->host->device[device].shared;

        for (uint32_t i = 0; i < holdings->host->n_slots; i++)
                if (holdings->host->slot[i].pid)
                        sum += holdings->host->slot[i].used[device];
        return sum;
}

static uint64_t sum_free(struct holdings *holdings, int device)
{
        uint64_t used = sum_used(holdings, device), memory = holdings->host->device[device].memory;

        return used < memory ? memory - used : 0;
}

static void reap(struct holdings *holdings)
{
        clear_dead_slots(holdings);
        count_shared(holdings);
}

static bool has_room(struct holdings *holdings, int device, uint64_t size)
{
        return sum_free(holdings, device) >= size &&
               limit_has_room(holdings->host, holdings->slot, device, size);
}

int holdings_charge(struct holdings *holdings, int device, uint64_t size)
{
        int r = 0;

        lock(holdings);
        if (!has_room(holdings, device, size))
                reap(holdings);
        if (!has_room(holdings, device, size))
                r = -ENOMEM;
        else
                holdings->slot->used[device] += size;
        unlock(holdings);
        return r;
}

void holdings_refund(struct holdings *holdings, int device, uint64_t size)
{
        holdings->slot->used[device] -= size;
}

void holdings_note_context(struct holdings *holdings, int device, int64_t size)
{
        holdings->slot->contexts[device] += (uint64_t)size;
}

uint64_t holdings_get_free(struct holdings *holdings, int device)
{
        uint64_t left;

        lock(holdings);
        reap(holdings);
        left = sum_free(holdings, device);
        unlock(holdings);
        return left;
}

/* What is under a limit counts there, too. */
static void add_shared(struct holdings *holdings, int device, uint32_t limit, uint64_t size)
{
        holdings->host->device[device].shared += size;
        if (limit > 0)
                holdings->host->limit[limit - 1].shared[device] += size;
}

/* In this order, so that a kill in between leaves too much counted, which the next reap repairs. */
int holdings_share(struct holdings *holdings, int fd, int device, uint64_t size)
{
        uint32_t limit = limit_of_us(holdings->host);
        char from[32], name[64];
        struct stat status;
        int r = 0;

        if (fstat(fd, &status) < 0)
                return -errno;
        (void)snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
        (void)snprintf(name, sizeof(name), "%d-%lu-%u-%lu", device, size, limit,
                       (uint64_t)status.st_ino);
        lock(holdings);
        add_shared(holdings, device, limit, size);
        if (linkat(AT_FDCWD, from, holdings->memory, name, AT_SYMLINK_FOLLOW) < 0) {
                r = -errno;
                add_shared(holdings, device, limit, -size);
        } else {
                holdings->slot->used[device] -= size;
        }
        unlock(holdings);
        return r;
}

void holdings_note_busy(struct holdings *holdings, int device, enum host_busy kind, uint64_t ns)
{
        if (holdings->slot)
                holdings->slot->busy[device][kind] += ns;
}

struct host_slot *holdings_find(struct holdings *holdings, int pid)
{
        uint32_t ours = slot_owner_namespace();

        for (uint32_t i = 0; pid > 0 && i < holdings->host->n_slots; i++) {
                struct host_slot *slot = &holdings->host->slot[i];

                if (slot_owner_is(holdings->host, i, pid, holdings->file, ours) &&
                    !is_dead(holdings, slot))
                        return slot;
        }
        return NULL;
}

uint32_t holdings_slot_number(const struct holdings *holdings, const struct host_slot *slot)
{
        return (uint32_t)(slot - holdings->host->slot);
}

static bool claim(struct holdings *holdings, uint32_t number)
{
        struct host_slot *slot = &holdings->host->slot[number];
        struct flock record = {
                .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = number, .l_len = 1
        };

        if (slot->pid || fcntl(holdings->file, F_SETLK, &record) < 0)
                return false;
        clear(slot);
        clear_busy(slot);
        slot->last_pid = 0;
        slot->is_off = 0;
        slot->pid_namespace = slot_owner_namespace();
        slot->pid = getpid();
        holdings->slot = slot;
        if (number >= holdings->host->n_slots)
                holdings->host->n_slots = number + 1;
        return true;
}

static int claim_slot(struct holdings *holdings)
{
        bool is_own = getenv(SIM_HOST_OWN_VARIABLE);
        uint32_t i = is_own ? 0 : HOST_SLOTS_KEPT;

        lock(holdings);
        clear_dead_slots(holdings);
        while (i < HOST_SLOTS && !claim(holdings, i))
                i++;
        unlock(holdings);
        return i < HOST_SLOTS ? 0 : -EUSERS;
}

static int open_files(struct holdings *holdings, const char *directory)
{
        holdings->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (holdings->directory < 0)
                return -errno;
        holdings->file = openat(holdings->directory, "host", O_RDWR | O_CLOEXEC);
        holdings->lock = openat(holdings->directory, "lock", O_RDWR | O_CLOEXEC);
        return holdings->file < 0 || holdings->lock < 0 ? -errno : 0;
}

static int map_host(struct holdings *holdings)
{
        struct stat status;
        void *map;

        if (fstat(holdings->file, &status) < 0 || status.st_size != (off_t)sizeof(struct host))
                return -EPROTO;
        map = mmap(NULL, sizeof(struct host), PROT_READ | PROT_WRITE, MAP_SHARED, holdings->file,
                   0);
        if (map == MAP_FAILED)
                return -errno;
        holdings->host = map;
        if (holdings->host->magic != HOST_MAGIC || holdings->host->version != HOST_VERSION)
                return -EPROTO;
        /* Where it lies in the directory it is found there: a container has that elsewhere. */
        holdings->memory =
                openat(holdings->directory, "memory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (holdings->memory < 0)
                holdings->memory = open(holdings->host->memory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return holdings->memory < 0 ? -errno : 0;
}

static void close_all(struct holdings *holdings)
{
        if (holdings->host)
                (void)munmap(holdings->host, sizeof(struct host));
        holdings_abandon(holdings);
        *holdings = (struct holdings){ .directory = -1, .file = -1, .lock = -1, .memory = -1 };
}

int holdings_open(struct holdings *holdings, const char *directory)
{
        int r;

        *holdings = (struct holdings){ .directory = -1, .file = -1, .lock = -1, .memory = -1 };
        r = open_files(holdings, directory);
        if (r == 0)
                r = map_host(holdings);
        if (r == 0)
                r = claim_slot(holdings);
        if (r < 0)
                close_all(holdings);
        return r;
}

void holdings_abandon(struct holdings *holdings)
{
        holdings->directory = fd_close(holdings->directory);
        holdings->file = fd_close(holdings->file);
        holdings->lock = fd_close(holdings->lock);
        holdings->memory = fd_close(holdings->memory);
}
