/* SPDX-License-Identifier: Apache-2.0 */
/* A slab can be held before it is registered; a job that holds it waits, and fails as the registering fails. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/size.h"
#include "base/test.h"
#include "mover/driver.h"
#include "mover/slab.h"

#define SIZE (4 * MIB + 4096)

static struct fixture {
        struct slabs slabs;
        struct device device;
        int fd;
        CUresult answer; /* to a registering */
        atomic_bool stop;
} fixture;

static CUresult set_context(CUcontext context)
{
        (void)context;
        return CUDA_SUCCESS;
}

static CUresult register_memory(void *address, size_t size, unsigned int flags)
{
        (void)address, (void)size, (void)flags;
        return fixture.answer;
}

static CUresult unregister_memory(void *address)
{
        (void)address;
        return CUDA_SUCCESS;
}

static int set_up(void **state)
{
        (void)state;
        memset(&fixture, 0, sizeof(fixture));
        slabs_init(&fixture.slabs);
        pthread_mutex_init(&fixture.device.lock, NULL);
        fixture.device.context = (CUcontext)&fixture;
        room_init(&fixture.device.room);
        margin_init(&fixture.device.margin);
        driver = (struct driver){ .cuCtxSetCurrent = set_context,
                                  .cuMemHostRegister_v2 = register_memory,
                                  .cuMemHostUnregister = unregister_memory };
        fixture.fd = memfd_create("slab", MFD_CLOEXEC);
        return fixture.fd < 0 || ftruncate(fixture.fd, SIZE) < 0;
}

static int tear_down(void **state)
{
        (void)state;
        return close(fixture.fd);
}

static char *hold(uint32_t id)
{
        struct mover_done done = { 0 };
        char *address = NULL;

        assert_int_equal(slab_hold(&fixture.slabs, id, 0, SIZE, &address, &done), 0);
        return address;
}

static int add(void)
{
        struct mover_done done = { 0 };

        return slab_add(&fixture.slabs, &fixture.device, 1, &done);
}

static void begin(void)
{
        assert_int_equal(slab_begin(&fixture.slabs, 1, fixture.fd, SIZE), 0);
        slab_fill(&fixture.slabs, 1);
}

static void let_go(void)
{
        struct mover_done done = { 0 };

        slab_release(&fixture.slabs, 1);
        assert_int_equal(slab_remove(&fixture.slabs, &fixture.device, 1, &done), 0);
}

static void test_filling_changes_nothing(void **state)
{
        static const char words[] = "what was there";
        char *address;

        (void)state;
        assert_int_equal(pwrite(fixture.fd, words, sizeof(words), 3 * MIB), sizeof(words));
        begin();
        address = hold(1);
        assert_string_equal(address + 3 * MIB, words);
        assert_int_equal(address[0] | address[SIZE - 1], 0);
        assert_int_equal((uintptr_t)address % (2 * MIB), 0);
        assert_int_equal(add(), 0);
        let_go();
}

static void *wait_for_it(void *data)
{
        struct mover_done *done = data;

        return (void *)(intptr_t)slab_wait(&fixture.slabs, 1, &fixture.stop, done);
}

static int wait_while(void (*does)(void), struct mover_done *done)
{
        pthread_t thread;
        void *result;

        assert_int_equal(pthread_create(&thread, NULL, wait_for_it, done), 0);
        does();
        assert_int_equal(pthread_join(thread, &result), 0);
        return (int)(intptr_t)result;
}

static void register_it(void)
{
        (void)add();
}

static void stop(void)
{
        fixture.stop = true;
        slabs_wake(&fixture.slabs);
}

static void test_who_holds_it_waits_for_it(void **state)
{
        struct mover_done done = { 0 };

        (void)state;
        begin();
        hold(1);
        assert_int_equal(slab_remove(&fixture.slabs, &fixture.device, 1, &done), -EBUSY);
        assert_int_equal(wait_while(register_it, &done), 0);
        let_go();
        assert_true(slabs_are_empty(&fixture.slabs));
}

static void test_who_stops_does_not_wait(void **state)
{
        struct mover_done done = { 0 };

        (void)state;
        begin();
        hold(1);
        assert_int_equal(wait_while(stop, &done), 0);
        assert_int_equal(add(), 0);
        let_go();
}

static void test_who_waits_or_comes_later_fails_as_the_registering(void **state)
{
        struct mover_done done = { 0 };
        char *address;

        (void)state;
        fixture.answer = CUDA_ERROR_OUT_OF_MEMORY;
        begin();
        hold(1);
        assert_int_equal(wait_while(register_it, &done), -ENOMEM);
        assert_int_equal(done.driver_code, CUDA_ERROR_OUT_OF_MEMORY);
        assert_true(slabs_are_empty(&fixture.slabs));
        slab_release(&fixture.slabs, 1);
        memset(&done, 0, sizeof(done));
        assert_int_equal(slab_hold(&fixture.slabs, 1, 0, SIZE, &address, &done), -ENOMEM);
        assert_int_equal(done.driver_code, CUDA_ERROR_OUT_OF_MEMORY);

        fixture.answer = CUDA_SUCCESS;
        begin();
        hold(1);
        assert_int_equal(add(), 0);
        let_go();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_filling_changes_nothing),
                TEST(test_who_holds_it_waits_for_it),
                TEST(test_who_stops_does_not_wait),
                TEST(test_who_waits_or_comes_later_fails_as_the_registering),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
