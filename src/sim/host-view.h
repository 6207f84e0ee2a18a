/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_HOST_VIEW_H
#define SIM_HOST_VIEW_H

/*
 * The view of a simulated host is what its processes and its manager read of it.
 *
 * What the devices are stands in a file that only the host's owner can write, and is mapped. What the processes hold
 * stands in a file that all of them can write, and so can truncate or fill with anything: root's host is for all
 * users. This file is never mapped, so nobody faults on it. What is not there reads as 0. A number out of it is bounded
 * here, before anybody uses it, and the kernel (the record lock) says which process has a slot.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "sim/host-layout.h"

struct host_view {
        const struct host *host;
        int slots;              /* the file */
        uint32_t pid_namespace; /* ours; 0: it is not known */
};

#define HOST_VIEW_NONE ((struct host_view){ .slots = -1 })

/*
 * host_view_open() - open the host in @directory (a descriptor)
 * Errors: -EPROTO (no host, one that others than its owner can write, or of another version), -errno of open(2).
 */
int host_view_open(struct host_view *view, int directory);
int host_view_open_path(struct host_view *view, const char *directory);
void host_view_close(struct host_view *view);

static inline void host_view_closep(struct host_view *view)
{
        host_view_close(view);
}

#define HOST_SLOTS_AT(member) offsetof(struct host_slots, member)

/* host_view_read() - read @size bytes at @offset of the file of slots: 0 where there is nothing */
void host_view_read(const struct host_view *view, void *to, size_t size, size_t offset);
void host_view_write(const struct host_view *view, const void *from, size_t size, size_t offset);

/* A copy of all slots that were ever claimed, with what each has of one device (at most all of it). */
struct host_slots_copy {
        uint32_t n;
        struct host_slot slot[HOST_SLOTS];
        uint64_t used[HOST_SLOTS];
};

/* host_view_copy() - NULL: no memory. @device -1: of none. Free it with free(). */
struct host_slots_copy *host_view_copy(const struct host_view *view, int device);

/* host_view_is_alive() - has slot @number a living process? Not true of our own: no lock is in its owner's way. */
bool host_view_is_alive(const struct host_view *view, uint32_t number);

/* host_view_list() - the processes that have slots and live, @room at most. Returns how many. */
size_t host_view_list(const struct host_view *view, pid_t *ret_pids, size_t room);

/*
 * host_view_find() - find the slot of the process that is @pid here, also if it has another number in a container
 * Returns its number or -ESRCH. A slot of our own is not found.
 */
int host_view_find(const struct host_view *view, pid_t pid);

/* host_view_find_last() - find the slot that @pid had when it died, if it is still free; or -ESRCH. */
int host_view_find_last(const struct host_view *view, pid_t pid);

#endif
