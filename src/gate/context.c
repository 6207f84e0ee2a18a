/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/context.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "gate/capture.h"
#include "gate/entry.h"
#include "gate/holding.h"
#include "gate/idle.h"
#include "gate/memory.h"
#include "gate/peer.h"
#include "gate/quota.h"

static struct {
        pthread_mutex_t lock;
        struct created {
                CUcontext context;
                unsigned int n_uses; /* its creation and cuCtxAttach() */
        } * created;                 /* by the application */
        size_t n, room;
        CUcontext primary[PEER_DEVICES_MAX]; /* as last retained */
} contexts = { .lock = PTHREAD_MUTEX_INITIALIZER };

CUresult context_current(CUcontext *ret_context, CUdevice *ret_device)
{
        CUresult result = DRIVER(cuCtxGetDevice)(ret_device);

        return result == CUDA_SUCCESS ? DRIVER(cuCtxGetCurrent)(ret_context) : result;
}

/* Runs @action with @context current. */
static CUresult run_in(CUcontext context, CUresult (*action)(void))
{
        CUcontext current = NULL;
        CUresult result;

        DRIVER(cuCtxGetCurrent)(&current);
        if (current == context)
                return action();

        result = DRIVER(cuCtxPushCurrent_v2)(context);
        if (result != CUDA_SUCCESS)
                return result;
        result = action();
        DRIVER(cuCtxPopCurrent_v2)(&current);
        return result;
}

static CUresult synchronize(void)
{
        return DRIVER(cuCtxSynchronize)();
}

/* Pinned memory is freed by the same rules, when no kernel uses it any more. */
static CUresult free_something_of_the_host(void)
{
        void *pointer;
        CUresult result = DRIVER(cuMemAllocHost_v2)(&pointer, 1);

        return result == CUDA_SUCCESS ? DRIVER(cuMemFreeHost)(pointer) : result;
}

/*
 * While a stream of the context is captured, cuCtxSynchronize() ruins the capture in every capture
 * mode, but cuMemFree() only in the modes in which the application must expect it. So we let the
 * driver free something: it waits or refuses as it would have done with the allocation itself.
 */
static CUresult free_something(void)
{
        CUdeviceptr pointer;
        CUresult result = DRIVER(cuMemAlloc_v2)(&pointer, 1);

        if (result == CUDA_ERROR_OUT_OF_MEMORY)
                return free_something_of_the_host();
        return result == CUDA_SUCCESS ? DRIVER(cuMemFree_v2)(pointer) : result;
}

CUresult context_finish(CUcontext context)
{
        CUresult result;

        if (!capture_keep_away())
                return run_in(context, free_something);
        result = run_in(context, synchronize);
        capture_let_begin();
        if (result ==
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) /* kept away for too long, it has begun */
                result = run_in(context, free_something);
        return result;
}

static CUresult finish_primary(CUdevice device)
{
        unsigned int flags;
        CUcontext context;
        CUresult result;
        int is_active = 0;

        result = DRIVER(cuDevicePrimaryCtxGetState)(device, &flags, &is_active);
        if (result != CUDA_SUCCESS || !is_active)
                return result;
        result = DRIVER(cuDevicePrimaryCtxRetain)(&context, device); /* active: nothing is made */
        if (result != CUDA_SUCCESS)
                return result;
        result = run_in(context, synchronize);
        DRIVER(cuDevicePrimaryCtxRelease_v2)(device);
        return result;
}

static CUresult finish_all_primary(bool (*is_stopped)(void))
{
        CUresult result;
        int n = 0;

        result = DRIVER(cuDeviceGetCount)(&n);
        if (result == CUDA_ERROR_NOT_INITIALIZED || result == CUDA_ERROR_NO_DEVICE)
                return CUDA_SUCCESS; /* then nothing can run */
        for (int i = 0; i < n && result == CUDA_SUCCESS && !is_stopped(); i++) {
                CUdevice device;

                result = DRIVER(cuDeviceGet)(&device, i);
                if (result == CUDA_SUCCESS)
                        result = finish_primary(device);
        }
        return result;
}

static bool get(size_t at, CUcontext *ret_context)
{
        bool found;

        pthread_mutex_lock(&contexts.lock);
        found = at < contexts.n;
        if (found)
                *ret_context = contexts.created[at].context;
        pthread_mutex_unlock(&contexts.lock);
        return found;
}

CUresult context_finish_all(bool (*is_stopped)(void), const char **ret_call)
{
        CUresult result = finish_all_primary(is_stopped);
        CUcontext context;

        for (size_t i = 0; result == CUDA_SUCCESS && !is_stopped() && get(i, &context); i++)
                result = run_in(context, synchronize);
        if (result != CUDA_SUCCESS)
                *ret_call = "cuCtxSynchronize";
        return result;
}

static bool list_add(CUcontext context)
{
        bool added = true;

        pthread_mutex_lock(&contexts.lock);
        if (contexts.n == contexts.room) {
                size_t room = contexts.room ? 2 * contexts.room : 8;
                struct created *grown = realloc(contexts.created, room * sizeof(*grown));

                added = grown != NULL;
                if (added) {
                        contexts.created = grown;
                        contexts.room = room;
                }
        }
        if (added)
                contexts.created[contexts.n++] = (struct created){ context, 1 };
        pthread_mutex_unlock(&contexts.lock);
        return added;
}

static struct created *list_find_locked(CUcontext context)
{
        for (size_t i = 0; i < contexts.n; i++)
                if (contexts.created[i].context == context)
                        return &contexts.created[i];
        return NULL;
}

static void list_remove(CUcontext context)
{
        struct created *created;

        pthread_mutex_lock(&contexts.lock);
        created = list_find_locked(context);
        if (created)
                *created = contexts.created[--contexts.n];
        pthread_mutex_unlock(&contexts.lock);
}

/* Returns how many uses are left; 1 for a context that we do not know. */
static unsigned int list_use(CUcontext context, int change)
{
        struct created *created;
        unsigned int n_uses = 1;

        pthread_mutex_lock(&contexts.lock);
        created = list_find_locked(context);
        if (created)
                n_uses = created->n_uses += (unsigned int)change;
        pthread_mutex_unlock(&contexts.lock);
        return n_uses;
}

/* What a context takes: more than most do, of devices that have as much. */
#define CONTEXT_BYTES      (768 * MIB)
#define CONTEXT_BYTES_PART 16

static uint64_t bytes_of_one(CUdevice device)
{
        size_t total = 0;

        (void)DRIVER(cuDeviceTotalMem_v2)(&total, device);
        return total / CONTEXT_BYTES_PART < CONTEXT_BYTES ? total / CONTEXT_BYTES_PART
                                                          : CONTEXT_BYTES;
}

/* Where room is promised to others, a new context waits for it; false: in vain. */
static bool may_create(CUdevice device)
{
        return quota_take_beside(bytes_of_one(device)) == 0;
}

/* On an overcommitted device others may leave for a context. */
static bool may_try_again(CUresult result, struct quota_want *want)
{
        return result == CUDA_ERROR_OUT_OF_MEMORY && quota_wait_for_room(want);
}

/* A context that we could not wait for must not come into being. */
static CUresult created(CUresult result, struct quota_want *want, CUcontext context)
{
        quota_end_wait(want);
        quota_settle(want->bytes);
        if (result != CUDA_SUCCESS || list_add(context))
                return result;
        DRIVER(cuCtxDestroy_v2)(context);
        return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult our_cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
        struct quota_want want = { .bytes = bytes_of_one(device) };
        CUresult result;

        if (!may_create(device))
                return CUDA_ERROR_OUT_OF_MEMORY;
        do
                result = DRIVER(cuCtxCreate)(context, flags, device);
        while (may_try_again(result, &want));
        return created(result, &want, result == CUDA_SUCCESS ? *context : NULL);
}

CUresult our_cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
        struct quota_want want = { .bytes = bytes_of_one(device) };
        CUresult result;

        if (!may_create(device))
                return CUDA_ERROR_OUT_OF_MEMORY;
        do
                result = DRIVER(cuCtxCreate_v2)(context, flags, device);
        while (may_try_again(result, &want));
        return created(result, &want, result == CUDA_SUCCESS ? *context : NULL);
}

CUresult our_cuCtxCreate_v3(CUcontext *context, void *affinity, int n_affinity, unsigned int flags,
                            CUdevice device)
{
        struct quota_want want = { .bytes = bytes_of_one(device) };
        CUresult result;

        if (!may_create(device))
                return CUDA_ERROR_OUT_OF_MEMORY;
        do
                result = DRIVER(cuCtxCreate_v3)(context, affinity, n_affinity, flags, device);
        while (may_try_again(result, &want));
        return created(result, &want, result == CUDA_SUCCESS ? *context : NULL);
}

CUresult our_cuCtxCreate_v4(CUcontext *context, void *params, unsigned int flags, CUdevice device)
{
        struct quota_want want = { .bytes = bytes_of_one(device) };
        CUresult result;

        if (!may_create(device))
                return CUDA_ERROR_OUT_OF_MEMORY;
        do
                result = DRIVER(cuCtxCreate_v4)(context, params, flags, device);
        while (may_try_again(result, &want));
        return created(result, &want, result == CUDA_SUCCESS ? *context : NULL);
}

/* The driver frees what was allocated in a context when that ends; so do we. */
static void drop(CUcontext context)
{
        memory_drop_context(context);
        holding_drop_context(context);
}

/* Called with idle_hold(), so that nobody asks the driver about the context meanwhile. */
static CUresult destroyed(CUresult result, CUcontext context)
{
        if (result == CUDA_SUCCESS) {
                list_remove(context);
                capture_drop_context(context);
                idle_drop_context(context);
        }
        idle_release();
        if (result == CUDA_SUCCESS)
                drop(context);
        return result;
}

CUresult our_cuCtxDestroy(CUcontext context)
{
        idle_hold();
        return destroyed(DRIVER(cuCtxDestroy)(context), context);
}

CUresult our_cuCtxDestroy_v2(CUcontext context)
{
        idle_hold();
        return destroyed(DRIVER(cuCtxDestroy_v2)(context), context);
}

CUresult our_cuCtxAttach(CUcontext *context, unsigned int flags)
{
        CUresult result = DRIVER(cuCtxAttach)(context, flags);

        if (result == CUDA_SUCCESS)
                (void)list_use(*context, 1);
        return result;
}

/* Whether a context is still there cannot be asked of the driver: the last use is counted. */
CUresult our_cuCtxDetach(CUcontext context)
{
        CUresult result;

        idle_hold();
        result = DRIVER(cuCtxDetach)(context);
        if (result == CUDA_SUCCESS && list_use(context, -1) == 0)
                return destroyed(result, context);
        idle_release();
        return result;
}

static bool has_primary(CUdevice device)
{
        unsigned int flags;
        int is_active = 0;

        return DRIVER(cuDevicePrimaryCtxGetState)(device, &flags, &is_active) == CUDA_SUCCESS &&
               is_active;
}

CUresult our_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
        struct quota_want want = { .bytes = bytes_of_one(device) };
        bool is_new = !has_primary(device);
        CUresult result;

        if (is_new && !may_create(device))
                return CUDA_ERROR_OUT_OF_MEMORY;
        do
                result = DRIVER(cuDevicePrimaryCtxRetain)(context, device);
        while (is_new && may_try_again(result, &want));
        quota_end_wait(&want);
        if (is_new)
                quota_settle(bytes_of_one(device));
        if (result == CUDA_SUCCESS && device >= 0 && device < PEER_DEVICES_MAX) {
                pthread_mutex_lock(&contexts.lock);
                contexts.primary[device] = *context;
                pthread_mutex_unlock(&contexts.lock);
        }
        return result;
}

/* Its context, where that was the last hold on it; NULL otherwise. */
static CUcontext take_released(CUdevice device)
{
        CUcontext context = NULL;
        unsigned int flags;
        int is_active = 1;

        DRIVER(cuDevicePrimaryCtxGetState)(device, &flags, &is_active);
        if (is_active)
                return NULL;
        pthread_mutex_lock(&contexts.lock);
        context = contexts.primary[device];
        contexts.primary[device] = NULL;
        pthread_mutex_unlock(&contexts.lock);
        return context;
}

/* With idle_hold(), as above. */
static CUresult released(CUresult result, CUdevice device)
{
        CUcontext context = NULL;

        if (result == CUDA_SUCCESS && device >= 0 && device < PEER_DEVICES_MAX)
                context = take_released(device);
        if (context) {
                capture_drop_context(context);
                idle_drop_context(context);
        }
        idle_release();
        if (context)
                drop(context);
        return result;
}

CUresult our_cuDevicePrimaryCtxRelease(CUdevice device)
{
        idle_hold();
        return released(DRIVER(cuDevicePrimaryCtxRelease)(device), device);
}

CUresult our_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
        idle_hold();
        return released(DRIVER(cuDevicePrimaryCtxRelease_v2)(device), device);
}

CUresult our_cuDevicePrimaryCtxReset(CUdevice device)
{
        idle_hold();
        return released(DRIVER(cuDevicePrimaryCtxReset)(device), device);
}

CUresult our_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
        idle_hold();
        return released(DRIVER(cuDevicePrimaryCtxReset_v2)(device), device);
}

CUresult context_each(CUresult (*each)(CUcontext context))
{
        CUresult result = CUDA_SUCCESS;
        CUcontext context;

        for (size_t i = 0; result == CUDA_SUCCESS && get(i, &context); i++)
                result = each(context);
        for (size_t i = 0; result == CUDA_SUCCESS && i < PEER_DEVICES_MAX; i++) {
                pthread_mutex_lock(&contexts.lock);
                context = contexts.primary[i];
                pthread_mutex_unlock(&contexts.lock);
                if (context)
                        result = each(context);
        }
        return result;
}

void context_forget(void)
{
        pthread_mutex_init(&contexts.lock, NULL);
        contexts.n = 0;
        memset(contexts.primary, 0, sizeof(contexts.primary));
}
