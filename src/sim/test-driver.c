/* SPDX-License-Identifier: Apache-2.0 */
/* The driver itself: what works before cuInit(), entry points by name, failures on demand. */

#include <sys/mman.h>

#include "sim/test-guest.h"

static void call_before_init(int socket)
{
        CUprocessState process_state;
        CUdeviceptr pointer;
        CUcontext context;
        const char *text;
        const void *table;
        void *function;
        int number;

        (void)socket;
        must(cuDriverGetVersion(&number));
        must_equal(number, 13000);
        must(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
        must_equal(strcmp(text, "CUDA_ERROR_OUT_OF_MEMORY"), 0);
        must_equal(cuGetErrorName(12345, &text), CUDA_ERROR_INVALID_VALUE);
        must(cuGetProcAddress_v2("cuInit", &function, 2000, 0, NULL));
        must_equal(cuGetExportTable(&table, NULL), CUDA_ERROR_INVALID_VALUE);
        must_equal(cuDeviceGetCount(&number), CUDA_ERROR_NOT_INITIALIZED);
        must_equal(cuMemAlloc_v2(&pointer, 1), CUDA_ERROR_NOT_INITIALIZED);
        must_equal(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
        must_equal(cuCheckpointProcessGetState(getpid(), &process_state),
                   CUDA_ERROR_NOT_INITIALIZED);
        must_equal(cuInit(1), CUDA_ERROR_INVALID_VALUE);
        must(cuInit(0));
        must(cuInit(0));
        must(cuDeviceGetCount(&number));
        must(cuCtxGetCurrent(&context));
        must_equal(context == NULL, 1);
        must_equal(cuMemAlloc_v2(&pointer, 1), CUDA_ERROR_INVALID_CONTEXT);
}

static unsigned int count(const char *text, const char *part)
{
        unsigned int n = 0;

        while ((text = strstr(text, part))) {
                text++;
                n++;
        }
        return n;
}

/* What programs of the CUDA runtime, and those with kernels of their own, come to. */
static void call_what_is_not_simulated(int socket)
{
        int fd = memfd_create("stderr", 0), old = dup(STDERR_FILENO);
        const CUuuid id = { { 1 } };
        char told[4096] = "";
        CUfunction function;
        const void *table;
        CUcontext context;
        CUmodule module;

        (void)socket;
        must(cuInit(0));
        must(cuDevicePrimaryCtxRetain(&context, 0));
        must(cuCtxSetCurrent(context));
        must(cuModuleLoadData(&module, "image"));
        must_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
        for (int i = 0; i < 2; i++) {
                must_equal(cuGetExportTable(&table, &id), CUDA_ERROR_INVALID_VALUE);
                must_equal(cuModuleGetFunction(&function, module, "mine"), CUDA_ERROR_NOT_FOUND);
        }
        must_equal(dup2(old, STDERR_FILENO), STDERR_FILENO);
        must_equal(pread(fd, told, sizeof(told) - 1, 0) > 0, 1);
        must_equal(count(told, "CUDA runtime"), 1);
        must_equal(count(told, "no kernel 'mine'"), 1);
        must_equal(count(told, "docs/simulated-gpu.md"), 2);
}

static void test_what_is_not_simulated_is_told_once(void **state)
{
        (void)state;
        guest_run(call_what_is_not_simulated);
}

static void test_before_init_only_a_few_calls_work(void **state)
{
        (void)state;
        guest_run(call_before_init);
}

CUDA_API CUresult cuMemFree(unsigned int pointer);
CUDA_API CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from, size_t size);
CUDA_API CUresult cuLaunchKernel_ptsz(void);
CUDA_API CUresult cuTexRefCreate(void **reference);

#define ADDRESS(name) ((void *)(uintptr_t) & (name))

static void test_names_give_the_entry_point_of_the_version(void **state)
{
        const struct {
                const char *name;
                int version;
                uint64_t flags;
                void *function;
                int status; /* CUdriverProcAddressQueryResult */
        } cases[] = {
                { "cuMemAlloc", 3020, 0, ADDRESS(cuMemAlloc_v2), 0 },
                { "cuMemAlloc", 13000, 2, ADDRESS(cuMemAlloc_v2), 0 },
                { "cuMemFree", 2000, 0, ADDRESS(cuMemFree), 0 },
                { "cuCtxCreate", 3020, 0, ADDRESS(cuCtxCreate_v2), 0 },
                { "cuCtxCreate", 13000, 0, ADDRESS(cuCtxCreate_v4), 0 },
                { "cuCtxDestroy", 3020, 0, ADDRESS(cuCtxDestroy), 0 },
                { "cuCtxDestroy", 13000, 0, ADDRESS(cuCtxDestroy_v2), 0 },
                { "cuCtxSynchronize", 3020, 0, ADDRESS(cuCtxSynchronize), 0 },
                { "cuCtxSynchronize", 13000, 0, ADDRESS(cuCtxSynchronize_v2), 0 },
                { "cuGetProcAddress", 11030, 0, ADDRESS(cuGetProcAddress), 0 },
                { "cuGetProcAddress", 12000, 2, ADDRESS(cuGetProcAddress_v2), 0 },
                { "cuStreamBeginCapture", 10000, 0, ADDRESS(cuStreamBeginCapture), 0 },
                { "cuStreamBeginCapture", 10010, 0, ADDRESS(cuStreamBeginCapture_v2), 0 },
                { "cuStreamGetCaptureInfo", 13000, 0, ADDRESS(cuStreamGetCaptureInfo_v3), 0 },
                { "cuMemPrefetchAsync", 13000, 0, ADDRESS(cuMemPrefetchAsync_v2), 0 },
                { "cuDeviceGetUuid", 13000, 0, ADDRESS(cuDeviceGetUuid_v2), 0 },
                { "cuIpcOpenMemHandle", 13000, 0, ADDRESS(cuIpcOpenMemHandle_v2), 0 },
                { "cuMemHostRegister", 13000, 0, ADDRESS(cuMemHostRegister_v2), 0 },
                { "cuMemcpyHtoD", 13000, 2, ADDRESS(cuMemcpyHtoD_v2_ptds), 0 },
                { "cuMemcpyHtoD", 13000, 0, ADDRESS(cuMemcpyHtoD_v2), 0 },
                { "cuLaunchKernel", 13000, 2, ADDRESS(cuLaunchKernel_ptsz), 0 },
                { "cuTexRefCreate", 13000, 0, ADDRESS(cuTexRefCreate), 0 },
                { "cuMemCreate", 3020, 0, NULL, 2 },
                { "cuMemAlloc_v2", 13000, 0, NULL, 1 },
                { "cuNoSuchThing", 13000, 0, NULL, 1 },
                { "", 13000, 0, NULL, 1 },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                void *function = &function;
                int status = -1;
                CUresult result = cuGetProcAddress_v2(cases[i].name, &function, cases[i].version,
                                                      cases[i].flags, &status);

                if (result || function != cases[i].function || status != cases[i].status)
                        fail_msg("%s at %d: result %d, status %d, %s function", cases[i].name,
                                 cases[i].version, (int)result, status,
                                 function == cases[i].function ? "right" : "wrong");
        }
        assert_int_equal(cuGetProcAddress_v2("cuInit", &(void *){ NULL }, 14000, 0, NULL),
                         CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(cuGetProcAddress("cuNoSuchThing", &(void *){ NULL }, 13000, 0),
                         CUDA_ERROR_NOT_FOUND);
}

static void test_what_is_not_simulated_says_so(void **state)
{
        (void)state;
        assert_int_equal(cuTexRefCreate(&(void *){ NULL }), CUDA_ERROR_NOT_SUPPORTED);
}

static void fail_on_demand(int socket)
{
        CUdeviceptr pointer;
        CUstream stream;

        (void)socket;
        (void)setenv("OPENVGPU_SIM_FAIL", "cuMemAlloc_v2@2=2,cuStreamCreate@1=999,nothing,cuX@1=1",
                     1);
        (void)guest_init(0);
        must(cuMemAlloc_v2(&pointer, 100));
        must_equal(cuMemAlloc_v2(&pointer, 100), CUDA_ERROR_OUT_OF_MEMORY);
        must(cuMemAlloc_v2(&pointer, 100));
        must_equal(cuStreamCreate(&stream, 0), CUDA_ERROR_UNKNOWN);
        must(cuStreamCreate(&stream, 0));
}

static void test_the_nth_call_of_a_name_fails_on_demand(void **state)
{
        (void)state;
        guest_run(fail_on_demand);
}

static void arm(const char *text)
{
        char path[96], draft[96];
        FILE *file;

        (void)snprintf(path, sizeof(path), "%s/fail", test_directory);
        (void)snprintf(draft, sizeof(draft), "%s/fail-draft", test_directory);
        file = fopen(draft, "w");
        must_equal(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, 1);
        must_equal(rename(draft, path), 0);
        (void)setenv("OPENVGPU_SIM_FAIL_FILE", path, 1);
}

static void fail_while_running(int socket)
{
        CUdeviceptr pointer;

        (void)socket;
        arm("cuMemAlloc_v2@2=2\n");
        (void)guest_init(0);
        must(cuMemAlloc_v2(&pointer, 100));
        must_equal(cuMemAlloc_v2(&pointer, 100), CUDA_ERROR_OUT_OF_MEMORY);
        must_equal(access(getenv("OPENVGPU_SIM_FAIL_FILE"), F_OK), -1);
        must(cuMemAlloc_v2(&pointer, 100));
        must(cuMemAlloc_v2(&pointer, 100));
        arm("cuMemFree_v2@1=999"); /* later than the first call */
        must(cuMemAlloc_v2(&pointer, 100));
        must_equal(cuMemFree_v2(pointer), CUDA_ERROR_UNKNOWN);
        must(cuMemFree_v2(pointer));
}

static void test_a_call_can_be_made_to_fail_while_the_process_runs(void **state)
{
        (void)state;
        guest_run(fail_while_running);
}

static void fork_a_child(int socket)
{
        size_t before;
        CUdeviceptr pointer;
        int status, count;
        pid_t child;

        (void)guest_init(0);
        must(cuMemAlloc_v2(&pointer, 64 * MIB));
        before = guest_get_free();
        child = fork();
        if (child == 0) {
                if (cuInit(0) != CUDA_ERROR_NOT_INITIALIZED ||
                    cuDeviceGetCount(&count) != CUDA_ERROR_NOT_INITIALIZED ||
                    cuMemAlloc_v2(&pointer, 1) != CUDA_ERROR_NOT_INITIALIZED)
                        _exit(1);
                (void)guest_hear(socket, NULL); /* stays until the parent has freed */
                _exit(0);
        }
        must(cuMemFree_v2(pointer));
        must_equal(guest_get_free(), before + 64 * MIB);
        guest_tell(socket, 0, -1);
        must_equal(waitpid(child, &status, 0), child);
        must_equal(status, 0);
        must(cuMemAlloc_v2(&pointer, 64 * MIB));
}

static void test_a_forked_child_has_no_driver_and_holds_no_memory(void **state)
{
        struct guest guest = guest_start(fork_a_child);

        (void)state;
        (void)guest_hear(guest.socket, NULL);
        guest_tell(guest.socket, 0, -1);
        assert_int_equal(guest_end(&guest), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_before_init_only_a_few_calls_work),
                cmocka_unit_test(test_what_is_not_simulated_is_told_once),
                cmocka_unit_test(test_the_nth_call_of_a_name_fails_on_demand),
                cmocka_unit_test(test_a_call_can_be_made_to_fail_while_the_process_runs),
                cmocka_unit_test(test_a_forked_child_has_no_driver_and_holds_no_memory),
                /* These call in this process, so they come after those that fork. */
                cmocka_unit_test(test_names_give_the_entry_point_of_the_version),
                cmocka_unit_test(test_what_is_not_simulated_says_so),
        };
        int failed;

        test_host_create("2xH200:1G");
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        test_host_remove();
        return failed;
}
