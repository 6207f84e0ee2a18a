/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/holding.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "gate/child.h"
#include "gate/context.h"
#include "gate/current.h"
#include "gate/entry.h"
#include "gate/hash.h"
#include "gate/quota.h"
#include "wire/gate.h"

struct holding {
        struct hash_node node; /* first: a node's address is its holding's */
        enum holding_kind kind;
        uint64_t bytes;
        uint32_t holds;    /* GATE_HOLDS_* */
        uint32_t of_each;  /* likewise: of each allocation from this pool */
        CUcontext context; /* current when it was made, or NULL */
        CUdevice device;   /* likewise; it is charged there */
};

static struct {
        pthread_mutex_t lock;
        struct hash by_key[HOLDING_KINDS];
} holdings = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct holding *holding_new(enum holding_kind kind, uint64_t bytes, uint32_t holds)
{
        struct holding *holding = calloc(1, sizeof(*holding));
        CUdevice device = current_device();

        if (!holding || quota_charge(device, INSTANCE_PAGE_FIXED, bytes) < 0) {
                free(holding);
                return NULL;
        }
        holding->kind = kind;
        holding->device = device;
        holding->bytes = bytes;
        holding->holds = holds;
        return holding;
}

static void insert(struct holding *holding, uint64_t key)
{
        pthread_mutex_lock(&holdings.lock);
        hash_add(&holdings.by_key[holding->kind], &holding->node, key);
        pthread_mutex_unlock(&holdings.lock);
}

/* So many more. */
static void count(const struct holding *holding, int n)
{
        quota_count_holds(holding->holds, n);
        quota_count_allocations(n);
}

static void drop(struct holding *holding)
{
        quota_refund(holding->device, INSTANCE_PAGE_FIXED, holding->bytes);
        free(holding);
}

CUresult holding_keep(struct holding *holding, CUresult result, uint64_t key)
{
        quota_settle(holding->device, holding->bytes);
        if (result != CUDA_SUCCESS) {
                drop(holding);
                return result;
        }
        DRIVER(cuCtxGetCurrent)(&holding->context);
        holding->context = context_owner(holding->context);
        count(holding, 1); /* first: once it can be found, another thread may free it */
        insert(holding, key);
        return CUDA_SUCCESS;
}

static void unlink_locked(struct holding *holding)
{
        hash_remove(&holdings.by_key[holding->kind], &holding->node);
}

struct holding *holding_take(enum holding_kind kind, uint64_t key)
{
        struct holding *holding;

        pthread_mutex_lock(&holdings.lock);
        holding = (struct holding *)hash_find(&holdings.by_key[kind], key);
        if (holding)
                unlink_locked(holding);
        pthread_mutex_unlock(&holdings.lock);
        return holding;
}

CUresult holding_settle(struct holding *holding, CUresult result)
{
        if (!holding)
                return result;
        if (result != CUDA_SUCCESS) {
                insert(holding, holding->node.key);
                return result;
        }
        count(holding, -1);
        drop(holding);
        return CUDA_SUCCESS;
}

static struct holding *find_around(CUdeviceptr address)
{
        const struct hash *pointers = &holdings.by_key[HOLDING_POINTER];

        for (size_t i = 0; i < HASH_CHAINS; i++)
                for (struct hash_node *node = pointers->chain[i]; node; node = node->next)
                        if (address - node->key < ((struct holding *)node)->bytes)
                                return (struct holding *)node;
        return NULL;
}

/* Of what we know nothing: for good. */
static void mark_locked(struct holding *holding, uint32_t holds)
{
        quota_count_holds(holding ? holds & ~holding->holds : holds, 1);
        if (holding)
                holding->holds |= holds;
}

void holding_mark(CUdeviceptr address, uint32_t holds)
{
        pthread_mutex_lock(&holdings.lock);
        mark_locked(find_around(address), holds);
        pthread_mutex_unlock(&holdings.lock);
}

static void mark_key(enum holding_kind kind, uint64_t key, uint32_t holds, uint32_t of_each)
{
        CLEANUP(freep) struct holding *spare = calloc(1, sizeof(*spare));
        struct holding *holding;

        pthread_mutex_lock(&holdings.lock);
        holding = (struct holding *)hash_find(&holdings.by_key[kind], key);
        if (!holding && spare) {
                holding = TAKE(spare);
                holding->kind = kind;
                hash_add(&holdings.by_key[kind], &holding->node, key);
                quota_count_allocations(1);
        }
        mark_locked(holding, holds);
        if (holding)
                holding->of_each |= of_each;
        pthread_mutex_unlock(&holdings.lock);
}

void holding_mark_key(enum holding_kind kind, uint64_t key, uint32_t holds)
{
        mark_key(kind, key, holds, 0);
}

void holding_note_pool(uint64_t key, uint32_t holds, uint32_t of_each)
{
        mark_key(HOLDING_POOL, key, holds, of_each);
}

uint32_t holding_get_of_each(uint64_t key)
{
        const struct holding *holding;
        uint32_t of_each;

        pthread_mutex_lock(&holdings.lock);
        holding = (struct holding *)hash_find(&holdings.by_key[HOLDING_POOL], key);
        of_each = holding ? holding->of_each : 0;
        pthread_mutex_unlock(&holdings.lock);
        return of_each;
}

static struct holding *find_in_context(CUcontext context)
{
        for (int kind = 0; kind < HOLDING_KINDS; kind++)
                for (size_t i = 0; i < HASH_CHAINS; i++) {
                        struct hash_node *node = holdings.by_key[kind].chain[i];

                        for (; node; node = node->next)
                                if (((struct holding *)node)->context == context)
                                        return (struct holding *)node;
                }
        return NULL;
}

void holding_drop_context(CUcontext context)
{
        struct holding *holding;

        do {
                pthread_mutex_lock(&holdings.lock);
                holding = find_in_context(context);
                if (holding)
                        unlink_locked(holding);
                pthread_mutex_unlock(&holdings.lock);
                if (holding)
                        (void)holding_settle(holding, CUDA_SUCCESS);
        } while (holding);
}

void holding_forget(void)
{
        pthread_mutex_init(&holdings.lock, NULL);
        memset(holdings.by_key, 0, sizeof(holdings.by_key));
}
