/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole restores, on a device of this test's own: memory at the addresses where the driver's library has its rings, and a
 * thread that fetches from them, and executes, when their doorbell is rung.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/test.h"
#include "gate/child.h"
#include "gate/object.h"
#include "gate/whole.h"
#include "state/instance-page.h"
#include "wire/resource-manager.h"

#define FD           9
#define CLIENT       0xc1d00001u
#define CLASS        0xcbc0u /* Hopper's */
#define CLASS_PASCAL 0xc0c0u

#define N_CHANNELS  2
#define N_ENTRIES   1024
#define RING_STRIDE 0x3000

/* A device's handles begin with its number. */
#define SUBDEVICE(device)  ((device) + 1)
#define USERMODE(device)   ((device) + 2)
#define GROUP(device)      ((device) + 3)
#define MEMORY(device)     ((device) + 4)
#define DEBUGGER(device)   ((device) + 5)
#define CHANNEL(device, i) ((device) + 0x10 + (i))
#define COMPUTE(device, i) ((device) + 0x20 + (i))

struct device {
        uint32_t number;
        uint32_t class;
        char *rings, *doorbells;
        uint32_t *words; /* for the ring's entries */
        struct {
                uint32_t subchannel_class;
                uint64_t trap_handler;
                uint32_t n_registers;
                uint32_t register_written[8];
        } channel[N_CHANNELS];
};

static struct device devices[2];
static size_t n_devices;
static struct instance_page page;
static _Atomic bool is_over, is_paused;
static pthread_t thread;
static uint32_t client;

static struct {
        uint32_t n, client, command[8], value[8];
        bool is_refused;
} sent;

static enum instance_page_whole simulated_whole;

bool __wrap_simulated_mend(enum instance_page_whole *ret_whole);
struct instance_page *__wrap_quota_get_page(uint32_t *ret_slot);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __real_syscall(long number, long a, long b, long c, long d, long e, long f);

/* The simulated driver: what it says became of its contexts. */
bool __wrap_simulated_mend(enum instance_page_whole *ret_whole)
{
        *ret_whole = simulated_whole;
        return simulated_whole != INSTANCE_PAGE_BORN;
}

struct instance_page *__wrap_quota_get_page(uint32_t *ret_slot)
{
        *ret_slot = 1;
        return &page;
}

/* The kernel module: takes the calls that whole_mend() sends. */
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
        struct rm_control *call;

        if (number != SYS_ioctl || a != FD)
                return __real_syscall(number, a, b, c, d, e, f);
        call = (struct rm_control *)c;
        call->status = sent.is_refused ? RM_INSUFFICIENT_RIGHT : RM_OK;
        sent.client = call->client;
        sent.command[sent.n % 8] = call->command;
        memcpy(&sent.value[sent.n++ % 8], (void *)(uintptr_t)call->parameters, sizeof(uint32_t));
        return 0;
}

static _Atomic uint32_t *register_of(const struct device *device, int channel, uint32_t offset)
{
        return (_Atomic uint32_t *)(void *)(device->rings + channel * RING_STRIDE +
                                            N_ENTRIES * sizeof(uint64_t) + offset);
}

/* The falcon takes its time: of two commands in one entry it carries out the last. */
static void channel_execute(struct device *device, int i, const uint32_t *words, uint64_t n)
{
        uint32_t command = 0;

        for (uint64_t at = 0; at < n;
             at += 1 + (words[at] >> 29 == 1 ? words[at] >> 16 & 0x1fff : 0)) {
                const uint32_t *data = &words[at + 1];

                switch (words[at] & 0xffff) {
                case 0x2000:
                        device->channel[i].subchannel_class = data[0];
                        break;
                case 0x2000 | 0x25f8 >> 2:
                        device->channel[i].trap_handler = (uint64_t)data[0] << 32 | data[1];
                        break;
                case 0x2000 | 0x0510 >> 2:
                        command = data[0];
                        break;
                default:
                        break;
                }
        }
        if (command)
                device->channel[i].register_written[device->channel[i].n_registers++ % 8] = command;
}

static void channel_fetch(struct device *device, int i)
{
        _Atomic uint32_t *get = register_of(device, i, 0x88);
        const uint64_t *entries = (const uint64_t *)(const void *)(device->rings + i * RING_STRIDE);

        while (atomic_load(get) != atomic_load(register_of(device, i, 0x8c))) {
                uint64_t entry = entries[atomic_load(get)];

                channel_execute(device, i, (const uint32_t *)(uintptr_t)(entry & 0xfffffffffcull),
                                entry >> 42 & 0x1fffff);
                atomic_store(get, (atomic_load(get) + 1) % N_ENTRIES);
        }
}

static void *device_run(void *unused)
{
        const struct timespec nap = { .tv_nsec = 20000 };

        (void)unused;
        while (!atomic_load(&is_over)) {
                for (size_t i = 0; i < n_devices && !atomic_load(&is_paused); i++) {
                        _Atomic uint32_t *doorbell =
                                (_Atomic uint32_t *)(void *)(devices[i].doorbells + 0x90);
                        uint32_t token = atomic_exchange(doorbell, 0);

                        /* It may have been rung for one channel behind the other before we looked. */
                        for (int k = 0; token > devices[i].number &&
                                        token <= devices[i].number + N_CHANNELS && k < N_CHANNELS;
                             k++)
                                channel_fetch(&devices[i], k);
                }
                nanosleep(&nap, NULL);
        }
        return NULL;
}

static void note(uint32_t nr, const void *call, size_t size)
{
        (void)object_note(FD, _IOC(_IOC_READ | _IOC_WRITE, RM_IOCTL_TYPE, nr, size), call);
}

static void make(uint32_t parent, uint32_t object, uint32_t class, const void *parameters)
{
        struct rm_alloc call = { .client = client,
                                 .parent = parent,
                                 .object = object,
                                 .class = class,
                                 .parameters = (uintptr_t)parameters };

        note(RM_IOCTL_ALLOC, &call, sizeof(call));
}

static void map(uint32_t memory, const void *address, uint64_t length)
{
        struct rm_map call = { .client = client, .memory = memory, .length = length, .fd = 33 };

        note(RM_IOCTL_MAP, &call, sizeof(call));
        object_note_map(33, address);
}

static void control(uint32_t object, uint32_t command, const void *parameters, uint32_t size)
{
        struct rm_control call = { .client = client,
                                   .object = object,
                                   .command = command,
                                   .parameters = (uintptr_t)parameters,
                                   .parameters_size = size };

        note(RM_IOCTL_CONTROL, &call, sizeof(call));
}

static void channel_make(struct device *device, int i)
{
        struct rm_channel channel = { .ring = (uintptr_t)device->rings + (uint64_t)i * RING_STRIDE,
                                      .n_entries = N_ENTRIES,
                                      .user_memory = { MEMORY(device->number) },
                                      .user_offset = { (uint64_t)i * RING_STRIDE +
                                                       N_ENTRIES * sizeof(uint64_t) } };
        uint32_t token = device->number + (uint32_t)i + 1;

        make(GROUP(device->number), CHANNEL(device->number, (uint32_t)i), 0xc86f, &channel);
        make(CHANNEL(device->number, (uint32_t)i), COMPUTE(device->number, (uint32_t)i),
             device->class, NULL);
        control(CHANNEL(device->number, (uint32_t)i), RM_COMMAND_GET_DOORBELL_TOKEN, &token,
                sizeof(token));
}

/* Ring @i gets what the library sends: @n words as one entry. */
static void channel_send(struct device *device, int i, const uint32_t *words, size_t n)
{
        uint32_t put = atomic_load(register_of(device, i, 0x8c));
        uint64_t *entries = (uint64_t *)(void *)(device->rings + i * RING_STRIDE);

        memcpy(device->words, words, n * sizeof(*words));
        entries[put] = (uintptr_t)device->words | (uint64_t)n << 42;
        device->words += n;
        atomic_store(register_of(device, i, 0x8c), put + 1);
        channel_fetch(device, i);
}

static void device_make(struct device *device)
{
        struct rm_channel_group group = { .engine = RM_ENGINE_GRAPHICS };
        uint32_t object[] = { 0x20010000, device->class, 0xa0010000 /* not increasing, 1 */, 7 };

        make(client, device->number, 0x80, NULL);
        if (client != CLIENT) /* a restore maps all memory first, and that may be much */
                map(MEMORY(device->number), device->rings, 0x200000);
        for (uint32_t i = 0; i < 1000; i++)
                map(device->number + 0x10000 + i, device->rings + 0x300000, 0x1000);
        make(device->number, SUBDEVICE(device->number), RM_CLASS_SUBDEVICE, NULL);
        make(SUBDEVICE(device->number), USERMODE(device->number), 0xc661, NULL);
        map(USERMODE(device->number), device->doorbells, 0x10000);
        make(device->number, GROUP(device->number), RM_CLASS_CHANNEL_GROUP, &group);
        if (client == CLIENT)
                map(MEMORY(device->number), device->rings, 0x200000);
        memset(device->rings, 0, 0x100000);
        memset(device->channel, 0, sizeof(device->channel));
        object[0] |= 1u << 13;
        object[2] |= 1u << 13 | 0x123;
        for (int i = 0; i < N_CHANNELS; i++) {
                channel_make(device, i);
                channel_send(device, i, object, 4);
        }
        make(device->number, DEBUGGER(device->number), RM_CLASS_DEBUGGER, NULL);
}

/* What only the library sends, when it makes a context. */
static void context_make(struct device *device, uint32_t handler)
{
        const uint32_t trap[] = { 0x2002297e, 0x7f5f, handler },
                       falcon[] = { 0x20032d00, 0, 1, 1, 0x20012144, 0x424684 },
                       cache[] = { 0x20032d00, 0, 0x30000, 0x1f0000, 0x20012144, 0x17e2ac };
        uint32_t mask = 0x3a, mode[8] = { 1, GROUP(device->number), 0, 2 };
        uint64_t slice = 0x800;

        channel_send(device, 0, trap, 3);
        channel_send(device, 0, falcon, 6);
        channel_send(device, 0, cache, 6);
        control(DEBUGGER(device->number), RM_COMMAND_SET_EXCEPTION_MASK, &mask, sizeof(mask));
        control(SUBDEVICE(device->number), RM_COMMAND_SET_PREEMPTION_MODE, mode, sizeof(mode));
        control(GROUP(device->number), RM_COMMAND_SET_TIME_SLICE, &slice, sizeof(slice));
}

static void client_free(void)
{
        struct rm_free call = { .client = client, .object = client };

        note(RM_IOCTL_FREE, &call, sizeof(call));
}

/* What the driver does: all objects under the same handles in another client, and nothing more. */
static void restore(void)
{
        client_free();
        client++;
        for (size_t i = 0; i < n_devices; i++)
                device_make(&devices[i]);
}

static void device_open(uint32_t number, uintptr_t at)
{
        struct device *device = &devices[n_devices++];

        *device = (struct device){ .number = number, .class = CLASS };
        device->rings = mmap((void *)at, 0x400000, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        assert_ptr_equal(device->rings, (void *)at);
        device->words = (uint32_t *)(void *)(device->rings + 0x200000);
        device->doorbells =
                mmap(NULL, 0x10000, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(device->doorbells, MAP_FAILED);
}

static int set_up(void **state)
{
        (void)state;
        memset(&page, 0, sizeof(page));
        memset(&sent, 0, sizeof(sent));
        simulated_whole = INSTANCE_PAGE_BORN;
        object_forget();
        whole_forget();
        client = CLIENT;
        n_devices = 0;
        device_open(0x100, 0x20600000);
        device_open(0x900, 0x30600000);
        for (size_t i = 0; i < n_devices; i++)
                device_make(&devices[i]);
        atomic_store(&is_over, false);
        atomic_store(&is_paused, false);
        assert_int_equal(pthread_create(&thread, NULL, device_run, NULL), 0);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        atomic_store(&is_over, true);
        pthread_join(thread, NULL);
        for (size_t i = 0; i < n_devices; i++) {
                munmap(devices[i].rings, 0x400000);
                munmap(devices[i].doorbells, 0x10000);
        }
        return 0;
}

static void expect_whole(const struct device *device, uint32_t handler)
{
        static const char zeros[512];

        for (int i = 0; i < N_CHANNELS; i++) {
                assert_int_equal(device->channel[i].trap_handler, 0x7f5full << 32 | handler);
                assert_int_equal(device->channel[i].register_written[0], 0x424684);
                assert_int_equal(device->channel[i].n_registers, 1);
                assert_int_equal(*register_of(device, i, 0x8c), 1); /* what the library thinks */
                assert_int_equal(*register_of(device, i, 0x88), 1);
        }
        assert_memory_equal(device->rings + 0x200000 - sizeof(zeros), zeros, sizeof(zeros));
}

static void test_a_restored_context_is_made_whole(void **state)
{
        (void)state;
        context_make(&devices[0], 0x1000);
        context_make(&devices[1], 0x2000);
        whole_learn();
        whole_mend();
        assert_int_equal(sent.n, 0); /* nothing was restored */
        assert_int_equal(page.slot[1].whole, INSTANCE_PAGE_BORN);
        for (int i = 0; i < 2; i++) {
                restore();
                sent.n = 0;
                whole_mend();
                expect_whole(&devices[0], 0x1000);
                expect_whole(&devices[1], 0x2000);
                assert_int_equal(sent.n, 6);
                assert_int_equal(sent.client, client);
                assert_int_equal(page.slot[1].whole, INSTANCE_PAGE_MENDED);
        }
}

static void test_the_simulated_driver_is_asked_where_there_are_no_rings(void **state)
{
        (void)state;
        simulated_whole = INSTANCE_PAGE_UNWHOLE_REFUSED;
        context_make(&devices[0], 0x1000);
        whole_learn();
        whole_mend();
        assert_int_equal(page.slot[1].whole, INSTANCE_PAGE_BORN);
        client_free();
        whole_mend();
        assert_int_equal(page.slot[1].whole, INSTANCE_PAGE_UNWHOLE_REFUSED);
        simulated_whole = INSTANCE_PAGE_MENDED;
        whole_mend();
        assert_int_equal(page.slot[1].whole, INSTANCE_PAGE_MENDED);
}

static void test_a_device_that_takes_its_time_is_waited_for(void **state)
{
        const struct timespec nap = { .tv_nsec = 30000000 };
        pthread_t other;

        (void)state;
        context_make(&devices[0], 0x1000);
        context_make(&devices[1], 0x2000);
        whole_learn();
        restore();
        atomic_store(&is_paused, true);
        assert_int_equal(
                pthread_create(&other, NULL, (void *(*)(void *))(uintptr_t)whole_mend, NULL), 0);
        nanosleep(&nap, NULL);
        assert_int_equal(devices[0].channel[0].trap_handler, 0);
        atomic_store(&is_paused, false);
        pthread_join(other, NULL);
        expect_whole(&devices[0], 0x1000);
        expect_whole(&devices[1], 0x2000);
}

/* A program that destroys its context and makes one, whose handles are the same again. */
static void test_a_context_that_is_made_anew_is_no_restored_one(void **state)
{
        (void)state;
        context_make(&devices[0], 0x1000);
        context_make(&devices[1], 0x2000);
        whole_learn();
        restore(); /* to the objects, it looks like this */
        context_make(&devices[0], 0x3000);
        context_make(&devices[1], 0x4000);
        whole_learn();
        sent.n = 0;
        whole_mend();
        assert_int_equal(sent.n, 0);
        restore();
        whole_mend();
        expect_whole(&devices[0], 0x3000);
        expect_whole(&devices[1], 0x4000);
}

static void expect_untouched(void)
{
        for (size_t i = 0; i < n_devices; i++)
                for (int k = 0; k < N_CHANNELS; k++)
                        assert_int_equal(devices[i].channel[k].n_registers, 0);
        assert_true(instance_page_is_unwhole(page.slot[1].whole));
}

static void test_what_was_not_understood_is_not_guessed(void **state)
{
        (void)state;
        devices[0].class = devices[1].class = CLASS_PASCAL;
        restore();
        context_make(&devices[0], 0x1000);
        context_make(&devices[1], 0x2000);
        whole_learn();
        restore();
        whole_mend();
        expect_untouched();
}

static void test_a_context_whose_beginning_is_overwritten_is_not_understood(void **state)
{
        (void)state;
        context_make(&devices[0], 0x1000);
        context_make(&devices[1], 0x2000);
        for (size_t i = 0; i < n_devices; i++)
                for (int k = 0; k < N_CHANNELS; k++)
                        ((uint64_t *)(void *)(devices[i].rings + k * RING_STRIDE))[0] = 0;
        whole_learn();
        restore();
        whole_mend();
        expect_untouched();
}

static void test_memory_that_somebody_uses_is_not_written(void **state)
{
        (void)state;
        context_make(&devices[0], 0x1000);
        context_make(&devices[1], 0x2000);
        whole_learn();
        restore();
        devices[0].rings[0x200000 - 8] = devices[1].rings[0x200000 - 8] = 1;
        whole_mend();
        expect_untouched();
        assert_int_equal(devices[0].rings[0x200000 - 512], 0);
}

/* A program that has mapped something of its own where rings were that are gone. */
static void test_memory_of_zeros_is_no_ring(void **state)
{
        (void)state;
        context_make(&devices[0], 0x1000);
        context_make(&devices[1], 0x2000);
        whole_learn();
        restore();
        for (size_t i = 0; i < n_devices; i++)
                memset(devices[i].rings, 0, 0x200000);
        whole_mend();
        expect_untouched();
        for (size_t i = 0; i < n_devices; i++)
                for (size_t k = 0; k < 0x200000; k++)
                        if (devices[i].rings[k] != 0)
                                fail_msg("byte %zu was written", k);
}

/* Channels of a device that was freed are not those of the next one under its handles. */
static void test_what_is_below_a_freed_object_is_gone(void **state)
{
        struct rm_free call = { .client = client, .object = devices[0].number };

        (void)state;
        note(RM_IOCTL_FREE, &call, sizeof(call));
        object_lock();
        assert_null(object_find_locked(OBJECT_CHANNEL, client, CHANNEL(devices[0].number, 0)));
        assert_null(object_find_locked(OBJECT_COMPUTE, client, COMPUTE(devices[0].number, 1)));
        assert_non_null(object_find_locked(OBJECT_CHANNEL, client, CHANNEL(devices[1].number, 0)));
        object_unlock();
}

/* Two threads make contexts: one looks while the other is in the middle. */
static void test_a_context_that_was_seen_half_made_is_learned(void **state)
{
        (void)state;
        whole_learn();
        context_make(&devices[0], 0x1000);
        context_make(&devices[1], 0x2000);
        whole_learn();
        restore();
        whole_mend();
        expect_whole(&devices[0], 0x1000);
        expect_whole(&devices[1], 0x2000);
}

static void test_memory_that_is_not_mapped_is_survived(void **state)
{
        (void)state;
        context_make(&devices[0], 0x1000);
        context_make(&devices[1], 0x2000);
        whole_learn();
        restore();
        for (size_t i = 0; i < n_devices; i++)
                mprotect(devices[i].rings, 0x400000, PROT_NONE);
        whole_mend();
        for (size_t i = 0; i < n_devices; i++)
                mprotect(devices[i].rings, 0x400000, PROT_READ | PROT_WRITE);
        expect_untouched();
}

static void test_a_call_that_is_refused_is_told(void **state)
{
        (void)state;
        context_make(&devices[0], 0x1000);
        context_make(&devices[1], 0x2000);
        whole_learn();
        restore();
        sent.is_refused = true;
        whole_mend();
        assert_int_equal(page.slot[1].whole, INSTANCE_PAGE_UNWHOLE_REFUSED);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_restored_context_is_made_whole, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_the_simulated_driver_is_asked_where_there_are_no_rings, set_up,
                        tear_down),
                cmocka_unit_test_setup_teardown(test_a_device_that_takes_its_time_is_waited_for,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_context_that_is_made_anew_is_no_restored_one,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_what_was_not_understood_is_not_guessed, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_a_context_whose_beginning_is_overwritten_is_not_understood, set_up,
                        tear_down),
                cmocka_unit_test_setup_teardown(test_memory_that_somebody_uses_is_not_written,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_memory_that_is_not_mapped_is_survived, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_memory_of_zeros_is_no_ring, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_what_is_below_a_freed_object_is_gone, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_context_that_was_seen_half_made_is_learned,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_call_that_is_refused_is_told, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
