/* SPDX-License-Identifier: Apache-2.0 */
/* Each kind of work has a function that does it. */

#include "sim/work-run.h"

#include <string.h>

#include "base/clock.h"
#include "sim/event.h"
#include "sim/memory.h"
#include "sim/stream-object.h"

static void *pointer(uint64_t address)
{
        return (void *)(uintptr_t)address;
}

static CUresult do_nothing(struct work *work, CUstream stream)
{
        (void)work;
        (void)stream;
        return CUDA_SUCCESS;
}

static void note_memory_busy(CUstream stream, uint64_t ns)
{
        holdings_note_busy(&process.holdings, process_device(stream->context->device)->at,
                           HOST_BUSY_MEMORY, ns);
}

static void copy_rows(struct work *work)
{
        for (size_t row = 0; row < work->copy.height; row++)
                memmove(pointer(work->copy.to + row * work->copy.to_pitch),
                        pointer(work->copy.from + row * work->copy.from_pitch), work->copy.width);
}

static CUresult copy(struct work *work, CUstream stream)
{
        uint64_t begin = clock_now(CLOCK_MONOTONIC);

        if (work->copy.height == 1)
                memmove(pointer(work->copy.to), pointer(work->copy.from), work->copy.width);
        else
                copy_rows(work);
        note_memory_busy(stream, clock_now(CLOCK_MONOTONIC) - begin);
        return CUDA_SUCCESS;
}

static void set_row(uint64_t to, uint32_t element, uint32_t value, size_t n)
{
        if (element == 1) {
                memset(pointer(to), (int)value, n);
        } else if (element == 2) {
                for (size_t i = 0; i < n; i++)
                        ((uint16_t *)pointer(to))[i] = (uint16_t)value;
        } else {
                for (size_t i = 0; i < n; i++)
                        ((uint32_t *)pointer(to))[i] = value;
        }
}

static CUresult set(struct work *work, CUstream stream)
{
        uint64_t begin = clock_now(CLOCK_MONOTONIC);

        for (size_t row = 0; row < work->set.height; row++)
                set_row(work->set.to + row * work->set.pitch, work->set.element, work->set.value,
                        work->set.width);
        note_memory_busy(stream, clock_now(CLOCK_MONOTONIC) - begin);
        return CUDA_SUCCESS;
}

/* What tells the two ways of a kernel apart is decided when it begins. */
static bool may_run(struct work *work, CUcontext context, bool *ret_is_unwhole)
{
        CUdevice device = context->device;
        const struct kernel_arguments *arguments = &work->kernel.arguments;
        const struct kernel *kernel = work->kernel.kernel;
        uint64_t n = kernel->count_words ? kernel->count_words(arguments) : 0;
        PROCESS_LOCKED();

        *ret_is_unwhole = context_owner(context)->is_unwhole;
        return n == 0 ||
               (n <= UINT64_MAX / 4 && memory_is_accessible(arguments->value[0], n * 4, device));
}

static void note_slice(const struct work *work, CUstream stream, uint64_t ns)
{
        if (work->kernel.kernel->count_words)
                note_memory_busy(stream, ns);
}

static CUresult run_in_slices(const struct work *work, CUstream stream)
{
        const struct kernel *kernel = work->kernel.kernel;
        const struct kernel_arguments *arguments = &work->kernel.arguments;
        int at = process_device(stream->context->device)->at;
        uint64_t end = kernel->get_end(arguments);

        for (uint64_t done = 0; done < end;) {
                if (engine_take(&stream->engine, at) < 0)
                        return CUDA_ERROR_UNKNOWN;
                done = kernel->run(arguments, done);
                note_slice(work, stream, engine_give(&stream->engine));
        }
        return CUDA_SUCCESS;
}

/* Its other streams wait too, which on a device they need not. */
static CUresult run_at_once(const struct work *work, CUstream stream)
{
        const struct kernel *kernel = work->kernel.kernel;
        const struct kernel_arguments *arguments = &work->kernel.arguments;
        uint64_t end = kernel->get_end(arguments), ns;
        bool may_go_on = true;

        if (engine_take(&stream->engine, process_device(stream->context->device)->at) < 0)
                return CUDA_ERROR_UNKNOWN;
        for (uint64_t done = 0; done < end && may_go_on;) {
                done = kernel->run(arguments, done);
                may_go_on = engine_keep(&stream->engine, &ns);
                note_slice(work, stream, ns);
        }
        (void)engine_give(&stream->engine);
        return may_go_on ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

static CUresult run_kernel(struct work *work, CUstream stream)
{
        bool is_unwhole;
        CUresult result;

        if (!may_run(work, stream->context, &is_unwhole))
                return CUDA_ERROR_ILLEGAL_ADDRESS;
        result = is_unwhole ? run_at_once(work, stream) : run_in_slices(work, stream);
        if (result == CUDA_SUCCESS && work->kernel.kernel->has_trap)
                return is_unwhole ? CUDA_ERROR_ILLEGAL_INSTRUCTION : CUDA_ERROR_LAUNCH_FAILED;
        return result;
}

static CUresult call_host(struct work *work, CUstream stream)
{
        if (!stream->context->fault)
                work->host.function(work->host.data);
        return CUDA_SUCCESS;
}

static CUresult call_back(struct work *work, CUstream stream)
{
        work->callback.function(work->callback.stream, stream->context->fault, work->callback.data);
        return CUDA_SUCCESS;
}

static CUresult record(struct work *work, CUstream stream)
{
        (void)stream;
        event_happen(work->record.event, work->record.generation);
        return CUDA_SUCCESS;
}

static CUresult free_memory(struct work *work, CUstream stream)
{
        PROCESS_LOCKED();

        (void)stream;
        memory_release_pooled(work->free.address);
        return CUDA_SUCCESS;
}

CUresult work_run(struct work *work, CUstream stream)
{
        static CUresult (*const run[])(struct work *, CUstream) = {
                [WORK_NOTHING] = do_nothing, [WORK_COPY] = copy,        [WORK_SET] = set,
                [WORK_KERNEL] = run_kernel,  [WORK_HOST] = call_host,   [WORK_CALLBACK] = call_back,
                [WORK_RECORD] = record,      [WORK_FREE] = free_memory,
        };

        return run[work->kind](work, stream);
}
