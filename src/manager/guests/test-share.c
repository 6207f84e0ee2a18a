/* SPDX-License-Identifier: Apache-2.0 */
/* Who has whose memory: what gates say of it, when that is believed, and what nobody can make of it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/test.h"
#include "base/uuid-bytes.h"
#include "manager/guests/gate-link.h"
#include "manager/guests/share.h"
#include "manager/model/account.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/sharing.h"
#include "manager/socket/fair-queue.h"
#include "wire/gate.h"

#define USER      4711
#define CROWD     257
#define HERE      "0d2e4c1a-5b6f-4a3c-9d8e-7f6a5b4c3d2e"
#define ELSEWHERE "1d2e4c1a-5b6f-4a3c-9d8e-7f6a5b4c3d2e"

struct fixture {
        struct manager manager;
        struct instance here, elsewhere; /* of one owner */
        struct gate_link link;
        struct guest user;    /* here */
        struct guest first;   /* here */
        struct guest another; /* elsewhere */
        size_t n_offers;
        uint64_t number; /* of the last question */
        int answer;      /* to the user; 1: none yet */
};

static struct fixture *now;

int __wrap_gate_link_send(struct gate_link *link, const void *message, size_t size, const int *fds,
                          size_t n_fds);
int __wrap_gate_link_send(struct gate_link *link, const void *message, size_t size, const int *fds,
                          size_t n_fds)
{
        const struct gate_header *header = message;
        (void)link, (void)size, (void)fds, (void)n_fds;

        if (header->message == GATE_OFFER) {
                now->n_offers++;
                now->number = ((const struct gate_offer *)message)->number;
        } else if (header->message == GATE_IMPORTED) {
                now->answer = -((const struct gate_imported *)message)->error;
        }
        return 0;
}

static void put_instance(struct fixture *fixture, struct instance *instance, const char *uuid)
{
        instance->manager = &fixture->manager;
        instance->owner = USER;
        strcpy(instance->uuid, uuid);
        list_init(&instance->guests);
        list_append(&fixture->manager.instances, &instance->link);
}

static void put_guest(struct fixture *fixture, struct guest *guest, struct instance *instance,
                      uint32_t slot)
{
        guest->instance = instance;
        guest->payer = USER;
        guest->slot = slot;
        guest->start_time = 100 + slot;
        guest->gate = &fixture->link;
        list_init(&guest->sharing.makers);
        list_init(&guest->sharing.users);
        list_init(&guest->share.questions);
        list_append(&instance->guests, &guest->link);
}

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        struct account_cost plenty = { { [ACCOUNT_DESCRIPTORS] = 1000 } };

        now = fixture;
        fixture->answer = 1;
        list_init(&fixture->manager.instances);
        put_instance(fixture, &fixture->here, HERE);
        put_instance(fixture, &fixture->elsewhere, ELSEWHERE);
        put_guest(fixture, &fixture->user, &fixture->here, 1);
        put_guest(fixture, &fixture->first, &fixture->here, 2);
        put_guest(fixture, &fixture->another, &fixture->elsewhere, 3);
        *state = fixture;
        return accounts_new(&fixture->manager.accounts, &plenty) < 0 ||
               fair_queue_new(&fixture->manager.fair_queue, NULL) < 0 ||
               sd_event_new(&fixture->manager.event) < 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;
        struct guest *guests[] = { &fixture->user, &fixture->first, &fixture->another };

        for (size_t i = 0; i < sizeof(guests) / sizeof(guests[0]); i++) {
                share_detach(guests[i]);
                sharing_end(guests[i]);
        }
        fair_queue_free(fixture->manager.fair_queue);
        accounts_free(fixture->manager.accounts);
        sd_event_unref(fixture->manager.event);
        free(fixture);
        return 0;
}

static struct gate_process process_of(const struct guest *guest)
{
        struct gate_process process = { .start_time = guest->start_time,
                                        .slot = guest->slot,
                                        .mark = GATE_TICKET_MARK };

        assert_true(uuid_to_bytes(guest->instance->uuid, process.vgpu));
        return process;
}

/* It says that it has memory of @maker; NULL: of nobody. */
static int say(struct fixture *fixture, const struct guest *maker)
{
        struct gate_uses uses = { .count = maker != NULL };

        if (maker)
                uses.process[0] = process_of(maker);
        return share_receive_uses(&fixture->user, &uses, sizeof(uses), 0);
}

static bool has_memory_of(const struct fixture *fixture, const struct guest *maker)
{
        return fixture->user.sharing.n_makers == 1 && !list_is_empty(&maker->sharing.users);
}

static void attach(struct fixture *fixture, uint32_t n_imports)
{
        const struct gate_join join = { .n_imports = n_imports };

        share_attach(&fixture->user, &join);
}

static void import(struct fixture *fixture, const struct guest *maker)
{
        struct gate_import import = { .ticket = { .process = process_of(maker) } };

        fixture->answer = 1;
        assert_int_equal(share_receive_import(&fixture->user, &import, sizeof(import), 0), 0);
        while (fair_queue_run(fixture->manager.fair_queue))
                ;
}

static void offer(struct fixture *fixture, struct guest *maker, int error)
{
        struct gate_offered offered = { .number = fixture->number, .error = error };
        int fd = memfd_create("memory", MFD_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(share_receive_offered(maker, &offered, sizeof(offered), &fd, error == 0),
                         0);
        close(fd);
}

static void test_news_wait_for_the_turn_of_its_user(void **state)
{
        struct fixture *fixture = *state;

        attach(fixture, 1);
        assert_int_equal(say(fixture, &fixture->first), 0);
        assert_false(sharing_is_any(&fixture->user));
        assert_true(fair_queue_run(fixture->manager.fair_queue));
        assert_true(has_memory_of(fixture, &fixture->first));
}

static void test_of_many_news_the_last_is_looked_at(void **state)
{
        struct fixture *fixture = *state;

        attach(fixture, GATE_IMPORTS_MAX);
        for (int i = 0; i < GATE_IMPORTS_MAX; i++)
                assert_int_equal(say(fixture, &fixture->first), 0);
        assert_int_equal(say(fixture, &fixture->another), 0);
        assert_true(fair_queue_run(fixture->manager.fair_queue));
        assert_false(fair_queue_run(fixture->manager.fair_queue));
        assert_true(has_memory_of(fixture, &fixture->another));
}

static void test_who_has_more_news_than_pieces_is_cut_off(void **state)
{
        struct fixture *fixture = *state;

        attach(fixture, 1);
        assert_int_equal(say(fixture, NULL), 0);
        assert_int_equal(say(fixture, NULL), 0);
        assert_int_equal(say(fixture, NULL), -EPROTO);
}

/* Else a piece that was given between the two would be forgotten. */
static void test_news_come_before_a_question_that_was_asked_later(void **state)
{
        struct fixture *fixture = *state;

        attach(fixture, 1);
        assert_int_equal(say(fixture, NULL), 0);
        import(fixture, &fixture->first);
        offer(fixture, &fixture->first, 0);
        assert_false(fair_queue_run(fixture->manager.fair_queue));
        assert_int_equal(fixture->answer, 0);
        assert_true(has_memory_of(fixture, &fixture->first));
}

static void test_who_hangs_up_leaves_no_news(void **state)
{
        struct fixture *fixture = *state;

        attach(fixture, 1);
        assert_int_equal(say(fixture, &fixture->first), 0);
        share_detach(&fixture->user);
        assert_false(fair_queue_run(fixture->manager.fair_queue));
        assert_false(sharing_is_any(&fixture->user));
}

/* It was let go, and has come back with another slot; its users have its memory all the while. */
static void test_a_maker_that_was_let_go_is_known_again_when_it_is_back(void **state)
{
        struct fixture *fixture = *state;
        const struct gate_process process = process_of(&fixture->another);
        const struct gate_join join = { .ticket_slot = fixture->another.slot + 1 };

        assert_int_equal(sharing_add(&fixture->user, &fixture->another), 0);
        sharing_part(&fixture->another, &process);
        list_remove(&fixture->another.link);
        assert_true(list_is_empty(&fixture->another.sharing.users));
        assert_true(sharing_is_any(&fixture->user));

        fixture->another.slot = 77;
        list_append(&fixture->elsewhere.guests, &fixture->another.link);
        share_attach(&fixture->another, &join);
        assert_true(has_memory_of(fixture, &fixture->another));
        sharing_end(&fixture->another);
        assert_false(sharing_is_any(&fixture->user));
}

/* After a restart of vgpud. */
static void test_a_maker_that_joins_after_its_user_has_told_is_known(void **state)
{
        struct fixture *fixture = *state;
        const struct gate_join join = { .ticket_slot = 41 };

        attach(fixture, 2);
        fixture->first.slot = 40; /* as its tickets bear it */
        assert_int_equal(say(fixture, &fixture->first), 0);
        fixture->first.slot = 50;
        assert_true(fair_queue_run(fixture->manager.fair_queue));
        assert_true(list_is_empty(&fixture->first.sharing.users));
        assert_true(sharing_is_any(&fixture->user));
        share_attach(&fixture->first, &join);
        assert_true(has_memory_of(fixture, &fixture->first));

        assert_int_equal(say(fixture, &fixture->first), 0); /* of a slot that is nobody's now */
        assert_true(fair_queue_run(fixture->manager.fair_queue));
        assert_int_equal(fixture->user.sharing.n_makers, 1);
        assert_int_equal(say(fixture, NULL), 0);
        assert_true(fair_queue_run(fixture->manager.fair_queue));
        assert_false(sharing_is_any(&fixture->user));
}

/* Not even by a ticket that says so. */
static void test_nobody_waits_for_a_process_of_another_owner(void **state)
{
        struct fixture *fixture = *state;
        const struct gate_join join = { .ticket_slot = 41 };

        attach(fixture, 1);
        fixture->another.slot = 40;
        assert_int_equal(say(fixture, &fixture->another), 0);
        fixture->another.slot = 50;
        assert_true(fair_queue_run(fixture->manager.fair_queue));
        assert_true(sharing_is_any(&fixture->user));
        fixture->elsewhere.owner = USER + 1;
        share_attach(&fixture->another, &join);
        assert_true(list_is_empty(&fixture->another.sharing.users));

        assert_int_equal(say(fixture, &fixture->another), 0);
        assert_true(fair_queue_run(fixture->manager.fair_queue));
        assert_false(sharing_is_any(&fixture->user));
}

/* An operation of its vGPU has asked who shares memory, and takes it off the device. */
static void test_memory_of_a_vgpu_that_is_operated_on_is_given_to_no_other(void **state)
{
        struct fixture *fixture = *state;
        struct operation *under_way = (struct operation *)fixture;

        fixture->elsewhere.operation = under_way;
        import(fixture, &fixture->another);
        assert_int_equal(fixture->answer, -EAGAIN);
        assert_int_equal(fixture->n_offers, 0);

        fixture->elsewhere.operation = NULL;
        import(fixture, &fixture->another);
        assert_int_equal(fixture->n_offers, 1);
        fixture->elsewhere.operation = under_way; /* between the question and the answer */
        offer(fixture, &fixture->another, 0);
        assert_int_equal(fixture->answer, -EAGAIN);
        assert_false(sharing_is_any(&fixture->user));
        fixture->elsewhere.operation = NULL;
}

static void test_what_its_gate_refuses_is_refused(void **state)
{
        static const int errors[][2] = {
                { EAGAIN, -EAGAIN }, { ENOENT, -ENOENT }, { EIO, -EIO }, { EPERM, -EIO }
        };
        struct fixture *fixture = *state;

        for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
                import(fixture, &fixture->first);
                offer(fixture, &fixture->first, errors[i][0]);
                assert_int_equal(fixture->answer, errors[i][1]);
                assert_false(sharing_is_any(&fixture->user));
        }
}

static void test_a_process_that_reads_no_descriptors_is_sent_no_more(void **state)
{
        const struct account_cost all = { { [ACCOUNT_DESCRIPTORS] = 1000 } };
        struct fixture *fixture = *state;
        struct account_charge charge = { 0 };

        assert_int_equal(account_force(fixture->manager.accounts, &charge, USER, &all), 0);
        import(fixture, &fixture->first);
        offer(fixture, &fixture->first, 0);
        assert_int_equal(fixture->answer, -ENOMEM);
        account_end(&charge);
        import(fixture, &fixture->first);
        offer(fixture, &fixture->first, 0);
        assert_int_equal(fixture->answer, 0);
}

static void test_a_process_has_memory_of_so_many_others_only(void **state)
{
        struct fixture *fixture = *state;
        static struct guest crowd[CROWD];

        for (size_t i = 0; i < CROWD; i++) {
                put_guest(fixture, &crowd[i], &fixture->here, (uint32_t)(10 + i));
                assert_int_equal(sharing_add(&fixture->user, &crowd[i]),
                                 i < CROWD - 1 ? 0 : -ENOMEM);
        }
        assert_int_equal(sharing_add(&fixture->user, &crowd[0]), 0);
        import(fixture, &crowd[CROWD - 1]);
        offer(fixture, &crowd[CROWD - 1], 0);
        assert_int_equal(fixture->answer, -ENOMEM);

        sharing_end(&crowd[0]);
        assert_int_equal(sharing_add(&fixture->user, &crowd[CROWD - 1]), 0);
}

#define SHARE_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
        static const struct CMUnitTest tests[] = {
                SHARE_TEST(test_news_wait_for_the_turn_of_its_user),
                SHARE_TEST(test_of_many_news_the_last_is_looked_at),
                SHARE_TEST(test_who_has_more_news_than_pieces_is_cut_off),
                SHARE_TEST(test_news_come_before_a_question_that_was_asked_later),
                SHARE_TEST(test_who_hangs_up_leaves_no_news),
                SHARE_TEST(test_a_maker_that_was_let_go_is_known_again_when_it_is_back),
                SHARE_TEST(test_a_maker_that_joins_after_its_user_has_told_is_known),
                SHARE_TEST(test_nobody_waits_for_a_process_of_another_owner),
                SHARE_TEST(test_memory_of_a_vgpu_that_is_operated_on_is_given_to_no_other),
                SHARE_TEST(test_what_its_gate_refuses_is_refused),
                SHARE_TEST(test_a_process_that_reads_no_descriptors_is_sent_no_more),
                SHARE_TEST(test_a_process_has_memory_of_so_many_others_only),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
