/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/move.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/fault.h"
#include "base/packet.h"
#include "gate/link.h"
#include "gate/mapping.h"
#include "gate/memory.h"

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

struct move move_count(void)
{
        struct move move = nothing_yet;
        struct mapping *mapping;

        for (size_t at = 0; (mapping = memory_movable(&at));)
                add(&move, mapping);
        return move;
}

struct batch {
        struct gate_allocations message;
        int fd[GATE_BATCH_MAX];
};

/*
 * The kernel limits the descriptors of a user that nobody has received yet (to RLIMIT_NOFILE), and
 * does not wait. The manager receives them soon, or gives us up and hangs up.
 */
static int send_patiently(struct batch *batch, int socket)
{
        const struct timespec interval = { .tv_nsec = 1000000 };
        int r;

        for (;;) {
                r = link_send(socket, GATE_ALLOCATIONS, &batch->message, sizeof(batch->message),
                              batch->fd, batch->message.count);
                if (r != -ETOOMANYREFS)
                        return r;
                nanosleep(&interval, NULL);
        }
}

static int batch_send(struct batch *batch, int socket)
{
        uint32_t n = batch->message.count;
        int r;

        if (n == 0)
                return 0;
        r = send_patiently(batch, socket);
        packet_close_fds(batch->fd, n);
        batch->message.count = 0;
        return r;
}

static int batch_add(struct batch *batch, struct move *move, const struct mapping *mapping)
{
        uint32_t n = batch->message.count;
        const char *call = NULL;
        CUresult result;
        int r;

        result = mapping_export(mapping, &batch->fd[n], &call);
        if (result == CUDA_SUCCESS) {
                batch->message.allocation[n] =
                        (struct gate_allocation){ mapping->address, mapping->size };
                batch->message.count++; /* from here on the batch's */
        }
        r = outcome(move, result, call, "gate-export");
        if (r == 0)
                add(move, mapping);
        return r;
}

int move_export(struct move *ret_move, int socket)
{
        struct batch batch = { .message = { .count = 0 } };
        struct move move = nothing_yet;
        struct mapping *mapping;
        int r = 0;

        for (size_t at = 0; r == 0 && (mapping = memory_movable(&at));) {
                r = batch_add(&batch, &move, mapping);
                if (r == 0 && batch.message.count == GATE_BATCH_MAX)
                        r = batch_send(&batch, socket);
        }
        if (r == 0)
                r = batch_send(&batch, socket);
        packet_close_fds(batch.fd, batch.message.count);
        *ret_move = move;
        return r;
}

/* After a failure: what is unmapped but not released goes back where it was. */
static void map_all_again(void)
{
        struct mapping *mapping;
        const char *call;

        for (size_t at = 0; (mapping = memory_movable(&at));)
                if (!mapping->has_memory)
                        (void)mapping_map_again(mapping, &call);
}

/* First all are unmapped, which can be undone, and only then any is released, which cannot. */
int move_release(struct move *ret_move)
{
        struct move move = nothing_yet;
        struct mapping *mapping;
        const char *call = NULL;
        int r = 0;

        for (size_t at = 0; r == 0 && (mapping = memory_movable(&at));) {
                CUresult result = mapping_unmap(mapping, &call);

                r = outcome(&move, result, call, "gate-release");
                add(&move, mapping);
        }
        if (r < 0)
                map_all_again();
        for (size_t at = 0; r == 0 && (mapping = memory_movable(&at));)
                mapping_release(mapping);
        *ret_move = move;
        return r;
}

void move_detach(void)
{
        struct mapping *mapping;
        const char *call;

        for (size_t at = 0; (mapping = memory_movable(&at));)
                if (mapping->has_memory && mapping_unmap(mapping, &call) == CUDA_SUCCESS)
                        mapping_release(mapping);
}

int move_create(struct move *ret_move)
{
        struct move move = nothing_yet;
        struct mapping *mapping;
        const char *call = NULL;
        int r = 0;

        for (size_t at = 0; r == 0 && (mapping = memory_movable(&at));) {
                CUresult result = mapping_create(mapping, &call);

                r = outcome(&move, result, call, "gate-create");
                add(&move, mapping);
        }
        if (r < 0)
                move_detach();
        *ret_move = move;
        return r;
}

static int attach_one(struct move *move, const struct gate_allocation *allocation, int *fd)
{
        struct mapping *mapping = memory_movable_find(allocation->address);
        const char *call = NULL;
        CUresult result;
        int r;

        if (!mapping || mapping->has_memory || mapping->size != allocation->size)
                return -EINVAL;
        result = mapping_attach(mapping, *fd, &call);
        if (result == CUDA_SUCCESS)
                *fd = -1;
        r = outcome(move, result, call, "gate-map");
        if (r == 0)
                add(move, mapping);
        return r;
}

static bool is_complete(void)
{
        struct mapping *mapping;
        size_t at = 0;

        while ((mapping = memory_movable(&at)))
                if (!mapping->has_memory)
                        return false;
        return true;
}

int move_attach(struct move *ret_move, const struct gate_allocations *batch, int *fds)
{
        struct move move = nothing_yet;
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < batch->count; i++)
                r = attach_one(&move, &batch->allocation[i], &fds[i]);
        if (r == 0 && batch->last && !is_complete())
                r = -EINVAL;
        *ret_move = move;
        return r;
}
