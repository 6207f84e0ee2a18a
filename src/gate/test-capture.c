/* SPDX-License-Identifier: Apache-2.0 */
/* Captures, and what of our own could ruin them; and that our own calls wait for no gate and no checkpoint. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/caller.h"
#include "gate/capture.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"
#include "gate/idle.h"

/* A driver call that is held in its middle: it says when it is there, and goes on when told. */
static sem_t is_there, go_on;

static void hold(void)
{
        check(sem_post(&is_there) == 0);
        check(sem_wait(&go_on) == 0);
}

/* False if nobody comes. */
static bool wait_for_it(unsigned int milliseconds)
{
        struct timespec end;

        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec += milliseconds / 1000;
        end.tv_nsec += milliseconds % 1000 * 1000000;
        if (end.tv_nsec >= 1000000000) {
                end.tv_nsec -= 1000000000;
                end.tv_sec++;
        }
        return sem_timedwait(&is_there, &end) == 0;
}

#define PATIENCE_MS 10000

/* REPLACE(cuEventQuery, held_query) - the driver's own is kept for held_query(). */
#define REPLACE(name, by)                                                 \
        do {                                                              \
                __typeof__(&name) replaced = DRIVER(name), other = (by);  \
                memcpy(&real_##name, &replaced, sizeof(replaced));        \
                memcpy(&entry_real[ENTRY_##name], &other, sizeof(other)); \
        } while (0)

static __typeof__(&cuStreamBeginCapture_v2) real_cuStreamBeginCapture_v2;
static __typeof__(&cuCtxRecordEvent) real_cuCtxRecordEvent;
static __typeof__(&cuCtxSynchronize) real_cuCtxSynchronize;
static __typeof__(&cuEventQuery) real_cuEventQuery;
static _Atomic unsigned int n_queries;

static CUresult begin_and_hold(CUstream stream, int mode)
{
        CUresult result = real_cuStreamBeginCapture_v2(stream, mode);

        hold();
        return result;
}

static CUresult hold_and_record(CUcontext context, CUevent event)
{
        hold();
        return real_cuCtxRecordEvent(context, event);
}

static CUresult hold_and_synchronize(void)
{
        hold();
        return real_cuCtxSynchronize();
}

static CUresult hold_and_query(CUevent event)
{
        hold();
        return real_cuEventQuery(event);
}

static CUresult count_query(CUevent event)
{
        n_queries++;
        return real_cuEventQuery(event);
}

static void start(void)
{
        check(sem_init(&is_there, 0, 0) == 0 && sem_init(&go_on, 0, 0) == 0);
        fake_guest_start(GIB);
}

static CUstream new_stream(void)
{
        CUstream stream;

        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        return stream;
}

static void begin(CUstream stream)
{
        check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
}

static void end(CUstream stream)
{
        CUgraph graph;

        check(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS && graph);
        check(cuGraphDestroy(graph) == CUDA_SUCCESS);
}

static void *capture(void *argument)
{
        fake_context();
        begin(argument);
        check(sem_post(&is_there) == 0);
        end(argument);
        return NULL;
}

static pthread_t run(void *(*function)(void *), void *argument)
{
        pthread_t thread;

        check(pthread_create(&thread, NULL, function, argument) == 0);
        return thread;
}

static void join(pthread_t thread)
{
        check(pthread_join(thread, NULL) == 0);
}

FAKE_TEST(test_no_mark_is_made_while_a_capture_begins)
{
        pthread_t thread;

        start();
        REPLACE(cuStreamBeginCapture_v2, begin_and_hold);
        thread = run(capture, new_stream());
        check(wait_for_it(PATIENCE_MS)); /* the driver captures, and we do not know yet */
        check(idle_mark() == -EBUSY);
        check(!idle_is_reached());
        check(sem_post(&go_on) == 0);
        join(thread); /* it has ended well */
        check(idle_mark() == 0);
}

static void *mark(void *argument)
{
        (void)argument;
        fake_context();
        check(idle_mark() == 0);
        return NULL;
}

FAKE_TEST(test_no_capture_begins_while_a_mark_is_made)
{
        pthread_t marking, capturing;

        start();
        REPLACE(cuCtxRecordEvent, hold_and_record);
        marking = run(mark, NULL);
        check(wait_for_it(PATIENCE_MS)); /* it has seen that nothing is captured */
        capturing = run(capture, new_stream());
        check(!wait_for_it(100));
        check(sem_post(&go_on) == 0);
        check(wait_for_it(PATIENCE_MS));
        join(marking);
        join(capturing);
}

FAKE_TEST(test_no_event_is_asked_for_while_a_stream_is_captured)
{
        CUstream stream;

        start();
        REPLACE(cuEventQuery, count_query);
        stream = new_stream();
        check(idle_mark() == 0);
        begin(stream);
        check(!idle_is_reached() && n_queries == 0);
        end(stream);
        while (!idle_is_reached())
                ;
        check(n_queries > 0);
}

static CUdeviceptr allocate(void)
{
        CUdeviceptr pointer;

        check(cuMemAlloc_v2(&pointer, 3 * MIB) == CUDA_SUCCESS);
        return pointer;
}

FAKE_TEST(test_freeing_ruins_no_capture_that_begins)
{
        CUdeviceptr pointer;
        pthread_t thread;

        start();
        pointer = allocate();
        REPLACE(cuStreamBeginCapture_v2, begin_and_hold);
        thread = run(capture, new_stream());
        check(wait_for_it(PATIENCE_MS));
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(sem_post(&go_on) == 0);
        join(thread);
}

static void *free_it(void *argument)
{
        fake_context();
        check(cuMemFree_v2(*(CUdeviceptr *)argument) == CUDA_SUCCESS);
        return NULL;
}

FAKE_TEST(test_no_capture_begins_while_memory_is_freed)
{
        pthread_t freeing, capturing;
        CUdeviceptr pointer;

        start();
        pointer = allocate();
        REPLACE(cuCtxSynchronize, hold_and_synchronize);
        freeing = run(free_it, &pointer);
        check(wait_for_it(PATIENCE_MS)); /* it has seen that nothing is captured */
        capturing = run(capture, new_stream());
        check(!wait_for_it(10));
        check(sem_post(&go_on) == 0);
        join(freeing);
        join(capturing);
}

FAKE_TEST(test_a_capture_begins_although_freeing_takes_long)
{
        pthread_t freeing;
        CUdeviceptr pointer;
        CUstream stream;

        start();
        pointer = allocate();
        stream = new_stream();
        REPLACE(cuCtxSynchronize, hold_and_synchronize);
        freeing = run(free_it, &pointer);
        check(wait_for_it(PATIENCE_MS));
        begin(stream); /* the work that is waited for may be waiting for this thread */
        end(stream);
        check(sem_post(&go_on) == 0);
        join(freeing);
}

/* Our calls on a guest's thread, beside its own. */

static void *ask(void *argument)
{
        (void)argument;
        fake_context();
        atomic_store(&caller_self->frame->entry, ENTRY_cuLaunchKernel); /* it is about to launch */
        (void)idle_is_reached();
        return NULL;
}

FAKE_TEST(test_a_closed_gate_keeps_our_own_calls_out_of_the_driver)
{
        start();
        REPLACE(cuEventQuery, count_query);
        check(idle_mark() == 0);
        fake_guest_close();
        n_queries = 0;
        check(!idle_is_reached() && n_queries == 0);
        check(idle_mark() == -EBUSY);
        fake_guest_command(GATE_OPEN);
        check(idle_mark() == 0);
}

FAKE_TEST(test_closing_waits_for_our_own_calls)
{
        struct gate_closed closed;
        pthread_t thread;

        start();
        REPLACE(cuEventQuery, hold_and_query);
        check(idle_mark() == 0);
        thread = run(ask, NULL);
        check(wait_for_it(PATIENCE_MS));
        closed = fake_close(100);
        check(closed.error == ETIMEDOUT && strcmp(closed.call, "cuLaunchKernel") == 0);
        check(sem_post(&go_on) == 0);
        join(thread);
        fake_guest_close();
        fake_guest_command(GATE_OPEN);
}

/* What ends a capture, and what does not. */

FAKE_TEST(test_an_end_that_fails_leaves_the_capture_counted)
{
        CUstream stream, other;
        CUgraph graph;
        CUevent event;

        start();
        stream = new_stream();
        other = new_stream();
        begin(stream);
        check(cuStreamEndCapture(stream, NULL) == CUDA_ERROR_INVALID_VALUE);
        check(capture_is_active());
        check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
        check(cuEventRecord(event, stream) == CUDA_SUCCESS);
        check(cuStreamWaitEvent(other, event, 0) == CUDA_SUCCESS);
        check(cuStreamEndCapture(other, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
        check(capture_is_active());
        check(fake_close(50).error == ETIMEDOUT);
        end(stream);
        check(!capture_is_active());
        check(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_ILLEGAL_STATE);
        check(!capture_is_active());
}

static void *end_for_another(void *argument)
{
        CUgraph graph;

        fake_context();
        check(cuStreamEndCapture(argument, &graph) == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
        return NULL;
}

FAKE_TEST(test_a_capture_that_was_ruined_ends_and_one_of_another_thread_does_not)
{
        CUstream stream;
        CUgraph graph;

        start();
        stream = new_stream();
        check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
        join(run(end_for_another, stream));
        check(capture_is_active());
        check(cuCtxSynchronize() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        check(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        check(!capture_is_active());
}

static void check_that_it_closes(void)
{
        check(!capture_is_active());
        fake_guest_close();
        fake_guest_command(GATE_OPEN);
}

FAKE_TEST(test_a_capture_ends_with_its_stream)
{
        CUstream stream;

        start();
        stream = new_stream();
        begin(stream);
        check(cuStreamDestroy_v2((CUstream)&stream) != CUDA_SUCCESS);
        check(capture_is_active());
        check(cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
        check_that_it_closes();
}

FAKE_TEST(test_a_capture_ends_with_its_context)
{
        CUcontext context;
        CUstream kept;

        start();
        kept = new_stream();
        begin(kept);
        check(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
        begin(new_stream());
        begin(new_stream());
        begin(CU_STREAM_PER_THREAD);
        check(cuCtxDestroy_v2(context) == CUDA_SUCCESS);
        check(capture_is_active()); /* the one of the other context */
        end(kept);
        check_that_it_closes();
}

FAKE_TEST(test_a_capture_ends_with_the_primary_context)
{
        start();
        begin(new_stream());
        check(cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS);
        check_that_it_closes();
}

static void *begin_alone(void *argument)
{
        (void)argument;
        fake_context();
        begin(CU_STREAM_PER_THREAD);
        return NULL;
}

static __typeof__(&cuCtxDestroy_v2) real_cuCtxDestroy_v2;

static CUresult hold_and_destroy(CUcontext context)
{
        hold();
        return real_cuCtxDestroy_v2(context);
}

static void *destroy(void *context)
{
        check(cuCtxDestroy_v2(context) == CUDA_SUCCESS);
        return NULL;
}

/* The end of a context takes as long as its work; what that waits for may be what is captured here. */
FAKE_TEST(test_a_capture_does_not_wait_for_the_end_of_another_context)
{
        CUcontext ending, context;
        CUstream stream;
        CUgraph graph;
        pthread_t thread;

        (void)fake_guest_start(GIB);
        check(cuCtxCreate_v2(&ending, 0, 0) == CUDA_SUCCESS);
        check(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
        check(cuStreamCreate(&stream, 0) == CUDA_SUCCESS);
        check(sem_init(&is_there, 0, 0) == 0 && sem_init(&go_on, 0, 0) == 0);
        REPLACE(cuCtxDestroy_v2, hold_and_destroy);
        check(pthread_create(&thread, NULL, destroy, ending) == 0);
        check(wait_for_it(PATIENCE_MS));
        check(cuStreamBeginCapture_v2(stream, 2) == CUDA_SUCCESS);
        check(idle_mark() < 0); /* nothing is asked meanwhile */
        check(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
        check(idle_mark() < 0);
        check(sem_post(&go_on) == 0 && pthread_join(thread, NULL) == 0);
        check(!capture_is_active());
        check(cuGraphDestroy(graph) == CUDA_SUCCESS);
}

FAKE_TEST(test_a_capture_of_a_threads_own_stream_ends_with_the_thread)
{
        start();
        join(run(begin_alone, NULL));
        check(!capture_is_active());
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_no_mark_is_made_while_a_capture_begins),
                cmocka_unit_test(test_no_capture_begins_while_a_mark_is_made),
                cmocka_unit_test(test_no_event_is_asked_for_while_a_stream_is_captured),
                cmocka_unit_test(test_freeing_ruins_no_capture_that_begins),
                cmocka_unit_test(test_no_capture_begins_while_memory_is_freed),
                cmocka_unit_test(test_a_capture_begins_although_freeing_takes_long),
                cmocka_unit_test(test_a_closed_gate_keeps_our_own_calls_out_of_the_driver),
                cmocka_unit_test(test_closing_waits_for_our_own_calls),
                cmocka_unit_test(test_an_end_that_fails_leaves_the_capture_counted),
                cmocka_unit_test(
                        test_a_capture_that_was_ruined_ends_and_one_of_another_thread_does_not),
                cmocka_unit_test(test_a_capture_ends_with_its_stream),
                cmocka_unit_test(test_a_capture_ends_with_its_context),
                cmocka_unit_test(test_a_capture_ends_with_the_primary_context),
                cmocka_unit_test(test_a_capture_does_not_wait_for_the_end_of_another_context),
                cmocka_unit_test(test_a_capture_of_a_threads_own_stream_ends_with_the_thread),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
