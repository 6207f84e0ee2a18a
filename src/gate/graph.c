/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gate/child.h"
#include "gate/entry.h"
#include "gate/hash.h"
#include "gate/quota.h"

struct graph_memory {
        uint64_t bytes[QUOTA_PARTS_MAX]; /* by device */
        int64_t n_nodes;
        uint32_t n_handles;
        struct graph_handle *first; /* for the graph's */
};

struct graph_handle {
        struct hash_node node; /* first: a node's address is its handle's */
        struct graph_memory *memory;
};

static struct {
        pthread_mutex_t lock;
        struct hash handles;
} graphs = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t key_of(const void *handle)
{
        return (uint64_t)(uintptr_t)handle;
}

static struct graph_handle *find_locked(const void *handle)
{
        return (struct graph_handle *)hash_find(&graphs.handles, key_of(handle));
}

static void add_locked(struct graph_handle *handle, struct graph_memory *memory, uint64_t key)
{
        handle->memory = memory;
        memory->n_handles++;
        hash_add(&graphs.handles, &handle->node, key);
}

/* A part of its own for each device; without a manager, any will do. */
static unsigned int index_of(CUdevice device)
{
        return device >= 0 && device < QUOTA_PARTS_MAX ? (unsigned int)device : 0;
}

static void refund(const struct graph_memory *memory)
{
        for (int device = 0; device < QUOTA_PARTS_MAX; device++)
                if (memory->bytes[device] > 0)
                        quota_refund(device, INSTANCE_PAGE_FIXED, memory->bytes[device]);
}

struct graph_memory *graph_memory_new(uint64_t bytes, CUdevice device)
{
        struct graph_memory *memory = calloc(1, sizeof(*memory));
        struct graph_handle *handle = calloc(1, sizeof(*handle));

        if (!memory || !handle || quota_charge(device, INSTANCE_PAGE_FIXED, bytes) < 0) {
                free(memory);
                free(handle);
                return NULL;
        }
        memory->bytes[index_of(device)] = bytes;
        memory->n_nodes = 1;
        memory->first = handle;
        return memory;
}

CUresult graph_memory_keep(struct graph_memory *memory, CUresult result, CUgraph graph)
{
        struct graph_handle *known;

        if (result != CUDA_SUCCESS) {
                refund(memory);
                free(memory->first);
                free(memory);
                return result;
        }
        quota_count_allocations(1);
        pthread_mutex_lock(&graphs.lock);
        known = find_locked(graph);
        if (known) {
                for (int device = 0; device < QUOTA_PARTS_MAX; device++)
                        known->memory->bytes[device] += memory->bytes[device];
                known->memory->n_nodes++;
                free(memory->first);
                free(memory);
        } else {
                add_locked(memory->first, memory, key_of(graph));
        }
        pthread_mutex_unlock(&graphs.lock);
        return CUDA_SUCCESS;
}

CUresult graph_memory_share(CUresult result, CUgraph graph, const CUgraphExec *exec)
{
        struct graph_handle *of_graph, *handle;

        if (result != CUDA_SUCCESS)
                return result;
        pthread_mutex_lock(&graphs.lock);
        of_graph = find_locked(graph);
        handle = of_graph ? calloc(1, sizeof(*handle)) : NULL; /* without: refunded too early */
        if (handle)
                add_locked(handle, of_graph->memory, key_of(*exec));
        pthread_mutex_unlock(&graphs.lock);
        return CUDA_SUCCESS;
}

struct graph_handle *graph_handle_take(const void *graph)
{
        struct graph_handle *handle;

        pthread_mutex_lock(&graphs.lock);
        handle = find_locked(graph);
        if (handle)
                hash_remove(&graphs.handles, &handle->node);
        pthread_mutex_unlock(&graphs.lock);
        return handle;
}

CUresult graph_handle_settle(struct graph_handle *handle, CUresult result)
{
        struct graph_memory *memory;

        if (!handle)
                return result;
        memory = handle->memory;
        pthread_mutex_lock(&graphs.lock);
        if (result != CUDA_SUCCESS) {
                hash_add(&graphs.handles, &handle->node, handle->node.key);
        } else {
                free(handle);
                if (--memory->n_handles == 0) {
                        refund(memory);
                        quota_count_allocations(-memory->n_nodes);
                        free(memory);
                }
        }
        pthread_mutex_unlock(&graphs.lock);
        return result;
}

/* The legacy stream cannot be captured, and to ask about it ruins the captures of others. */
bool graph_capture_find(CUstream stream, bool is_per_thread, CUgraph *ret_graph)
{
        int status = CU_STREAM_CAPTURE_STATUS_NONE;
        uint64_t id;

        if (stream == CU_STREAM_LEGACY || (!stream && !is_per_thread))
                return false;
        if (!stream)
                stream = CU_STREAM_PER_THREAD;
        *ret_graph = NULL;
        return DRIVER(cuStreamGetCaptureInfo_v2)(stream, &status, &id, ret_graph, NULL, NULL) ==
                       CUDA_SUCCESS &&
               status == CU_STREAM_CAPTURE_STATUS_ACTIVE && *ret_graph;
}

void graph_forget(void)
{
        pthread_mutex_init(&graphs.lock, NULL);
        memset(&graphs.handles, 0, sizeof(graphs.handles));
}
