/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct guest_driver guest;

static struct {
        char directory[64]; /* of the simulated host, "" on a real one */
        CUcontext contexts[2];
} machine;

void load_guest_driver(void)
{
        static const struct {
                const char *name;
                size_t offset;
        } functions[] = {
#define FUNCTION(name) { #name, offsetof(struct guest_driver, name) }
                FUNCTION(cuInit),
                FUNCTION(cuDeviceGet),
                FUNCTION(cuDeviceGetUuid),
                FUNCTION(cuDevicePrimaryCtxRetain),
                FUNCTION(cuCtxSetCurrent),
                FUNCTION(cuMemGetInfo_v2),
                FUNCTION(cuMemAddressReserve),
                FUNCTION(cuMemAddressFree),
                FUNCTION(cuMemCreate),
                FUNCTION(cuMemRelease),
                FUNCTION(cuMemMap),
                FUNCTION(cuMemUnmap),
                FUNCTION(cuMemSetAccess),
                FUNCTION(cuMemExportToShareableHandle),
                FUNCTION(cuMemcpyDtoH_v2),
                FUNCTION(cuMemcpyHtoD_v2),
        };
        const char *path = getenv("OPENVGPU_DRIVER");
        void *library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

        if (!library)
                print_error("%s\n", dlerror());
        assert_non_null(library);
        for (size_t i = 0; i < COUNT(functions); i++) {
                void *function = dlsym(library, functions[i].name);

                assert_non_null(function);
                memcpy((char *)&guest + functions[i].offset, &function, sizeof(function));
        }
}

static void run_program(const char *program, const char *first, const char *second)
{
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                execl(program, program, first, second, NULL);
                _exit(127);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

int group_setup(void **state)
{
        const char *simhost = getenv("TEST_SIMHOST");
        (void)state;

        if (simhost) {
                strcpy(machine.directory, "/tmp/test-mover-XXXXXX");
                assert_non_null(mkdtemp(machine.directory));
                run_program(simhost, machine.directory, "2xH200:1G");
                setenv("OPENVGPU_SIM", machine.directory, 1);
        }
        load_guest_driver();
        assert_int_equal(guest.cuInit(0), 0);
        for (int i = 0; i < 2; i++) {
                CUdevice device;

                assert_int_equal(guest.cuDeviceGet(&device, i), 0);
                assert_int_equal(guest.cuDevicePrimaryCtxRetain(&machine.contexts[i], device), 0);
        }
        return 0;
}

int group_teardown(void **state)
{
        (void)state;
        if (machine.directory[0])
                run_program("/bin/rm", "-r", machine.directory);
        return 0;
}

uint64_t free_on(size_t device)
{
        size_t free_bytes, total;

        assert_int_equal(guest.cuCtxSetCurrent(machine.contexts[device]), 0);
        assert_int_equal(guest.cuMemGetInfo_v2(&free_bytes, &total), 0);
        return free_bytes;
}

int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        assert_non_null(fixture);
        assert_true(sd_event_new(&fixture->event) >= 0);
        assert_int_equal(
                mover_probe(&fixture->devices, &fixture->n_devices, getenv("TEST_MOVER"), NULL), 0);
        assert_true(fixture->n_devices >= 2);
        for (size_t i = 0; i < SLABS_MAX; i++)
                fixture->slabs[i] = -1;
        for (size_t i = 0; i < 2; i++)
                fixture->free_before[i] = free_on(i);
        *state = fixture;
        return 0;
}

/* Nothing of a device is lost, whatever the test did to its mover. */
int teardown(void **state)
{
        struct fixture *fixture = *state;

        if (fixture->mover)
                stop_mover(fixture);
        for (size_t i = 0; i < SLABS_MAX; i++)
                fd_close(fixture->slabs[i]);
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(free_on(i), fixture->free_before[i]);
        free(fixture->devices);
        sd_event_unref(fixture->event);
        free(fixture);
        return 0;
}

static void on_lost(struct mover *mover, void *userdata)
{
        struct fixture *fixture = userdata;

        assert_ptr_equal(mover, fixture->mover);
        fixture->is_lost = true;
}

void start_mover(struct fixture *fixture, size_t device)
{
        const struct mover_options options = { .program = getenv("TEST_MOVER"),
                                               .device_uuid = fixture->devices[device].uuid,
                                               .lost = on_lost,
                                               .userdata = fixture };

        assert_null(fixture->mover);
        fixture->is_lost = false;
        assert_int_equal(mover_new(&fixture->mover, fixture->event, &options), 0);
}

void start_mover_with(struct fixture *fixture, size_t device, const char *name, const char *value)
{
        setenv(name, value, 1);
        start_mover(fixture, device);
        unsetenv(name);
}

/* Killed, and not just let go: so that we see the end, and what it held is given back by then. */
void stop_mover(struct fixture *fixture)
{
        if (!fixture->is_lost) {
                kill(mover_get_pid(fixture->mover), SIGKILL);
                await_loss(fixture);
        }
        fixture->mover = mover_free(fixture->mover);
}

void on_done(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct fixture *fixture = userdata;

        assert_ptr_equal(mover, fixture->mover);
        fixture->done = *done;
        fixture->n_done++;
}

void on_progress(struct mover *mover, uint64_t bytes_done, uint64_t bytes_total, void *userdata)
{
        struct fixture *fixture = userdata;

        assert_ptr_equal(mover, fixture->mover);
        assert_true(bytes_done <= bytes_total);
        fixture->bytes_done = bytes_done;
}

void await_done(struct fixture *fixture, unsigned int n)
{
        while (fixture->n_done < n)
                assert_true(sd_event_run(fixture->event, TIMEOUT_US) > 0);
}

void await_loss(struct fixture *fixture)
{
        while (!fixture->is_lost)
                assert_true(sd_event_run(fixture->event, TIMEOUT_US) > 0);
}

int perform(struct fixture *fixture, int requested)
{
        if (requested < 0)
                return requested;
        await_done(fixture, fixture->n_done + 1);
        return fixture->done.error;
}

/* The guest's memory. */

void memories_create(struct memories *memories, size_t device, const uint64_t *sizes, size_t n)
{
        const CUmemAllocationProp properties = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)device },
        };
        const CUmemAccessDesc access = { .location = properties.location,
                                         .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        uint64_t offset = 0;

        *memories = (struct memories){ .n = n };
        memcpy(memories->sizes, sizes, n * sizeof(*sizes));
        for (size_t i = 0; i < n; i++)
                memories->total += sizes[i];

        assert_int_equal(guest.cuCtxSetCurrent(machine.contexts[device]), 0);
        assert_int_equal(guest.cuMemAddressReserve(&memories->base, memories->total, 0, 0, 0), 0);
        for (size_t i = 0; i < n; i++) {
                assert_int_equal(guest.cuMemCreate(&memories->handles[i], sizes[i], &properties, 0),
                                 0);
                assert_int_equal(guest.cuMemMap(memories->base + offset, sizes[i], 0,
                                                memories->handles[i], 0),
                                 0);
                assert_int_equal(guest.cuMemExportToShareableHandle(
                                         &memories->fds[i], memories->handles[i],
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                                 0);
                offset += sizes[i];
        }
        assert_int_equal(guest.cuMemSetAccess(memories->base, memories->total, &access, 1), 0);
}

void memories_free(struct memories *memories)
{
        assert_int_equal(guest.cuMemUnmap(memories->base, memories->total), 0);
        for (size_t i = 0; i < memories->n; i++) {
                fd_close(memories->fds[i]);
                assert_int_equal(guest.cuMemRelease(memories->handles[i]), 0);
        }
        assert_int_equal(guest.cuMemAddressFree(memories->base, memories->total), 0);
        *memories = (struct memories){ 0 };
}

/*
 * Every page begins with its number and is filled with a byte of its own, so that bytes in a wrong
 * place are seen. Not every word has its own value: that would be the slowest part of the tests.
 */
static unsigned char *pattern_new(uint64_t size, uint32_t seed)
{
        const size_t page = 4096;
        unsigned char *bytes = malloc(size);

        assert_non_null(bytes);
        for (uint32_t i = 0; i < size / page; i++) {
                const uint32_t head[2] = { i, seed };

                memset(bytes + i * page, (int)((i * 2654435761u + seed) >> 24), page);
                memcpy(bytes + i * page, head, sizeof(head));
        }
        return bytes;
}

void memories_fill(struct memories *memories, uint32_t seed)
{
        CLEANUP(freep) unsigned char *bytes = pattern_new(memories->total, seed);

        assert_int_equal(guest.cuMemcpyHtoD_v2(memories->base, bytes, memories->total), 0);
}

void memories_assert(struct memories *memories, uint32_t seed)
{
        CLEANUP(freep) unsigned char *expected = pattern_new(memories->total, seed);
        CLEANUP(freep) unsigned char *bytes = malloc(memories->total);

        assert_int_equal(guest.cuMemcpyDtoH_v2(bytes, memories->base, memories->total), 0);
        assert_int_equal(memcmp(bytes, expected, memories->total), 0);
}

/* Slabs. */

int new_slab(void)
{
        int fd = memfd_create("slab", MFD_CLOEXEC);

        assert_int_equal(ftruncate(fd, SLAB_SIZE), 0);
        return fd;
}

void slabs_add(struct fixture *fixture, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                fixture->slabs[i] = new_slab();
                assert_int_equal(perform(fixture, mover_slab_add(fixture->mover, (uint32_t)i,
                                                                 fixture->slabs[i], SLAB_SIZE,
                                                                 on_done, fixture)),
                                 0);
        }
}

unsigned char *slab_map(struct fixture *fixture, size_t slab)
{
        void *address =
                mmap(NULL, SLAB_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fixture->slabs[slab], 0);

        assert_true(address != MAP_FAILED);
        return address;
}

size_t layout(struct mover_segment *segments, const struct memories *memories)
{
        uint64_t used[SLABS_MAX] = { 0 };
        size_t n = 0;

        for (size_t i = memories->n; i-- > 0;) {
                uint64_t third = memories->sizes[i] / 3 / 4096 * 4096, offset = 0;

                for (size_t k = 0; k < 3; k++) {
                        uint64_t length = k == 2 ? memories->sizes[i] - offset : third;
                        size_t slab = (i + k) % 3;

                        while (used[slab] + length > SLAB_SIZE)
                                slab = (slab + 1) % SLABS_MAX;
                        segments[n++] = (struct mover_segment){ .memory = (uint32_t)i,
                                                                .slab = (uint32_t)slab,
                                                                .memory_offset = offset,
                                                                .slab_offset = used[slab],
                                                                .length = length };
                        used[slab] += length;
                        offset += length;
                }
        }
        return n;
}

int move(struct fixture *fixture, const struct mover_job *job, const struct memories *memories,
         bool stage, uint64_t stage_limit)
{
        struct mover_done done;
        uint32_t id;
        int r;

        r = mover_job_begin(fixture->mover, &id, job);
        if (r < 0)
                return r;
        if (stage)
                assert_int_equal(mover_job_stage(fixture->mover, id, stage_limit), 0);
        r = perform(fixture, mover_job_run(fixture->mover, id, memories->sizes, memories->fds,
                                           on_done, fixture));
        done = fixture->done;
        assert_int_equal(perform(fixture, mover_job_end(fixture->mover, id, on_done, fixture)), 0);
        fixture->done = done;
        return r;
}
