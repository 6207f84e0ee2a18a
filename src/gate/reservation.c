/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/reservation.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gate/child.h"
#include "gate/entry.h"

struct reservation {
        CUdeviceptr address;
        uint64_t size;
};

static struct {
        pthread_mutex_t lock;
        struct reservation *sorted; /* by address */
        size_t n, room;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The first that ends behind @address; table.n: none does. */
static size_t position(CUdeviceptr address)
{
        size_t low = 0, high = table.n;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (table.sorted[middle].address + table.sorted[middle].size <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* Before the driver is asked, so that what it has reserved can be entered. */
static int make_room(void)
{
        size_t room = table.room ? 2 * table.room : 64;
        struct reservation *sorted;

        if (table.n < table.room)
                return 0;
        sorted = realloc(table.sorted, room * sizeof(*sorted));
        if (!sorted)
                return -ENOMEM;
        table.sorted = sorted;
        table.room = room;
        return 0;
}

static void insert(struct reservation reservation)
{
        size_t at = position(reservation.address);

        memmove(&table.sorted[at + 1], &table.sorted[at],
                (table.n - at) * sizeof(struct reservation));
        table.sorted[at] = reservation;
        table.n++;
}

static void remove_at(size_t at)
{
        table.n--;
        memmove(&table.sorted[at], &table.sorted[at + 1],
                (table.n - at) * sizeof(struct reservation));
}

CUresult reservation_make(CUdeviceptr *ret_address, uint64_t size)
{
        struct reservation made = { .size = size };
        CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

        pthread_mutex_lock(&table.lock);
        if (make_room() == 0)
                result = DRIVER(cuMemAddressReserve)(&made.address, size, 0, 0, 0);
        if (result == CUDA_SUCCESS)
                insert(made);
        pthread_mutex_unlock(&table.lock);
        if (result == CUDA_SUCCESS)
                *ret_address = made.address;
        return result;
}

/* What the driver does not free stays reserved. */
void reservation_free(CUdeviceptr address, uint64_t size)
{
        size_t at;

        pthread_mutex_lock(&table.lock);
        at = position(address);
        if (DRIVER(cuMemAddressFree)(address, size) == CUDA_SUCCESS && at < table.n &&
            table.sorted[at].address == address)
                remove_at(at);
        pthread_mutex_unlock(&table.lock);
}

void reservation_hold(void)
{
        pthread_mutex_lock(&table.lock);
}

void reservation_let_go(void)
{
        pthread_mutex_unlock(&table.lock);
}

bool reservation_overlaps(CUdeviceptr address, uint64_t size)
{
        size_t at = position(address);

        return at < table.n && table.sorted[at].address < address + size;
}

void reservation_forget(void)
{
        pthread_mutex_init(&table.lock, NULL);
        table.n = 0;
}
