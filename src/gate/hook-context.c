/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts come and go, and become each other's peers.
 *
 * When a context ends, the driver frees what was allocated in it; so does the gate.
 */

#include "base/size.h"
#include "gate/capture.h"
#include "gate/context.h"
#include "gate/entry.h"
#include "gate/holding.h"
#include "gate/idle-lock.h"
#include "gate/idle.h"
#include "gate/memory.h"
#include "gate/peer.h"
#include "gate/pool-import.h"
#include "gate/pool.h"
#include "gate/quota.h"
#include "gate/visible.h"
#include "gate/whole.h"

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

/* The bytes are a guess: a refusal for another reason than room ends with the driver's answer (quota_is_in_vain()). */
#define CONTEXT_TRIES 16

static struct quota_want want_one(CUdevice device)
{
        return (struct quota_want){ .device = device,
                                    .bytes = bytes_of_one(device),
                                    .is_charged = true,
                                    .n_tries = CONTEXT_TRIES };
}

/* Where room is promised to others, a new context waits for it; false: in vain. */
static bool may_create(CUdevice device)
{
        return quota_take_beside(device, bytes_of_one(device)) == 0;
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
        quota_settle(want->device, want->bytes);
        if (result == CUDA_SUCCESS)
                whole_learn();
        if (result != CUDA_SUCCESS || context_add(context))
                return result;
        DRIVER(cuCtxDestroy_v2)(context);
        return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult our_cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
        struct quota_want want = want_one(device);
        CUresult result;

        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
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
        struct quota_want want = want_one(device);
        CUresult result;

        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        if (!may_create(device))
                return CUDA_ERROR_OUT_OF_MEMORY;
        do
                result = DRIVER(cuCtxCreate_v3)(context, affinity, n_affinity, flags, device);
        while (may_try_again(result, &want));
        return created(result, &want, result == CUDA_SUCCESS ? *context : NULL);
}

CUresult our_cuCtxCreate_v4(CUcontext *context, void *params, unsigned int flags, CUdevice device)
{
        struct quota_want want = want_one(device);
        CUresult result;

        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        if (!may_create(device))
                return CUDA_ERROR_OUT_OF_MEMORY;
        do
                result = DRIVER(cuCtxCreate_v4)(context, params, flags, device);
        while (may_try_again(result, &want));
        return created(result, &want, result == CUDA_SUCCESS ? *context : NULL);
}

/* Contexts that are not waited for, and those for graphics. */

static CUresult created_at_once(CUresult result, const CUcontext *context)
{
        if (result == CUDA_SUCCESS)
                whole_learn();
        if (result != CUDA_SUCCESS || context_add(*context))
                return result;
        DRIVER(cuCtxDestroy_v2)(*context);
        return CUDA_ERROR_OUT_OF_MEMORY;
}

/* R580 answers "out of memory" to the first name, whatever room there is: none is waited for. */
CUresult our_cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
        CUresult result;

        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        if (!may_create(device))
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = DRIVER(cuCtxCreate)(context, flags, device);
        quota_settle(device, bytes_of_one(device));
        return created_at_once(result, context);
}

CUresult our_cuGLCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        return created_at_once(DRIVER(cuGLCtxCreate)(context, flags, device), context);
}

CUresult our_cuGLCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        return created_at_once(DRIVER(cuGLCtxCreate_v2)(context, flags, device), context);
}

CUresult our_cuVDPAUCtxCreate(CUcontext *context, unsigned int flags, CUdevice device,
                              uint32_t vdpau, void *get_address)
{
        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        return created_at_once(DRIVER(cuVDPAUCtxCreate)(context, flags, device, vdpau, get_address),
                               context);
}

CUresult our_cuVDPAUCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device,
                                 uint32_t vdpau, void *get_address)
{
        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        return created_at_once(
                DRIVER(cuVDPAUCtxCreate_v2)(context, flags, device, vdpau, get_address), context);
}

/* Their end. */

/*
 * The driver frees what was allocated in a context when that ends; so do we. Memory of pools is no
 * context's, and goes with the last.
 */
static void drop(CUcontext context)
{
        memory_drop_context(context);
        holding_drop_context(context);
        if (!context_is_any()) {
                pool_drop_all();
                pool_import_drop_all();
        }
}

/* After idle_pause(), so that nothing asks the driver about the context meanwhile. */
static CUresult destroyed(CUresult result, CUcontext context)
{
        idle_unpause();
        if (result == CUDA_SUCCESS) {
                context_remove(context);
                capture_drop_context(context);
                idle_drop_context(context);
                pool_import_drop_context(context);
                pool_drop_context(context);
        }
        idle_release();
        if (result == CUDA_SUCCESS)
                drop(context);
        return result;
}

CUresult our_cuCtxDestroy(CUcontext context)
{
        idle_pause();
        return destroyed(DRIVER(cuCtxDestroy)(context), context);
}

CUresult our_cuCtxDestroy_v2(CUcontext context)
{
        idle_pause();
        return destroyed(DRIVER(cuCtxDestroy_v2)(context), context);
}

CUresult our_cuCtxAttach(CUcontext *context, unsigned int flags)
{
        CUresult result = DRIVER(cuCtxAttach)(context, flags);

        if (result == CUDA_SUCCESS)
                (void)context_use(*context, 1);
        return result;
}

/* Whether a context is still there cannot be asked of the driver: the last use is counted. */
CUresult our_cuCtxDetach(CUcontext context)
{
        CUresult result;

        idle_pause();
        result = DRIVER(cuCtxDetach)(context);
        if (result == CUDA_SUCCESS && context_use(context, -1) == 0)
                return destroyed(result, context);
        idle_unpause();
        idle_release();
        return result;
}

static bool is_device(CUdevice device)
{
        return device >= 0 && device < PEER_DEVICES_MAX;
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
        struct quota_want want = want_one(device);
        bool is_new = !has_primary(device);
        CUresult result;

        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        if (is_new && !may_create(device))
                return CUDA_ERROR_OUT_OF_MEMORY;
        do
                result = DRIVER(cuDevicePrimaryCtxRetain)(context, device);
        while (is_new && may_try_again(result, &want));
        quota_end_wait(&want);
        if (is_new)
                quota_settle(device, bytes_of_one(device));
        if (result == CUDA_SUCCESS) /* another thread may have made it meanwhile */
                whole_learn();
        if (result == CUDA_SUCCESS && is_device(device))
                (void)context_exchange_primary(device, *context);
        return result;
}

/* Its context, where that was the last hold on it; NULL otherwise. */
static CUcontext take_released(CUdevice device)
{
        unsigned int flags;
        int is_active = 1;

        DRIVER(cuDevicePrimaryCtxGetState)(device, &flags, &is_active);
        if (is_active)
                return NULL;
        return context_exchange_primary(device, NULL);
}

/* What it has made is its primary context's; but its streams have no later one's handle, nor have captures an end. */
static void drop_green(const struct context_green *green)
{
        if (!green->context)
                return;
        capture_drop_context(green->context);
        if (green->primary) {
                pool_import_outlive_context(green->context, green->primary);
                pool_outlive_context(green->context, green->primary);
        } else {
                pool_import_drop_context(green->context);
                pool_drop_context(green->context);
        }
}

static void drop_greens(CUcontext primary)
{
        struct context_green green;

        while (context_take_green_of(primary, &green))
                drop_green(&green);
}

/* With the lock that idle_unpause() has taken. */
static CUresult release_locked(CUresult result, CUdevice device)
{
        CUcontext context = NULL;

        if (result == CUDA_SUCCESS && is_device(device))
                context = take_released(device);
        if (context) {
                drop_greens(context);
                capture_drop_context(context);
                idle_drop_context(context);
                pool_import_drop_context(context);
                pool_drop_context(context);
        }
        idle_release();
        if (context)
                drop(context);
        return result;
}

static CUresult released(CUresult result, CUdevice device)
{
        idle_unpause();
        return release_locked(result, device);
}

CUresult our_cuDevicePrimaryCtxRelease(CUdevice device)
{
        idle_pause();
        return released(DRIVER(cuDevicePrimaryCtxRelease)(device), device);
}

CUresult our_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
        idle_pause();
        return released(DRIVER(cuDevicePrimaryCtxRelease_v2)(device), device);
}

CUresult our_cuDevicePrimaryCtxReset(CUdevice device)
{
        idle_pause();
        return released(DRIVER(cuDevicePrimaryCtxReset)(device), device);
}

CUresult our_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
        idle_pause();
        return released(DRIVER(cuDevicePrimaryCtxReset_v2)(device), device);
}

/* Green contexts. */

/* It is active, as a green context retains it. NULL: this driver does not do so. */
static CUcontext primary_of(CUdevice device)
{
        CUcontext primary = NULL;

        if (!has_primary(device) ||
            DRIVER(cuDevicePrimaryCtxRetain)(&primary, device) != CUDA_SUCCESS)
                return NULL;
        (void)DRIVER(cuDevicePrimaryCtxRelease_v2)(device);
        (void)context_exchange_primary(device, primary);
        return primary;
}

/* One that we cannot know must not come into being. */
static CUresult green_created(CUgreenCtx handle, CUdevice device)
{
        struct context_green green = { .handle = handle, .device = device };

        if (is_device(device))
                green.primary = primary_of(device);
        (void)DRIVER(cuCtxFromGreenCtx)(&green.context, handle);
        whole_learn(); /* its channels are its own */
        if (context_add_green(&green))
                return CUDA_SUCCESS;
        DRIVER(cuGreenCtxDestroy)(handle);
        return CUDA_ERROR_OUT_OF_MEMORY;
}

/* It retains the primary context, and makes it where there is none. */
CUresult our_cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc resources, CUdevice device,
                              unsigned int flags)
{
        struct quota_want want = want_one(device);
        bool is_new = !has_primary(device);
        CUresult result;

        want.is_charged = is_new;
        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        if (is_new && !may_create(device))
                return CUDA_ERROR_OUT_OF_MEMORY;
        do
                result = DRIVER(cuGreenCtxCreate)(green, resources, device, flags);
        while (may_try_again(result, &want));
        quota_end_wait(&want);
        if (is_new)
                quota_settle(device, bytes_of_one(device));
        return result == CUDA_SUCCESS ? green_created(*green, device) : result;
}

/* With it the primary context may go. */
CUresult our_cuGreenCtxDestroy(CUgreenCtx handle)
{
        struct context_green green = { .device = -1 };
        bool is_known;
        CUresult result;

        is_known = context_take_green(handle, &green);
        idle_pause();
        result = DRIVER(cuGreenCtxDestroy)(handle);
        idle_unpause();
        if (is_known && result == CUDA_SUCCESS)
                drop_green(&green);
        else if (is_known)
                (void)context_add_green(&green);
        return release_locked(result, green.device);
}

/* Peers. */

/* The device of @context, which is not the current one. */
static bool device_of(CUcontext context, CUdevice *ret_device)
{
        CUresult result = DRIVER(cuCtxPushCurrent_v2)(context);

        if (result != CUDA_SUCCESS)
                return false;
        result = DRIVER(cuCtxGetDevice)(ret_device);
        DRIVER(cuCtxPopCurrent_v2)(&context);
        return result == CUDA_SUCCESS && is_device(*ret_device);
}

/* The current context may use memory of the peer's device, as the driver has granted. */
CUresult our_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
        CUresult result = DRIVER(cuCtxEnablePeerAccess)(peer, flags);
        CUdevice device, owner;

        if (result != CUDA_SUCCESS || DRIVER(cuCtxGetDevice)(&device) != CUDA_SUCCESS ||
            !is_device(device) || !device_of(peer, &owner))
                return result;
        peer_allow(owner, device);
        return memory_grant(owner);
}

/* Mappings that are there keep the right, which no longer harms; new ones do not get it. */
CUresult our_cuCtxDisablePeerAccess(CUcontext peer)
{
        CUresult result = DRIVER(cuCtxDisablePeerAccess)(peer);
        CUdevice device, owner;

        if (result == CUDA_SUCCESS && DRIVER(cuCtxGetDevice)(&device) == CUDA_SUCCESS &&
            is_device(device) && device_of(peer, &owner))
                peer_deny(owner, device);
        return result;
}
