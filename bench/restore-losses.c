/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver's restore loses, and what mends it.
 *
 *     restore-losses [TRIAL...]     all of them if none is named
 *
 * Each trial is a process of its own, with nothing of ours in it. It sets something up, is locked,
 * checkpointed, restored and unlocked through the driver's interface by this program, and says what
 * then works: one line a trial, of numbers that are the driver's result codes unless their name says
 * otherwise. A trial may take something off before the checkpoint and put it on again after the
 * restore: that is what a mending would do.
 */
#include <signal.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guests/driver.h"
#include "tests/guests/kernels.h"

#define WORDS           ((size_t)1 << 20)
#define BYTES           (WORDS * sizeof(uint32_t))
#define PATIENCE_S      30
#define LOCK_TIMEOUT_MS 20000

/* What a trial does: at its start, before the checkpoint, after the restore. */
enum {
        WINDOW = 1 << 0,        /* on the stream: persisting where it hits */
        LIMIT = 1 << 1,         /* PERSISTING_L2_CACHE_SIZE; off: 0 */
        RESET = 1 << 2,         /* cuCtxResetPersistingL2Cache */
        NODE = 1 << 3,          /* a window in the kernel node of a graph, which is instantiated */
        UPDATE = 1 << 4,        /* the instantiated graph is updated from the graph */
        CAPTURED = 1 << 5,      /* the graph is captured from the stream with its window */
        LAUNCHED = 1 << 6,      /* a window as an attribute of one launch */
        STREAMING = 1 << 7,     /* the window has no persisting part */
        UNUSED = 1 << 8,        /* no kernel runs before the checkpoint */
        NEW_STREAM = 1 << 9,    /* a stream of its own, made after the restore, has the window */
        VIRTUAL = 1 << 10,      /* the memory is cuMemCreate's, and is made anew by hand */
        STAYS = 1 << 11,        /* no checkpoint */
        DOMAIN = 1 << 12,       /* the stream's memory synchronization domain is "remote" */
        LIMITS = 1 << 13,       /* the other limits are set */
        ASSERT = 1 << 14,       /* the kernel that fails: by an assertion */
        TRAP = 1 << 15,         /* by a trap */
        ADDRESS = 1 << 16,      /* by an address that is not there */
        PRINT = 1 << 17,        /* a kernel prints */
        PRINT_LIMIT = 1 << 18,  /* PRINTF_FIFO_SIZE is set to what it is */
        PRINT_LARGER = 1 << 19, /* ... to twice that */
        STACK_LIMIT = 1 << 20,  /* STACK_SIZE is set to twice what it is */
        HEAP_LIMIT = 1 << 21,   /* MALLOC_HEAP_SIZE is set to what it is */
        MODULE = 1 << 22,       /* a module that asserts is loaded beside */
        FROM_MODULE = 1 << 23,  /* ... and the failing kernel is of that one */
        NEW_CONTEXT = 1 << 24,  /* the kernel that fails is launched in a context made afterwards */
        EAGER = 1 << 25,        /* CUDA_MODULE_LOADING=EAGER */
        FAULT = ASSERT | TRAP | ADDRESS,
};

static const struct trial {
        const char *name;
        int setup, before, after;
} trials[] = {
        { "nothing", 0, 0, 0 },
        /* the four of the question */
        { "window+limit", WINDOW | LIMIT, 0, 0 },
        { "window+limit, both off and on", WINDOW | LIMIT, WINDOW | LIMIT, WINDOW | LIMIT },
        { "window+limit, window off and on", WINDOW | LIMIT, WINDOW, WINDOW },
        { "window+limit, limit off and on", WINDOW | LIMIT, LIMIT, LIMIT },
        /* which of the two it is */
        { "window alone", WINDOW, 0, 0 },
        { "window alone, off and on", WINDOW, WINDOW, WINDOW },
        { "limit alone", LIMIT, 0, 0 },
        { "limit alone, off and on", LIMIT, LIMIT, LIMIT },
        { "window+limit, both off for good", WINDOW | LIMIT, WINDOW | LIMIT, 0 },
        { "window+limit, window off for good", WINDOW | LIMIT, WINDOW, 0 },
        { "window+limit, limit off for good", WINDOW | LIMIT, LIMIT, 0 },
        { "window+limit, cache reset, both off and on", WINDOW | LIMIT, WINDOW | RESET | LIMIT,
          WINDOW | LIMIT },
        { "window+limit, cache reset before", WINDOW | LIMIT, RESET, 0 },
        { "window+limit, both set again after", WINDOW | LIMIT, 0, WINDOW | LIMIT },
        { "window+limit, limit set again after", WINDOW | LIMIT, 0, LIMIT },
        { "window+limit, cache reset after", WINDOW | LIMIT, 0, RESET },
        { "window+limit, never used", WINDOW | LIMIT | UNUSED, 0, 0 },
        { "window+limit, streaming only", WINDOW | LIMIT | STREAMING, 0, 0 },
        { "window+limit only after", 0, 0, WINDOW | LIMIT },
        { "window+limit of a new stream after", LIMIT, 0, NEW_STREAM },
        /* memory made anew under it, as a suspend and an eviction with the context kept do */
        { "made anew: nothing", VIRTUAL, 0, 0 },
        { "made anew: window+limit", VIRTUAL | WINDOW | LIMIT, 0, 0 },
        { "made anew: window+limit, both off and on", VIRTUAL | WINDOW | LIMIT, WINDOW | LIMIT,
          WINDOW | LIMIT },
        { "made anew: window+limit, context kept", VIRTUAL | WINDOW | LIMIT | STAYS, 0, 0 },
        /* windows that are not the stream's */
        { "launch with a window+limit", LAUNCHED | LIMIT, 0, 0 },
        { "launch with a window+limit, limit off and on", LAUNCHED | LIMIT, LIMIT, LIMIT },
        { "node with a window+limit", NODE | LIMIT, 0, 0 },
        { "node with a window+limit, limit off and on", NODE | LIMIT, LIMIT, LIMIT },
        { "node with a window+limit, node updated", NODE | LIMIT, NODE | UPDATE | LIMIT,
          NODE | UPDATE | LIMIT },
        { "node with a window+limit, updated after", NODE | LIMIT, 0, UPDATE },
        { "node with a window+limit, context kept", NODE | LIMIT | STAYS, 0, 0 },
        { "captured with window+limit", WINDOW | LIMIT | CAPTURED, 0, 0 },
        { "captured with window+limit, both off and on", WINDOW | LIMIT | CAPTURED, WINDOW | LIMIT,
          WINDOW | LIMIT },
        /* what else a stream and a context keep */
        { "synchronization domain", DOMAIN, 0, 0 },
        { "other limits", LIMITS, 0, 0 },
        /* errors of kernels */
        { "assert, no checkpoint", ASSERT | STAYS, 0, 0 },
        { "trap, no checkpoint", TRAP | STAYS, 0, 0 },
        { "address, no checkpoint", ADDRESS | STAYS, 0, 0 },
        { "print, no checkpoint", PRINT | STAYS, 0, PRINT },
        { "assert", ASSERT, 0, 0 },
        { "trap", TRAP, 0, 0 },
        { "address", ADDRESS, 0, 0 },
        { "print", 0, 0, PRINT },
        { "print before and after", PRINT, 0, PRINT },
        { "assert, print limit before", ASSERT, PRINT_LIMIT, 0 },
        { "assert, print limit after", ASSERT, 0, PRINT_LIMIT },
        { "assert, larger print limit before", ASSERT, PRINT_LARGER, 0 },
        { "assert, larger print limit after", ASSERT, 0, PRINT_LARGER },
        { "assert, stack limit after", ASSERT, 0, STACK_LIMIT },
        { "assert, heap limit after", ASSERT, 0, HEAP_LIMIT },
        { "assert, printed before", ASSERT | PRINT, 0, 0 },
        { "assert, printed after", ASSERT, 0, PRINT },
        { "assert, module loaded after", ASSERT, 0, MODULE },
        { "assert of a module loaded after", ASSERT, 0, MODULE | FROM_MODULE },
        { "assert in a context made after", ASSERT, 0, NEW_CONTEXT | FROM_MODULE },
        { "assert, loaded eagerly", ASSERT | EAGER, 0, 0 },
};

#define N_TRIALS (sizeof(trials) / sizeof(trials[0]))

/*
 * The target.
 */

static const char failing[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n"
        ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n,"
        " .param .b64 c);\n"
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
        ".global .align 1 .b8 text[8] = {112, 114, 105, 110, 116, 115, 10, 0};\n"
        ".visible .entry fails_assert() {\n"
        " .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
        " mov.u64 %rd1, text; cvta.global.u64 %rd1, %rd1; mov.u32 %r1, 7; mov.u64 %rd2, 1;\n"
        " { .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;\n"
        " st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd1; st.param.b32 [p2], %r1;\n"
        " st.param.b64 [p3], %rd1; st.param.b64 [p4], %rd2;\n"
        " call.uni __assertfail, (p0, p1, p2, p3, p4); }\n"
        " ret;\n}\n"
        ".visible .entry prints() {\n"
        " .reg .b64 %rd<4>;\n"
        " mov.u64 %rd1, text; cvta.global.u64 %rd1, %rd1; mov.u64 %rd2, 0;\n"
        " { .param .b32 r0; .param .b64 p0; .param .b64 p1;\n"
        " st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd2;\n"
        " call.uni (r0), vprintf, (p0, p1); }\n"
        " ret;\n}\n"
        ".visible .entry traps() { trap; ret; }\n"
        ".visible .entry misses() {\n"
        " .reg .b32 %r<2>; .reg .b64 %rd<2>;\n"
        " mov.u64 %rd1, 0; mov.u32 %r1, 1; st.global.u32 [%rd1], %r1; ret;\n}\n";

static struct {
        CUdevice device;
        CUstream stream, plain;
        CUfunction add, fails, prints;
        CUdeviceptr memory;
        CUmemGenericAllocationHandle handle;
        CUgraph graph;
        CUgraphExec exec;
        unsigned int n_adds;
        int is_virtual, is_streaming, domain;
} target;

static int device_attribute(CUdevice_attribute attribute)
{
        int value = 0;

        must(DRIVER(cuDeviceGetAttribute)(&value, attribute, target.device));
        return value;
}

static CUlaunchAttributeValue window(int is_on)
{
        size_t most = (size_t)device_attribute(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);
        CUlaunchAttributeValue value = { 0 };

        if (is_on) {
                value.accessPolicyWindow.base_ptr = (void *)(uintptr_t)target.memory;
                value.accessPolicyWindow.num_bytes = BYTES < most ? BYTES : most;
                value.accessPolicyWindow.hitRatio = 1.0f;
                value.accessPolicyWindow.hitProp = target.is_streaming
                                                           ? CU_ACCESS_PROPERTY_STREAMING
                                                           : CU_ACCESS_PROPERTY_PERSISTING;
                value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_STREAMING;
        }
        return value;
}

static void say(const char *what, long long value)
{
        printf("%s=%lld ", what, value);
        fflush(stdout);
}

/* Only what is not as it should be. */
static void say_if_wrong(const char *what, CUresult result)
{
        if (result != CUDA_SUCCESS)
                say(what, result);
}

static void set_window(CUstream stream, int is_on)
{
        CUlaunchAttributeValue value = window(is_on);

        say_if_wrong("set-window",
                     DRIVER(cuStreamSetAttribute)(stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
                                                  &value));
}

static void set_limit_of_cache(int is_on)
{
        int most = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE);

        say_if_wrong("set-limit", DRIVER(cuCtxSetLimit)(CU_LIMIT_PERSISTING_L2_CACHE_SIZE,
                                                        is_on ? (size_t)most / 4 * 3 : 0));
}

static CUgraphNode only_node(void)
{
        CUgraphNode node = NULL;
        size_t n = 1;

        must(DRIVER(cuGraphGetNodes)(target.graph, &node, &n));
        return node;
}

static void set_node(int is_on)
{
        CUlaunchAttributeValue value = window(is_on);

        say_if_wrong("set-node",
                     DRIVER(cuGraphKernelNodeSetAttribute)(
                             only_node(), CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
}

static void update_exec(void)
{
        CUgraphNode node;
        int answer = 0;

        say_if_wrong("update",
                     DRIVER(cuGraphExecUpdate)(target.exec, target.graph, &node, &answer));
}

/* Sets a limit to its own value, or to twice that. */
static void set_limit(int limit, unsigned int factor)
{
        size_t value = 0;

        say_if_wrong("get-limit", DRIVER(cuCtxGetLimit)(&value, limit));
        say_if_wrong("set-limit", DRIVER(cuCtxSetLimit)(limit, value * factor));
}

static CUresult launch_add(CUstream stream, int has_window)
{
        CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW };
        CUlaunchConfig config = { 64, 1, 1, 256, 1, 1, 0, stream, &attribute, has_window ? 1 : 0 };
        uint64_t memory = target.memory, n = WORDS;
        uint32_t one = 1;
        void *parameters[] = { &memory, &one, &n };

        if (has_window)
                attribute.value = window(1);
        return DRIVER(cuLaunchKernelEx)(&config, target.add, parameters, NULL);
}

/* Launches and waits; the first code that is an error. */
static CUresult run_add(CUstream stream, int has_window)
{
        CUresult result = launch_add(stream, has_window);

        if (result == CUDA_SUCCESS)
                result = DRIVER(cuStreamSynchronize)(stream);
        if (result == CUDA_SUCCESS)
                target.n_adds++;
        return result;
}

static CUresult run_graph(void)
{
        CUresult result = DRIVER(cuGraphLaunch)(target.exec, target.stream);

        if (result == CUDA_SUCCESS)
                result = DRIVER(cuStreamSynchronize)(target.stream);
        if (result == CUDA_SUCCESS)
                target.n_adds++;
        return result;
}

/* The simulated driver has no such kernels, and says so. */
static void load_failing(int setup)
{
        const char *name = setup & ASSERT ? "fails_assert" : setup & TRAP ? "traps" : "misses";
        CUmodule module;
        CUresult result = DRIVER(cuModuleLoadData)(&module, failing);

        if (result == CUDA_SUCCESS)
                result = DRIVER(cuModuleGetFunction)(&target.fails, module, name);
        if (result == CUDA_SUCCESS)
                result = DRIVER(cuModuleGetFunction)(&target.prints, module, "prints");
        say_if_wrong("load", result);
}

static CUresult run_alone(CUfunction function)
{
        CUresult result;

        if (!function)
                return CUDA_ERROR_NOT_FOUND;
        result = DRIVER(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, target.stream, NULL, NULL);
        return result == CUDA_SUCCESS ? DRIVER(cuStreamSynchronize)(target.stream) : result;
}

static void do_prints(int what)
{
        if (what & PRINT_LIMIT)
                set_limit(CU_LIMIT_PRINTF_FIFO_SIZE, 1);
        if (what & PRINT_LARGER)
                set_limit(CU_LIMIT_PRINTF_FIFO_SIZE, 2);
        if (what & STACK_LIMIT)
                set_limit(CU_LIMIT_STACK_SIZE, 2);
        if (what & HEAP_LIMIT)
                set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 1);
        if (what & PRINT)
                say("print", run_alone(target.prints));
}

/* What setup, before and after have in common; windows and limits go off or on. */
static void act(int what, int is_on)
{
        if (what & LIMIT && is_on)
                set_limit_of_cache(1);
        if (what & WINDOW)
                set_window(target.stream, is_on);
        if (what & NODE)
                set_node(is_on);
        if (what & UPDATE)
                update_exec();
        if (what & RESET)
                say_if_wrong("reset", DRIVER(cuCtxResetPersistingL2Cache)());
        if (what & LIMIT && !is_on)
                set_limit_of_cache(0);
        do_prints(what);
}

static CUmemAllocationProp property(void)
{
        return (CUmemAllocationProp){ .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = { CU_MEM_LOCATION_TYPE_DEVICE, target.device } };
}

static void map_memory(void)
{
        CUmemAllocationProp prop = property();
        CUmemAccessDesc access = { prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

        must(DRIVER(cuMemCreate)(&target.handle, BYTES, &prop, 0));
        must(DRIVER(cuMemMap)(target.memory, BYTES, 0, target.handle, 0));
        must(DRIVER(cuMemSetAccess)(target.memory, BYTES, &access, 1));
        must(DRIVER(cuMemsetD32_v2)(target.memory, 0, WORDS));
        target.n_adds = 0;
}

static void unmap_memory(void)
{
        must(DRIVER(cuCtxSynchronize)());
        must(DRIVER(cuMemUnmap)(target.memory, BYTES));
        must(DRIVER(cuMemRelease)(target.handle));
}

static void make_memory(void)
{
        if (target.is_virtual) {
                must(DRIVER(cuMemAddressReserve)(&target.memory, BYTES, 0, 0, 0));
                map_memory();
                return;
        }
        must(DRIVER(cuMemAlloc_v2)(&target.memory, BYTES));
        must(DRIVER(cuMemsetD32_v2)(target.memory, 0, WORDS));
}

/* The graph of one launch. */
static void make_graph(int setup)
{
        must(DRIVER(cuStreamBeginCapture_v2)(target.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        must(launch_add(target.stream, 0));
        must(DRIVER(cuStreamEndCapture)(target.stream, &target.graph));
        if (setup & NODE)
                set_node(1);
        must(DRIVER(cuGraphInstantiateWithFlags)(&target.exec, target.graph, 0));
}

static void make_target(int setup)
{
        CUcontext context;
        CUmodule module;

        target.is_virtual = (setup & VIRTUAL) != 0;
        target.is_streaming = (setup & STREAMING) != 0;
        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&target.device, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, target.device));
        must(DRIVER(cuCtxSetCurrent)(context));
        must(DRIVER(cuModuleLoadData)(&module, kernels));
        must(DRIVER(cuModuleGetFunction)(&target.add, module, "add"));
        must(DRIVER(cuStreamCreate)(&target.stream, CU_STREAM_NON_BLOCKING));
        must(DRIVER(cuStreamCreate)(&target.plain, CU_STREAM_NON_BLOCKING));
        if (setup & (FAULT | PRINT))
                load_failing(setup);
        make_memory();
}

static void set_other_limits(void)
{
        set_limit(CU_LIMIT_STACK_SIZE, 2);
        set_limit(CU_LIMIT_PRINTF_FIFO_SIZE, 2);
        set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 2);
        say_if_wrong("fetch", DRIVER(cuCtxSetLimit)(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64));
}

static void set_up(int setup)
{
        CUlaunchAttributeValue domain = { .memSyncDomain = 1 };

        act(setup & (WINDOW | LIMIT | PRINT), 1);
        if (setup & LIMITS)
                set_other_limits();
        if (setup & DOMAIN)
                say_if_wrong("set-domain",
                             DRIVER(cuStreamSetAttribute)(
                                     target.stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &domain));
        if (setup & (NODE | CAPTURED))
                make_graph(setup);
        if (setup & UNUSED)
                return;
        say_if_wrong("add-before", run_add(target.stream, setup & LAUNCHED));
        if (target.exec)
                say_if_wrong("graph-before", run_graph());
}

static void say_limit(const char *name, int limit)
{
        size_t value = 0;
        CUresult result = DRIVER(cuCtxGetLimit)(&value, limit);

        say(name, result == CUDA_SUCCESS ? (long long)value : -result);
}

static void say_attributes(int setup)
{
        CUlaunchAttributeValue value = { 0 };

        if (setup & LIMITS) {
                say_limit("STACK", CU_LIMIT_STACK_SIZE);
                say_limit("FIFO", CU_LIMIT_PRINTF_FIFO_SIZE);
                say_limit("HEAP", CU_LIMIT_MALLOC_HEAP_SIZE);
                say_limit("FETCH", CU_LIMIT_MAX_L2_FETCH_GRANULARITY);
        }
        if (setup & DOMAIN) {
                say_if_wrong("get-domain",
                             DRIVER(cuStreamGetAttribute)(
                                     target.stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
                say("DOMAIN", value.memSyncDomain);
        }
        if (!(setup & (WINDOW | LIMIT)))
                return;
        say_limit("LIMIT", CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
        say_if_wrong("get-window",
                     DRIVER(cuStreamGetAttribute)(
                             target.stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
        say("WINDOW", (long long)value.accessPolicyWindow.num_bytes);
}

static void say_contents(void)
{
        uint32_t *words = malloc(BYTES);
        unsigned int n_wrong = 0;
        CUresult result = words ? DRIVER(cuMemcpyDtoH_v2)(words, target.memory, BYTES)
                                : CUDA_ERROR_OUT_OF_MEMORY;

        say("read", result);
        for (size_t i = 0; result == CUDA_SUCCESS && i < WORDS; i++)
                n_wrong += words[i] != target.n_adds;
        say("WRONG-WORDS", n_wrong);
        free(words);
}

/* From what cannot harm to what failed in NVIDIA's sample. */
static void try_work(int setup, int after)
{
        CUstream stream;

        say("synchronize", DRIVER(cuCtxSynchronize)());
        say_attributes(setup);
        say("plain", run_add(target.plain, 0));
        say("stream", run_add(target.stream, 0));
        say("again", run_add(target.stream, 0));
        if (after & NEW_STREAM) {
                must(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
                set_window(stream, 1);
                say("new-stream", run_add(stream, 0));
        }
        if (setup & LAUNCHED)
                say("launch-with-window", run_add(target.stream, 1));
        if (target.exec) {
                say("graph", run_graph());
                say("graph-again", run_graph());
        }
        say_contents();
}

/* Wait for errors in all ways: the first tells, and it must stay. */
static void try_fault(int setup, int after)
{
        CUfunction before = target.fails;
        CUcontext context;

        if (after & NEW_CONTEXT) {
                must(DRIVER(cuCtxCreate_v2)(&context, 0, target.device));
                must(DRIVER(cuStreamCreate)(&target.stream, CU_STREAM_NON_BLOCKING));
        }
        if (after & (MODULE | FROM_MODULE)) {
                load_failing(setup);
                if (!(after & FROM_MODULE))
                        target.fails = before;
        }
        say("fault", run_alone(target.fails));
        say("synchronize", DRIVER(cuCtxSynchronize)());
}

static int run_target(const struct trial *trial)
{
        char line[16];

        alarm(PATIENCE_S); /* a call that does not return is a finding as well */
        setvbuf(stdout, NULL, _IONBF, 0);
        dup2(STDOUT_FILENO, STDERR_FILENO);
        if (trial->setup & EAGER)
                setenv("CUDA_MODULE_LOADING", "EAGER", 1);
        make_target(trial->setup | (trial->after & PRINT));
        set_up(trial->setup);
        act(trial->before, 0);
        if (target.is_virtual)
                unmap_memory();
        puts("\nready");
        if (!fgets(line, sizeof(line), stdin))
                return 1;
        if (target.is_virtual)
                map_memory();
        act(trial->after, 1);
        if (trial->setup & FAULT)
                try_fault(trial->setup, trial->after);
        else
                try_work(trial->setup, trial->after);
        return 0;
}

/*
 * The controller.
 */

struct child {
        pid_t pid;
        FILE *to, *from;
};

static struct child start_child(const struct trial *trial)
{
        struct child child = { 0 };
        int to[2], from[2];
        char number[24];

        snprintf(number, sizeof(number), "%td", trial - trials);
        if (pipe(to) < 0 || pipe(from) < 0)
                exit(1);
        child.pid = fork();
        if (child.pid == 0) {
                dup2(to[0], STDIN_FILENO);
                dup2(from[1], STDOUT_FILENO);
                close(to[1]);
                close(from[0]);
                execl("/proc/self/exe", "restore-losses", "--target", number, NULL);
                _exit(1);
        }
        close(to[0]);
        close(from[1]);
        child.to = fdopen(to[1], "w");
        child.from = fdopen(from[0], "r");
        return child;
}

/* What the target says up to a line, or to its end; all on one line of ours. */
static int copy_until(FILE *from, const char *until)
{
        char line[4096];

        while (fgets(line, sizeof(line), from)) {
                line[strcspn(line, "\n")] = '\0';
                if (until && strcmp(line, until) == 0)
                        return 1;
                if (line[0])
                        printf(" %s", line);
        }
        return 0;
}

static int step(const char *name, CUresult result)
{
        if (result != CUDA_SUCCESS)
                printf(" %s: %d", name, result);
        return result == CUDA_SUCCESS;
}

static int checkpoint_and_restore(pid_t pid)
{
        CUcheckpointLockArgs lock = { .timeoutMs = LOCK_TIMEOUT_MS };
        CUcheckpointCheckpointArgs checkpoint = { 0 };
        CUcheckpointRestoreArgs restore = { 0 };
        CUcheckpointUnlockArgs unlock = { 0 };

        return step("lock", DRIVER(cuCheckpointProcessLock)(pid, &lock)) &&
               step("checkpoint", DRIVER(cuCheckpointProcessCheckpoint)(pid, &checkpoint)) &&
               step("restore", DRIVER(cuCheckpointProcessRestore)(pid, &restore)) &&
               step("unlock", DRIVER(cuCheckpointProcessUnlock)(pid, &unlock));
}

static void run_trial(const struct trial *trial)
{
        struct child child = start_child(trial);
        int status = 0;

        printf("%s:", trial->name);
        fflush(stdout);
        if (copy_until(child.from, "ready")) {
                if (trial->setup & STAYS || checkpoint_and_restore(child.pid)) {
                        fputs("go\n", child.to);
                        fflush(child.to);
                        copy_until(child.from, NULL);
                } else {
                        kill(child.pid, SIGKILL);
                }
        }
        fclose(child.to);
        fclose(child.from);
        waitpid(child.pid, &status, 0);
        if (WIFSIGNALED(status))
                printf(" signal %d", WTERMSIG(status));
        else if (WEXITSTATUS(status))
                printf(" exit %d", WEXITSTATUS(status));
        printf("\n");
        fflush(stdout);
}

static int is_named(const struct trial *trial, char **names)
{
        for (; *names; names++)
                if (strcmp(*names, trial->name) == 0)
                        return 1;
        return 0;
}

int main(int argc, char **argv)
{
        size_t number = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

        if (argc == 3 && strcmp(argv[1], "--target") == 0)
                return number < N_TRIALS ? run_target(&trials[number]) : 2;
        signal(SIGPIPE, SIG_IGN);
        must(DRIVER(cuInit)(0));
        for (size_t i = 0; i < N_TRIALS; i++)
                if (argc == 1 || is_named(&trials[i], argv + 1))
                        run_trial(&trials[i]);
        return 0;
}
