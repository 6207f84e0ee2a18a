/* SPDX-License-Identifier: Apache-2.0 */
/* A copy is cut into pieces, tells its progress in order, and leaves nothing under way whatever fails. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/size.h"
#include "base/test.h"
#include "mover/copy.h"
#include "mover/device.h"
#include "mover/driver.h"

#define PIECE (64 * MIB)

/* A driver that notes what it is asked for, and whose copies end when somebody waits for an event. */
static struct fixture {
        size_t n_copies, n_recorded, n_waited;
        uint64_t lengths[64];
        uint64_t bytes;
        size_t fails_at;            /* copy; 0: none */
        int n_events, n_events_max; /* 0: any */
        size_t n_told;
        uint64_t told[64];
        int answer; /* of who is told */
        atomic_bool stop;
        size_t stops_after; /* copies; 0: never */
} fixture;

static CUresult wait_for_stream(CUstream stream)
{
        (void)stream;
        fixture.bytes = 0; /* all has ended */
        return CUDA_SUCCESS;
}

static CUresult create_event(CUevent *event, unsigned int flags)
{
        (void)flags;
        if (fixture.n_events_max > 0 && fixture.n_events == fixture.n_events_max - 1)
                return CUDA_ERROR_OUT_OF_MEMORY;
        *event = (CUevent)&fixture;
        fixture.n_events++;
        return CUDA_SUCCESS;
}

static CUresult destroy_event(CUevent event)
{
        (void)event;
        fixture.n_events--;
        return CUDA_SUCCESS;
}

static CUresult record(CUevent event, CUstream stream)
{
        (void)event, (void)stream;
        fixture.n_recorded++;
        return CUDA_SUCCESS;
}

static CUresult wait_for_event(CUevent event)
{
        (void)event;
        fixture.n_waited++;
        return CUDA_SUCCESS;
}

static CUresult copy_to_host(void *to, CUdeviceptr from, size_t length, CUstream stream)
{
        (void)to, (void)from, (void)stream;
        if (fixture.n_copies + 1 == fixture.fails_at)
                return CUDA_ERROR_ILLEGAL_ADDRESS;
        fixture.lengths[fixture.n_copies++] = length;
        fixture.bytes += length;
        if (fixture.n_copies == fixture.stops_after)
                fixture.stop = true;
        return CUDA_SUCCESS;
}

static int tell(uint64_t bytes_done, void *userdata)
{
        (void)userdata;
        fixture.told[fixture.n_told++] = bytes_done;
        return fixture.answer;
}

static int set_up(void **state)
{
        (void)state;
        memset(&fixture, 0, sizeof(fixture));
        driver = (struct driver){
                .cuStreamSynchronize = wait_for_stream,
                .cuEventCreate = create_event,
                .cuEventDestroy_v2 = destroy_event,
                .cuEventRecord = record,
                .cuEventSynchronize = wait_for_event,
                .cuMemcpyDtoHAsync_v2 = copy_to_host,
        };
        return 0;
}

static int copy(const uint64_t *lengths, size_t n, uint64_t *ret_copied, struct mover_done *done)
{
        const struct copy_control control = { .progress = tell, .stop = &fixture.stop };
        struct copy_part parts[4] = { 0 };

        for (size_t i = 0; i < n; i++)
                parts[i].length = lengths[i];
        return copy_run(COPY_TO_HOST, parts, n, &control, ret_copied, done);
}

static void check_nothing_is_left(void)
{
        assert_int_equal(fixture.n_events, 0);
        assert_int_equal(fixture.bytes, 0);
}

static void test_large_parts_are_cut_and_small_ones_share_a_mark(void **state)
{
        static const uint64_t lengths[] = { 2 * PIECE + 1, 2 * MIB, 4 * MIB };
        struct mover_done done = { 0 };
        uint64_t copied = 0;
        (void)state;

        assert_int_equal(copy(lengths, 3, &copied, &done), 0);
        assert_int_equal(copied, 2 * PIECE + 1 + 6 * MIB);
        assert_int_equal(fixture.n_copies, 5);
        assert_int_equal(fixture.lengths[0], PIECE);
        assert_int_equal(fixture.lengths[2], 1);
        assert_int_equal(fixture.n_recorded, 3); /* two pieces, and all that came after them */
        assert_int_equal(fixture.n_waited, 3);
        assert_int_equal(fixture.n_told, 3);
        assert_int_equal(fixture.told[0], PIECE);
        assert_int_equal(fixture.told[1], 2 * PIECE);
        assert_int_equal(fixture.told[2], copied);
        check_nothing_is_left();
}

static void test_progress_rises_however_many_pieces_there_are(void **state)
{
        static const uint64_t length = 20 * PIECE;
        struct mover_done done = { 0 };
        uint64_t copied = 0;
        (void)state;

        assert_int_equal(copy(&length, 1, &copied, &done), 0);
        assert_int_equal(fixture.n_told, 20);
        for (size_t i = 0; i < fixture.n_told; i++)
                assert_int_equal(fixture.told[i], (i + 1) * PIECE);
        check_nothing_is_left();
}

/* None, one, and so on. */
static void test_no_copy_fails_for_want_of_events(void **state)
{
        static const uint64_t length = 20 * PIECE;

        for (int n = 0; n <= 8; n++) {
                struct mover_done done = { 0 };
                uint64_t copied = 0;

                set_up(state);
                fixture.n_events_max = n + 1;
                assert_int_equal(copy(&length, 1, &copied, &done), 0);
                assert_int_equal(copied, length);
                assert_int_equal(done.driver_code, 0);
                assert_int_equal(fixture.n_told, 20);
                for (size_t i = 0; i < fixture.n_told; i++)
                        assert_int_equal(fixture.told[i], (i + 1) * PIECE);
                check_nothing_is_left();
        }
}

static CUresult create_no_stream(CUstream *stream, unsigned int flags)
{
        (void)stream, (void)flags;
        return CUDA_ERROR_OUT_OF_MEMORY;
}

static void check_own_stream(struct device *device)
{
        struct mover_done done = { 0 };
        CUstream stream = NULL;

        assert_int_equal(device_get_stream(device, &stream, &done), 0);
        assert_ptr_equal(stream, CU_STREAM_LEGACY);
        assert_int_equal(done.driver_code, 0);
        device_put_stream(device, stream);
        assert_int_equal(device->streams.n, 0);
}

static void test_there_is_always_a_stream(void **state)
{
        struct device device = { .lock = PTHREAD_MUTEX_INITIALIZER,
                                 .streams = { .lock = PTHREAD_MUTEX_INITIALIZER } };

        (void)state;
        room_init(&device.room);
        margin_init(&device.margin);
        driver.cuStreamCreate = create_no_stream;
        check_own_stream(&device);
        room_open(&device.room, ROOM_RESTORING); /* it is not waited for */
        check_own_stream(&device);
        room_close(&device.room, ROOM_RESTORING);
        room_deinit(&device.room);
}

static int n_retained;

static CUresult tell_total(size_t *bytes, CUdevice id)
{
        (void)id;
        *bytes = GIB;
        return CUDA_SUCCESS;
}

static CUresult retain_context(CUcontext *context, CUdevice id)
{
        (void)id;
        *context = (CUcontext)&fixture;
        n_retained++;
        return CUDA_SUCCESS;
}

static CUresult release_context(CUdevice id)
{
        (void)id;
        n_retained--;
        return CUDA_SUCCESS;
}

static CUresult refuse_context(CUcontext context)
{
        (void)context;
        return CUDA_ERROR_UNKNOWN;
}

static void test_a_context_that_cannot_be_used_is_given_back(void **state)
{
        struct device device = { .lock = PTHREAD_MUTEX_INITIALIZER };
        struct mover_done done = { 0 };

        (void)state;
        room_init(&device.room);
        driver.cuDeviceTotalMem_v2 = tell_total;
        driver.cuDevicePrimaryCtxRetain = retain_context;
        driver.cuDevicePrimaryCtxRelease_v2 = release_context;
        driver.cuCtxSetCurrent = refuse_context;
        assert_true(device_enter(&device, &done) < 0);
        assert_int_equal(done.driver_code, CUDA_ERROR_UNKNOWN);
        assert_int_equal(n_retained, 0);
        assert_false(device_has_context(&device));
        room_deinit(&device.room);
}

static void test_nothing_is_no_copy(void **state)
{
        struct mover_done done = { 0 };
        uint64_t copied = 1;
        (void)state;

        assert_int_equal(copy(NULL, 0, &copied, &done), 0);
        assert_int_equal(copied, 0);
        assert_int_equal(fixture.n_copies, 0);
        assert_int_equal(fixture.n_told, 0);
        check_nothing_is_left();
}

static void test_what_was_queued_before_a_stop_arrives(void **state)
{
        static const uint64_t lengths[] = { 3 * PIECE, PIECE };
        struct mover_done done = { 0 };
        uint64_t copied = 0;
        (void)state;

        fixture.stops_after = 2;
        assert_int_equal(copy(lengths, 2, &copied, &done), 0);
        assert_int_equal(copied, 2 * PIECE);
        assert_int_equal(fixture.n_copies, 2);
        assert_int_equal(fixture.told[fixture.n_told - 1], 2 * PIECE);
        check_nothing_is_left();
}

static void test_a_failure_names_its_call(void **state)
{
        static const uint64_t length = 3 * PIECE;
        struct mover_done done = { 0 };
        uint64_t copied = 7;
        (void)state;

        fixture.fails_at = 2;
        assert_int_equal(copy(&length, 1, &copied, &done), -EIO);
        assert_int_equal(done.driver_code, CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_string_equal(done.call, "cuMemcpyDtoHAsync_v2");
        assert_int_equal(copied, 7);
        check_nothing_is_left();
}

static void test_who_is_told_may_end_it(void **state)
{
        static const uint64_t length = 20 * PIECE;
        struct mover_done done = { 0 };
        uint64_t copied = 0;
        (void)state;

        fixture.answer = -ECANCELED;
        assert_int_equal(copy(&length, 1, &copied, &done), -ECANCELED);
        assert_int_equal(fixture.n_told, 1);
        assert_true(fixture.n_copies < 20);
        check_nothing_is_left();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_large_parts_are_cut_and_small_ones_share_a_mark,
                                       set_up),
                cmocka_unit_test_setup(test_progress_rises_however_many_pieces_there_are, set_up),
                cmocka_unit_test_setup(test_there_is_always_a_stream, set_up),
                cmocka_unit_test_setup(test_no_copy_fails_for_want_of_events, set_up),
                cmocka_unit_test_setup(test_a_context_that_cannot_be_used_is_given_back, set_up),
                cmocka_unit_test_setup(test_nothing_is_no_copy, set_up),
                cmocka_unit_test_setup(test_what_was_queued_before_a_stop_arrives, set_up),
                cmocka_unit_test_setup(test_a_failure_names_its_call, set_up),
                cmocka_unit_test_setup(test_who_is_told_may_end_it, set_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
