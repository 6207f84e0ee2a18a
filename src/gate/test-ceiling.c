/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations while room on the device is promised to others, and while others may leave for them. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/size.h"
#include "base/test.h"
#include "gate/fake-guest.h"
#include "gate/quota.h"

#define SECOND_NS 1000000000u

static void set_ceiling(struct instance_page *page, uint64_t bytes, uint64_t seconds)
{
        atomic_store(&page->ceiling_until_ns, clock_now(CLOCK_MONOTONIC) + seconds * SECOND_NS);
        atomic_store(&page->ceiling, bytes);
}

/* What all of the vGPU's processes have, as the ceiling counts it. */
static uint64_t taken(struct instance_page *page)
{
        const struct instance_page_slot *slot = &page->slot[FAKE_SLOT];

        return slot->used[INSTANCE_PAGE_MOVABLE] + slot->used[INSTANCE_PAGE_FIXED] + slot->beside;
}

static void wait_until_wanted(struct instance_page *page, uint64_t bytes)
{
        const struct timespec nap = { .tv_nsec = 1000000 };

        while (atomic_load(&page->slot[FAKE_SLOT].wanted) != bytes)
                nanosleep(&nap, NULL);
}

static void *allocate(void *argument)
{
        CUdeviceptr *pointer = argument;

        fake_context();
        check(cuMemAlloc_v2(pointer, 8 * MIB) == CUDA_SUCCESS);
        return NULL;
}

FAKE_TEST(test_who_waits_under_a_ceiling_goes_on_when_it_is_lifted)
{
        struct instance_page *page = fake_guest_start(GIB);
        const struct instance_page_slot *slot = &page->slot[FAKE_SLOT];
        CUdeviceptr pointer, fits;
        pthread_t thread;

        set_ceiling(page, taken(page) + 4 * MIB, 60);
        check(cuMemAlloc_v2(&fits, 4 * MIB) == CUDA_SUCCESS);
        check(slot->pending == 0 && slot->wanted == 0);
        check(pthread_create(&thread, NULL, allocate, &pointer) == 0);
        wait_until_wanted(page, 8 * MIB);
        check(slot->used[INSTANCE_PAGE_MOVABLE] == 4 * MIB && slot->pending == 0);
        set_ceiling(page, 0, 0);
        check(pthread_join(thread, NULL) == 0);
        check(slot->used[INSTANCE_PAGE_MOVABLE] == 12 * MIB);
        check(slot->pending == 0 && slot->wanted == 0);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS && cuMemFree_v2(fits) == CUDA_SUCCESS);
}

FAKE_TEST(test_who_waits_under_a_ceiling_does_not_keep_its_gate_from_closing)
{
        struct instance_page *page = fake_guest_start(GIB);
        const struct instance_page_slot *slot = &page->slot[FAKE_SLOT];
        CUdeviceptr pointer;
        pthread_t thread;

        set_ceiling(page, taken(page), 60);
        check(pthread_create(&thread, NULL, allocate, &pointer) == 0);
        wait_until_wanted(page, 8 * MIB);
        check(fake_close(FAKE_GUEST_TIMEOUT_MS).error == 0);
        set_ceiling(page, 0, 0);
        fake_guest_command(GATE_EXPORT);
        fake_guest_command(GATE_RELEASE);
        check(slot->used[INSTANCE_PAGE_MOVABLE] == 0); /* it waits at the gate now */
        fake_guest_command(GATE_CREATE);
        fake_guest_command(GATE_OPEN);
        check(pthread_join(thread, NULL) == 0);
        check(slot->used[INSTANCE_PAGE_MOVABLE] == 8 * MIB);
        check(cuMemsetD8_v2(pointer, 1, 8 * MIB) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
}

FAKE_TEST(test_what_is_never_there_is_out_of_memory)
{
        struct instance_page *page = fake_guest_start(GIB);
        CUdeviceptr pointer;
        CUcontext context;

        set_ceiling(page, taken(page), 60);
        check(cuMemAlloc_v2(&pointer, 2 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
        check(cuCtxCreate_v2(&context, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY);
        check(page->slot[FAKE_SLOT].pending == 0);
        set_ceiling(page, 0, 0);
        check(cuMemAlloc_v2(&pointer, 2 * MIB) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
}

FAKE_TEST(test_a_ceiling_that_nobody_renews_ends)
{
        struct instance_page *page = fake_guest_start(GIB);
        CUdeviceptr pointer;

        set_ceiling(page, 1, 0);
        check(cuMemAlloc_v2(&pointer, 2 * MIB) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
}

FAKE_TEST(test_a_context_counts_under_the_ceiling_and_not_against_the_quota)
{
        struct instance_page *page = fake_guest_start(GIB);
        const struct instance_page_slot *slot = &page->slot[FAKE_SLOT];
        uint64_t before = taken(page), used = slot->used[INSTANCE_PAGE_FIXED];
        CUcontext context, same;

        check(before > 0); /* the primary one */
        check(cuDevicePrimaryCtxRetain(&same, 0) == CUDA_SUCCESS);
        check(taken(page) == before); /* there it was */
        check(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
        check(taken(page) > before && slot->used[INSTANCE_PAGE_FIXED] == used);
        check(slot->pending == 0);
        check(cuCtxDestroy_v2(context) == CUDA_SUCCESS);
}

/* On an overcommitted device. */

static void wait_until_asked(struct instance_page *page, uint32_t n)
{
        const struct timespec nap = { .tv_nsec = 1000000 };

        while (atomic_load(&page->slot[FAKE_SLOT].n_asks) != n)
                nanosleep(&nap, NULL);
}

static void *create_context(void *argument)
{
        check(cuCtxCreate_v2(argument, 0, 0) == CUDA_SUCCESS);
        return NULL;
}

static void *create_memory(void *argument)
{
        const CUmemAllocationProp place = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                            .location.type = CU_MEM_LOCATION_TYPE_DEVICE };

        fake_context();
        check(cuMemCreate(argument, 8 * MIB, &place, 0) == CUDA_SUCCESS);
        return NULL;
}

/* The driver refuses @call once: the thread that makes it asks for room. */
static struct instance_page *start_to_wait(const char *failure, void *(*call)(void *),
                                           uint64_t *made, pthread_t *ret_thread)
{
        struct instance_page *page;

        check(setenv("OPENVGPU_SIM_FAIL", failure, 1) == 0);
        page = fake_guest_start(GIB);
        atomic_store(&page->waits, 1);
        check(pthread_create(ret_thread, NULL, call, made) == 0);
        wait_until_asked(page, 1);
        return page;
}

/* Whoever has asked tries again when there is an answer. */
static void expect_a_wait(const char *failure, void *(*call)(void *))
{
        uint64_t made;
        pthread_t thread;
        struct instance_page *page = start_to_wait(failure, call, &made, &thread);
        struct instance_page_slot *slot = &page->slot[FAKE_SLOT];

        check(slot->wanted > 0 && slot->pending == 0);       /* it asks nobody now */
        check(fake_close(FAKE_GUEST_TIMEOUT_MS).error == 0); /* it is outside of the driver */
        fake_guest_command(GATE_OPEN);
        atomic_store(&slot->answer, 1);
        check(pthread_join(thread, NULL) == 0);
        check(slot->wanted == 0 && slot->pending == 0);
}

static void *fail_to_allocate(void *argument)
{
        fake_context();
        check(cuMemAlloc_v2(argument, 8 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
        return NULL;
}

/* Below a ceiling, which others' promises may keep there for as long as it waits. */
static struct instance_page *start_below_ceiling(void *(*call)(void *), CUdeviceptr *made,
                                                 pthread_t *ret_thread)
{
        struct instance_page *page = fake_guest_start(GIB);

        atomic_store(&page->waits, 1);
        set_ceiling(page, taken(page), 60);
        check(pthread_create(ret_thread, NULL, call, made) == 0);
        wait_until_asked(page, 1);
        check(page->slot[FAKE_SLOT].wanted == 8 * MIB && page->slot[FAKE_SLOT].pending == 0);
        return page;
}

FAKE_TEST(test_who_waits_below_a_ceiling_asks_for_room)
{
        CUdeviceptr pointer;
        pthread_t thread;
        struct instance_page *page = start_below_ceiling(allocate, &pointer, &thread);
        struct instance_page_slot *slot = &page->slot[FAKE_SLOT];
        const struct timespec nap = { .tv_nsec = 30000000 };

        set_ceiling(page, taken(page) + 8 * MIB, 60); /* what is promised to it and not there yet */
        nanosleep(&nap, NULL);
        check(slot->used[INSTANCE_PAGE_MOVABLE] == 0);
        set_ceiling(page, taken(page), 60);
        atomic_store(&slot->answer, 1);
        nanosleep(&nap, NULL);
        check(slot->n_asks == 1);  /* what it was promised is divided in a moment */
        wait_until_asked(page, 2); /* and was not */
        atomic_store(&slot->answer, 2);
        set_ceiling(page, taken(page) + 8 * MIB, 60);
        check(pthread_join(thread, NULL) == 0);
        check(slot->used[INSTANCE_PAGE_MOVABLE] == 8 * MIB && slot->wanted == 0);
}

FAKE_TEST(test_who_waits_below_a_ceiling_in_vain_is_out_of_memory)
{
        CUdeviceptr pointer;
        pthread_t thread;
        struct instance_page *page = start_below_ceiling(fail_to_allocate, &pointer, &thread);
        struct instance_page_slot *slot = &page->slot[FAKE_SLOT];

        atomic_store(&slot->answer, 1 | INSTANCE_PAGE_DENIED);
        check(pthread_join(thread, NULL) == 0);
        check(slot->wanted == 0 && slot->pending == 0 && slot->n_refused == 0);
}

/* What it tries again when it is answered is not wanted twice. */
FAKE_TEST(test_one_wait_wants_its_bytes_once)
{
        const struct timespec nap = { .tv_nsec = 30000000 };
        CUdeviceptr pointer;
        pthread_t thread;
        struct instance_page *page;
        struct instance_page_slot *slot;

        check(setenv("OPENVGPU_SIM_FAIL", "cuMemCreate@1=2", 1) == 0);
        page = fake_guest_start(GIB);
        slot = &page->slot[FAKE_SLOT];
        atomic_store(&page->waits, 1);
        check(pthread_create(&thread, NULL, allocate, &pointer) == 0);
        wait_until_asked(page, 1);
        set_ceiling(page, taken(page), 60);
        atomic_store(&slot->answer, 1);
        nanosleep(&nap, NULL);
        check(slot->wanted == 8 * MIB);
        wait_until_asked(page, 2);
        check(slot->wanted == 8 * MIB);
        atomic_store(&slot->answer, 2);
        set_ceiling(page, 0, 0);
        check(pthread_join(thread, NULL) == 0);
        check(slot->wanted == 0 && slot->pending == 0);
}

FAKE_TEST(test_a_context_waits_until_others_have_left)
{
        expect_a_wait("cuCtxCreate_v2@1=2", create_context);
}

FAKE_TEST(test_an_allocation_waits_until_others_have_left)
{
        expect_a_wait("cuMemCreate@1=2", allocate);
}

FAKE_TEST(test_memory_of_cuMemCreate_waits_until_others_have_left)
{
        expect_a_wait("cuMemCreate@1=2", create_memory);
}

/* What has become free may have been promised to others since: an answer is none to pass the ceiling. */
static void expect_the_ceiling_to_hold(const char *failure, void *(*call)(void *))
{
        const struct timespec nap = { .tv_nsec = 30000000 };
        uint64_t made, had;
        pthread_t thread;
        struct instance_page *page = start_to_wait(failure, call, &made, &thread);
        struct instance_page_slot *slot = &page->slot[FAKE_SLOT];

        had = slot->wanted;
        set_ceiling(page, 1, 60);
        atomic_store(&slot->answer, 1);
        nanosleep(&nap, NULL);
        check(slot->wanted == had); /* it has not gone on */
        check(fake_close(FAKE_GUEST_TIMEOUT_MS).error == 0);
        check(slot->pending == 0);
        fake_guest_command(GATE_OPEN);
        set_ceiling(page, 0, 0);
        check(pthread_join(thread, NULL) == 0);
        check(slot->wanted == 0 && slot->pending == 0);
}

FAKE_TEST(test_a_context_that_was_answered_waits_under_the_ceiling)
{
        expect_the_ceiling_to_hold("cuCtxCreate_v2@1=2", create_context);
}

FAKE_TEST(test_memory_that_was_answered_waits_under_the_ceiling)
{
        expect_the_ceiling_to_hold("cuMemCreate@1=2", create_memory);
}

static void *fail_to_create_context(void *argument)
{
        check(cuCtxCreate_v2(argument, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY);
        return NULL;
}

/* It has no reason to become right: the program gets the answer, and is not told for ever that there is room by now. */
FAKE_TEST(test_a_context_that_no_room_helps_is_out_of_memory)
{
        char failure[1024] = "";
        uint64_t made;
        pthread_t thread;
        struct instance_page *page;
        struct instance_page_slot *slot;

        for (unsigned int i = 1; i <= 17; i++)
                snprintf(failure + strlen(failure), sizeof(failure) - strlen(failure),
                         "cuCtxCreate_v2@%u=2,", i);
        quota_in_vain_ns = 0;
        page = start_to_wait(failure, fail_to_create_context, &made, &thread);
        slot = &page->slot[FAKE_SLOT];
        for (uint32_t i = 1; i <= 16; i++) {
                wait_until_asked(page, i);
                atomic_store(&slot->answer, i);
        }
        check(pthread_join(thread, NULL) == 0);
        check(slot->n_asks == 16 && slot->wanted == 0 && slot->pending == 0);
}

/* R580 refuses it whatever room there is. */
FAKE_TEST(test_a_context_by_the_first_name_waits_for_no_room)
{
        CUcontext context;
        struct instance_page *page;

        check(setenv("OPENVGPU_SIM_FAIL", "cuCtxCreate@1=2", 1) == 0);
        page = fake_guest_start(GIB);
        atomic_store(&page->waits, 1);
        check((cuCtxCreate)(&context, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY);
        check(page->slot[FAKE_SLOT].n_asks == 0 && page->slot[FAKE_SLOT].pending == 0);
}

FAKE_TEST(test_elsewhere_nothing_waits_for_others)
{
        CUcontext context;

        check(setenv("OPENVGPU_SIM_FAIL", "cuCtxCreate_v2@1=2", 1) == 0);
        fake_guest_start(GIB);
        check(cuCtxCreate_v2(&context, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_who_waits_under_a_ceiling_goes_on_when_it_is_lifted),
                cmocka_unit_test(
                        test_who_waits_under_a_ceiling_does_not_keep_its_gate_from_closing),
                cmocka_unit_test(test_what_is_never_there_is_out_of_memory),
                cmocka_unit_test(test_a_ceiling_that_nobody_renews_ends),
                cmocka_unit_test(test_a_context_counts_under_the_ceiling_and_not_against_the_quota),
                cmocka_unit_test(test_who_waits_below_a_ceiling_asks_for_room),
                cmocka_unit_test(test_who_waits_below_a_ceiling_in_vain_is_out_of_memory),
                cmocka_unit_test(test_one_wait_wants_its_bytes_once),
                cmocka_unit_test(test_a_context_waits_until_others_have_left),
                cmocka_unit_test(test_an_allocation_waits_until_others_have_left),
                cmocka_unit_test(test_memory_of_cuMemCreate_waits_until_others_have_left),
                cmocka_unit_test(test_a_context_that_was_answered_waits_under_the_ceiling),
                cmocka_unit_test(test_memory_that_was_answered_waits_under_the_ceiling),
                cmocka_unit_test(test_a_context_that_no_room_helps_is_out_of_memory),
                cmocka_unit_test(test_a_context_by_the_first_name_waits_for_no_room),
                cmocka_unit_test(test_elsewhere_nothing_waits_for_others),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
