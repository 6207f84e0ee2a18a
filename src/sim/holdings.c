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
#include <sys/stat.h>

#include "base/cleanup.h"
#include "sim/host.h"

static void lock(struct holdings *holdings)
{
        while (flock(holdings->lock, LOCK_EX) < 0 && errno == EINTR)
                ;
}

static void unlock(struct holdings *holdings)
{
        (void)flock(holdings->lock, LOCK_UN);
}

#define WRITE(holdings, value, member) \
        host_view_write(&(holdings)->view, &(value), sizeof(value), HOST_SLOTS_AT(member))
#define READ(holdings, value, member) \
        host_view_read(&(holdings)->view, &(value), sizeof(value), HOST_SLOTS_AT(member))

static void clear_slot(struct holdings *holdings, uint32_t number, int32_t last_pid)
{
        const struct host_slot slot = { .last_pid = last_pid };
        const uint64_t none[HOST_DEVICES_MAX] = { 0 };

        for (uint32_t device = 0; device < holdings->view.host->n_devices; device++)
                WRITE(holdings, none[device], used[device][number]);
        WRITE(holdings, none, contexts[number]);
        WRITE(holdings, slot, slot[number]);
}

static void clear_busy(struct holdings *holdings, uint32_t number)
{
        const uint64_t none[HOST_DEVICES_MAX][HOST_BUSY_KINDS] = { { 0 } };

        WRITE(holdings, none, busy[number]);
}

/* Our own slot counts as alive. */
static void clear_dead_slots(struct holdings *holdings)
{
        CLEANUP(freep) struct host_slots_copy *copy = host_view_copy(&holdings->view, -1);

        for (uint32_t i = 0; copy && i < copy->n; i++)
                if (copy->slot[i].pid && (int)i != holdings->number &&
                    !host_view_is_alive(&holdings->view, i))
                        clear_slot(holdings, i, copy->slot[i].pid);
}

/* True when nobody holds the file @name any more; then it is gone. */
static bool remove_unheld(struct holdings *holdings, const char *name)
{
        CLEANUP(fd_closep)
        int fd = openat(holdings->memory, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

        if (fd < 0)
                return true;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return false;
        (void)unlinkat(holdings->memory, name, 0);
        return true;
}

struct shared {
        uint32_t device;
        uint64_t size;
};

/* DEVICE-SIZE-INODE, as any user may have written it */
static bool read_name(const struct host *host, const char *name, struct shared *ret_shared)
{
        if (sscanf(name, "%u-%lu-", &ret_shared->device, &ret_shared->size) != 2 ||
            ret_shared->device >= host->n_devices)
                return false;
        if (ret_shared->size > host->device[ret_shared->device].memory)
                ret_shared->size = host->device[ret_shared->device].memory;
        return true;
}

static void add_files(struct holdings *holdings, DIR *folder, uint64_t *sum)
{
        struct dirent *entry;
        struct shared shared;

        while ((entry = readdir(folder)))
                if (read_name(holdings->view.host, entry->d_name, &shared) &&
                    !remove_unheld(holdings, entry->d_name))
                        sum[shared.device] += shared.size;
}

static void count_shared(struct holdings *holdings)
{
        uint64_t sum[HOST_DEVICES_MAX] = { 0 };
        int fd = openat(holdings->memory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *folder = fd < 0 ? NULL : fdopendir(fd);

        if (!folder) {
                (void)fd_close(fd);
                return;
        }
        add_files(holdings, folder, sum);
        (void)closedir(folder);
        WRITE(holdings, sum, shared);
}

/* Our slot as it should be: whoever can write the file can also have truncated it. */
static void mend_own_slot(struct holdings *holdings, const struct host_slots_copy *copy)
{
        struct holdings_own *own = &holdings->own;
        uint32_t number = (uint32_t)holdings->number, n = number + 1;
        const struct host_slot slot = { .pid = own->pid,
                                        .service_thread = own->service_thread,
                                        .state = own->state,
                                        .pid_namespace = own->pid_namespace };

        if (number < copy->n && copy->slot[number].pid == own->pid)
                return;
        WRITE(holdings, slot, slot[number]);
        WRITE(holdings, own->contexts, contexts[number]);
        for (uint32_t device = 0; device < holdings->view.host->n_devices; device++)
                WRITE(holdings, own->used[device], used[device][number]);
        if (n > copy->n)
                WRITE(holdings, n, n);
}

/* NULL: no memory. */
static struct host_slots_copy *copy_slots(struct holdings *holdings, int device)
{
        struct host_slots_copy *copy = host_view_copy(&holdings->view, device);

        if (!copy)
                return NULL;
        mend_own_slot(holdings, copy);
        copy->used[holdings->number] = 0; /* a part of the sums by our own count */
        return copy;
}

static uint64_t sum_free(struct holdings *holdings, const struct host_slots_copy *copy, int device)
{
        uint64_t memory = holdings->view.host->device[device].memory, used;

        READ(holdings, used, shared[device]);
        if (used > memory)
                used = memory;
        used += holdings->own.used[device];
        for (uint32_t i = 0; i < copy->n; i++)
                used += copy->used[i];
        return used < memory ? memory - used : 0;
}

static void reap(struct holdings *holdings)
{
        clear_dead_slots(holdings);
        count_shared(holdings);
}

static bool has_room(struct holdings *holdings, int device, uint64_t size)
{
        CLEANUP(freep) struct host_slots_copy *copy = copy_slots(holdings, device);

        return copy && sum_free(holdings, copy, device) >= size;
}

static void write_used(struct holdings *holdings, int device)
{
        WRITE(holdings, holdings->own.used[device], used[device][holdings->number]);
}

int holdings_charge(struct holdings *holdings, int device, uint64_t size)
{
        int r = 0;

        lock(holdings);
        if (!has_room(holdings, device, size)) {
                reap(holdings);
                r = has_room(holdings, device, size) ? 0 : -ENOMEM;
        }
        if (r == 0) {
                holdings->own.used[device] += size;
                write_used(holdings, device);
        }
        unlock(holdings);
        return r;
}

void holdings_refund(struct holdings *holdings, int device, uint64_t size)
{
        holdings->own.used[device] -= size;
        write_used(holdings, device);
}

void holdings_note_context(struct holdings *holdings, int device, int64_t size)
{
        uint64_t *bytes = &holdings->own.contexts[device];

        *bytes += (uint64_t)size;
        WRITE(holdings, *bytes, contexts[holdings->number][device]);
}

uint64_t holdings_get_free(struct holdings *holdings, int device)
{
        struct host_slots_copy *copy;
        uint64_t left;

        lock(holdings);
        reap(holdings);
        copy = copy_slots(holdings, device);
        left = copy ? sum_free(holdings, copy, device) : 0;
        unlock(holdings);
        free(copy);
        return left;
}

static void add_shared(struct holdings *holdings, int device, uint64_t size)
{
        uint64_t sum;

        READ(holdings, sum, shared[device]);
        sum += size;
        WRITE(holdings, sum, shared[device]);
}

/* In this order, so that a kill in between leaves too much counted, which the next reap repairs. */
int holdings_share(struct holdings *holdings, int fd, int device, uint64_t size)
{
        char from[32], name[64];
        struct stat status;
        int r = 0;

        if (fstat(fd, &status) < 0)
                return -errno;
        (void)snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
        (void)snprintf(name, sizeof(name), "%d-%lu-%lu", device, size, (uint64_t)status.st_ino);
        lock(holdings);
        add_shared(holdings, device, size);
        if (linkat(AT_FDCWD, from, holdings->memory, name, AT_SYMLINK_FOLLOW) < 0) {
                r = -errno;
                add_shared(holdings, device, -size);
        } else {
                holdings_refund(holdings, device, size);
        }
        unlock(holdings);
        return r;
}

/* Threads do that at the same time: what the last one writes is the whole sum. */
void holdings_note_busy(struct holdings *holdings, int device, enum host_busy kind, uint64_t ns)
{
        _Atomic uint64_t *busy = &holdings->own.busy[device][kind];
        uint64_t value;

        *busy += ns;
        do {
                value = *busy;
                WRITE(holdings, value, busy[holdings->number][device][kind]);
        } while (value != *busy);
}

void holdings_set_state(struct holdings *holdings, uint32_t state)
{
        holdings->own.state = state;
        WRITE(holdings, state, slot[holdings->number].state);
}

void holdings_set_service_thread(struct holdings *holdings, int32_t thread)
{
        holdings->own.service_thread = thread;
        WRITE(holdings, thread, slot[holdings->number].service_thread);
}

bool holdings_is_off(const struct holdings *holdings)
{
        uint32_t is_off = 0;

        if (holdings->number >= HOST_SLOTS_KEPT)
                READ(holdings, is_off, slot[holdings->number].is_off);
        return is_off;
}

static struct flock get_waits(int device, uint32_t first, uint32_t n)
{
        return (struct flock){ .l_type = F_WRLCK,
                               .l_whence = SEEK_SET,
                               .l_start = (off_t)(HOST_WAITS_AT + (uint64_t)device * HOST_SLOTS +
                                                  first),
                               .l_len = n };
}

void holdings_tell_waiting(const struct holdings *holdings, int device, bool is_waiting)
{
        struct flock record = get_waits(device, (uint32_t)holdings->number, 1);

        if (!is_waiting)
                record.l_type = F_UNLCK;
        (void)fcntl(holdings->view.slots, F_SETLK, &record);
}

/* Our own locks are never in our way. */
bool holdings_are_awaited(const struct holdings *holdings, int device)
{
        uint32_t is_off = 0, number;

        for (uint32_t first = 0; first < HOST_SLOTS; first = number + 1) {
                struct flock record = get_waits(device, first, HOST_SLOTS - first);

                if (fcntl(holdings->view.slots, F_GETLK, &record) < 0 || record.l_type == F_UNLCK)
                        return false;
                number = (uint32_t)record.l_start % HOST_SLOTS;
                if (number < first) /* one lock of many bytes, as any user can take */
                        number = first;
                READ(holdings, is_off, slot[number].is_off);
                if (!is_off)
                        return true;
        }
        return false;
}

int holdings_find(struct holdings *holdings, int pid, struct host_slot *ret_slot)
{
        int number = pid == getpid() ? holdings->number : host_view_find(&holdings->view, pid);

        if (number < 0)
                return -ESRCH;
        READ(holdings, *ret_slot, slot[number]);
        return number;
}

static bool claim(struct holdings *holdings, const struct host_slots_copy *copy, uint32_t number)
{
        const struct host_slot slot = { .pid = getpid(),
                                        .pid_namespace = holdings->view.pid_namespace };
        struct flock record = {
                .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = number, .l_len = 1
        };
        uint32_t n = number + 1;

        if ((number < copy->n && copy->slot[number].pid) ||
            fcntl(holdings->view.slots, F_SETLK, &record) < 0)
                return false;
        clear_slot(holdings, number, 0);
        clear_busy(holdings, number);
        WRITE(holdings, slot, slot[number]);
        if (n > copy->n)
                WRITE(holdings, n, n);
        holdings->number = (int)number;
        holdings->own.pid = slot.pid;
        holdings->own.pid_namespace = slot.pid_namespace;
        return true;
}

static int claim_slot(struct holdings *holdings)
{
        uint32_t i = getenv(SIM_HOST_OWN_VARIABLE) ? 0 : HOST_SLOTS_KEPT;
        struct host_slots_copy *copy;

        lock(holdings);
        clear_dead_slots(holdings);
        copy = host_view_copy(&holdings->view, -1);
        while (copy && i < HOST_SLOTS && !claim(holdings, copy, i))
                i++;
        unlock(holdings);
        free(copy);
        return holdings->number >= 0 ? 0 : -EUSERS;
}

static int open_files(struct holdings *holdings, const char *directory)
{
        int r;

        holdings->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (holdings->directory < 0)
                return -errno;
        r = host_view_open(&holdings->view, holdings->directory);
        if (r < 0)
                return r;
        holdings->lock = openat(holdings->directory, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        /* Where it lies in the directory it is found there: a container has that elsewhere. */
        holdings->memory =
                openat(holdings->directory, "memory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (holdings->memory < 0)
                holdings->memory =
                        open(holdings->view.host->memory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return holdings->lock < 0 || holdings->memory < 0 ? -errno : 0;
}

#define HOLDINGS_NONE       \
        ((struct holdings){ \
                .view = HOST_VIEW_NONE, .number = -1, .directory = -1, .lock = -1, .memory = -1 })

int holdings_open(struct holdings *holdings, const char *directory)
{
        int r;

        *holdings = HOLDINGS_NONE;
        r = open_files(holdings, directory);
        if (r == 0)
                r = claim_slot(holdings);
        if (r < 0) {
                holdings_abandon(holdings);
                *holdings = HOLDINGS_NONE;
        }
        return r;
}

/* The devices stay as they were: the program may still ask for their names. */
void holdings_abandon(struct holdings *holdings)
{
        holdings->directory = fd_close(holdings->directory);
        holdings->view.slots = fd_close(holdings->view.slots);
        holdings->lock = fd_close(holdings->lock);
        holdings->memory = fd_close(holdings->memory);
}
