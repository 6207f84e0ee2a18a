/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/move.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/packet.h"
#include "gate/child.h"
#include "gate/fork-guard.h"
#include "gate/link.h"
#include "gate/mapping.h"
#include "gate/memory.h"
#include "gate/quota.h"

static const struct move nothing_yet = { .call = "" };

/* The outcome of a driver call on one mapping, with a place for tests to make it fail. */
static int outcome(struct move *move, CUresult result, const char *call, const char *point)
{
        if (result == CUDA_SUCCESS && fault_point(point)) {
                result = CUDA_ERROR_UNKNOWN;
                call = point;
        }
        if (result == CUDA_SUCCESS)
                return 0;
        move->call = call;
        move->code = result;
        return -EIO;
}

static void add(struct move *move, const struct mapping *mapping)
{
        move->bytes += mapping->size;
        move->count++;
}

/* The next in @rest, which begins behind it then. */
static struct mapping *next(struct gate_range *rest)
{
        uint64_t from = rest->from;
        struct mapping *mapping = memory_movable(&rest->from);

        if (mapping && mapping->address < from) /* it begins before */
                mapping = memory_movable(&rest->from);
        return mapping && mapping->address < rest->to ? mapping : NULL;
}

struct move move_count(void)
{
        struct move move = nothing_yet;
        struct mapping *mapping;

        for (struct gate_range all = GATE_RANGE_ALL; (mapping = next(&all));)
                add(&move, mapping);
        return move;
}

/* What is under way to the manager; the child of a fork closes it. */
static struct {
        struct gate_allocations message;
        int fd[GATE_BATCH_MAX];
} outgoing;

static void batch_drop(void)
{
        fork_guard_enter();
        packet_close_fds(outgoing.fd, outgoing.message.count);
        outgoing.message.count = 0;
        fork_guard_leave();
}

/*
 * The kernel limits the descriptors of a user that nobody has received yet (to RLIMIT_NOFILE), and
 * does not wait. The manager receives them soon, or gives us up and hangs up.
 */
static int send_patiently(int socket)
{
        const struct timespec interval = { .tv_nsec = 1000000 };
        int r;

        for (;;) {
                r = link_send(socket, GATE_ALLOCATIONS, &outgoing.message, sizeof(outgoing.message),
                              outgoing.fd, outgoing.message.count);
                if (r != -ETOOMANYREFS)
                        return r;
                nanosleep(&interval, NULL);
        }
}

static int batch_send(int socket)
{
        int r;

        if (outgoing.message.count == 0)
                return 0;
        r = send_patiently(socket);
        batch_drop();
        return r;
}

static CUresult batch_export(const struct mapping *mapping, const char **ret_call)
{
        uint32_t n = outgoing.message.count;
        CUresult result;

        fork_guard_enter();
        result = mapping_export(mapping, &outgoing.fd[n], ret_call);
        if (result == CUDA_SUCCESS) {
                outgoing.message.allocation[n] =
                        (struct gate_allocation){ mapping->address, mapping->size };
                outgoing.message.count++; /* from here on it is closed with them */
        }
        fork_guard_leave();
        return result;
}

/* A batch is of one device and one kind. */
static int batch_begin(const struct mapping *mapping, int socket)
{
        uint16_t device = (uint16_t)quota_get_part(mapping->device);
        uint16_t flags = mapping_is_plain(mapping) ? GATE_BATCH_PLAIN : 0;
        int r = 0;

        if (outgoing.message.device != device || outgoing.message.flags != flags ||
            outgoing.message.count == GATE_BATCH_MAX)
                r = batch_send(socket);
        outgoing.message.device = device;
        outgoing.message.flags = flags;
        return r;
}

/* The driver does not say that this was why it failed. */
static bool are_descriptors_taken(int socket)
{
        int fd = fcntl(socket, F_DUPFD_CLOEXEC, 0);

        if (fd < 0)
                return errno == EMFILE;
        close(fd);
        return false;
}

/* A program with a low limit on open files may have no descriptors for a whole batch: then it goes in parts. */
static int batch_export_surely(const struct mapping *mapping, int socket, CUresult *ret_result,
                               const char **ret_call)
{
        int r;

        *ret_result = batch_export(mapping, ret_call);
        if (*ret_result == CUDA_SUCCESS || outgoing.message.count == 0 ||
            !are_descriptors_taken(socket))
                return 0;
        r = batch_send(socket);
        if (r == 0)
                *ret_result = batch_export(mapping, ret_call);
        return r;
}

static int batch_add(struct move *move, struct mapping *mapping, int socket)
{
        const char *call = NULL;
        CUresult result;
        int r;

        r = batch_begin(mapping, socket);
        if (r < 0)
                return r;
        result = mapping_make_own(mapping, &call);
        if (result == CUDA_SUCCESS)
                r = batch_export_surely(mapping, socket, &result, &call);
        if (r < 0)
                return r;
        r = outcome(move, result, call, "gate-export");
        if (r == 0)
                add(move, mapping);
        return r;
}

/* Those of @range: all, or only what is new. */
static int export(struct move *move, struct gate_range range, bool only_touched, int socket)
{
        struct mapping *mapping;
        int r = 0;

        while (r == 0 && (mapping = next(&range))) {
                if (only_touched && !mapping->is_touched)
                        continue;
                r = batch_add(move, mapping, socket);
        }
        if (r == 0)
                r = batch_send(socket);
        batch_drop();
        return r;
}

int move_export(struct move *ret_move, int socket)
{
        *ret_move = nothing_yet;
        return export(ret_move, GATE_RANGE_ALL, false, socket);
}

/* After a failure: what is unmapped but not released goes back where it was. */
static void map_again(struct gate_range range)
{
        struct mapping *mapping;
        const char *call;

        while ((mapping = next(&range)))
                if (mapping->is_touched)
                        (void)mapping_map_again(mapping, &call);
}

static void release_unmapped(struct gate_range range)
{
        struct mapping *mapping;

        while ((mapping = next(&range)))
                if (mapping->is_touched)
                        mapping_release(mapping);
}

/* First all are unmapped, which can be undone, and only then any is released, which cannot. */
int move_release(struct move *ret_move, struct gate_range range)
{
        struct gate_range rest = range;
        struct move move = nothing_yet;
        struct mapping *mapping;
        const char *call = NULL;
        int r = 0;

        while (r == 0 && (mapping = next(&rest))) {
                CUresult result;

                if (!mapping->has_memory)
                        continue;
                result = mapping_unmap(mapping, &call);

                mapping->is_touched = result == CUDA_SUCCESS;
                r = outcome(&move, result, call, "gate-release");
                add(&move, mapping);
        }
        if (r < 0)
                map_again(range);
        else
                release_unmapped(range);
        move_keep();
        *ret_move = move;
        return r;
}

void move_detach(void)
{
        struct gate_range all = GATE_RANGE_ALL;
        struct mapping *mapping;
        const char *call;

        while ((mapping = next(&all)))
                if (mapping->is_touched && mapping_unmap(mapping, &call) == CUDA_SUCCESS)
                        mapping_release(mapping);
        move_keep();
}

void move_keep(void)
{
        struct gate_range all = GATE_RANGE_ALL;
        struct mapping *mapping;

        while ((mapping = next(&all)))
                mapping->is_touched = false;
}

static int create(struct move *move, struct gate_range range)
{
        struct mapping *mapping;
        const char *call = NULL;
        int r = 0;

        while (r == 0 && (mapping = next(&range))) {
                CUresult result;

                if (mapping->has_memory)
                        continue;
                result = mapping_create(mapping, &call);
                mapping->is_touched = result == CUDA_SUCCESS;
                r = outcome(move, result, call, "gate-create");
        }
        return r;
}

int move_create(struct move *ret_move, struct gate_range range, int socket)
{
        int r;

        *ret_move = nothing_yet;
        r = create(ret_move, range);
        if (r == 0)
                r = export(ret_move, range, true, socket);
        if (r < 0)
                move_detach();
        else
                move_keep();
        return r;
}

static int attach_one(struct move *move, const struct gate_allocation *allocation, bool is_given,
                      int *fd)
{
        struct mapping *mapping = memory_movable_find(allocation->address);
        const char *call = NULL;
        CUresult result;
        int r;

        if (!mapping || mapping->has_memory || mapping->size != allocation->size ||
            (is_given && !mapping_is_plain(mapping)))
                return -EINVAL;
        result = mapping_attach(mapping, fd, is_given, &call);
        mapping->is_touched = result == CUDA_SUCCESS;
        r = outcome(move, result, call, "gate-map");
        if (r == 0)
                add(move, mapping);
        return r;
}

bool move_is_complete(void)
{
        struct gate_range all = GATE_RANGE_ALL;
        struct mapping *mapping;

        while ((mapping = next(&all)))
                if (!mapping->has_memory)
                        return false;
        return true;
}

int move_attach(struct move *ret_move, const struct gate_allocations *batch, int *fds)
{
        bool is_given = batch->flags & GATE_BATCH_GIVEN;
        struct move move = nothing_yet;
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < batch->count; i++)
                r = attach_one(&move, &batch->allocation[i], is_given, &fds[i]);
        if (r == 0 && batch->flags == GATE_BATCH_LAST && !move_is_complete())
                r = -EINVAL;
        *ret_move = move;
        return r;
}

void move_forget(void)
{
        packet_close_fds(outgoing.fd, outgoing.message.count);
        outgoing.message.count = 0;
}
