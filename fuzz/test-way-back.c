/* SPDX-License-Identifier: Apache-2.0 */
/* A suspend of one vGPU of an overcommitted device fails, and there is no room to go back: another one leaves for it. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cuda.h"
#include "base/packet.h"
#include "base/size.h"
#include "base/test.h"
#include "fuzz/world.h"
#include "manager/methods/instance-create.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/residency-view.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation.h"

/* What the neighbour has beside its context, and what is free when it has left: enough for another context. */
#define TAKEN (16 * MIB)
#define FREE  (128 * MIB)

static struct instance *find(const char *name)
{
        struct failure failure = { 0 };

        return instance_find(world.manager, name, &failure);
}

static bool has_outside_ended; /* a program outside of all vGPUs, which had as much */

static bool is_full(void)
{
        return !has_outside_ended && find("b")->state != STATE_SUSPENDED;
}

static void send_info(size_t device, const struct mover_header *request)
{
        struct mover_info info = { .header = *request,
                                   .memory_total = GIB,
                                   .memory_free = is_full() ? 0 : FREE,
                                   .has_context = 1,
                                   .driver_version = 13000 };

        info.header.message = MOVER_INFO_IS;
        (void)packet_send(world.mover[device].fd, &info, sizeof(info), NULL, 0);
}

static bool answer_request(size_t device, const struct mover_header *request)
{
        const struct mover_checkpoint *checkpoint = (const void *)request;
        struct mover_done done = { .header = *request,
                                   .error = -ENOSPC,
                                   .call = "cuCheckpointProcessRestore",
                                   .process_state = CU_PROCESS_STATE_CHECKPOINTED };

        if (request->message == MOVER_INFO) {
                send_info(device, request);
                return true;
        }
        if (request->message != MOVER_CHECKPOINT || checkpoint->action != MOVER_CHECKPOINT_RESUME ||
            !is_full())
                return false;
        done.header.message = MOVER_DONE;
        (void)packet_send(world.mover[device].fd, &done, sizeof(done), NULL, 0);
        return true;
}

static struct instance *create(const char *name, struct world_guest *guest)
{
        struct instance_request request = { .name = name,
                                            .frame_buffer = 32 * MIB,
                                            .n_devices = 1 };
        struct failure failure = { 0 };
        struct instance *instance;

        request.device[0] = &world.manager->device[0];
        assert_int_equal(instance_create(world.manager, &request, &instance, &failure), 0);
        world_join(guest, name);
        return instance;
}

/* It has been there for long. */
static void settle_down(struct instance *instance)
{
        const struct guest *guest = list_entry(instance->guests.next, struct guest, link);
        struct instance_page_slot *slot = &instance->part[0].page.map->slot[guest->slot];

        atomic_store(&slot->used[INSTANCE_PAGE_MOVABLE], TAKEN);
        atomic_store(&slot->beside, FREE); /* it has a context */
        instance->residency.since_ns = 1;
}

static bool is_waiting(void)
{
        struct residency_view view;

        residency_view_get(find("a"), &view);
        return strcmp(view.demand, "waiting for memory") == 0;
}

static bool is_back(void)
{
        return !find("a")->operation && find("a")->state == STATE_RUNNING;
}

/* Begins a suspend of "a" that fails when its context has left. */
static void fail_to_leave(uint32_t timeout_ms)
{
        const struct operation_request request = { .timeout_ms = timeout_ms };
        struct failure failure = { 0 };

        assert_int_equal(operation_start(find("a"), &operation_suspend, &request, &failure), 0);
}

static int set_up(void **state)
{
        (void)state;
        create("a", &world.guest[0]);
        create("b", &world.guest[1]);
        world.answer_request = answer_request;
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        world.answer_request = NULL;
        has_outside_ended = false;
        world_reset();
        world_clear();
        return 0;
}

static void check_way_back(uint32_t timeout_ms)
{
        fail_to_leave(timeout_ms);
        world_wait(is_waiting);
        assert_int_equal(find("b")->state, STATE_RUNNING);
        settle_down(find("b"));
        world_wait(is_back);
        assert_int_equal(find("b")->state, STATE_SUSPENDED);
        assert_int_equal(find("a")->residency.wanted_ns, 0);
        assert_null(find("a")->part[0].residency.promise.room);
}

static void test_one_leaves_while_the_undo_waits(void **state)
{
        (void)state;
        check_way_back(10000);
}

/* It has failed, and is tried again when there is room. */
static void test_one_leaves_after_the_undo_has_given_up(void **state)
{
        (void)state;
        check_way_back(1);
}

/* No operation of ours tells of that: the driver does, when it is asked. */
static void test_it_goes_back_when_a_program_outside_has_ended(void **state)
{
        (void)state;
        fail_to_leave(1);
        world_wait(is_waiting);
        has_outside_ended = true;
        world_wait(is_back);
        assert_int_equal(find("b")->state, STATE_RUNNING);
        assert_int_equal(find("a")->residency.wanted_ns, 0);
        assert_null(find("a")->part[0].residency.promise.room);
}

static uint64_t most_promised;

static bool is_back_from_pool(void)
{
        const struct guest *guest = list_entry(find("a")->guests.next, struct guest, link);

        if (guest->room[0].handed.room && guest->room[0].handed.bytes > most_promised)
                most_promised = guest->room[0].handed.bytes;
        return is_back();
}

/* It has no room twice, so it goes by way of the pool: what it lets go of on the device is to come back there. */
static void test_the_room_of_what_waits_in_the_pool_is_promised(void **state)
{
        (void)state;
        has_outside_ended = true;
        most_promised = 0;
        world.do_maps_fail = true;
        world.n_full_creates = 3;
        fail_to_leave(10000);
        world_wait(is_back_from_pool);
        assert_true(most_promised > 0);
        assert_int_equal(world.n_full_creates, 0);
        assert_int_equal(room_owed(&world.manager->device[0].room), 0);
        world.do_maps_fail = false;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_one_leaves_while_the_undo_waits),
                TEST(test_one_leaves_after_the_undo_has_given_up),
                TEST(test_it_goes_back_when_a_program_outside_has_ended),
                TEST(test_the_room_of_what_waits_in_the_pool_is_promised),
        };

        setenv("OPENVGPU_FAULT",
               "suspend.moved=fail@1,suspend.moved=fail@3,suspend.moved=fail@5,"
               "suspend.moved=fail@6",
               1);
        world.options.overcommit = 1;
        world.options.swap_percent = 10;
        world_set_up();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
