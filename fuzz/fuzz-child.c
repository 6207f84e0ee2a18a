/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the manager hears from its children: the sampler, which loads NVIDIA's NVML, and the movers, which load
 * the driver. Two vGPUs have a process each and are suspended, resumed and moved meanwhile.
 *
 * The input begins with a byte: 255, the rest is what `vgpu-mover --probe` prints. Else a series of
 * commands; of their first byte, bit 0 is which (device, guest) and the rest the command:
 *
 *     sampler       message, device, pid, length, bytes    a packet with a good header
 *     sampler-raw   length, bytes                          a packet as it is
 *     mover         message, id, job, length, bytes        likewise, unasked
 *     mover-raw     length, bytes
 *     answer        message, length, bytes                 to the next request, instead of the good one
 *     operation     which, device
 *     join          which vGPU
 *     die           a guest's process
 *     mood          bits                                   guests, movers: silent
 *     end           sampler or mover
 */
#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/packet.h"
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "fuzz/world.h"
#include "manager/meter/meter-sampler.h"
#include "manager/methods/instance-create.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/session.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation.h"
#include "wire/mover.h"
#include "wire/sampler.h"

#define FRAME_BUFFER ((uint64_t)64 << 20)
#define PROBE        255
#define MESSAGE_MAX  512

static const char *const names[WORLD_DEVICES] = { "a", "b" };

static struct {
        struct meter_sampler *sampler; /* the manager's own has nothing to sample */
        bool has_answer;
        uint16_t answer;
        size_t size;
        uint8_t bytes[MESSAGE_MAX];
} fuzz;

/* The input. */

static size_t take(struct input *input, void *bytes, size_t max)
{
        size_t n = take_byte(input);

        if (n > max)
                n = max;
        if (n > input->size)
                n = input->size;
        memcpy(bytes, input->data, n);
        input->data += n;
        input->size -= n;
        return n;
}

/* The sampler. */

static void say_as_sampler(const void *packet, size_t size)
{
        if (world.sampler >= 0)
                (void)send(world.sampler, packet, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void sampler(struct input *input)
{
        struct sampler_packet packet = { .magic = SAMPLER_WIRE_MAGIC,
                                         .version = SAMPLER_WIRE_VERSION };
        uint8_t which;

        packet.message = take_byte(input) % (SAMPLER_THAT_IS_ALL + 2);
        packet.device = take_byte(input) % (WORLD_DEVICES + 1);
        which = take_byte(input);
        if (which < WORLD_GUESTS)
                packet.pid = (uint32_t)world_process(&world.guest[which]);
        (void)take(input, &packet.use, sizeof(packet) - offsetof(struct sampler_packet, use));
        say_as_sampler(&packet, sizeof(packet));
}

static void sampler_raw(struct input *input)
{
        uint8_t bytes[MESSAGE_MAX];

        say_as_sampler(bytes, take(input, bytes, sizeof(bytes)));
}

/* A mover. */

static const struct {
        uint16_t message;
        size_t size;
} messages[] = {
        { MOVER_DONE, sizeof(struct mover_done) },
        { MOVER_INFO_IS, sizeof(struct mover_info) },
        { MOVER_PROGRESS, sizeof(struct mover_progress) },
};

static void say_as_mover(size_t device, const void *packet, size_t size)
{
        if (world.mover[device].fd >= 0)
                (void)packet_send(world.mover[device].fd, packet, size, NULL, 0);
}

/* @header with @bytes behind it. */
static void say_message(size_t device, uint16_t which, struct mover_header header,
                        const uint8_t *bytes, size_t size)
{
        uint8_t packet[MESSAGE_MAX] = { 0 };
        size_t n = messages[which % 3].size;

        header.message = messages[which % 3].message;
        memcpy(packet, &header, sizeof(header));
        memcpy(packet + sizeof(header), bytes,
               size < n - sizeof(header) ? size : n - sizeof(header));
        say_as_mover(device, packet, n);
}

static void mover(struct input *input, size_t device)
{
        struct mover_header header = { .magic = MOVER_WIRE_MAGIC, .version = MOVER_WIRE_VERSION };
        uint8_t which = take_byte(input), bytes[MESSAGE_MAX];

        header.id = take_byte(input);
        header.job = take_byte(input);
        say_message(device, which, header, bytes, take(input, bytes, sizeof(bytes)));
}

static void mover_raw(struct input *input, size_t device)
{
        uint8_t bytes[MESSAGE_MAX];

        say_as_mover(device, bytes, take(input, bytes, sizeof(bytes)));
}

static bool answer_request(size_t device, const struct mover_header *request)
{
        if (!fuzz.has_answer)
                return false;
        fuzz.has_answer = false;
        say_message(device, fuzz.answer, *request, fuzz.bytes, fuzz.size);
        return true;
}

static void plan_answer(struct input *input)
{
        fuzz.has_answer = true;
        fuzz.answer = take_byte(input);
        fuzz.size = take(input, fuzz.bytes, sizeof(fuzz.bytes));
}

static void probe(const struct input *input)
{
        CLEANUP(freep) struct mover_device *devices = NULL;
        size_t n = 0;

        world.probe = input->data;
        world.probe_size = input->size;
        if (mover_probe(&devices, &n, world.manager->mover_path, "/nonexistent") == 0)
                for (size_t i = 0; i < n; i++)
                        assert(strlen(devices[i].uuid) > 0 && strlen(devices[i].name) > 0);
        world.probe = NULL;
}

/* The manager. */

static void operation(uint8_t which, size_t vgpu, size_t device)
{
        static const struct operation_kind *const kinds[] = { &operation_suspend, &operation_resume,
                                                              &operation_migrate };
        struct operation_request request = { .timeout_ms = 10000 };
        struct failure failure = { 0 };
        struct instance *instance = instance_find(world.manager, names[vgpu], &failure);

        if (which % 3 > 0)
                request.target.device[0] = &world.manager->device[device];
        request.keep_context = which & 128;
        (void)operation_start(instance, kinds[which % 3], &request, &failure);
}

static void create(size_t i)
{
        const struct instance_request request = { .name = names[i],
                                                  .frame_buffer = FRAME_BUFFER,
                                                  .device = { &world.manager->device[i] },
                                                  .n_devices = 1 };
        struct failure failure = { 0 };
        struct instance *instance;

        assert(instance_create(world.manager, &request, &instance, &failure) == 0);
        world_join(&world.guest[i], names[i]);
}

/* What is told of a process, or promised to it, is never more than there is. */
static void check_guest(const struct guest *guest)
{
        const struct list *link;
        size_t n_sessions = 0;

        for (size_t i = 0; i < METER_ENGINES; i++)
                assert(guest->meter.part[0].told_percent[i] <= 100);
        assert(guest->meter.part[0].context_bytes <= instance_home(guest->instance)->memory_total);
        assert(guest->context.bytes <= instance_home(guest->instance)->memory_total);
        for (link = guest->sessions.next; link != &guest->sessions; link = link->next)
                n_sessions++;
        assert(n_sessions <= STATE_ENCODER_SESSIONS_MAX + STATE_CAPTURE_SESSIONS_MAX);
}

static void check_all(void)
{
        const struct instance *instance;
        const struct guest *guest;

        list_for_each(instance, &world.manager->instances, link)
                list_for_each(guest, &instance->guests, link)
                        check_guest(guest);
}

static void one_command(struct input *input)
{
        uint8_t first = take_byte(input), which;
        size_t i = first & 1;

        switch (first >> 1 & 15) {
        case 0:
                sampler(input);
                break;
        case 1:
                sampler_raw(input);
                break;
        case 2:
                mover(input, i);
                break;
        case 3:
                mover_raw(input, i);
                break;
        case 4:
                plan_answer(input);
                break;
        case 6:
                world_join(&world.guest[i], names[take_byte(input) % WORLD_DEVICES]);
                break;
        case 7:
                world_kill(&world.guest[i]);
                break;
        case 8:
                which = take_byte(input);
                world.are_guests_silent = which & 1;
                world.are_movers_silent = which & 2;
                break;
        case 9:
                if (take_byte(input) & 1)
                        world_end_sampler();
                else
                        world_end_mover(i);
                break;
        default:
                which = take_byte(input);
                operation(which, i, take_byte(input) % WORLD_DEVICES);
        }
        world_run();
        check_all();
}

static void play(struct input *input)
{
        assert(meter_sampler_new(&fuzz.sampler, world.manager) == 0);
        for (size_t i = 0; i < WORLD_DEVICES; i++)
                create(i);
        meter_sampler_tick(fuzz.sampler);
        while (input->size > 0)
                one_command(input);
        fuzz.has_answer = false;
        for (size_t i = 0; i < WORLD_DEVICES; i++)
                world_end_mover(i); /* what it has not answered it never will */
        world_reset();
        fuzz.sampler = meter_sampler_free(fuzz.sampler);
        for (size_t i = 0; i < WORLD_DEVICES; i++)
                world.manager->device[i].meter.is_lost = false;
        world_clear();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = { data, size };

        if (!world.manager) {
                world_set_up();
                world.answer_request = answer_request;
        }
        if (size > 0 && data[0] == PROBE)
                probe(&(struct input){ data + 1, size - 1 });
        else
                play(&input);
        return 0;
}
