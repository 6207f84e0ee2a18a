/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/context.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "gate/capture.h"
#include "gate/child.h"
#include "gate/entry.h"
#include "gate/leave.h"
#include "gate/peer.h"

static struct {
        pthread_mutex_t lock;
        struct created {
                CUcontext context;
                unsigned int n_uses; /* its creation and cuCtxAttach() */
        } * created;                 /* by the application */
        size_t n, room;
        CUcontext primary[PEER_DEVICES_MAX]; /* as last retained */
        struct green {
                struct green *next;
                struct context_green is;
        } * _Atomic greens; /* changed with the lock; whether there are any is asked without */
} contexts = { .lock = PTHREAD_MUTEX_INITIALIZER };

CUresult context_current(CUcontext *ret_context, CUdevice *ret_device)
{
        CUcontext context = NULL;
        CUresult result = DRIVER(cuCtxGetDevice)(ret_device);

        if (result == CUDA_SUCCESS)
                result = DRIVER(cuCtxGetCurrent)(&context);
        if (result == CUDA_SUCCESS)
                *ret_context = context_owner(context);
        return result;
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

static void let_begin(struct leave *leave)
{
        (void)leave;
        capture_let_begin();
}

CUresult context_finish(CUcontext context)
{
        struct leave leave;
        CUresult result;

        if (!capture_keep_away())
                return run_in(context, free_something);
        leave_begin(&leave, let_begin);
        result = run_in(context, synchronize);
        leave_end(&leave);
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

bool context_add(CUcontext context)
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

void context_remove(CUcontext context)
{
        struct created *created;

        pthread_mutex_lock(&contexts.lock);
        created = list_find_locked(context);
        if (created)
                *created = contexts.created[--contexts.n];
        pthread_mutex_unlock(&contexts.lock);
}

unsigned int context_use(CUcontext context, int change)
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

CUcontext context_exchange_primary(CUdevice device, CUcontext context)
{
        CUcontext before;

        pthread_mutex_lock(&contexts.lock);
        before = contexts.primary[device];
        contexts.primary[device] = context;
        pthread_mutex_unlock(&contexts.lock);
        return before;
}

bool context_add_green(const struct context_green *is)
{
        struct green *green = malloc(sizeof(*green));

        if (!green)
                return false;
        pthread_mutex_lock(&contexts.lock);
        *green = (struct green){ contexts.greens, *is };
        contexts.greens = green;
        pthread_mutex_unlock(&contexts.lock);
        return true;
}

static bool green_take(bool (*is_it)(const struct context_green *, const void *), const void *what,
                       struct context_green *ret_green)
{
        CLEANUP(freep) struct green *green = NULL;
        struct green *before = NULL;

        pthread_mutex_lock(&contexts.lock);
        green = contexts.greens;
        while (green && !is_it(&green->is, what)) {
                before = green;
                green = green->next;
        }
        if (green && before)
                before->next = green->next;
        else if (green)
                contexts.greens = green->next;
        pthread_mutex_unlock(&contexts.lock);
        if (green)
                *ret_green = green->is;
        return green != NULL;
}

static bool green_has_handle(const struct context_green *green, const void *handle)
{
        return green->handle == handle;
}

static bool green_has_primary(const struct context_green *green, const void *primary)
{
        return green->primary == primary;
}

bool context_take_green(CUgreenCtx handle, struct context_green *ret_green)
{
        return green_take(green_has_handle, handle, ret_green);
}

bool context_take_green_of(CUcontext primary, struct context_green *ret_green)
{
        return green_take(green_has_primary, primary, ret_green);
}

CUcontext context_owner(CUcontext context)
{
        const struct green *green;

        if (!context || !atomic_load(&contexts.greens))
                return context;
        pthread_mutex_lock(&contexts.lock);
        for (green = contexts.greens; green && green->is.context != context; green = green->next)
                ;
        if (green && green->is.primary)
                context = green->is.primary;
        pthread_mutex_unlock(&contexts.lock);
        return context;
}

bool context_is_any(void)
{
        bool is_any;

        pthread_mutex_lock(&contexts.lock);
        is_any = contexts.n > 0 || contexts.greens;
        for (size_t i = 0; i < PEER_DEVICES_MAX && !is_any; i++)
                is_any = contexts.primary[i] != NULL;
        pthread_mutex_unlock(&contexts.lock);
        return is_any;
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
        contexts.greens = NULL;
        memset(contexts.primary, 0, sizeof(contexts.primary));
}
