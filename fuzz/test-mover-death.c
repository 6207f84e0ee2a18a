/* SPDX-License-Identifier: Apache-2.0 */
/* A mover dies at every question of every operation: nothing waits for its answer, and no process is lost. */
#include <string.h>

#include "base/packet.h"
#include "base/size.h"
#include "base/test.h"
#include "fuzz/world.h"
#include "helper/mover.h"
#include "manager/methods/instance-create.h"
#include "manager/model/device-mover.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation.h"

/* How it dies at a question. */
enum way {
        MUTE,       /* it answers none from that one on, and ends when nothing else happens */
        ALL_HANG_UP /* so do all movers, and their processes end later */
};

/* What is done, with the death in it or before it; NULL: no more. */
struct deed {
        const struct operation_kind *kind;
        bool pre_copies, keep_context;
        uint32_t device; /* where to */
};

#define DEEDS_MAX 4

static const struct way_of_life {
        const char *name;
        struct deed deed[DEEDS_MAX];
} lives[] = {
        { "pre-copy, resume elsewhere",
          { { .kind = &operation_suspend, .pre_copies = true },
            { .kind = &operation_resume, .device = 1 } } },
        { "evict, restore",
          { { .kind = &operation_suspend, .keep_context = true },
            { .kind = &operation_resume },
            { .kind = &operation_suspend } } },
        { "migrate",
          { { .kind = &operation_migrate, .device = 1 }, { .kind = &operation_suspend } } },
        { "second suspend",
          { { .kind = &operation_suspend },
            { .kind = &operation_resume },
            { .kind = &operation_suspend } } },
};

static struct {
        unsigned int n_asked, dies_at;
        enum way way;
        bool is_mute;
        size_t device;
        unsigned int n_quiet; /* turns without a question */
} death;

static void die(size_t device)
{
        if (death.way != ALL_HANG_UP)
                world_end_mover(device);
        for (size_t i = 0; death.way == ALL_HANG_UP && i < WORLD_DEVICES; i++)
                world_hang_up_mover(i);
        death.is_mute = false;
}

static bool answer_request(size_t device, const struct mover_header *request)
{
        (void)request;
        death.n_quiet = 0;
        if (death.is_mute && device == death.device)
                return true;
        if (++death.n_asked != death.dies_at)
                return false;
        death.device = device;
        if (death.way == MUTE)
                death.is_mute = true;
        else
                die(device);
        return true;
}

static struct instance *find(const char *name)
{
        struct failure failure = { 0 };

        return instance_find(world.manager, name, &failure);
}

/* As anything that happens may have it. */
static void settle_devices(void)
{
        for (size_t i = 0; i < world.manager->n_devices; i++)
                device_settle(&world.manager->device[i]);
}

static bool is_settled(void)
{
        settle_devices();
        if (death.is_mute && death.n_quiet++ == 2)
                die(death.device);
        return !find("a")->operation;
}

static bool is_nothing_asked(void)
{
        bool is = is_settled();

        for (size_t i = 0; i < world.manager->n_devices; i++) {
                const struct device *device = &world.manager->device[i];

                is &= !device->mover || !mover_is_awaited(device->mover);
        }
        return is;
}

static int begin(const char *name, const struct deed *deed, struct failure *failure)
{
        struct operation_request request = { .timeout_ms = 10000,
                                             .pre_copies = deed->pre_copies,
                                             .keep_context = deed->keep_context };

        if (deed->kind != &operation_suspend)
                request.target.device[0] = &world.manager->device[deed->device];
        return operation_start(find(name), deed->kind, &request, failure);
}

/* Where it cannot be begun, the death has left it where the deed would have brought it from. */
static void take(const struct deed *deed)
{
        struct failure failure = { 0 };

        if (begin("a", deed, &failure) == 0)
                world_wait(is_settled);
        assert_int_not_equal(find("a")->state, STATE_FAILED);
}

static void bring_back(void)
{
        static const struct deed there = { .kind = &operation_suspend, .pre_copies = true },
                                 back = { .kind = &operation_resume };

        death.dies_at = 0;
        world_wait(is_nothing_asked);
        if (find("a")->state != STATE_RUNNING)
                take(&back);
        assert_int_equal(find("a")->state, STATE_RUNNING);
        take(&there);
        assert_int_equal(find("a")->state, STATE_SUSPENDED);
        take(&back);
        assert_int_equal(find("a")->state, STATE_RUNNING);
        world_wait(is_nothing_asked);
}

static void create(const char *name, const char *group, struct world_guest *guest)
{
        struct instance_request request = {
                .name = name, .frame_buffer = 64 * MIB, .n_devices = 1, .pool_group = group
        };
        struct failure failure = { 0 };
        struct instance *instance;

        request.device[0] = &world.manager->device[0];
        assert_int_equal(instance_create(world.manager, &request, &instance, &failure), 0);
        world_join(guest, name);
}

static bool is_other_settled(void)
{
        return !find("b")->operation;
}

/* What another had in the pool is zeroed before it is given to anybody. */
static void soil_pool(void)
{
        static const struct deed leave = { .kind = &operation_suspend };
        struct failure failure = { 0 };

        create("b", "others", &world.guest[1]);
        assert_int_equal(begin("b", &leave, &failure), 0);
        world_wait(is_other_settled);
        world_kill(&world.guest[1]);
        world.guest[1].state = GATE_STATE_OPEN;
}

/* False: the life has no such question. */
static bool live(const struct way_of_life *life, enum way way, unsigned int n)
{
        death.way = way;
        death.dies_at = death.n_asked = 0;
        world.answer_request = answer_request;
        create("a", "ours", &world.guest[0]);
        soil_pool();
        death.n_asked = 0;
        death.dies_at = n;
        for (size_t i = 0; i < DEEDS_MAX && life->deed[i].kind; i++)
                take(&life->deed[i]);
        bring_back();
        world.answer_request = NULL;
        world_reset();
        world_clear();
        return death.n_asked >= n;
}

static void check_lives(enum way way)
{
        for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]); i++) {
                unsigned int n = 1;

                while (live(&lives[i], way, n))
                        n++;
                print_message("%s: %u questions\n", lives[i].name, n - 1);
        }
}

static void test_it_is_mute_before(void **state)
{
        (void)state;
        check_lives(MUTE);
}

static void test_all_hang_up(void **state)
{
        (void)state;
        check_lives(ALL_HANG_UP);
}

static unsigned int n_answered;

static void on_info(struct mover *mover, int error, const struct mover_info *info, void *userdata)
{
        (void)mover, (void)info, (void)userdata;
        assert_int_equal(error, 0);
        n_answered++;
}

static bool is_answered(void)
{
        return n_answered > 0;
}

static void test_one_that_nothing_needs_answers_first(void **state)
{
        struct device *device = &world.manager->device[0];
        struct mover *mover;

        (void)state;
        n_answered = 0;
        assert_int_equal(device_get_mover(device, &mover), 0);
        assert_int_equal(mover_info(mover, on_info, NULL), 0);
        device_settle(device);
        assert_ptr_equal(device->mover, mover);
        world_wait(is_answered);
        world_run();
        assert_null(device->mover);
}

/* The last question of a resume elsewhere, of a process that goes on already, is that for the end of its job. */

static bool is_job_ending;

static bool note_end(size_t device, const struct mover_header *request)
{
        is_job_ending |= device == 1 && request->message == MOVER_JOB_END;
        return is_job_ending; /* it has no answer */
}

static bool is_job_end_asked(void)
{
        return is_job_ending;
}

static bool has_one_died(void)
{
        return !world.manager->device[1].mover;
}

static bool is_over(void)
{
        return !find("a")->operation;
}

static void begin_resume_elsewhere(void)
{
        static const struct deed leave = { .kind = &operation_suspend },
                                 come = { .kind = &operation_resume, .device = 1 };
        struct failure failure = { 0 };

        create("a", "ours", &world.guest[0]);
        take(&leave);
        world.answer_request = note_end;
        is_job_ending = false;
        assert_int_equal(begin("a", &come, &failure), 0);
        world_wait(is_job_end_asked);
        world.answer_request = NULL;
}

/* Nothing needs the mover of the device that it has left, but the operation waits until that has ended. */
static void test_one_that_is_dying_is_not_forgotten(void **state)
{
        pid_t pid;

        (void)state;
        death.dies_at = 0;
        begin_resume_elsewhere();
        pid = world.mover[0].pid;
        world.do_movers_linger = true;
        world_hang_up_mover(0);
        world_hang_up_mover(1);
        world_run();
        world_end_mover(1);
        world_wait(has_one_died);
        world_run();
        device_settle(&world.manager->device[0]);
        world_run();
        if (world.mover[0].pid == pid)
                world_end_mover(0);
        world.do_movers_linger = false;
        world_wait(is_over);
        assert_int_equal(find("a")->state, STATE_RUNNING);
        world_reset();
        world_clear();
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_it_is_mute_before),
                cmocka_unit_test(test_all_hang_up),
                cmocka_unit_test(test_one_that_nothing_needs_answers_first),
                cmocka_unit_test(test_one_that_is_dying_is_not_forgotten),
        };

        if (argc > 1)
                cmocka_set_test_filter(argv[1]);
        world_set_up();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
