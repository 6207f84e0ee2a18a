/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/patience.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/size.h"
#include "gate/caller.h"
#include "gate/capture.h"
#include "gate/current.h"
#include "gate/memory.h"
#include "gate/range.h"

/*
 * Nobody knows what the driver needs. It takes pieces of 2 MiB and, for large programs, of more. Each time that it
 * was too little the manager makes more room (residency-room.c).
 */
#define ASK_PART  64 /* of the quota */
#define ASK_LEAST (2 * MIB)
#define ASK_MOST  (32 * MIB)

/*
 * The gate does not close during a capture. Two vGPUs whose threads waited in captures would wait for each other for
 * ever; and a capture of another thread may need this one for its end. So such a wait ends: when vGPUs with work have
 * had some turns, which take as long as their swaps.
 */
uint64_t patience_captured_ns = 30000000000;

/* So long a call that was made again in vain is not made again. */
#define IN_VAIN_NS 10000000000u

static _Atomic uint64_t in_vain_ns[ENTRY_COUNT]; /* when; 0: never */

/*
 * Not a call from within a call: the outer one is inside of the driver, where it may hold what the gate's closing
 * needs. It may have no frame of its own (entrance.c); then the outer one's bears another name.
 */
static bool is_outermost(const struct patience *patience)
{
        const struct caller *caller = caller_self;

        return caller_is_registered() && atomic_load(&caller->top) == caller->frame + 1 &&
               atomic_load(&caller->frame[0].entry) == patience->entry;
}

static bool was_in_vain(const struct patience *patience)
{
        uint64_t then = atomic_load(&in_vain_ns[patience->entry]);

        return then && clock_now(CLOCK_MONOTONIC) - then < IN_VAIN_NS;
}

static bool goes_on(struct quota_want *want)
{
        struct patience *patience = (struct patience *)want;
        uint64_t now = clock_now(CLOCK_MONOTONIC);

        _Static_assert(offsetof(struct patience, want) == 0, "the wait has only that");
        if (!capture_is_active())
                patience->captured_ns = 0;
        else if (!patience->captured_ns)
                patience->captured_ns = now;
        return !patience->captured_ns || now - patience->captured_ns < patience_captured_ns;
}

static uint64_t get_bytes(CUdevice device)
{
        struct quota_view quota;

        quota_get(device, &quota);
        if (!quota.is_limited || quota.limit / ASK_PART > ASK_MOST)
                return ASK_MOST;
        return quota.limit / ASK_PART < ASK_LEAST ? ASK_LEAST : quota.limit / ASK_PART;
}

static bool begin(struct patience *patience)
{
        CUdevice device;

        if (!is_outermost(patience) || was_in_vain(patience) ||
            DRIVER(cuCtxGetDevice)(&device) != CUDA_SUCCESS)
                return false;
        patience->want.device = device;
        patience->want.bytes = get_bytes(device);
        patience->want.goes_on = goes_on;
        return true;
}

static bool wait_for_room(struct patience *patience)
{
        struct quota_want *want = &patience->want;

        if (want->wait == QUOTA_WAIT_NONE && !begin(patience))
                return false;
        if (quota_is_in_vain(want))
                atomic_store(&in_vain_ns[patience->entry], clock_now(CLOCK_MONOTONIC));
        return quota_wait_for_room(want);
}

bool patience_again(struct patience *patience, CUresult result)
{
        if (result == CUDA_ERROR_OUT_OF_MEMORY &&
            (memory_make_room(current_device(), 0, &patience->n_idle) || wait_for_room(patience)))
                return true;
        quota_end_wait(&patience->want);
        return false;
}

/*
 * The wrappers. All arguments are passed as words: an integer of fewer bits takes one, too, and what the rest of it is
 * does not matter to who reads it. Arguments on the stack are the called function's, which may write there; so
 * each call gets its own.
 */
#define GATE_PATIENCE(name, parameters, arguments, is_good)                                   \
        static __attribute__((noinline, cold)) CUresult again_##name parameters               \
        {                                                                                     \
                struct patience patience = PATIENCE(name);                                    \
                CUresult result = CUDA_ERROR_OUT_OF_MEMORY;                                   \
                                                                                              \
                while (patience_again(&patience, result))                                     \
                        result = ((CUresult(*) parameters)entry_real[ENTRY_##name])arguments; \
                return result;                                                                \
        }                                                                                     \
                                                                                              \
        CUresult patient_##name parameters                                                    \
        {                                                                                     \
                CUresult result;                                                              \
                                                                                              \
                if (__builtin_expect(!(is_good), 0))                                          \
                        return CUDA_ERROR_INVALID_VALUE;                                      \
                result = ((CUresult(*) parameters)entry_real[ENTRY_##name])arguments;         \
                return __builtin_expect(result == CUDA_ERROR_OUT_OF_MEMORY, 0)                \
                               ? again_##name arguments                                       \
                               : result;                                                      \
        }
#define GATE_RANGED(name, parameters, arguments, is_good)                           \
        CUresult patient_##name parameters                                          \
        {                                                                           \
                if (!(is_good))                                                     \
                        return CUDA_ERROR_INVALID_VALUE;                            \
                return ((CUresult(*) parameters)entry_real[ENTRY_##name])arguments; \
        }
#include "gate-patience.inc"
#undef GATE_RANGED
#undef GATE_PATIENCE
