/* SPDX-License-Identifier: Apache-2.0 */
/* Each hook from eight threads at once, while the gate closes and opens and moves the memory. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/fake-guest.h"
#include "gate/hammer.h"

#define ROUNDS             3
#define STROKES_EACH_ROUND 16 /* of all threads, at least */

static const struct hammer *const groups[] = { hammer_context, hammer_memory };

static const struct hammer *hammer; /* of this process */
static _Atomic bool is_over;
static _Atomic unsigned int n_strokes;

static void *strike(void *argument)
{
        unsigned int thread = (unsigned int)(uintptr_t)argument;
        unsigned int random = thread;

        fake_context();
        while (!is_over) {
                random = random * 1103515245 + 12345;
                hammer->strike(thread, random >> 8);
                n_strokes++;
        }
        return NULL;
}

static void wait_for_strokes(unsigned int n)
{
        unsigned int target = n_strokes + n;

        while (n_strokes < target)
                usleep(100);
}

/*
 * What streams are done with goes back when the application waits for them, unless another thread looks at
 * them just then: after the last wait of a hammer some may be left.
 */
static void wait_until_given_back(const struct instance_page_slot *slot)
{
        while (slot->used[INSTANCE_PAGE_MOVABLE] > 2 * MIB) {
                check(cuCtxSynchronize() == CUDA_SUCCESS);
                usleep(1000);
        }
}

static void hammer_body(void)
{
        const struct instance_page_slot *slot;
        pthread_t threads[HAMMER_THREADS];

        if (hammer->prepare)
                hammer->prepare();
        slot = &fake_guest_start(GIB)->slot[FAKE_SLOT];
        for (uintptr_t i = 0; i < HAMMER_THREADS; i++)
                check(pthread_create(&threads[i], NULL, strike, (void *)i) == 0);
        for (int i = 0; i < ROUNDS; i++) {
                wait_for_strokes(STROKES_EACH_ROUND);
                fake_guest_close();
                fake_guest_command(GATE_OPEN);
                wait_for_strokes(STROKES_EACH_ROUND);
                fake_guest_move();
        }
        is_over = true;
        for (int i = 0; i < HAMMER_THREADS; i++)
                check(pthread_join(threads[i], NULL) == 0);
        if (hammer->finish)
                hammer->finish();
        wait_until_given_back(slot);
        check(slot->n_allocations == 0);
        check(slot->used[INSTANCE_PAGE_FIXED] == 0);
        check(slot->used[INSTANCE_PAGE_MOVABLE] <= 2 * MIB); /* one empty block is kept */
        check(slot->holds == 0);
}

static void test_each_hook_bears_eight_threads_while_the_gate_closes_and_opens(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
                for (hammer = groups[i]; hammer->hooks; hammer++) {
                        print_message("%s\n", hammer->hooks);
                        fake_test(hammer->hooks, hammer_body);
                }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(
                        test_each_hook_bears_eight_threads_while_the_gate_closes_and_opens),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
