/* SPDX-License-Identifier: Apache-2.0 */
/* A restore that does not return keeps its room, also when the mover that called the driver ends, or the manager. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "abi/cuda.h"
#include "base/packet.h"
#include "base/size.h"
#include "base/test.h"
#include "fuzz/world.h"
#include "manager/methods/instance-create.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/silence.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation.h"
#include "wire/gate.h"

static bool is_restore_silent;
static unsigned int n_restores;

static bool answer_request(size_t device, const struct mover_header *request)
{
        const struct mover_checkpoint *checkpoint = (const void *)request;
        struct mover_done done = { .header = *request,
                                   .error = -EINPROGRESS,
                                   .call = "cuCheckpointProcessRestore",
                                   .process_state = -1 };

        if (request->message != MOVER_CHECKPOINT || checkpoint->action != MOVER_CHECKPOINT_RESUME)
                return false;
        n_restores++;
        if (!is_restore_silent)
                return false;
        done.header.message = MOVER_DONE;
        (void)packet_send(world.mover[device].fd, &done, sizeof(done), NULL, 0);
        return true;
}

static struct instance *find(void)
{
        struct failure failure = { 0 };

        return instance_find(world.manager, "a", &failure);
}

static uint64_t get_owed(void)
{
        return room_owed(&world.manager->device[0].room);
}

static bool is_settled(void)
{
        return !find()->operation;
}

static void start(const struct operation_kind *kind)
{
        const struct operation_request request = { .timeout_ms = 10000 };
        struct failure failure = { 0 };

        assert_int_equal(operation_start(find(), kind, &request, &failure), 0);
        world_wait(is_settled);
}

/* A vGPU with one process. */
static void create(void)
{
        struct instance_request request = { .name = "a", .frame_buffer = 64 * MIB, .n_devices = 1 };
        struct failure failure = { 0 };
        struct instance *instance;

        request.device[0] = &world.manager->device[0];
        assert_int_equal(instance_create(world.manager, &request, &instance, &failure), 0);
        world_join(&world.guest[0], "a");
}

/* Of a vGPU a resume has not returned. */
static int set_up(void **state)
{
        (void)state;
        world.answer_request = answer_request;
        create();
        start(&operation_suspend);
        assert_int_equal(find()->state, STATE_SUSPENDED);
        assert_int_equal(get_owed(), 0);
        is_restore_silent = true;
        start(&operation_resume);
        assert_int_equal(find()->state, STATE_FAILED);
        assert_true(get_owed() > 0);
        n_restores = 0;
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        is_restore_silent = false;
        world_reset();
        world_clear(); /* nothing is promised any more */
        return 0;
}

static bool is_asked_again(void)
{
        return n_restores > 0;
}

static void check_kept(uint64_t promised)
{
        world_wait(is_asked_again);
        world_wait(is_settled);
        assert_int_equal(find()->state, STATE_FAILED);
        assert_true(get_owed() >= promised);
}

static void end_mover(void)
{
        world_end_mover(0);
        world.manager->device[0].rest_until_us = 0;
        n_restores = 0;
}

static void test_the_next_mover_finds_it_promised(void **state)
{
        uint64_t promised = get_owed();

        (void)state;
        end_mover();
        check_kept(promised);
        is_restore_silent = false;
        end_mover();
        world_wait(is_asked_again);
        world_wait(is_settled);
        assert_int_equal(get_owed(), 0);
        assert_int_equal(find()->state, STATE_SUSPENDED);
}

static void test_the_next_manager_promises_it_before_anybody_asks(void **state)
{
        uint64_t promised = get_owed();

        (void)state;
        n_restores = 0;
        world_restart();
        assert_true(get_owed() >= promised);
        world_join(&world.guest[0], "a");
        check_kept(promised);
}

/* True: a client has an answer that names the vGPU. */
static bool is_client_served(void)
{
        static const char call[] = "{\"method\":\"org.openvgpu.ListVgpus\"}";
        const struct ucred peer = { getpid(), geteuid(), getegid() };
        char text[4096] = "";
        int fd = world_connect(PATHS_CONTROL_SOCKET, SOCK_STREAM, &peer);

        assert_true(fd >= 0 && send(fd, call, sizeof(call), MSG_NOSIGNAL) == sizeof(call));
        world_run();
        (void)!recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
        close(fd);
        return strstr(text, "\"name\":\"a\"");
}

/* Its gate does not come back, as that of a process that is stopped. */
static void test_clients_are_served_while_one_is_not_recovered(void **state)
{
        (void)state;
        world_restart();
        assert_false(is_client_served());
        assert_true(sd_event_source_set_time_relative(world.manager->patience, 0) >= 0);
        assert_true(is_client_served());
        assert_non_null(find()->operation);
}

static void test_it_ends_with_the_process(void **state)
{
        (void)state;
        end_mover();
        world_reset();
        assert_int_equal(get_owed(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_the_next_mover_finds_it_promised),
                TEST(test_the_next_manager_promises_it_before_anybody_asks),
                TEST(test_clients_are_served_while_one_is_not_recovered),
                TEST(test_it_ends_with_the_process),
        };

        world_set_up();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
