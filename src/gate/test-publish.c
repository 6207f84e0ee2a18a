/* SPDX-License-Identifier: Apache-2.0 */
/* A thread gets work while the agent says that there is none. */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "abi/cuda.h"
#include "base/size.h"
#include "base/test.h"
#include "gate/fake-guest.h"
#include "gate/fake-manager.h"
#include "gate/idle.h"
#include "gate/quota.h"

static sem_t is_publishing, may_publish;
static _Atomic bool is_armed, may_end;
static __thread bool has_ended; /* what the thread publishes next */

bool __real_idle_is_reached(void);
bool __wrap_idle_is_reached(void);
struct instance_page *__real_quota_get_page(uint32_t *ret_slot);
struct instance_page *__wrap_quota_get_page(uint32_t *ret_slot);

bool __wrap_idle_is_reached(void)
{
        has_ended = __real_idle_is_reached();
        return has_ended;
}

struct instance_page *__wrap_quota_get_page(uint32_t *ret_slot)
{
        bool is_it = has_ended;

        has_ended = false;
        if (is_it && atomic_exchange(&is_armed, false)) {
                sem_post(&is_publishing);
                sem_wait(&may_publish);
        }
        return __real_quota_get_page(ret_slot);
}

static void wait_for_the_test(void *data)
{
        (void)data;
        while (!atomic_load(&may_end))
                usleep(1000);
}

static void watch(struct instance_page *page)
{
        const struct gate_watch_message message = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_WATCH },
                .watch = GATE_WATCH_TURNS,
        };

        atomic_store(&page->is_eager, 1);
        check(fake_send(&message, sizeof(message), NULL, 0) == 0);
        while (atomic_load(&page->slot[FAKE_SLOT].work) != INSTANCE_PAGE_IDLE)
                usleep(1000);
}

FAKE_TEST(test_work_that_comes_meanwhile_is_not_forgotten)
{
        struct instance_page *page = fake_guest_start(GIB);
        CUdeviceptr words;
        uint32_t n;

        sem_init(&is_publishing, 0, 0);
        sem_init(&may_publish, 0, 0);
        check(cuMemAlloc_v2(&words, 1024) == CUDA_SUCCESS);
        watch(page);
        atomic_store(&is_armed, true);
        check(cuMemsetD32_v2(words, 0, 256) == CUDA_SUCCESS);
        sem_wait(&is_publishing);
        check(cuLaunchHostFunc(NULL, wait_for_the_test, NULL) == CUDA_SUCCESS);
        n = atomic_load(&page->n_changes);
        sem_post(&may_publish);
        while (atomic_load(&page->n_changes) == n)
                usleep(1000);
        check(atomic_load(&page->slot[FAKE_SLOT].work) == INSTANCE_PAGE_WORKING);
        atomic_store(&may_end, true);
        check(cuCtxSynchronize() == CUDA_SUCCESS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_work_that_comes_meanwhile_is_not_forgotten),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
