/* SPDX-License-Identifier: Apache-2.0 */
/* What is done next for a context, from each state and for each place where it is to be. */
#include "base/test.h"
#include "manager/model/context.h"
#include "manager/model/device.h"

static struct device device[2];
static const struct place here = { .device = { &device[0] } }, there = { .device = { &device[1] } };

#define NOTHING CONTEXT_ACTION_NOTHING
#define SUSPEND CONTEXT_ACTION_SUSPEND
#define RESUME  CONTEXT_ACTION_RESUME
#define GIVE_UP CONTEXT_ACTION_GIVE_UP

/* Of one that is on @here, or was; and of one that was being restored there. */
static const struct row {
        enum guest_context state;
        const struct place *target, *wanted;
        enum context_action action;
        const struct place *to;
} rows[] = {
        { GUEST_CONTEXT_RUNNING, &place_nowhere, &here, NOTHING, &place_nowhere },
        { GUEST_CONTEXT_RUNNING, &place_nowhere, &there, SUSPEND, &place_nowhere },
        { GUEST_CONTEXT_RUNNING, &place_nowhere, &place_nowhere, SUSPEND, &place_nowhere },
        { GUEST_CONTEXT_SUSPENDING, &place_nowhere, &here, RESUME, &here },
        { GUEST_CONTEXT_SUSPENDING, &place_nowhere, &there, SUSPEND, &place_nowhere },
        { GUEST_CONTEXT_SUSPENDING, &place_nowhere, &place_nowhere, SUSPEND, &place_nowhere },
        { GUEST_CONTEXT_SUSPENDED, &place_nowhere, &here, RESUME, &here },
        { GUEST_CONTEXT_SUSPENDED, &place_nowhere, &there, RESUME, &there },
        { GUEST_CONTEXT_SUSPENDED, &place_nowhere, &place_nowhere, NOTHING, &place_nowhere },
        { GUEST_CONTEXT_RESUMING, &there, &here, RESUME, &there },
        { GUEST_CONTEXT_RESUMING, &there, &there, RESUME, &there },
        { GUEST_CONTEXT_RESUMING, &there, &place_nowhere, RESUME, &there },
        { GUEST_CONTEXT_RESUMING, &place_nowhere, &here, GIVE_UP, &place_nowhere },
        { GUEST_CONTEXT_LOST, &place_nowhere, &here, GIVE_UP, &place_nowhere },
        { GUEST_CONTEXT_LOST, &place_nowhere, &place_nowhere, GIVE_UP, &place_nowhere },
};

static void test_each_state_has_its_action(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                const struct row *row = &rows[i];
                struct context_plan next =
                        context_plan(row->state, &here, row->target, row->wanted);

                assert_int_equal(next.action, row->action);
                if (next.action == NOTHING || next.action == GIVE_UP)
                        continue;
                assert_true(place_is_equal(&next.from, &here));
                assert_true(place_is_equal(&next.to, row->to));
        }
}

/* However often it is asked, it comes to an end in as many calls as there are. */
static void test_each_state_leads_to_where_it_is_wanted(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct context context = { .state = rows[i].state,
                                           .place = here,
                                           .target = *rows[i].target };
                struct context_plan next;
                size_t n = 0;

                while ((next = context_plan(context.state, &context.place, &context.target,
                                            rows[i].wanted))
                                       .action == SUSPEND ||
                       next.action == RESUME) {
                        bool is_resume = next.action == RESUME;

                        assert_true(n++ < 4);
                        context_become(&context,
                                       is_resume ? GUEST_CONTEXT_RESUMING
                                                 : GUEST_CONTEXT_SUSPENDING,
                                       &next.to);
                        assert_true(context_is_valid(&context));
                        context_become(&context,
                                       is_resume ? GUEST_CONTEXT_RUNNING : GUEST_CONTEXT_SUSPENDED,
                                       &place_nowhere);
                        context.place = is_resume ? next.to : context.place;
                        assert_true(context_is_valid(&context));
                }
                if (next.action == NOTHING)
                        assert_int_equal(context.state, place_is_nowhere(rows[i].wanted)
                                                                ? GUEST_CONTEXT_SUSPENDED
                                                                : GUEST_CONTEXT_RUNNING);
        }
}

static void test_no_state_is_skipped(void **state)
{
        (void)state;
        assert_false(context_may_become(GUEST_CONTEXT_RUNNING, GUEST_CONTEXT_SUSPENDED));
        assert_false(context_may_become(GUEST_CONTEXT_SUSPENDED, GUEST_CONTEXT_RUNNING));
        assert_false(context_may_become(GUEST_CONTEXT_LOST, GUEST_CONTEXT_RESUMING));
        assert_true(context_may_become(GUEST_CONTEXT_RESUMING, GUEST_CONTEXT_SUSPENDED));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_state_has_its_action),
                cmocka_unit_test(test_each_state_leads_to_where_it_is_wanted),
                cmocka_unit_test(test_no_state_is_skipped),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
