/* SPDX-License-Identifier: Apache-2.0 */
/* What goes into the ledger at once; when that cannot be written for days, it must not grow without end. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/ledger.h"

#define ROOM_MIN 32

void ledger_batch_deinit(struct ledger_batch *batch)
{
        minutes_deinit(&batch->minutes);
        free(batch->vgpus);
        free(batch->processes);
        free(batch->clearings);
        *batch = (struct ledger_batch){ 0 };
}

void ledger_batch_clear(struct ledger_batch *batch)
{
        minutes_clear(&batch->minutes);
        batch->n_vgpus = 0;
        batch->n_processes = 0;
        batch->n_clearings = 0;
}

int ledger_batch_add_vgpu(struct ledger_batch *batch, const struct ledger_vgpu *vgpu)
{
        size_t room = batch->room_vgpus ? 2 * batch->room_vgpus : ROOM_MIN;
        struct ledger_vgpu *vgpus;

        if (batch->n_vgpus == batch->room_vgpus) {
                vgpus = reallocarray(batch->vgpus, room, sizeof(*vgpus));
                if (!vgpus)
                        return -ENOMEM;
                batch->vgpus = vgpus;
                batch->room_vgpus = room;
        }
        batch->vgpus[batch->n_vgpus++] = *vgpu;
        return 0;
}

int ledger_batch_add_clearing(struct ledger_batch *batch, const struct ledger_clearing *clearing)
{
        struct ledger_clearing *clearings =
                reallocarray(batch->clearings, batch->n_clearings + 1, sizeof(*clearings));

        if (!clearings)
                return -ENOMEM;
        batch->clearings = clearings;
        batch->clearings[batch->n_clearings++] = *clearing;
        return 0;
}

static int compare_rows(const struct ledger_process *a, const struct ledger_process *b)
{
        if (a->serial != b->serial)
                return a->serial < b->serial ? -1 : 1;
        return a->of_device < b->of_device ? -1 : a->of_device > b->of_device;
}

/* By row, and of one row in the order in which they came. */
static int compare(const void *left, const void *right, void *userdata)
{
        const struct ledger_process *processes = userdata;
        uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
        int r = compare_rows(&processes[a], &processes[b]);

        return r ? r : a < b ? -1 : a > b;
}

/* A process that runs comes once a second: only the latest of each is kept. */
static void forget_replaced(struct ledger_batch *batch)
{
        struct ledger_process *processes = batch->processes;
        uint32_t *order = calloc(batch->n_processes + 1, sizeof(*order));
        size_t n = batch->n_processes, kept = 0;

        if (!order)
                return;
        for (uint32_t i = 0; i < n; i++)
                order[i] = i;
        qsort_r(order, n, sizeof(*order), compare, processes);
        for (size_t i = 1; i < n; i++)
                if (compare_rows(&processes[order[i - 1]], &processes[order[i]]) == 0)
                        processes[order[i - 1]].serial = 0;
        for (size_t i = 0; i < n; i++)
                if (processes[i].serial)
                        processes[kept++] = processes[i];
        batch->n_processes = kept;
        free(order);
}

static int make_room(struct ledger_batch *batch)
{
        size_t room = batch->room_processes ? 2 * batch->room_processes : ROOM_MIN;
        struct ledger_process *processes;

        if (batch->n_processes < batch->room_processes)
                return 0;
        forget_replaced(batch);
        if (batch->n_processes < batch->room_processes / 2)
                return 0;
        processes = reallocarray(batch->processes, room, sizeof(*processes));
        if (!processes)
                return batch->n_processes < batch->room_processes ? 0 : -ENOMEM;
        batch->processes = processes;
        batch->room_processes = room;
        return 0;
}

int ledger_batch_add_process(struct ledger_batch *batch, const struct ledger_process *process)
{
        int r = make_room(batch);

        if (r == 0)
                batch->processes[batch->n_processes++] = *process;
        return r;
}

/* Moving: of each list the first that fit, in their order. */

/* The first @n are gone. A list that never had a row has no memory. */
static void close_up(void *rows, size_t size, size_t n, size_t *n_rows)
{
        *n_rows -= n;
        if (n > 0)
                memmove(rows, (char *)rows + n * size, *n_rows * size);
}

static int move_processes(struct ledger_batch *to, struct ledger_batch *from)
{
        size_t n = 0;
        int r = 0;

        while (n < from->n_processes && r == 0) {
                r = ledger_batch_add_process(to, &from->processes[n]);
                n += r == 0;
        }
        close_up(from->processes, sizeof(*from->processes), n, &from->n_processes);
        return r;
}

static int move_clearings(struct ledger_batch *to, struct ledger_batch *from)
{
        size_t n = 0;
        int r = 0;

        while (n < from->n_clearings && r == 0) {
                r = ledger_batch_add_clearing(to, &from->clearings[n]);
                n += r == 0;
        }
        close_up(from->clearings, sizeof(*from->clearings), n, &from->n_clearings);
        return r;
}

static int move_vgpus(struct ledger_batch *to, struct ledger_batch *from)
{
        size_t n = 0;
        int r = 0;

        while (n < from->n_vgpus && r == 0) {
                r = ledger_batch_add_vgpu(to, &from->vgpus[n]);
                n += r == 0;
        }
        close_up(from->vgpus, sizeof(*from->vgpus), n, &from->n_vgpus);
        return r;
}

int ledger_batch_move(struct ledger_batch *to, struct ledger_batch *from)
{
        int r = minutes_move(&to->minutes, &from->minutes);

        if (r == 0)
                r = move_processes(to, from);
        if (r == 0)
                r = move_clearings(to, from);
        if (r == 0)
                r = move_vgpus(to, from);
        if (r == 0)
                to->wall = from->wall;
        return r;
}
