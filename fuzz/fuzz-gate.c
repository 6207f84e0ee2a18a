/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a guest process says on the gate socket, to a whole manager in this process. This process is the
 * guest.
 *
 * The input is a series of commands of one byte and what belongs to it:
 *
 *     raw       n_fds, length, bytes       a packet as it is
 *     message   which, n_fds, length, bytes  a packet with a good header and of the right size
 *     join      state                      a good JOIN
 *     request   which                      the manager asks the guest
 *     hang-up
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/packet.h"
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "fuzz/world.h"
#include "manager/guests/guest-request.h"
#include "manager/methods/instance-create.h"
#include "manager/model/device.h"
#include "manager/model/guest-life.h"
#include "manager/model/guest.h"
#include "manager/model/instance-life.h"
#include "wire/gate.h"

#define FRAME_BUFFER ((uint64_t)64 << 20)

static struct {
        struct instance *instance;
        int client;
} fuzz = { .client = -1 };

static void set_up(void)
{
        const struct instance_request request = { .name = "fuzz",
                                                  .frame_buffer = FRAME_BUFFER,
                                                  .n_devices = 1 };
        struct failure failure = { 0 };

        world_set_up();
        assert(instance_create(world.manager, &request, &fuzz.instance, &failure) == 0);
}

/* The guest. */

static void drain(void)
{
        char bytes[PACKET_SIZE_MAX];
        int fds[PACKET_FDS_MAX];
        size_t size, n_fds;

        while (fuzz.client >= 0 && packet_receive(fuzz.client, bytes, &size, fds, &n_fds) == 0)
                packet_close_fds(fds, n_fds);
}

static void run_manager(void)
{
        world_run();
        drain();
}

static void connect_to_manager(void)
{
        const struct ucred ourselves = { getpid(), geteuid(), getegid() };

        fuzz.client = world_connect(PATHS_GATE_SOCKET, SOCK_SEQPACKET, &ourselves);
        run_manager();
}

static void hang_up(void)
{
        fuzz.client = fd_close(fuzz.client);
        run_manager();
}

static void send_to_manager(const void *bytes, size_t size, size_t n_fds)
{
        int fds[4] = { world.memory, world.memory, world.memory, world.memory };

        if (fuzz.client < 0)
                connect_to_manager();
        if (packet_send(fuzz.client, bytes, size, fds, n_fds % 5) < 0)
                hang_up();
        run_manager();
}

static const struct {
        uint16_t message;
        size_t size;
} messages[] = {
        { GATE_JOIN, sizeof(struct gate_join) },
        { GATE_CLOSED, sizeof(struct gate_closed) },
        { GATE_ALLOCATIONS, sizeof(struct gate_allocations) },
        { GATE_EXPORTED, sizeof(struct gate_result) },
        { GATE_RELEASED, sizeof(struct gate_result) },
        { GATE_MAPPED, sizeof(struct gate_result) },
        { GATE_OPENED, sizeof(struct gate_result) },
        { GATE_CREATED, sizeof(struct gate_result) },
        { GATE_TAKEN, sizeof(struct gate_result) },
        { GATE_IMPORT, sizeof(struct gate_import) },
        { GATE_OFFERED, sizeof(struct gate_offered) },
        { GATE_USES, sizeof(struct gate_uses) },
        { GATE_SEEN, sizeof(struct gate_seen) },
};

static void send_message(uint8_t which, size_t n_fds, const uint8_t *bytes, size_t size)
{
        size_t n = sizeof(messages) / sizeof(messages[0]);
        uint8_t packet[PACKET_SIZE_MAX] = { 0 };
        struct gate_header header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION,
                                      messages[which % n].message };

        memcpy(packet, &header, sizeof(header));
        memcpy(packet + sizeof(header), bytes, size);
        send_to_manager(packet, messages[which % n].size, n_fds);
}

static void send_join(uint8_t state)
{
        struct gate_join join = { { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_JOIN },
                                  .state = state };

        snprintf(join.vgpu, sizeof(join.vgpu), "%s", fuzz.instance->uuid);
        send_to_manager(&join, sizeof(join), 0);
}

/* The manager. */

static void on_done(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        (void)userdata;
        assert(answer->error <= 0);
        assert(memchr(answer->call, '\0', sizeof(answer->call)));
        assert(guest->memory_bytes <= instance_home(guest->instance)->memory_total);
}

static void request(uint8_t which)
{
        static const enum gate_message requests[] = { GATE_CLOSE,  GATE_EXPORT, GATE_RELEASE,
                                                      GATE_CREATE, GATE_MAP,    GATE_OPEN,
                                                      GATE_STEP,   GATE_TAKE };
        size_t n = sizeof(requests) / sizeof(requests[0]);
        struct guest *guest;

        list_for_each(guest, &fuzz.instance->guests, link)
                if (!guest->request.done)
                        guest_request(guest, requests[which % n], 60000, on_done, NULL);
        run_manager();
}

static void forget_guests(void)
{
        struct guest *guest, *after;

        list_for_each_safe(guest, after, &fuzz.instance->guests, link)
                guest_free(guest);
        instance_settle(fuzz.instance);
        run_manager();
        assert(guests_get_used(fuzz.instance) == 0);
}

/* The input. */

static const uint8_t *take_bytes(struct input *input, size_t *n)
{
        const uint8_t *bytes = input->data;

        if (*n > input->size)
                *n = input->size;
        input->data += *n;
        input->size -= *n;
        return bytes;
}

static void one_command(struct input *input)
{
        uint8_t command = take_byte(input) % 5, which = 0, n_fds;
        const uint8_t *bytes;
        size_t n;

        switch (command) {
        case 1:
                which = take_byte(input);
                __attribute__((fallthrough));
        case 0:
                n_fds = take_byte(input);
                n = take_byte(input);
                bytes = take_bytes(input, &n);
                if (command == 0)
                        send_to_manager(bytes, n, n_fds);
                else
                        send_message(which, n_fds, bytes, n);
                break;
        case 2:
                send_join(take_byte(input));
                break;
        case 3:
                request(take_byte(input));
                break;
        case 4:
                hang_up();
                break;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = { data, size };

        if (!world.manager)
                set_up();
        while (input.size > 0)
                one_command(&input);
        hang_up();
        forget_guests();
        return 0;
}
