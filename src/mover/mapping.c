/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/mapping.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "mover/driver.h"

/* Room for the handles, and the size of all; the sum of sizes that wrap is no memory's. */
static int prepare(struct mapping *mapping, const uint64_t *sizes, size_t n)
{
        uint64_t size = 0;

        for (size_t i = 0; i < n; i++)
                if (sizes[i] == 0 || __builtin_add_overflow(size, sizes[i], &size))
                        return -EINVAL;

        mapping->handles = calloc(n > 0 ? n : 1, sizeof(*mapping->handles));
        if (!mapping->handles)
                return -ENOMEM;
        mapping->size = size;
        return 0;
}

int mapping_import(struct mapping *mapping, const uint64_t *sizes, int *fds, size_t n,
                   struct mover_done *done)
{
        int r;

        r = prepare(mapping, sizes, n);
        for (size_t i = 0; i < n && r == 0; i++) {
                r = DRIVER_CALL(done, cuMemImportFromShareableHandle, &mapping->handles[i],
                                (void *)(intptr_t)fds[i], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
                if (r == 0) {
                        mapping->n_handles++;
                        fds[i] = fd_close(fds[i]);
                }
        }
        return r;
}

int mapping_create(struct mapping *mapping, const struct room_taking *taking, CUdevice device,
                   uint64_t size, struct mover_done *done)
{
        const CUmemAllocationProp properties = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device },
        };
        int r;

        assert(taking->room);
        r = prepare(mapping, &size, 1);
        if (r == 0)
                r = DRIVER_CALL(done, cuMemCreate, &mapping->handles[0], size, &properties, 0);
        if (r == 0)
                mapping->n_handles++;
        return r;
}

static int grant(struct mapping *mapping, const CUdevice *ids, size_t n_ids,
                 struct mover_done *done)
{
        CUmemAccessDesc access[2];

        for (size_t i = 0; i < n_ids; i++)
                access[i] = (CUmemAccessDesc){
                        .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ids[i] },
                        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
                };
        return DRIVER_CALL(done, cuMemSetAccess, mapping->base, mapping->size, access, n_ids);
}

int mapping_map(struct mapping *mapping, const uint64_t *sizes, const CUdevice *ids, size_t n_ids,
                struct mover_done *done)
{
        CUdeviceptr base;
        int r;

        if (mapping->size == 0)
                return 0;

        r = DRIVER_CALL(done, cuMemAddressReserve, &base, mapping->size, 0, 0, 0);
        if (r < 0)
                return r;
        mapping->base = base;

        for (size_t i = 0; i < mapping->n_handles && r == 0; i++) {
                r = DRIVER_CALL(done, cuMemMap, base + mapping->n_mapped, sizes[i], 0,
                                mapping->handles[i], 0);
                if (r == 0)
                        mapping->n_mapped += sizes[i];
        }
        return r < 0 ? r : grant(mapping, ids, n_ids, done);
}

int mapping_release(struct mapping *mapping, struct mover_done *done)
{
        while (mapping->n_handles > 0) {
                int r = DRIVER_CALL(done, cuMemRelease, mapping->handles[mapping->n_handles - 1]);

                if (r < 0)
                        return r;
                mapping->n_handles--;
        }
        return 0;
}

static uint64_t sum_sizes(const uint64_t *sizes, size_t first, size_t end)
{
        uint64_t sum = 0;

        for (size_t i = first; i < end; i++)
                sum += sizes[i];
        return sum;
}

int mapping_pass(struct mapping *mapping, const uint64_t *sizes, size_t n, struct mover_done *done)
{
        uint64_t bytes = sum_sizes(sizes, mapping->n_passed, n);
        int r = DRIVER_CALL(done, cuMemUnmap, mapping->base + mapping->n_unmapped, bytes);

        if (r == 0)
                mapping->n_unmapped += bytes;
        while (r == 0 && mapping->n_passed < n) {
                r = DRIVER_CALL(done, cuMemRelease, mapping->handles[mapping->n_passed]);
                if (r == 0)
                        mapping->n_passed++;
        }
        return r;
}

void mapping_unmap(struct mapping *mapping)
{
        if (mapping->n_mapped > mapping->n_unmapped)
                driver.cuMemUnmap(mapping->base + mapping->n_unmapped,
                                  mapping->n_mapped - mapping->n_unmapped);
        if (mapping->base)
                driver.cuMemAddressFree(mapping->base, mapping->size);
        mapping->base = 0;
        mapping->n_mapped = mapping->n_unmapped = 0;
}

void mapping_deinit(struct mapping *mapping)
{
        mapping_unmap(mapping);
        for (size_t i = mapping->n_passed; i < mapping->n_handles; i++)
                driver.cuMemRelease(mapping->handles[i]);
        free(mapping->handles);
        *mapping = (struct mapping){ 0 };
}
