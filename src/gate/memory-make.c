/* SPDX-License-Identifier: Apache-2.0 */
/* New mappings: where they are placed, and what is tried before memory has run out. */
#include <pthread.h>

#include "base/fault.h"
#include "gate/capture.h"
#include "gate/context.h"
#include "gate/entry.h"
#include "gate/memory-internal.h"
#include "gate/memory.h"
#include "gate/physical.h"
#include "gate/quota.h"
#include "gate/reservation.h"

static _Atomic(const struct memory_reserve *) idle_memory; /* of pools */

static CUresult place_outside(struct mapping *mapping)
{
        CUresult result;
        int r;

        result = reservation_make(&mapping->address, mapping->size);
        if (result != CUDA_SUCCESS)
                return result;
        mapping->is_outside = true;
        pthread_mutex_lock(&memory_lock);
        r = mapping_table_insert(mapping);
        pthread_mutex_unlock(&memory_lock);
        if (r == 0)
                return CUDA_SUCCESS;
        reservation_free(mapping->address, mapping->size);
        return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult place(struct mapping *mapping)
{
        int r;

        mapping_arena_open();
        pthread_mutex_lock(&memory_lock);
        r = mapping_table_place(mapping);
        pthread_mutex_unlock(&memory_lock);
        return r == 0 ? CUDA_SUCCESS : place_outside(mapping);
}

/* A mapping with address and memory, in the table, where it is not yet an allocation. */
static CUresult make(struct mapping **ret_mapping, CUcontext context, CUdevice device,
                     uint64_t size, struct physical *physical)
{
        struct mapping *mapping = mapping_new(context, device, size);
        const char *call;
        CUresult result;

        if (!mapping)
                return CUDA_ERROR_OUT_OF_MEMORY;
        mapping->physical = physical;
        result = place(mapping);
        if (result != CUDA_SUCCESS) {
                quota_settle(device, size);
                mapping_free(mapping);
                return result;
        }
        (void)fault_point("gate-asking");
        result = mapping_create(mapping, &call);
        quota_settle(device, size);
        if (result == CUDA_SUCCESS) {
                *ret_mapping = mapping;
        } else if (mapping->is_stuck) {
                memory_give_up(mapping);
        } else {
                memory_displace(mapping);
                mapping_free(mapping);
        }
        return result;
}

static bool reclaim(bool is_patient)
{
        const struct memory_reserve *reserve = atomic_load(&idle_memory);

        return reserve && reserve->reclaim(is_patient);
}

void memory_set_reserve(const struct memory_reserve *reserve)
{
        atomic_store(&idle_memory, reserve);
}

/* What lies idle in empty blocks and in pools is used before memory runs out. */
static CUresult make_of_idle(struct mapping **ret_mapping, CUcontext context, CUdevice device,
                             uint64_t size, struct physical *physical)
{
        CUresult result = make(ret_mapping, context, device, size, physical);
        bool any = false;

        if (result == CUDA_ERROR_OUT_OF_MEMORY) {
                any = memory_discard_spares(context);
                any |= reclaim(false);
        }
        return any ? make(ret_mapping, context, device, size, physical) : result;
}

/* Would all that pools do not use be enough? What the device has we do not know. */
static bool may_be_enough(CUdevice device, uint64_t size)
{
        const struct memory_reserve *reserve = atomic_load(&idle_memory);
        uint64_t idle = reserve ? reserve->count() : 0;
        struct quota_view quota;

        quota_get(device, &quota);
        return idle > 0 && (!quota.is_limited || size <= quota.left || size - quota.left <= idle);
}

/* While a stream is captured, what lies idle stays: to unmap it would ruin the capture. */
bool memory_make_room(CUdevice device, uint64_t bytes, unsigned int *n_tries)
{
        CUcontext context = NULL;
        bool has_spares;

        if (capture_is_active() || !may_be_enough(device, bytes))
                return false;
        if (*n_tries == 0) {
                *n_tries = 1;
                (void)DRIVER(cuCtxGetCurrent)(&context);
                has_spares = memory_discard_spares(context_owner(context));
                if (reclaim(false) || has_spares)
                        return true;
        }
        return (*n_tries)++ == 1 && reclaim(true);
}

/* So is what streams are about to free; all that before others leave for it. */
CUresult memory_make_patiently(struct mapping **ret_mapping, CUcontext context, CUdevice device,
                               uint64_t size, struct physical *physical)
{
        struct quota_want want = { .device = device, .bytes = size, .is_limited = true };
        CUresult result;

        quota_begin_wait(&want);
        do {
                result = make_of_idle(ret_mapping, context, device, size, physical);
                if (result == CUDA_ERROR_OUT_OF_MEMORY && may_be_enough(device, size) &&
                    reclaim(true))
                        result = make(ret_mapping, context, device, size, physical);
        } while (result == CUDA_ERROR_OUT_OF_MEMORY && quota_wait_for_room(&want));
        quota_end_wait(&want);
        return result;
}

CUresult memory_create_physical(struct physical *physical, CUdevice device, uint64_t size)
{
        return memory_make_patiently(&physical->mapping, NULL, device, size, physical);
}

CUresult memory_create_chunk(struct mapping **ret_mapping, CUdevice device, uint64_t size,
                             bool is_patient)
{
        return is_patient ? memory_make_patiently(ret_mapping, NULL, device, size, NULL)
                          : make_of_idle(ret_mapping, NULL, device, size, NULL);
}
