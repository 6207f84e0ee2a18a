/* SPDX-License-Identifier: Apache-2.0 */
/* The mover when things go wrong: it is killed, a driver call fails, the manager talks nonsense. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/packet.h"
#include "daemon/child.h"
#include "fixture.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const uint64_t sizes[] = { 2 * MIB, 4 * MIB, 2 * MIB };

/*
 * Everything that a mover does with memory: pin slabs, copy out, copy in by way of staging, copy
 * from the other device. Returns the first error, after which nothing more is asked.
 */
struct scenario {
        struct memories here, back, there;
        struct mover_segment segments[9];
        size_t n_segments;
        unsigned int n_asked;
        bool must_stage; /* a run that comes before staging has begun does without it */
};

static int ask(struct fixture *fixture, struct scenario *scenario, int requested)
{
        if (requested < 0)
                return requested;
        scenario->n_asked++;
        await_done(fixture, scenario->n_asked);
        assert_int_equal(fixture->n_done, scenario->n_asked);
        return fixture->done.error;
}

/* Staging says how far it is from its first piece on. */
static void await_staging(struct fixture *fixture)
{
        while (fixture->bytes_done == 0 && !fixture->is_lost)
                assert_true(sd_event_run(fixture->event, TIMEOUT_US) > 0);
}

static int move_step(struct fixture *fixture, struct scenario *scenario,
                     const struct mover_job *job, const struct memories *memories)
{
        struct mover_done done;
        uint32_t id;
        int r, end;

        fixture->bytes_done = 0;
        r = mover_job_begin(fixture->mover, &id, job);
        if (r == 0 && job->kind != MOVER_OUT)
                r = mover_job_stage(fixture->mover, id, 3 * MIB);
        if (r == 0 && scenario->must_stage && job->kind != MOVER_OUT)
                await_staging(fixture);
        if (r == 0)
                r = ask(fixture, scenario,
                        mover_job_run(fixture->mover, id, memories->sizes, memories->fds, on_done,
                                      fixture));
        if (r == -ECONNRESET)
                return r;
        done = fixture->done;
        end = ask(fixture, scenario, mover_job_end(fixture->mover, id, on_done, fixture));
        if (r < 0)
                fixture->done = done; /* what failed first is looked at */
        return r < 0 ? r : end;
}

static int slab_step(struct fixture *fixture, struct scenario *scenario)
{
        int r = 0;

        for (uint32_t i = 0; i < 3 && r == 0; i++) {
                if (fixture->slabs[i] < 0)
                        fixture->slabs[i] = new_slab();
                r = ask(fixture, scenario,
                        mover_slab_add(fixture->mover, i, fixture->slabs[i], SLAB_SIZE, on_done,
                                       fixture));
        }
        return r;
}

static int run_scenario(struct fixture *fixture, struct scenario *scenario)
{
        const struct mover_job out = { .kind = MOVER_OUT,
                                       .n_memories = COUNT(sizes),
                                       .segments = scenario->segments,
                                       .n_segments = scenario->n_segments,
                                       .progress = on_progress,
                                       .userdata = fixture };
        const struct mover_job peer = { .kind = MOVER_PEER,
                                        .n_memories = COUNT(sizes),
                                        .source_uuid = fixture->devices[1].uuid,
                                        .source_sizes = scenario->there.sizes,
                                        .source_fds = scenario->there.fds,
                                        .progress = on_progress,
                                        .userdata = fixture };
        struct mover_job in = out;
        int r;

        fixture->n_done = scenario->n_asked = 0;
        in.kind = MOVER_IN;
        r = slab_step(fixture, scenario);
        if (r == 0)
                r = move_step(fixture, scenario, &out, &scenario->here);
        if (r == 0)
                r = move_step(fixture, scenario, &in, &scenario->back);
        if (r == 0)
                memories_assert(&scenario->back, 1);
        if (r == 0)
                r = move_step(fixture, scenario, &peer, &scenario->back);
        if (r == 0)
                memories_assert(&scenario->back, 2);
        return r;
}

static void scenario_init(struct scenario *scenario)
{
        scenario->must_stage = false;
        memories_create(&scenario->here, 0, sizes, COUNT(sizes));
        memories_create(&scenario->back, 0, sizes, COUNT(sizes));
        memories_create(&scenario->there, 1, sizes, COUNT(sizes));
        memories_fill(&scenario->here, 1);
        memories_fill(&scenario->there, 2);
        scenario->n_segments = layout(scenario->segments, &scenario->here);
}

/* What a mover was given to read is as it was, whatever became of the mover. */
static void scenario_deinit(struct scenario *scenario)
{
        memories_assert(&scenario->here, 1);
        memories_assert(&scenario->there, 2);
        memories_free(&scenario->here);
        memories_free(&scenario->back);
        memories_free(&scenario->there);
}

static const char *const memory_points[] = { "mover.slab-registered", "mover.job-imported",
                                             "mover.staged", "mover.copy-half",
                                             "mover.job-copied" };

static void test_killed_anywhere_a_mover_fails_what_it_was_asked_once(void **state)
{
        struct fixture *fixture = *state;
        struct scenario scenario;

        scenario_init(&scenario);
        for (size_t i = 0; i < COUNT(memory_points); i++) {
                char fault[64];

                snprintf(fault, sizeof(fault), "%s=kill", memory_points[i]);
                scenario.must_stage = strcmp(memory_points[i], "mover.staged") == 0;
                start_mover_with(fixture, 0, "OPENVGPU_FAULT", fault);
                assert_int_equal(run_scenario(fixture, &scenario), -ECONNRESET);
                await_loss(fixture);
                assert_true(mover_is_lost(fixture->mover));
                assert_int_equal(mover_context(fixture->mover, on_done, fixture), -ECONNRESET);
                assert_int_equal(fixture->n_done, scenario.n_asked);
                stop_mover(fixture);

                start_mover(fixture, 0); /* the next one does it all */
                assert_int_equal(run_scenario(fixture, &scenario), 0);
                stop_mover(fixture);
        }
        scenario_deinit(&scenario);
}

static void test_a_step_that_fails_is_named_and_the_mover_goes_on(void **state)
{
        struct fixture *fixture = *state;
        struct scenario scenario;

        scenario_init(&scenario);
        for (size_t i = 0; i < COUNT(memory_points); i++) {
                char fault[64];

                snprintf(fault, sizeof(fault), "%s=fail", memory_points[i]);
                scenario.must_stage = strcmp(memory_points[i], "mover.staged") == 0;
                start_mover_with(fixture, 0, "OPENVGPU_FAULT", fault);
                assert_int_equal(run_scenario(fixture, &scenario), -EIO);
                assert_string_equal(fixture->done.call, memory_points[i]);
                for (uint32_t k = 0; k < 3; k++)
                        perform(fixture, mover_slab_remove(fixture->mover, k, on_done, fixture));
                assert_int_equal(run_scenario(fixture, &scenario), 0);
                stop_mover(fixture);
        }
        scenario_deinit(&scenario);
}

/*
 * The driver calls of the scenario, each of which is made to fail at its n-th time: at each of the
 * first times, later at some, for what is called most is called in loops.
 */
static void test_whatever_driver_call_fails_is_named_and_undone(void **state)
{
        static const char *const calls[] = { "cuDeviceGetCount",
                                             "cuDeviceGetUuid",
                                             "cuDevicePrimaryCtxRetain",
                                             "cuCtxSetCurrent",
                                             "cuMemHostRegister_v2",
                                             "cuMemAddressReserve",
                                             "cuMemCreate",
                                             "cuMemMap",
                                             "cuMemSetAccess",
                                             "cuMemImportFromShareableHandle",
                                             "cuMemcpyDtoHAsync_v2",
                                             "cuMemcpyHtoDAsync_v2",
                                             "cuMemcpyDtoDAsync_v2",
                                             "cuStreamCreate",
                                             "cuStreamSynchronize",
                                             "cuEventCreate",
                                             "cuEventRecord",
                                             "cuEventSynchronize" };
        struct fixture *fixture = *state;
        struct scenario scenario;

        scenario_init(&scenario);
        for (size_t i = 0; i < COUNT(calls); i++) {
                int r = -EIO;

                for (int n = 1; r == -EIO; n += 1 + n / 3) { /* until it is not called that often */
                        char fail[64];

                        snprintf(fail, sizeof(fail), "%s@%d=999", calls[i], n);
                        start_mover_with(fixture, 0, "OPENVGPU_SIM_FAIL", fail);
                        r = run_scenario(fixture, &scenario);
                        if (r == -EIO && fixture->done.driver_code == 999) {
                                assert_string_equal(fixture->done.call, calls[i]);
                                for (uint32_t k = 0; k < 3; k++)
                                        perform(fixture, mover_slab_remove(fixture->mover, k,
                                                                           on_done, fixture));
                                assert_int_equal(run_scenario(fixture, &scenario), 0);
                        }
                        stop_mover(fixture);
                        if (r == -ECONNRESET) /* at its start: it ends */
                                r = -EIO;
                        assert_true(n < 200);
                }
                assert_int_equal(r, 0);
        }
        scenario_deinit(&scenario);
}

static void test_no_room_for_staging_is_no_failure(void **state)
{
        struct fixture *fixture = *state;
        struct scenario scenario;

        scenario_init(&scenario);
        start_mover_with(fixture, 0, "OPENVGPU_SIM_FAIL", "cuMemCreate@1=2");
        assert_int_equal(run_scenario(fixture, &scenario), 0);
        stop_mover(fixture);
        scenario_deinit(&scenario);
}

/* A manager that talks nonsense: what it says is not done, and the mover ends. */

static int start_raw(const struct fixture *fixture, pid_t *ret_pid)
{
        const char *const arguments[] = { getenv("TEST_MOVER"), fixture->devices[0].uuid, NULL };
        int ends[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        assert_int_equal(child_spawn(ret_pid, arguments, NULL, ends[1], MOVER_SOCKET), 0);
        close(ends[1]);
        return ends[0];
}

static void assert_ended(int socket, pid_t pid, int status)
{
        char byte;
        int got;

        assert_true(read(socket, &byte, 1) <= 0);
        assert_int_equal(waitpid(pid, &got, 0), pid);
        assert_int_equal(got, status);
        close(socket);
}

static struct mover_header header(enum mover_message message, uint32_t job)
{
        return (struct mover_header){ .magic = MOVER_WIRE_MAGIC,
                                      .version = MOVER_WIRE_VERSION,
                                      .message = (uint16_t)message,
                                      .id = 1,
                                      .job = job };
}

static void test_nonsense_ends_the_mover(void **state)
{
        struct fixture *fixture = *state;
        struct mover_header magic = header(MOVER_INFO, 0), version = magic;
        struct mover_header no_job = header(MOVER_JOB_RUN, 5);
        struct mover_header unknown = header(60, 0), none = header(0, 0);
        struct mover_job_begin kind = { .header = header(MOVER_JOB_BEGIN, 1), .kind = 9 };
        struct mover_job_begin many = { .header = header(MOVER_JOB_BEGIN, 1),
                                        .kind = MOVER_OUT,
                                        .n_memories = UINT32_MAX,
                                        .n_segments = UINT32_MAX };
        struct mover_slab no_fd = { .header = header(MOVER_SLAB_ADD, 0), .size = SLAB_SIZE };
        struct mover_stage stage = { .header = header(MOVER_JOB_STAGE, 1) };
        const struct {
                const void *bytes;
                size_t size;
        } nonsense[] = {
                { &magic, sizeof(magic) },
                { &version, sizeof(version) },
                { &no_job, sizeof(no_job) },
                { &unknown, sizeof(unknown) },
                { &none, sizeof(none) },
                { &kind, sizeof(kind) },
                { &many, sizeof(many) },
                { &no_fd, sizeof(no_fd) },
                { &stage, sizeof(stage) },
                { &many, sizeof(many) - 1 },
                { "x", 1 },
        };

        magic.magic++;
        version.version++;
        for (size_t i = 0; i < COUNT(nonsense); i++) {
                pid_t pid;
                int socket = start_raw(fixture, &pid);

                assert_int_equal(packet_send(socket, nonsense[i].bytes, nonsense[i].size, NULL, 0),
                                 0);
                assert_ended(socket, pid, 1 << 8);
        }
}

static void test_more_memory_than_was_announced_ends_the_mover(void **state)
{
        struct fixture *fixture = *state;
        struct mover_job_begin begin = { .header = header(MOVER_JOB_BEGIN, 1),
                                         .kind = MOVER_OUT,
                                         .n_memories = 1 };
        struct mover_memory memory = { .header = header(MOVER_JOB_MEMORY, 1), .count = 2 };
        const int fds[2] = { STDERR_FILENO, STDERR_FILENO };
        pid_t pid;
        int socket = start_raw(fixture, &pid);

        assert_int_equal(packet_send(socket, &begin, sizeof(begin), NULL, 0), 0);
        assert_int_equal(packet_send(socket, &memory, sizeof(memory), fds, 2), 0);
        assert_ended(socket, pid, 1 << 8);
}

static void test_a_mover_ends_with_its_manager(void **state)
{
        struct fixture *fixture = *state;
        pid_t pid;
        int socket = start_raw(fixture, &pid), status;

        close(socket);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void test_a_mover_that_cannot_start_is_lost(void **state)
{
        struct fixture *fixture = *state;
        struct mover_device nowhere = { .uuid = "GPU-00000000-0000-0000-0000-000000000000" };
        struct mover_device *devices = fixture->devices;

        fixture->n_done = 0;
        fixture->devices = &nowhere;
        start_mover(fixture, 0);
        assert_int_equal(mover_context(fixture->mover, on_done, fixture), 0);
        await_loss(fixture);
        assert_int_equal(fixture->n_done, 1);
        assert_int_equal(fixture->done.error, -ECONNRESET);
        stop_mover(fixture);
        fixture->devices = devices;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
        static const struct CMUnitTest tests[] = {
                TEST(test_killed_anywhere_a_mover_fails_what_it_was_asked_once),
                TEST(test_a_step_that_fails_is_named_and_the_mover_goes_on),
                TEST(test_whatever_driver_call_fails_is_named_and_undone),
                TEST(test_no_room_for_staging_is_no_failure),
                TEST(test_nonsense_ends_the_mover),
                TEST(test_more_memory_than_was_announced_ends_the_mover),
                TEST(test_a_mover_ends_with_its_manager),
                TEST(test_a_mover_that_cannot_start_is_lost),
        };

        return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
