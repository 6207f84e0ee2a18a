/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/fake-manager.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/paths.h"
#include "base/test.h"
#include "gate/entry.h"

#define PATIENCE_MS 20000 /* for anything that must happen */

static struct {
        char directory[64]; /* for sockets and the simulated host */
        int listener;
        int socket;     /* to the gate */
        int page_fd[2]; /* of each device of the vGPU */
        uint32_t n_devices;
        pthread_t greeter;
        bool is_greeting; /* the thread has not been joined */
        struct gate_join join;
        char refusal[GATE_TEXT_MAX];
        char device_uuid[2][48], other_uuid[48];
} manager = { .listener = -1, .socket = -1 };

struct fake_memory fake_memory;

_Noreturn void fake_fail(const char *file, int line, const char *condition)
{
        fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", file, line, condition, errno);
        fflush(NULL);
        _exit(1);
}

void fake_compare(const char *file, int line, const char *call, CUresult result, CUresult wanted)
{
        if (result == wanted)
                return;
        fprintf(stderr, "answered %d, not %d\n", (int)result, (int)wanted);
        fake_fail(file, line, call);
}

static void remove_directory(const char *directory)
{
        char command[128];

        snprintf(command, sizeof(command), "rm -rf '%s'", directory);
        check(system(command) == 0);
}

/* Nobody came, or the test did not care. */
static void stop_greeting(void)
{
        if (!manager.is_greeting)
                return;
        pthread_cancel(manager.greeter);
        (void)fake_manager_wait_for_join();
}

static void run_body(void (*body)(void))
{
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(300);
        body();
        stop_greeting();
        fflush(NULL);
        _exit(0);
}

void fake_test(const char *name, void (*body)(void))
{
        char directory[] = "/tmp/gate-test-XXXXXX";
        int status;
        pid_t child;

        check(mkdtemp(directory));
        strcpy(manager.directory, directory);
        fflush(NULL);
        child = fork();
        check(child >= 0);
        if (child == 0)
                run_body(body);
        check(waitpid(child, &status, 0) == child);
        remove_directory(directory);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                fail_msg("%s: status %x", name, (unsigned int)status);
}

CUcontext fake_context(void)
{
        CUcontext context;
        CUdevice device;

        check(cuInit(0) == CUDA_SUCCESS);
        check(cuDeviceGet(&device, 0) == CUDA_SUCCESS);
        check(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
        return context;
}

bool fake_is_simulated(void)
{
        return getenv("OPENVGPU_TEST_SIMHOST") != NULL;
}

void fake_host(const char *specification)
{
        const char *simhost = getenv("OPENVGPU_TEST_SIMHOST");
        char path[PATHS_MAX], command[2 * PATHS_MAX];

        if (!fake_is_simulated())
                return;
        check(paths_join(path, manager.directory, "host") == 0);
        snprintf(command, sizeof(command), "'%s' '%s' '%s'", simhost, path, specification);
        check(system(command) == 0);
        check(setenv("OPENVGPU_SIM", path, 1) == 0);
}

static struct instance_page *page_create(uint64_t quota)
{
        int fd = memfd_create("page", MFD_CLOEXEC);
        struct instance_page *page;

        check(fd >= 0);
        check(ftruncate(fd, sizeof(*page)) == 0);
        page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        check(page != MAP_FAILED);
        page->magic = INSTANCE_PAGE_MAGIC;
        page->version = INSTANCE_PAGE_VERSION;
        page->n_slots = INSTANCE_PAGE_SLOTS;
        page->quota = quota;
        manager.page_fd[manager.n_devices++] = fd;
        return page;
}

static void listen_for_gate(void)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        snprintf(address.sun_path, sizeof(address.sun_path), "%s/" PATHS_GATE_SOCKET,
                 manager.directory);
        unlink(address.sun_path);
        manager.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        check(manager.listener >= 0);
        check(bind(manager.listener, (struct sockaddr *)&address, sizeof(address)) == 0);
        check(listen(manager.listener, 4) == 0);
}

static void wait_readable(int fd)
{
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

        check(poll(&poll_fd, 1, PATIENCE_MS) == 1);
}

static void header_fill(void *message, enum gate_message type)
{
        *(struct gate_header *)message =
                (struct gate_header){ GATE_WIRE_MAGIC, GATE_WIRE_VERSION, (uint16_t)type };
}

static void refuse(int socket)
{
        struct gate_refused refused = { .error = EPERM };

        header_fill(&refused, GATE_REFUSED);
        strcpy(refused.text, manager.refusal);
        check(packet_send(socket, &refused, sizeof(refused), NULL, 0) == 0);
        close(socket);
}

static void *greet(void *argument)
{
        struct gate_welcome welcome = { .slot = FAKE_SLOT };
        uint32_t n_named;
        char buffer[PACKET_SIZE_MAX];
        int fds[PACKET_FDS_MAX], socket;
        size_t size, n_fds;

        (void)argument;
        wait_readable(manager.listener);
        socket = accept4(manager.listener, NULL, NULL, SOCK_CLOEXEC);
        check(socket >= 0);
        check(packet_receive(socket, buffer, &size, fds, &n_fds) == 0);
        check(size == sizeof(manager.join) && n_fds == 0);
        memcpy(&manager.join, buffer, sizeof(manager.join));
        check(manager.join.header.message == GATE_JOIN);
        if (manager.refusal[0]) {
                refuse(socket);
                return NULL;
        }
        header_fill(&welcome, GATE_WELCOME);
        welcome.n_devices = n_named = manager.n_devices;
        memcpy(welcome.device_uuid, manager.device_uuid, sizeof(manager.device_uuid));
        if (manager.other_uuid[0])
                memcpy(welcome.device_uuid[n_named++], manager.other_uuid,
                       sizeof(manager.other_uuid));
        check(packet_send(socket, &welcome, gate_welcome_size(n_named), manager.page_fd,
                          manager.n_devices) == 0);
        manager.socket = socket;
        return NULL;
}

static void greet_in_background(void)
{
        check(pthread_create(&manager.greeter, NULL, greet, NULL) == 0);
        manager.is_greeting = true;
}

struct instance_page *fake_manager_start(uint64_t quota)
{
        struct instance_page *page = page_create(quota);

        listen_for_gate();
        check(setenv("OPENVGPU_VGPU", "11112222-3333-4444-5555-666677778888", 1) == 0);
        check(setenv("OPENVGPU_RUN", manager.directory, 1) == 0);
        greet_in_background();
        return page;
}

void fake_manager_refuse(const char *text)
{
        snprintf(manager.refusal, sizeof(manager.refusal), "%s", text);
}

void fake_manager_name_device(const char *uuid)
{
        snprintf(manager.device_uuid[0], sizeof(manager.device_uuid[0]), "%s", uuid);
}

void fake_manager_add_device(const char *uuid, uint64_t quota)
{
        (void)page_create(quota);
        snprintf(manager.device_uuid[1], sizeof(manager.device_uuid[1]), "%s", uuid);
}

void fake_manager_name_other(const char *uuid)
{
        snprintf(manager.other_uuid, sizeof(manager.other_uuid), "%s", uuid);
}

struct gate_join fake_manager_wait_for_join(void)
{
        if (manager.is_greeting)
                check(pthread_join(manager.greeter, NULL) == 0);
        manager.is_greeting = false;
        return manager.join;
}

static void ensure_joined(void)
{
        (void)fake_manager_wait_for_join();
}

void fake_manager_hang_up(void)
{
        ensure_joined();
        close(manager.socket);
        greet_in_background();
}

void fake_manager_stop(void)
{
        fake_memory_drop();
        close(manager.listener);
        close(manager.socket);
        manager.socket = -1;
}

void fake_manager_restart(void)
{
        listen_for_gate();
        greet_in_background();
}

int fake_send(const void *bytes, size_t size, const int *fds, size_t n_fds)
{
        ensure_joined();
        return packet_send(manager.socket, bytes, size, fds, n_fds);
}

static void keep_memory(const struct gate_allocations *batch, const int *fds, size_t n_fds)
{
        check(batch->count == n_fds && batch->count > 0 && batch->count <= GATE_BATCH_MAX);
        for (size_t i = 0; i < n_fds; i++) {
                fake_memory.allocation[fake_memory.n] = batch->allocation[i];
                fake_memory.fd[fake_memory.n++] = fds[i];
        }
}

static int receive(void *message, size_t *ret_size)
{
        int fds[PACKET_FDS_MAX];
        size_t n_fds;
        int r;

        ensure_joined();
        wait_readable(manager.socket);
        r = packet_receive(manager.socket, message, ret_size, fds, &n_fds);
        if (r == 0 && ((struct gate_header *)message)->message == GATE_ALLOCATIONS)
                keep_memory(message, fds, n_fds);
        else if (r == 0)
                check(n_fds == 0);
        return r;
}

struct gate_seen fake_manager_wait_for_seen(void)
{
        char message[PACKET_SIZE_MAX];
        struct gate_seen seen;
        size_t size;

        check(receive(message, &size) == 0 && size == sizeof(seen));
        memcpy(&seen, message, sizeof(seen));
        check(seen.header.message == GATE_SEEN);
        return seen;
}

int fake_receive(void *message, size_t *ret_size)
{
        int r;

        do
                r = receive(message, ret_size);
        while (r == 0 && ((struct gate_header *)message)->message == GATE_SEEN);
        return r;
}

/* The answer, after as many ALLOCATIONS as come before it. */
static void receive_answer(void *answer, size_t size, enum gate_message type)
{
        union {
                struct gate_header header;
                char bytes[PACKET_SIZE_MAX];
        } message;
        size_t received;

        do
                check(fake_receive(&message, &received) == 0);
        while (message.header.message == GATE_ALLOCATIONS);
        check(message.header.message == type && received == size);
        memcpy(answer, &message, size);
}

struct gate_closed fake_close(uint32_t timeout_ms)
{
        struct gate_close close_message = { .timeout_ms = timeout_ms };
        struct gate_closed closed;

        header_fill(&close_message, GATE_CLOSE);
        check(fake_send(&close_message, sizeof(close_message), NULL, 0) == 0);
        receive_answer(&closed, sizeof(closed), GATE_CLOSED);
        return closed;
}

struct gate_closed fake_step(uint32_t n_launches, uint32_t window_ms, uint32_t timeout_ms)
{
        struct gate_step step = { .n_launches = n_launches,
                                  .window_ms = window_ms,
                                  .timeout_ms = timeout_ms };
        struct gate_closed closed;

        header_fill(&step, GATE_STEP);
        check(fake_send(&step, sizeof(step), NULL, 0) == 0);
        receive_answer(&closed, sizeof(closed), GATE_CLOSED);
        return closed;
}

static enum gate_message answer_to(enum gate_message command)
{
        switch (command) {
        case GATE_EXPORT:
                return GATE_EXPORTED;
        case GATE_RELEASE:
                return GATE_RELEASED;
        case GATE_CREATE:
                return GATE_CREATED;
        case GATE_MAP:
                return GATE_MAPPED;
        default:
                return GATE_OPENED;
        }
}

struct gate_result fake_command(enum gate_message command)
{
        return fake_command_range(command, GATE_RANGE_ALL);
}

struct gate_result fake_command_range(enum gate_message command, struct gate_range range)
{
        struct gate_command message = { .range = range };
        struct gate_result result;

        if (command == GATE_EXPORT || command == GATE_CREATE)
                fake_memory_drop();
        header_fill(&message, command);
        check(fake_send(&message, sizeof(message), NULL, 0) == 0);
        receive_answer(&result, sizeof(result), answer_to(command));
        return result;
}

void fake_memory_drop(void)
{
        packet_close_fds(fake_memory.fd, fake_memory.n);
        fake_memory.n = 0;
}

static void send_map(size_t first, size_t n, uint16_t flags)
{
        struct gate_allocations batch = { .count = (uint32_t)n, .flags = flags };

        memcpy(batch.allocation, fake_memory.allocation + first, n * sizeof(batch.allocation[0]));
        header_fill(&batch, GATE_MAP);
        check(fake_send(&batch, sizeof(batch), fake_memory.fd + first, n) == 0);
}

struct gate_result fake_give(size_t first, size_t n)
{
        struct gate_result result;

        send_map(first, n, GATE_BATCH_LAST | GATE_BATCH_GIVEN);
        receive_answer(&result, sizeof(result), GATE_MAPPED);
        return result;
}

struct gate_result fake_map(void)
{
        return fake_map_in_parts(GATE_BATCH_MAX);
}

struct gate_result fake_map_in_parts(size_t most)
{
        struct gate_result result;
        size_t done = 0;

        do {
                size_t n = fake_memory.n - done;

                if (n > most)
                        n = most;
                send_map(done, n, done + n == fake_memory.n ? GATE_BATCH_LAST : 0);
                done += n;
        } while (done < fake_memory.n);
        receive_answer(&result, sizeof(result), GATE_MAPPED);
        return result;
}

/* The mover's side: the driver's own functions, which do not pass the gate. */
static void copy(size_t i, char *contents, bool is_out)
{
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        uint64_t size = fake_memory.allocation[i].size;
        CUmemGenericAllocationHandle handle;
        CUdeviceptr address;
        CUresult result;

        check(DRIVER(cuMemImportFromShareableHandle)(&handle, (void *)(intptr_t)fake_memory.fd[i],
                                                     1) == 0);
        check(DRIVER(cuMemAddressReserve)(&address, size, 0, 0, 0) == 0);
        check(DRIVER(cuMemMap)(address, size, 0, handle, 0) == 0);
        check(DRIVER(cuMemSetAccess)(address, size, &access, 1) == 0);
        result = is_out ? DRIVER(cuMemcpyDtoH_v2)(contents, address, size)
                        : DRIVER(cuMemcpyHtoD_v2)(address, contents, size);
        if (result != CUDA_SUCCESS)
                fprintf(stderr, "copy %s of %zu: %d\n", is_out ? "out" : "in", i, result);
        check(result == CUDA_SUCCESS);
        check(DRIVER(cuCtxSynchronize)() == CUDA_SUCCESS); /* a copy in may still be on its way */
        check(DRIVER(cuMemUnmap)(address, size) == 0);
        check(DRIVER(cuMemRelease)(handle) == 0);
        check(DRIVER(cuMemAddressFree)(address, size) == 0);
}

void *fake_copy_out(void)
{
        uint64_t total = 0, at = 0;
        char *contents;

        for (size_t i = 0; i < fake_memory.n; i++)
                total += fake_memory.allocation[i].size;
        contents = malloc(total);
        check(contents);
        for (size_t i = 0; i < fake_memory.n; at += fake_memory.allocation[i++].size)
                copy(i, contents + at, true);
        fake_memory_drop();
        return contents;
}

void fake_copy_in(const void *contents)
{
        uint64_t at = 0;

        for (size_t i = 0; i < fake_memory.n; at += fake_memory.allocation[i++].size)
                copy(i, (char *)(uintptr_t)contents + at, false);
        fake_memory_drop();
}
