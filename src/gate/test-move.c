/* SPDX-License-Identifier: Apache-2.0 */
/* Handing memory away and getting it back, as the manager asks. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/size.h"
#include "base/test.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"

FAKE_TEST(test_contents_and_addresses_survive_moves)
{
        fake_guest_start(GIB);
        fake_guest_fill();
        for (int round = 0; round < 3; round++) {
                fake_guest_move();
                fake_guest_check();
        }
        fake_guest_free();
}

FAKE_TEST(test_released_memory_is_free_for_others)
{
        size_t before, during, total;

        fake_guest_start(GIB);
        check(DRIVER(cuMemGetInfo_v2)(&before, &total) == CUDA_SUCCESS);
        fake_guest_fill();
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        fake_memory_drop();
        fake_guest_command(GATE_RELEASE);
        check(DRIVER(cuMemGetInfo_v2)(&during, &total) == CUDA_SUCCESS);
        check(during == before);
}

FAKE_TEST(test_what_closed_says_is_what_export_gives)
{
        struct instance_page *page = fake_guest_start(GIB);
        struct gate_closed closed;
        struct gate_result exported;
        uint64_t sum = 0;

        fake_guest_fill();
        closed = fake_close(FAKE_GUEST_TIMEOUT_MS);
        exported = fake_command(GATE_EXPORT);
        for (size_t i = 0; i < fake_memory.n; i++)
                sum += fake_memory.allocation[i].size;
        check(closed.n_allocations == fake_memory.n);
        check(closed.movable_bytes == sum && exported.bytes == sum);
        check(page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE] == sum);
        fake_guest_command(GATE_OPEN);
}

FAKE_TEST(test_many_allocations_travel_in_batches)
{
        static CUdeviceptr pointer[140];
        unsigned char value;

        fake_guest_start(GIB);
        for (int i = 0; i < 140; i++) {
                check(cuMemAlloc_v2(&pointer[i], 2 * MIB) == CUDA_SUCCESS);
                check(cuMemsetD8_v2(pointer[i], (unsigned char)i, 2 * MIB) == CUDA_SUCCESS);
        }
        fake_guest_move();
        for (int i = 0; i < 140; i++) {
                check(cuMemcpyDtoH_v2(&value, pointer[i] + MIB, 1) == CUDA_SUCCESS);
                check(value == (unsigned char)i);
        }
}

FAKE_TEST(test_a_release_can_be_undone_with_the_descriptors_and_the_memory_moved_again)
{
        fake_guest_start(GIB);
        fake_guest_fill();
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        fake_guest_command(GATE_RELEASE);
        check(fake_map().error == 0);
        fake_guest_command(GATE_OPEN);
        fake_memory_drop();
        fake_guest_check();
        fake_guest_move(); /* imported handles cannot be exported: their descriptors are */
        fake_guest_check();
}

/* What fails is undone: with @failures, @command answers an error and the guest's memory is whole. */
static void fail_once(const char *failures, enum gate_message command, const char *call)
{
        struct gate_result result;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", failures, 1) == 0);
        fake_guest_start(GIB);
        fake_guest_fill();
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        result = fake_command(command);
        check(result.error == EIO);
        check(strcmp(result.call, call) == 0);
        check(result.driver_code == 999);
        fake_guest_command(GATE_OPEN);
        fake_guest_check();
        fake_guest_move();
        fake_guest_check();
}

FAKE_TEST(test_an_export_that_fails_changes_nothing)
{
        fail_once("cuMemExportToShareableHandle@30=999", GATE_EXPORT,
                  "cuMemExportToShareableHandle");
}

FAKE_TEST(test_a_release_that_fails_half_way_is_undone)
{
        fail_once("cuMemUnmap@10=999", GATE_RELEASE, "cuMemUnmap");
}

FAKE_TEST(test_a_create_that_fails_half_way_can_be_tried_again)
{
        struct gate_result result;
        void *contents;

        check(setenv("OPENVGPU_FAULT", "gate-create=fail@7", 1) == 0);
        fake_guest_start(GIB);
        fake_guest_fill();
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        contents = fake_copy_out();
        fake_guest_command(GATE_RELEASE);
        result = fake_command(GATE_CREATE);
        check(result.error == EIO);
        check(fake_command(GATE_OPEN).error == EBUSY);
        fake_guest_command(GATE_CREATE);
        fake_copy_in(contents);
        fake_guest_command(GATE_OPEN);
        fake_guest_check();
}

FAKE_TEST(test_a_map_that_does_not_fit_is_undone_and_can_be_tried_again)
{
        fake_guest_start(GIB);
        fake_guest_fill();
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        fake_guest_command(GATE_RELEASE);
        fake_memory.allocation[5].size += 2 * MIB;
        check(fake_map().error == EINVAL);
        fake_memory.allocation[5].size -= 2 * MIB;
        fake_memory.n--; /* not all */
        check(fake_map().error == EINVAL);
        fake_memory.n++;
        check(fake_map().error == 0);
        fake_guest_command(GATE_OPEN);
        fake_guest_check();
}

#define PIECES_MAX 200

static CUdeviceptr pieces_new(size_t i)
{
        CUdeviceptr pointer;

        check(cuMemAlloc_v2(&pointer, 2 * MIB) == CUDA_SUCCESS);
        check(cuMemsetD8_v2(pointer, (unsigned char)(i + 1), 2 * MIB) == CUDA_SUCCESS);
        return pointer;
}

static void pieces_check(const CUdeviceptr *pointers, size_t n)
{
        unsigned char value;

        for (size_t i = 0; i < n; i++) {
                check(cuMemcpyDtoH_v2(&value, pointers[i] + MIB, 1) == CUDA_SUCCESS);
                check(value == (unsigned char)(i + 1));
        }
}

/* The driver refuses the piece @failing of @n: there is one answer, and then nothing is mapped. */
static void fail_map(size_t n, size_t failing)
{
        CUdeviceptr pointers[PIECES_MAX];
        struct gate_result result;
        char fault[32];

        snprintf(fault, sizeof(fault), "gate-map=fail@%zu", failing);
        check(setenv("OPENVGPU_FAULT", fault, 1) == 0);
        fake_guest_start(GIB);
        for (size_t i = 0; i < n; i++)
                pointers[i] = pieces_new(i);
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        fake_guest_command(GATE_RELEASE);
        result = fake_map();
        check(result.error == EIO && strcmp(result.call, "gate-map") == 0);
        check(fake_command(GATE_OPEN).error ==
              EBUSY); /* the next answer is not a late one of MAP */
        check(fake_map().error == 0);
        fake_guest_command(GATE_OPEN);
        pieces_check(pointers, n);
}

FAKE_TEST(test_a_map_of_one_batch_that_fails_is_answered_once)
{
        fail_map(60, 30);
}

FAKE_TEST(test_a_map_of_one_whole_batch_that_fails_is_answered_once)
{
        fail_map(64, 64);
}

FAKE_TEST(test_a_map_that_fails_with_one_piece_left_is_answered_once)
{
        fail_map(65, 64);
}

FAKE_TEST(test_a_map_that_fails_at_the_last_piece_is_answered_once)
{
        fail_map(65, 65);
}

FAKE_TEST(test_a_map_that_fails_in_the_first_of_four_batches_is_answered_once)
{
        fail_map(200, 1);
}

FAKE_TEST(test_a_map_that_fails_in_the_second_of_four_batches_is_answered_once)
{
        fail_map(200, 100);
}

FAKE_TEST(test_a_map_that_fails_in_the_third_of_four_batches_is_answered_once)
{
        fail_map(200, 192);
}

FAKE_TEST(test_a_map_that_fails_in_the_last_of_four_batches_is_answered_once)
{
        fail_map(200, 200);
}

/* The allocations from @first on, and below @end, of those that were exported. */
static struct gate_range range_of(const struct fake_memory *exported, size_t first, size_t end)
{
        return (struct gate_range){ exported->allocation[first].address,
                                    end < exported->n ? exported->allocation[end].address
                                                      : UINT64_MAX };
}

/* Room for one part at a time: created, and filled, before the next one is. */
FAKE_TEST(test_memory_comes_back_in_parts)
{
        static CUdeviceptr pointers[PIECES_MAX];
        static struct fake_memory exported;
        char *contents;

        fake_guest_start(GIB);
        for (size_t i = 0; i < PIECES_MAX; i++)
                pointers[i] = pieces_new(i);
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        exported = fake_memory;
        contents = fake_copy_out();
        fake_guest_command(GATE_RELEASE);
        for (size_t first = 0; first < PIECES_MAX; first += 70) {
                struct gate_range range = range_of(&exported, first, first + 70);
                struct gate_result result = fake_command_range(GATE_CREATE, range);
                bool is_last = first + 70 >= PIECES_MAX;

                check(result.error == 0);
                check(result.state == (is_last ? GATE_STATE_CLOSED : GATE_STATE_RELEASED));
                check(fake_memory.n == (is_last ? PIECES_MAX - first : 70));
                fake_copy_in(contents + 2 * MIB * first);
                check(is_last || fake_command(GATE_OPEN).error == EBUSY);
        }
        fake_guest_command(GATE_OPEN);
        pieces_check(pointers, PIECES_MAX);
}

/* Some of what others have left, and the rest is made anew; all of it can leave again. */
FAKE_TEST(test_given_memory_takes_the_place_of_created)
{
        static CUdeviceptr pointers[PIECES_MAX];
        static struct fake_memory exported;
        struct gate_result result;
        char *contents;

        fake_guest_start(GIB);
        for (size_t i = 0; i < PIECES_MAX; i++)
                pointers[i] = pieces_new(i);
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        exported = fake_memory;
        for (size_t i = 0; i < exported.n; i++)
                exported.fd[i] = dup(fake_memory.fd[i]); /* the others are closed */
        contents = fake_copy_out();
        fake_memory = exported;
        fake_guest_command(GATE_RELEASE);
        for (size_t first = 0; first < 128; first += GATE_BATCH_MAX) {
                result = fake_give(first, GATE_BATCH_MAX);
                check(result.error == 0 && result.state == GATE_STATE_RELEASED);
        }
        check(fake_command(GATE_OPEN).error == EBUSY);
        fake_copy_in(contents);
        result = fake_command_range(GATE_CREATE, range_of(&exported, 128, PIECES_MAX));
        check(result.error == 0 && result.state == GATE_STATE_CLOSED);
        check(fake_memory.n == PIECES_MAX - 128);
        fake_copy_in(contents + 2 * MIB * 128);
        fake_guest_command(GATE_OPEN);
        pieces_check(pointers, PIECES_MAX);

        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        check(fake_memory.n == PIECES_MAX);
        contents = fake_copy_out();
        fake_guest_command(GATE_RELEASE);
        fake_guest_command(GATE_CREATE);
        fake_copy_in(contents);
        fake_guest_command(GATE_OPEN);
        pieces_check(pointers, PIECES_MAX);
}

/* As it must stay what it is: of the kind that the application has asked for. */
FAKE_TEST(test_memory_of_cuMemCreate_is_not_given)
{
        const CUmemAllocationProp prop = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
        };
        CUmemGenericAllocationHandle handle;

        fake_guest_start(GIB);
        check(cuMemCreate(&handle, 2 * MIB, &prop, 0) == CUDA_SUCCESS);
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        check(fake_memory.n == 1);
        fake_guest_command(GATE_RELEASE);
        check(fake_give(0, 1).error == EINVAL);
        check(fake_map().error == 0);
        fake_guest_command(GATE_OPEN);
}

/* What the program does not share is exported all the same: to the manager. */
FAKE_TEST(test_memory_that_is_not_to_be_exported_moves)
{
        const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                           .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        unsigned char contents[2] = { 0, 0 };
        CUmemGenericAllocationHandle handle;
        struct instance_page *page = fake_guest_start(GIB);
        CUmemAllocationProp answer;
        CUdeviceptr address;
        int fd;

        check(cuMemCreate(&handle, 2 * MIB, &prop, 0) == CUDA_SUCCESS);
        check(cuMemAddressReserve(&address, 2 * MIB, 0, 0, 0) == CUDA_SUCCESS);
        check(cuMemMap(address, 2 * MIB, 0, handle, 0) == CUDA_SUCCESS);
        check(cuMemSetAccess(address, 2 * MIB, &access, 1) == CUDA_SUCCESS);
        check(cuMemsetD8_v2(address, 42, 2 * MIB) == CUDA_SUCCESS);
        check(page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE] == 2 * MIB);
        fake_guest_move();
        check(cuMemcpyDtoH_v2(contents, address + 2 * MIB - 2, 2) == CUDA_SUCCESS);
        check(contents[0] == 42 && contents[1] == 42);
        check(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                           0) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemGetAllocationPropertiesFromHandle(&answer, handle) == CUDA_SUCCESS);
        check(answer.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE);
        check(cuMemUnmap(address, 2 * MIB) == CUDA_SUCCESS);
        check(cuMemRelease(handle) == CUDA_SUCCESS);
        check(fake_guest_used(page) == 0);
}

FAKE_TEST(test_a_part_that_cannot_be_created_leaves_the_others)
{
        static CUdeviceptr pointers[PIECES_MAX];
        static struct fake_memory exported;
        char *contents;

        check(setenv("OPENVGPU_FAULT", "gate-create=fail@150", 1) == 0);
        fake_guest_start(GIB);
        for (size_t i = 0; i < PIECES_MAX; i++)
                pointers[i] = pieces_new(i);
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        exported = fake_memory;
        contents = fake_copy_out();
        fake_guest_command(GATE_RELEASE);
        check(fake_command_range(GATE_CREATE, range_of(&exported, 0, 120)).error == 0);
        fake_copy_in(contents);
        check(fake_command_range(GATE_CREATE, range_of(&exported, 120, PIECES_MAX)).error == EIO);
        check(fake_command_range(GATE_CREATE, range_of(&exported, 120, PIECES_MAX)).error == 0);
        fake_copy_in(contents + 2 * MIB * 120);
        fake_guest_command(GATE_OPEN);
        pieces_check(pointers, PIECES_MAX);
}

/* What was filled stays, what was not is given back, and comes anew. */
FAKE_TEST(test_a_part_can_be_released_again)
{
        static CUdeviceptr pointers[PIECES_MAX];
        static struct fake_memory exported;
        char *contents;

        fake_guest_start(GIB);
        for (size_t i = 0; i < PIECES_MAX; i++)
                pointers[i] = pieces_new(i);
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        exported = fake_memory;
        contents = fake_copy_out();
        check(fake_command_range(GATE_RELEASE, range_of(&exported, 0, 150)).error == 0);
        check(fake_command_range(GATE_CREATE, range_of(&exported, 0, 120)).error == 0);
        check(fake_command_range(GATE_RELEASE, range_of(&exported, 60, 120)).error == 0);
        check(fake_command_range(GATE_CREATE, range_of(&exported, 0, 60)).error == 0);
        check(fake_memory.n == 0); /* it has memory: that is not made anew */
        check(fake_command_range(GATE_RELEASE, range_of(&exported, 0, 60)).error == 0);
        check(fake_command_range(GATE_CREATE, range_of(&exported, 0, 150)).error == 0);
        check(fake_memory.n == 150);
        fake_copy_in(contents);
        fake_guest_command(GATE_OPEN);
        pieces_check(pointers, PIECES_MAX);
}

/* Descriptors of this process whose file has no name, as those of memory have here. */
static size_t memory_descriptors(void)
{
        DIR *directory = opendir("/proc/self/fd");
        const struct dirent *entry;
        size_t n = 0;

        check(directory);
        while ((entry = readdir(directory))) {
                char target[512];
                ssize_t size =
                        readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);

                target[size > 0 ? size : 0] = '\0';
                n += strstr(target, "(deleted)") != NULL;
        }
        closedir(directory);
        return n;
}

static void release_and_map(void)
{
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        fake_guest_command(GATE_RELEASE);
        check(fake_map().error == 0);
        fake_guest_command(GATE_OPEN);
        fake_memory_drop();
}

FAKE_TEST(test_many_mapped_pieces_keep_no_descriptors)
{
        static CUdeviceptr pointers[PIECES_MAX];
        size_t before;

        fake_guest_start(GIB);
        for (size_t i = 0; i < PIECES_MAX; i++)
                pointers[i] = pieces_new(i);
        before = memory_descriptors();
        release_and_map();
        check(memory_descriptors() == before);
        pieces_check(pointers, PIECES_MAX);
        for (int round = 0; round < 2; round++) { /* and they can be exported all the same */
                fake_guest_move();
                pieces_check(pointers, PIECES_MAX);
        }
}

FAKE_TEST(test_without_room_for_a_copy_a_small_mapped_piece_stays_and_a_large_one_is_exported)
{
        CUdeviceptr small, large;
        struct gate_result result;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", "cuMemCreate@3=2", 1) == 0);
        fake_guest_start(GIB);
        check(cuMemAlloc_v2(&large, 64 * MIB) == CUDA_SUCCESS);
        small = pieces_new(0);
        release_and_map();
        fake_guest_close();
        result = fake_command(GATE_EXPORT);
        check(result.error == EIO && result.driver_code == CUDA_ERROR_OUT_OF_MEMORY);
        check(strcmp(result.call, "cuMemCreate") == 0);
        fake_guest_command(GATE_OPEN);
        pieces_check(&small, 1);
        fake_guest_move(); /* now there is room */
        pieces_check(&small, 1);
        check(cuMemFree_v2(large) == CUDA_SUCCESS);
}

static char fault_directory[] = "/tmp/vgpu-test-XXXXXX";

static void fault_path(char path[128], const char *point)
{
        snprintf(path, 128, "%s/%s", fault_directory, point);
}

/* The gate waits at @point, the @n-th time that it comes there. */
static void pause_at(const char *point, int n)
{
        char fault[64];

        check(mkdtemp(fault_directory));
        check(setenv("OPENVGPU_FAULT_DIR", fault_directory, 1) == 0);
        snprintf(fault, sizeof(fault), "%s=pause@%d", point, n);
        check(setenv("OPENVGPU_FAULT", fault, 1) == 0);
}

static void wait_for_pause(const char *point)
{
        char path[128];

        fault_path(path, point);
        while (access(path, F_OK) < 0)
                check(usleep(1000) == 0);
}

static void go_on(const char *point)
{
        char path[128];

        fault_path(path, point);
        check(unlink(path) == 0);
        check(rmdir(fault_directory) == 0);
}

static int child_memory_descriptors(void)
{
        pid_t child = fork();
        int status;

        if (child == 0) {
                packet_close_fds(fake_memory.fd, fake_memory.n); /* those of the manager, here */
                _exit((int)memory_descriptors());
        }
        check(waitpid(child, &status, 0) == child && WIFEXITED(status));
        return WEXITSTATUS(status);
}

static void *export(void *unused)
{
        (void)unused;
        fake_guest_command(GATE_EXPORT);
        return NULL;
}

FAKE_TEST(test_a_child_that_is_forked_in_an_export_holds_no_memory)
{
        pthread_t thread;
        int before;

        pause_at("gate-export", 10);
        fake_guest_start(GIB);
        before = child_memory_descriptors();
        fake_guest_fill();
        fake_guest_close();
        check(pthread_create(&thread, NULL, export, NULL) == 0);
        wait_for_pause("gate-export");
        check(child_memory_descriptors() == before);
        go_on("gate-export");
        check(pthread_join(thread, NULL) == 0);
        fake_guest_command(GATE_OPEN);
        fake_guest_check();
}

static void *map(void *unused)
{
        (void)unused;
        check(fake_map().error == 0);
        return NULL;
}

FAKE_TEST(test_a_child_that_is_forked_in_a_map_or_after_it_holds_no_memory)
{
        pthread_t thread;
        CUdeviceptr large;
        int before;

        pause_at("gate-map", 10);
        fake_guest_start(GIB);
        before = child_memory_descriptors();
        check(cuMemAlloc_v2(&large, 64 * MIB) == CUDA_SUCCESS); /* its descriptor is kept */
        fake_guest_fill();
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        fake_guest_command(GATE_RELEASE);
        check(pthread_create(&thread, NULL, map, NULL) == 0);
        wait_for_pause("gate-map");
        check(child_memory_descriptors() == before);
        go_on("gate-map");
        check(pthread_join(thread, NULL) == 0);
        fake_guest_command(GATE_OPEN);
        check(child_memory_descriptors() == before);
        fake_guest_check();
}

FAKE_TEST(test_steps_out_of_order_are_refused_and_change_nothing)
{
        fake_guest_start(GIB);
        fake_guest_fill();
        check(fake_command(GATE_EXPORT).error == EBUSY);
        check(fake_command(GATE_RELEASE).error == EBUSY);
        check(fake_command(GATE_CREATE).error == EBUSY);
        check(fake_command(GATE_OPEN).error == 0);
        fake_guest_close();
        fake_guest_close();
        check(fake_command(GATE_CREATE).error == EBUSY);
        fake_guest_command(GATE_OPEN);
        fake_guest_check();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_contents_and_addresses_survive_moves),
                cmocka_unit_test(test_released_memory_is_free_for_others),
                cmocka_unit_test(test_what_closed_says_is_what_export_gives),
                cmocka_unit_test(test_many_allocations_travel_in_batches),
                cmocka_unit_test(
                        test_a_release_can_be_undone_with_the_descriptors_and_the_memory_moved_again),
                cmocka_unit_test(test_an_export_that_fails_changes_nothing),
                cmocka_unit_test(test_a_release_that_fails_half_way_is_undone),
                cmocka_unit_test(test_a_create_that_fails_half_way_can_be_tried_again),
                cmocka_unit_test(test_a_map_that_does_not_fit_is_undone_and_can_be_tried_again),
                cmocka_unit_test(test_a_map_of_one_batch_that_fails_is_answered_once),
                cmocka_unit_test(test_a_map_of_one_whole_batch_that_fails_is_answered_once),
                cmocka_unit_test(test_a_map_that_fails_with_one_piece_left_is_answered_once),
                cmocka_unit_test(test_a_map_that_fails_at_the_last_piece_is_answered_once),
                cmocka_unit_test(
                        test_a_map_that_fails_in_the_first_of_four_batches_is_answered_once),
                cmocka_unit_test(
                        test_a_map_that_fails_in_the_second_of_four_batches_is_answered_once),
                cmocka_unit_test(
                        test_a_map_that_fails_in_the_third_of_four_batches_is_answered_once),
                cmocka_unit_test(
                        test_a_map_that_fails_in_the_last_of_four_batches_is_answered_once),
                cmocka_unit_test(test_memory_comes_back_in_parts),
                cmocka_unit_test(test_given_memory_takes_the_place_of_created),
                cmocka_unit_test(test_memory_of_cuMemCreate_is_not_given),
                cmocka_unit_test(test_memory_that_is_not_to_be_exported_moves),
                cmocka_unit_test(test_a_part_that_cannot_be_created_leaves_the_others),
                cmocka_unit_test(test_a_part_can_be_released_again),
                cmocka_unit_test(test_many_mapped_pieces_keep_no_descriptors),
                cmocka_unit_test(
                        test_without_room_for_a_copy_a_small_mapped_piece_stays_and_a_large_one_is_exported),
                cmocka_unit_test(test_a_child_that_is_forked_in_an_export_holds_no_memory),
                cmocka_unit_test(test_a_child_that_is_forked_in_a_map_or_after_it_holds_no_memory),
                cmocka_unit_test(test_steps_out_of_order_are_refused_and_change_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
