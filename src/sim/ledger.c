/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: who holds how much memory of which device of the simulated host.
 *
 * Sums over all slots are cheap; looking which processes and exported files are
 * still alive costs system calls, so a charge does that only when it would fail
 * otherwise: what is counted is never less than what is held.
 */

#include "sim/ledger.h"

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
#include "sim/slot-owner.h"

static void lock(struct ledger *ledger)
{
        while (flock(ledger->lock, LOCK_EX) < 0 && errno == EINTR)
                ;
}

static void unlock(struct ledger *ledger)
{
        (void)flock(ledger->lock, LOCK_UN);
}

/* A record lock of our own process is never in our own way: our slot counts as alive here. */
static bool is_dead(struct ledger *ledger, struct host_slot *slot)
{
        struct flock record = { .l_type = F_WRLCK,
                                .l_whence = SEEK_SET,
                                .l_start = ledger_slot_number(ledger, slot),
                                .l_len = 1 };

        return slot != ledger->slot && fcntl(ledger->file, F_GETLK, &record) == 0 &&
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

static void clear_dead_slots(struct ledger *ledger)
{
        for (uint32_t i = 0; i < ledger->host->n_slots; i++) {
                struct host_slot *slot = &ledger->host->slot[i];

                if (slot->pid && is_dead(ledger, slot))
                        clear(slot);
        }
}

/* True when nobody holds the file @name any more; then it is gone. */
static bool remove_unheld(struct ledger *ledger, const char *name)
{
        CLEANUP(fd_closep) int fd = openat(ledger->memory, name, O_RDWR | O_CLOEXEC);

        if (fd < 0)
                return true;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return false;
        (void)unlinkat(ledger->memory, name, 0);
        return true;
}

/* DEVICE-SIZE-INODE */
static bool read_name(const char *name, unsigned long *ret_device, uint64_t *ret_size)
{
        char *end;
        unsigned long device = strtoul(name, &end, 10);

        if (end == name || *end != '-' || device >= HOST_DEVICES_MAX)
                return false;
        *ret_size = strtoull(end + 1, NULL, 10);
        *ret_device = device;
        return true;
}

static void count_shared(struct ledger *ledger)
{
        int fd = openat(ledger->memory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *folder = fd < 0 ? NULL : fdopendir(fd);
        uint64_t sum[HOST_DEVICES_MAX] = { 0 };
        struct dirent *entry;

        if (!folder) {
                (void)fd_close(fd);
                return;
        }
        while ((entry = readdir(folder))) {
                unsigned long device;
                uint64_t size;

                if (read_name(entry->d_name, &device, &size) &&
                    !remove_unheld(ledger, entry->d_name))
                        sum[device] += size;
        }
        (void)closedir(folder);
        for (uint32_t i = 0; i < ledger->host->n_devices; i++)
                ledger->host->device[i].shared = sum[i];
}

static uint64_t sum_used(struct ledger *ledger, int device)
{
        uint64_t sum = ledger->host->device[device].shared;

        for (uint32_t i = 0; i < ledger->host->n_slots; i++)
                if (ledger->host->slot[i].pid)
                        sum += ledger->host->slot[i].used[device];
        return sum;
}

static uint64_t sum_free(struct ledger *ledger, int device)
{
        uint64_t used = sum_used(ledger, device), memory = ledger->host->device[device].memory;

        return used < memory ? memory - used : 0;
}

static void reap(struct ledger *ledger)
{
        clear_dead_slots(ledger);
        count_shared(ledger);
}

int ledger_charge(struct ledger *ledger, int device, uint64_t size)
{
        int r = 0;

        lock(ledger);
        if (sum_free(ledger, device) < size)
                reap(ledger);
        if (sum_free(ledger, device) < size)
                r = -ENOMEM;
        else
                ledger->slot->used[device] += size;
        unlock(ledger);
        return r;
}

void ledger_refund(struct ledger *ledger, int device, uint64_t size)
{
        ledger->slot->used[device] -= size;
}

void ledger_note_context(struct ledger *ledger, int device, int64_t size)
{
        ledger->slot->contexts[device] += (uint64_t)size;
}

uint64_t ledger_get_free(struct ledger *ledger, int device)
{
        uint64_t left;

        lock(ledger);
        reap(ledger);
        left = sum_free(ledger, device);
        unlock(ledger);
        return left;
}

/* In this order, so that a kill in between leaves too much counted, which the next reap repairs. */
int ledger_share(struct ledger *ledger, int fd, int device, uint64_t size)
{
        char from[32], name[64];
        struct stat status;
        int r = 0;

        if (fstat(fd, &status) < 0)
                return -errno;
        (void)snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
        (void)snprintf(name, sizeof(name), "%d-%lu-%lu", device, size, (uint64_t)status.st_ino);
        lock(ledger);
        ledger->host->device[device].shared += size;
        if (linkat(AT_FDCWD, from, ledger->memory, name, AT_SYMLINK_FOLLOW) < 0) {
                r = -errno;
                ledger->host->device[device].shared -= size;
        } else {
                ledger->slot->used[device] -= size;
        }
        unlock(ledger);
        return r;
}

void ledger_note_busy(struct ledger *ledger, int device, enum host_busy kind, uint64_t ns)
{
        if (ledger->slot)
                ledger->slot->busy[device][kind] += ns;
}

struct host_slot *ledger_find(struct ledger *ledger, int pid)
{
        uint32_t ours = slot_owner_namespace();

        for (uint32_t i = 0; pid > 0 && i < ledger->host->n_slots; i++) {
                struct host_slot *slot = &ledger->host->slot[i];

                if (slot_owner_is(ledger->host, i, pid, ledger->file, ours) &&
                    !is_dead(ledger, slot))
                        return slot;
        }
        return NULL;
}

uint32_t ledger_slot_number(const struct ledger *ledger, const struct host_slot *slot)
{
        return (uint32_t)(slot - ledger->host->slot);
}

static bool claim(struct ledger *ledger, uint32_t number)
{
        struct host_slot *slot = &ledger->host->slot[number];
        struct flock record = {
                .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = number, .l_len = 1
        };

        if (slot->pid || fcntl(ledger->file, F_SETLK, &record) < 0)
                return false;
        clear(slot);
        clear_busy(slot);
        slot->last_pid = 0;
        slot->is_off = 0;
        slot->pid_namespace = slot_owner_namespace();
        slot->pid = getpid();
        ledger->slot = slot;
        if (number >= ledger->host->n_slots)
                ledger->host->n_slots = number + 1;
        return true;
}

static int claim_slot(struct ledger *ledger)
{
        bool is_own = getenv(SIM_HOST_OWN_VARIABLE);
        uint32_t i = is_own ? 0 : HOST_SLOTS_KEPT;

        lock(ledger);
        clear_dead_slots(ledger);
        while (i < HOST_SLOTS && !claim(ledger, i))
                i++;
        unlock(ledger);
        return i < HOST_SLOTS ? 0 : -EUSERS;
}

static int open_files(struct ledger *ledger, const char *directory)
{
        ledger->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (ledger->directory < 0)
                return -errno;
        ledger->file = openat(ledger->directory, "host", O_RDWR | O_CLOEXEC);
        ledger->lock = openat(ledger->directory, "lock", O_RDWR | O_CLOEXEC);
        return ledger->file < 0 || ledger->lock < 0 ? -errno : 0;
}

static int map_host(struct ledger *ledger)
{
        struct stat status;
        void *map;

        if (fstat(ledger->file, &status) < 0 || status.st_size != (off_t)sizeof(struct host))
                return -EPROTO;
        map = mmap(NULL, sizeof(struct host), PROT_READ | PROT_WRITE, MAP_SHARED, ledger->file, 0);
        if (map == MAP_FAILED)
                return -errno;
        ledger->host = map;
        if (ledger->host->magic != HOST_MAGIC || ledger->host->version != HOST_VERSION)
                return -EPROTO;
        ledger->memory = open(ledger->host->memory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return ledger->memory < 0 ? -errno : 0;
}

static void close_all(struct ledger *ledger)
{
        if (ledger->host)
                (void)munmap(ledger->host, sizeof(struct host));
        ledger_abandon(ledger);
        *ledger = (struct ledger){ .directory = -1, .file = -1, .lock = -1, .memory = -1 };
}

int ledger_open(struct ledger *ledger, const char *directory)
{
        int r;

        *ledger = (struct ledger){ .directory = -1, .file = -1, .lock = -1, .memory = -1 };
        r = open_files(ledger, directory);
        if (r == 0)
                r = map_host(ledger);
        if (r == 0)
                r = claim_slot(ledger);
        if (r < 0)
                close_all(ledger);
        return r;
}

void ledger_abandon(struct ledger *ledger)
{
        ledger->directory = fd_close(ledger->directory);
        ledger->file = fd_close(ledger->file);
        ledger->lock = fd_close(ledger->lock);
        ledger->memory = fd_close(ledger->memory);
}
