/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

/*
 * Programs name this memory by addresses: cuPointerGetAttribute() and the copies look them up. Call these
 * with the process' lock held.
 */

#include "sim/block.h"
#include "sim/context.h"
#include "sim/mapping.h"
#include "sim/space.h"

enum region_kind {
        REGION_PLAIN,   /* cuMemAlloc() */
        REGION_POOLED,  /* cuMemAllocAsync() */
        REGION_MANAGED, /* cuMemAllocManaged() */
        REGION_VIRTUAL, /* cuMemMap() */
        REGION_HOST,    /* cuMemHostAlloc() */
        REGION_REGISTERED,
        REGION_GRAPH,  /* allocation nodes */
        REGION_OPENED, /* cuIpcOpenMemHandle() */
};

struct region {
        struct range range; /* the size that was asked for */
        enum region_kind kind;
        CUcontext context; /* NULL: REGION_VIRTUAL, REGION_GRAPH */
        CUdevice device;
        struct mapping *mapping; /* NULL: on the host */
        struct block *block;     /* NULL: the mapping is its own */
        CUmemoryPool pool;
        bool is_being_freed; /* in the order of a stream */
        uint64_t id;         /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
        unsigned int flags;  /* of host memory */
        bool has_sync_memops;
        int shared_fd;         /* for those who import it from a pool, or open it; -1: none */
        CUipcMemHandle opened; /* REGION_OPENED, so many times */
        unsigned int n_opened;
};

/* memory_find() - find the region that contains @address, or return NULL. */
struct region *memory_find(uint64_t address);

/* memory_add() - add a region. Errors: CUDA_ERROR_OUT_OF_MEMORY. */
CUresult memory_add(struct region **ret_region, enum region_kind kind, uint64_t address,
                    uint64_t size);
void memory_remove(struct region *region);

/* memory_is_accessible() - may kernels on ordinal @device use all of this? */
bool memory_is_accessible(uint64_t address, uint64_t size, CUdevice device);

/* memory_is_usable() - may a copy read or write it? Unknown host memory may be copied. */
bool memory_is_usable(uint64_t address, uint64_t size);
/* memory_is_device() - is all of it device memory (or host memory that devices may use)? */
bool memory_is_device(uint64_t address, uint64_t size);
/* memory_is_pageable() - is it on the host, and not registered? */
bool memory_is_pageable(uint64_t address);

/* memory_allocate() - allocate memory; small requests share a block. */
CUresult memory_allocate(struct region **ret_region, enum region_kind kind, CUcontext context,
                         CUmemoryPool pool, uint64_t size);
void memory_release(struct region *region);
/* memory_release_pooled() - release the memory that cuMemFreeAsync() got. */
void memory_release_pooled(uint64_t address);
void memory_release_all(CUcontext context);
void memory_release_pool(CUmemoryPool pool);

/* memory_pool_handle_types() - as what @pool can be exported; pool.c. */
int memory_pool_handle_types(CUmemoryPool pool);

/* memory_has_managed_pool() - is there a pool of managed memory? Such a process is lost by a restore. */
bool memory_has_managed_pool(void);

/*
 * memory_has_bounded_host_pool() - is there memory of a pool on the host that has a maximum size? The checkpoint of
 * such a process never returns.
 */
bool memory_has_bounded_host_pool(void);

/* memory_has_managed() - is there managed memory? The driver's checkpoint refuses it. */
bool memory_has_managed(void);

#endif
