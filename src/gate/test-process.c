/* SPDX-License-Identifier: Apache-2.0 */
/* The gate in its process: joining, children, threads, how functions are found, and manners. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/caller.h"
#include "gate/entry.h"
#include "gate/fake-manager.h"

FAKE_TEST(test_a_process_without_a_vgpu_works_without_a_manager)
{
        CUdeviceptr pointer;

        fake_host("1xH200:1G");
        fake_context();
        check(cuMemAlloc_v2(&pointer, 8 * MIB) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
}

FAKE_TEST(test_in_a_vgpu_the_drivers_own_checkpoint_is_refused)
{
        CUprocessState state;

        fake_host("2xH200:1G");
        fake_manager_start(GIB);
        check(cuCheckpointProcessRestore(getpid(), NULL) == CUDA_ERROR_NOT_SUPPORTED);
        fake_context();
        check(cuCheckpointProcessLock(getpid(), NULL) == CUDA_ERROR_NOT_SUPPORTED);
        check(cuCheckpointProcessCheckpoint(getpid(), NULL) == CUDA_ERROR_NOT_SUPPORTED);
        check(cuCheckpointProcessRestore(getpid(), NULL) == CUDA_ERROR_NOT_SUPPORTED);
        check(cuCheckpointProcessUnlock(getpid(), NULL) == CUDA_ERROR_NOT_SUPPORTED);
        check(cuCheckpointProcessGetState(getpid(), &state) == CUDA_SUCCESS);
        check(state == CU_PROCESS_STATE_RUNNING);
}

FAKE_TEST(test_elsewhere_the_drivers_own_checkpoint_works)
{
        fake_host("1xH200:1G");
        fake_context();
        check(cuCheckpointProcessLock(getpid(), NULL) == CUDA_SUCCESS);
        check(cuCheckpointProcessCheckpoint(getpid(), NULL) == CUDA_SUCCESS);
        check(cuCheckpointProcessRestore(getpid(), NULL) == CUDA_SUCCESS);
        check(cuCheckpointProcessUnlock(getpid(), NULL) == CUDA_SUCCESS);
        check(cuCtxSynchronize() == CUDA_SUCCESS);
}

FAKE_TEST(test_joining_tells_who_we_are)
{
        struct gate_join join;

        fake_host("1xH200:1G");
        fake_manager_start(GIB);
        check(cuInit(0) == CUDA_SUCCESS);
        join = fake_manager_wait_for_join();
        check(join.state == GATE_STATE_OPEN);
        check(join.start_time > 0 && join.driver_version >= 12000);
        check(strcmp(join.vgpu, "11112222-3333-4444-5555-666677778888") == 0);
}

FAKE_TEST(test_a_refused_process_gets_an_error_and_lives_on)
{
        CUdeviceptr pointer;

        fake_host("1xH200:1G");
        fake_manager_start(GIB);
        fake_manager_refuse("not yours");
        check(cuInit(0) == CUDA_ERROR_NOT_PERMITTED);
        check(cuMemAlloc_v2(&pointer, 1) != CUDA_SUCCESS);
}

FAKE_TEST(test_without_its_manager_a_process_gets_an_error_and_may_try_again)
{
        fake_host("1xH200:1G");
        check(setenv("OPENVGPU_VGPU", "x", 1) == 0);
        check(setenv("OPENVGPU_RUN", "/nonexistent", 1) == 0);
        check(cuInit(0) == CUDA_ERROR_SYSTEM_NOT_READY);
        fake_manager_start(GIB);
        check(cuInit(0) == CUDA_SUCCESS);
}

FAKE_TEST(test_without_a_driver_calls_are_refused)
{
        int version;

        check(setenv("OPENVGPU_DRIVER", "/nonexistent/libcuda.so.1", 1) == 0);
        check(cuInit(0) == CUDA_ERROR_NO_DEVICE);
        check(cuDriverGetVersion(&version) == CUDA_ERROR_NO_DEVICE);
}

FAKE_TEST(test_only_one_joins_when_many_threads_initialise)
{
        pthread_t thread[8];
        void *result;

        fake_host("1xH200:1G");
        fake_manager_start(GIB);
        for (int i = 0; i < 8; i++)
                check(pthread_create(&thread[i], NULL, (void *(*)(void *))(void (*)(void))cuInit,
                                     NULL) == 0);
        for (int i = 0; i < 8; i++) {
                check(pthread_join(thread[i], &result) == 0);
                check((CUresult)(uintptr_t)result == CUDA_SUCCESS);
        }
        fake_manager_wait_for_join(); /* a second one would have found nobody to answer */
}

/* How programs find functions. */

FAKE_TEST(test_functions_that_the_driver_names_lead_through_the_gate)
{
        static const struct {
                const char *name;
                int version;
                uint64_t flags;
                void (*ours)(void);
        } asked[] = {
                { "cuMemAlloc", 3020, 0, (void (*)(void))cuMemAlloc_v2 },
                { "cuMemAllocAsync", 11020, 2, (void (*)(void))cuMemAllocAsync_ptsz },
                { "cuGetProcAddress", 12000, 0, (void (*)(void))cuGetProcAddress_v2 },
                { "cuGetProcAddress", 11030, 0, (void (*)(void))cuGetProcAddress },
                { "cuLaunchKernel", 4000, 0, (void (*)(void))cuLaunchKernel },
                { "cuInit", 2000, 0, (void (*)(void))cuInit },
        };
        void *function;
        int status;

        fake_host("1xH200:1G");
        for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
                check(cuGetProcAddress_v2(asked[i].name, &function, asked[i].version,
                                          asked[i].flags, &status) == CUDA_SUCCESS);
                check(memcmp(&function, &asked[i].ours, sizeof(function)) == 0);
        }
        check(cuGetProcAddress_v2("cuInit", &function, 2000, 0, NULL) == CUDA_SUCCESS);
        function = &status;
        (void)cuGetProcAddress_v2("cuNoSuchThing", &function, 12000, 0, &status);
        check(function == NULL);
}

static CUresult younger_than_our_table(int a, double b, int c, int d, int e, int f, int g, int h,
                                       int i, float j)
{
        return a == 1 && b == 2.5 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7 && h == 8 &&
                               i == 9 && j == 10.5f
                       ? CUDA_SUCCESS
                       : CUDA_ERROR_INVALID_VALUE;
}

static uint32_t seen_inside;

static CUresult look_who_is_inside(void)
{
        return caller_find_busy(&seen_inside) ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

static void *to_address(void (*function)(void))
{
        void *address;

        memcpy(&address, &function, sizeof(address));
        return address;
}

FAKE_TEST(test_a_function_that_our_table_does_not_know_goes_through_a_spare_stub)
{
        __typeof__(&younger_than_our_table) call;
        __typeof__(&look_who_is_inside) look;
        void *real = to_address((void (*)(void))younger_than_our_table), *stub;
        int version;

        fake_host("1xH200:1G");
        check(cuDriverGetVersion(&version) == CUDA_SUCCESS);
        stub = entry_stub_for(real, "cuYounger");
        check(stub != real);
        check(entry_stub_for(real, "cuYounger") == stub);
        memcpy(&call, &stub, sizeof(call));
        check(call(1, 2.5, 3, 4, 5, 6, 7, 8, 9, 10.5f) == CUDA_SUCCESS);

        stub = entry_stub_for(to_address((void (*)(void))look_who_is_inside), "cuLook");
        memcpy(&look, &stub, sizeof(look));
        check(look() == CUDA_SUCCESS);
        check(strcmp(entry_name(seen_inside), "cuLook") == 0);
        check(!caller_find_busy(&seen_inside));
}

FAKE_TEST(test_a_driver_with_more_news_than_spare_stubs_still_works)
{
        static char news[ENTRY_SPARES + 1];
        int version;

        fake_host("1xH200:1G");
        check(cuDriverGetVersion(&version) == CUDA_SUCCESS);
        for (int i = 0; i < ENTRY_SPARES; i++)
                check(entry_stub_for(&news[i], "cuNew") != &news[i]);
        check(entry_stub_for(&news[ENTRY_SPARES], "cuNew") == &news[ENTRY_SPARES]);
}

/* Calls within calls: deeper than there are frames. */

static CUresult (*nest)(int depth);

static CUresult nested(int depth)
{
        return depth == 0 ? CUDA_SUCCESS : nest(depth - 1);
}

FAKE_TEST(test_calls_within_calls_may_be_deeper_than_the_record_is_long)
{
        void *stub;
        int version;
        uint32_t entry;

        fake_host("1xH200:1G");
        check(cuDriverGetVersion(&version) == CUDA_SUCCESS);
        stub = entry_stub_for(to_address((void (*)(void))nested), "cuNested");
        memcpy(&nest, &stub, sizeof(nest));
        check(nest(200) == CUDA_SUCCESS);
        check(!caller_find_busy(&entry));
}

FAKE_TEST(test_errno_is_as_it_was)
{
        CUdeviceptr pointer;

        fake_host("1xH200:1G");
        fake_manager_start(GIB);
        fake_context();
        check(cuMemAlloc_v2(&pointer, 256) == CUDA_SUCCESS); /* the driver reserves the arena */
        errno = 4711;
        check(cuMemAlloc_v2(&pointer, 256) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(errno == 4711);
}

/* Threads. */

static void *call_once(void *argument)
{
        int version;

        (void)argument;
        check(cuDriverGetVersion(&version) == CUDA_SUCCESS);
        return NULL;
}

FAKE_TEST(test_threads_that_end_leave_no_record)
{
        fake_host("1xH200:1G");
        for (int round = 0; round < 200; round++) {
                pthread_t thread[4];

                for (int i = 0; i < 4; i++)
                        check(pthread_create(&thread[i], NULL, call_once, NULL) == 0);
                for (int i = 0; i < 4; i++)
                        check(pthread_join(thread[i], NULL) == 0);
        }
        check(caller_count() <= 1);
}

/* Children. */

static int wait_for(pid_t child)
{
        int status;

        check(waitpid(child, &status, 0) == child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

FAKE_TEST(test_a_forked_child_touches_nothing_of_its_parent)
{
        struct instance_page *page;
        CUdeviceptr pointer;
        pid_t child;

        fake_host("1xH200:1G");
        page = fake_manager_start(GIB);
        fake_context();
        check(cuMemAlloc_v2(&pointer, 8 * MIB) == CUDA_SUCCESS);
        child = fork();
        if (child == 0) {
                CUdeviceptr other;

                if (cuMemAlloc_v2(&other, 4 * MIB) == CUDA_SUCCESS)
                        _exit(1); /* the driver cannot work here */
                if (cuMemFree_v2(pointer) == CUDA_SUCCESS)
                        _exit(2);
                (void)cuInit(0); /* must not join either: nobody would answer */
                _exit(0);
        }
        check(wait_for(child) == 0);
        check(page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE] == 8 * MIB);
        check(fake_close(1000).error == 0); /* the connection is the parent's alone */
        check(fake_command(GATE_OPEN).error == 0);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
}

FAKE_TEST(test_a_child_of_a_closed_process_does_not_wait)
{
        int version;
        pid_t child;

        fake_host("1xH200:1G");
        fake_manager_start(GIB);
        fake_context();
        check(fake_close(1000).error == 0);
        child = fork();
        if (child == 0) {
                alarm(5);
                (void)cuDriverGetVersion(&version);
                _exit(0);
        }
        check(wait_for(child) == 0);
        check(fake_command(GATE_OPEN).error == 0);
}

FAKE_TEST(test_a_child_joins_by_itself_when_its_parent_had_not)
{
        int version;
        pid_t child;

        fake_host("1xH200:1G");
        check(cuDriverGetVersion(&version) == CUDA_SUCCESS); /* the gate is awake, CUDA is not */
        child = fork();
        if (child == 0) {
                fake_manager_start(GIB);
                _exit(cuInit(0) == CUDA_SUCCESS &&
                                      fake_manager_wait_for_join().state == GATE_STATE_OPEN
                              ? 0
                              : 1);
        }
        check(wait_for(child) == 0);
}

/* The library itself, preloaded into programs that know nothing of it. */

static int run_preloaded(const char *program, const char *argument)
{
        pid_t child = fork();

        if (child == 0) {
                close_range(3, ~0u, 0); /* what the test itself inherited */
                setenv("LD_PRELOAD", getenv("OPENVGPU_TEST_GATE"), 1);
                execl(program, program, argument, (char *)NULL);
                _exit(127);
        }
        return wait_for(child);
}

FAKE_TEST(test_a_program_without_cuda_has_no_thread_and_no_descriptor_of_ours)
{
        if (!getenv("OPENVGPU_TEST_GATE"))
                return;
        setenv("OPENVGPU_VGPU", "x", 1); /* with no manager: any attempt to join would be seen */
        check(run_preloaded("/proc/self/exe", "--count") == 0);
}

FAKE_TEST(test_every_name_of_the_driver_opens_the_gate)
{
        if (!getenv("OPENVGPU_TEST_GATE"))
                return;
        check(run_preloaded("/proc/self/exe", "libcuda.so.1") == 0);
        check(run_preloaded("/proc/self/exe", "libcuda.so") == 0);
}

/* As a program that opens the driver by @name: is it the gate, and does it work? */
static int open_driver(const char *name)
{
        void *library = dlopen(name, RTLD_NOW);
        void *symbol = library ? dlsym(library, "cuDriverGetVersion") : NULL;
        __typeof__(&cuDriverGetVersion) get_version;
        Dl_info info;
        int version;

        if (!symbol || !dladdr(symbol, &info))
                return 1;
        memcpy(&get_version, &symbol, sizeof(get_version));
        return strcmp(info.dli_fname, getenv("LD_PRELOAD")) == 0 &&
                               get_version(&version) == CUDA_SUCCESS
                       ? 0
                       : 1;
}

static unsigned int count_entries(const char *directory)
{
        DIR *listing = opendir(directory);
        unsigned int n = 0;

        check(listing);
        while (readdir(listing))
                n++;
        closedir(listing);
        return n - 3; /* ".", ".." and, in /proc/self/fd, the listing itself */
}

/* As a program without CUDA: one thread, and the three descriptors that every program has. */
static int count_threads_and_descriptors(void)
{
        return count_entries("/proc/self/task") == 0 && count_entries("/proc/self/fd") == 3 ? 0 : 1;
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_process_without_a_vgpu_works_without_a_manager),
                cmocka_unit_test(test_in_a_vgpu_the_drivers_own_checkpoint_is_refused),
                cmocka_unit_test(test_elsewhere_the_drivers_own_checkpoint_works),
                cmocka_unit_test(test_joining_tells_who_we_are),
                cmocka_unit_test(test_a_refused_process_gets_an_error_and_lives_on),
                cmocka_unit_test(
                        test_without_its_manager_a_process_gets_an_error_and_may_try_again),
                cmocka_unit_test(test_without_a_driver_calls_are_refused),
                cmocka_unit_test(test_only_one_joins_when_many_threads_initialise),
                cmocka_unit_test(test_functions_that_the_driver_names_lead_through_the_gate),
                cmocka_unit_test(
                        test_a_function_that_our_table_does_not_know_goes_through_a_spare_stub),
                cmocka_unit_test(test_a_driver_with_more_news_than_spare_stubs_still_works),
                cmocka_unit_test(test_calls_within_calls_may_be_deeper_than_the_record_is_long),
                cmocka_unit_test(test_errno_is_as_it_was),
                cmocka_unit_test(test_threads_that_end_leave_no_record),
                cmocka_unit_test(test_a_forked_child_touches_nothing_of_its_parent),
                cmocka_unit_test(test_a_child_of_a_closed_process_does_not_wait),
                cmocka_unit_test(test_a_child_joins_by_itself_when_its_parent_had_not),
                cmocka_unit_test(
                        test_a_program_without_cuda_has_no_thread_and_no_descriptor_of_ours),
                cmocka_unit_test(test_every_name_of_the_driver_opens_the_gate),
        };

        if (argc == 2 && strcmp(argv[1], "--count") == 0)
                return count_threads_and_descriptors();
        if (argc == 2 && strncmp(argv[1], "libcuda.so", 10) == 0)
                return open_driver(argv[1]);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
