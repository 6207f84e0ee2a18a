/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients call, one after another: two connections at a time, of root and of two users, on a whole
 * manager whose vGPUs have processes and whose movers answer, late, badly or not at all.
 *
 * The input is a series of commands. Of the first byte, bit 0 is which of the two (clients, guests,
 * devices) it is about, bit 1 says that the manager does not run yet, the rest is the command:
 *
 *     call        which, how             of the table below
 *     raw         length, bytes          a message as it is
 *     connect     whose                  anew
 *     hang-up
 *     half-close                         it sends no more
 *     join        how                    a guest, in the vGPU of this name
 *     leave                              its gate hangs up
 *     die                                its process ends
 *     mood        bits                   guests, movers: silent; the next answer: an error
 *     mover-dies
 *     restart                            the manager, in good order
 *
 * FUZZ_SHOW in the environment: what was called and answered is printed.
 *
 * Whatever was called: each call is answered once, and when nobody is there any more, all vGPUs can be
 * removed and nothing of them is left.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/packet.h"
#include "daemon/control-call.h"
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "fuzz/world.h"

#define CLIENTS    2
#define USERS      3
#define ANSWER_MAX ((size_t)1 << 21)

/* $ a name, # a device, ? a truth value, % a number, @ a process: which, says the second byte. */
static const struct call {
        const char *method, *parameters;
} calls[] = {
        { "CreateVgpu", "\"name\":\"$\",\"frame_buffer\":67108864,\"device\":\"#\"" },
        { "CreateVgpu", "\"name\":\"$\",\"frame_buffer\":629145600,\"transient\":?" },
        { "CreateVgpu", "\"name\":\"$\",\"frame_buffer\":67108864,\"share\":%" },
        { "CreateVgpu", "\"frame_buffer\":67108864,"
                        "\"uuid\":\"00000000-0000-4000-8000-000000000001\"" },
        { "RemoveVgpu", "\"name\":\"$\"" },
        { "PrepareRun", "\"name\":\"$\"" },
        { "SuspendVgpu", "\"name\":\"$\",\"keep_context\":?" },
        { "ResumeVgpu", "\"name\":\"$\"" },
        { "ResumeVgpu", "\"name\":\"$\",\"device\":\"#\"" },
        { "MigrateVgpu", "\"name\":\"$\",\"device\":\"#\"" },
        { "OpenMemory", "\"name\":\"$\",\"detach\":?" },
        { "ReplaceMemory", "\"name\":\"$\"" },
        { "ReplaceMemory", "\"name\":\"$\",\"processes\":[{\"pid\":@,\"allocations\":"
                           "[[4194304,2097152],[8388608,2097152]]}]" },
        { "GetSlabs", "\"name\":\"$\"" },
        { "GetSlabs", "\"name\":\"$\",\"first\":%" },
        { "CommitMemory", "\"name\":\"$\"" },
        { "CloseMemory", "\"name\":\"$\"" },
        { "ListVgpus", "" },
        { "ListVgpus", "\"name\":\"$\"" },
        { "ListDevices", "" },
        { "GetInfo", "" },
        { "GetScheduler", "\"device\":\"#\"" },
        { "GetSchedulerLog", "\"device\":\"#\",\"from\":%" },
        { "GetUtilization", "" },
        { "GetAccounting", "\"name\":\"$\",\"offset\":%" },
        { "GetUsage", "\"since\":0,\"by\":\"vgpu\",\"offset\":%" },
        { "ListEvents", "" },
        { "ListEvents", "\"name\":\"$\",\"after\":%" },
        { "ResizeVgpu", "\"name\":\"$\",\"frame_buffer\":%" },
        { "SetVgpuClass", "\"name\":\"$\",\"swap_class\":\"$\"" },
        { "SetVgpuIdle", "\"name\":\"$\",\"idle_after\":%,\"idle_keep_context\":?" },
        { "SetVgpuShare", "\"name\":\"$\",\"percent\":%" },
        { "SetVgpuSchedulerState", "\"device\":\"#\",\"policy\":%,\"arr\":?" },
        { "SetScheduler", "\"device\":\"#\",\"policy\":%,\"time_slice\":%" },
        { "SetVgpuHeterogeneousMode", "\"device\":\"#\",\"enabled\":?" },
        { "SetVgpuVersionRange", "\"min\":%,\"max\":%" },
        { "SetVgpuEncoderCapacity", "\"name\":\"$\",\"percent\":%" },
        { "ClearVgpuAccounting", "\"name\":\"$\"" },
        { "SetVgpuCapability", "\"device\":\"#\",\"capability\":%,\"enabled\":?" },
        { "SetVirtualizationMode", "\"device\":\"#\",\"mode\":%" },
        { "SetAccountingMode", "\"device\":\"#\",\"enabled\":?" },
        { "ForceGspUnload", "\"device\":\"#\"" },
};
#define N_CALLS (sizeof(calls) / sizeof(calls[0]))

static const char *const names[] = { "a", "b", "c", "00000000-0000-4000-8000-000000000001" };
static const unsigned int numbers[] = { 0, 1, 2, 3, 50, 100, 65536, 4294967295 };

static struct client {
        int fd;
        uint8_t user;
        bool is_odd; /* sent what may be no call, or no more: it may have been cut off */
        size_t n_calls, n_answers;
        char *text; /* an answer, as far as it is here */
        size_t size;
} clients[CLIENTS] = { { .fd = -1 }, { .fd = -1, .user = 1 } };

/* A client. */

static void take_answer(struct client *client, const char *text)
{
        if (getenv("FUZZ_SHOW"))
                fprintf(stderr, "%zd: %s\n", client - clients, text);
        assert(text[0] == '{');
        client->n_answers += !strstr(text, "\"continues\":true");
}

static void take_bytes(struct client *client, size_t n)
{
        char *end;

        client->size += n;
        while ((end = memchr(client->text, '\0', client->size))) {
                size_t length = (size_t)(end - client->text) + 1;

                take_answer(client, client->text);
                client->size -= length;
                memmove(client->text, client->text + length, client->size);
        }
}

static void drain(struct client *client)
{
        int fds[PACKET_FDS_ANY];
        size_t n, n_fds;

        if (!client->text)
                client->text = malloc(ANSWER_MAX);
        while (client->fd >= 0) {
                int r = packet_receive_any(client->fd, client->text + client->size,
                                           ANSWER_MAX - client->size, &n, fds, &n_fds);

                packet_close_fds(fds, n_fds);
                if (r == -EAGAIN)
                        return;
                if (r == 0 && n > 0) {
                        take_bytes(client, n);
                        continue;
                }
                assert(client->is_odd); /* hung up on, for no reason */
                close(client->fd);
                client->fd = -1;
        }
}

static void run_calls(void)
{
        world_run();
        for (size_t i = 0; i < CLIENTS; i++)
                drain(&clients[i]);
}

static void hang_up(struct client *client)
{
        if (client->fd >= 0)
                close(client->fd);
        client->fd = -1;
}

/* Its process is that of a guest: what it created as transient goes with it. */
static void connect_client(struct client *client, uint8_t user)
{
        static const uid_t uids[USERS] = { 0, 1001, 1002 };
        const struct ucred peer = { world_process(&world.guest[client - clients]),
                                    uids[user % USERS], 100 };

        hang_up(client);
        client->user = user;
        client->is_odd = false;
        client->size = client->n_calls = client->n_answers = 0;
        client->fd = world_connect(PATHS_CONTROL_SOCKET, SOCK_STREAM, &peer);
        assert(client->fd >= 0);
}

static void say(struct client *client, const char *text, size_t size)
{
        if (client->fd < 0)
                connect_client(client, client->user);
        if (send(client->fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size)
                client->is_odd = true;
}

static void put_parameters(FILE *file, const char *text, uint8_t how)
{
        for (; *text; text++) {
                if (*text == '$')
                        fputs(names[how % 4], file);
                else if (*text == '#')
                        fprintf(file, "%d", how >> 2 & 1);
                else if (*text == '?')
                        fputs(how & 8 ? "true" : "false", file);
                else if (*text == '@')
                        fprintf(file, "%d", world_process(&world.guest[how >> 4 & 1]));
                else if (*text == '%')
                        fprintf(file, "%u", numbers[how >> 5]);
                else
                        fputc(*text, file);
        }
}

static void call(struct client *client, const struct call *what, uint8_t how)
{
        char *text = NULL;
        size_t size = 0;
        FILE *file = open_memstream(&text, &size);

        fprintf(file, "{\"method\":\"org.openvgpu.%s\",\"more\":%s,\"parameters\":{", what->method,
                how & 8 ? "true" : "false");
        put_parameters(file, what->parameters, how);
        fputs("}}", file);
        fclose(file);
        if (getenv("FUZZ_SHOW"))
                fprintf(stderr, "%zd? %s\n", client - clients, text);
        say(client, text, size + 1);
        client->n_calls++;
        free(text);
}

/* The input. */

static void raw(struct client *client, struct input *input)
{
        size_t n = take_byte(input);

        if (n > input->size)
                n = input->size;
        say(client, (const char *)input->data, n);
        client->is_odd = true;
        input->data += n;
        input->size -= n;
}

static void set_mood(uint8_t bits)
{
        world.are_guests_silent = bits & 1;
        world.are_movers_silent = bits & 2;
        world.guest_error = bits & 4 ? EBUSY : 0;
        world.mover_error = bits & 8 ? -EIO : 0;
}

static void one_command(struct input *input)
{
        const uint8_t first = take_byte(input);
        struct client *client = &clients[first & 1];
        struct world_guest *guest = &world.guest[first & 1];
        uint8_t which;

        switch (first >> 2 & 15) {
        default:
                which = take_byte(input);
                call(client, &calls[which % N_CALLS], take_byte(input));
                break;
        case 1:
                raw(client, input);
                break;
        case 2:
                connect_client(client, take_byte(input));
                break;
        case 3:
                hang_up(client);
                break;
        case 4:
                client->is_odd = client->fd >= 0 && shutdown(client->fd, SHUT_WR) == 0;
                break;
        case 5:
                world_join(guest, names[take_byte(input) % 4]);
                break;
        case 6:
                world_leave(guest);
                break;
        case 7:
                world_kill(guest);
                break;
        case 8:
                set_mood(take_byte(input));
                break;
        case 9:
                world_end_mover(first & 1);
                break;
        case 10:
                for (size_t i = 0; i < CLIENTS; i++)
                        hang_up(&clients[i]);
                world_restart();
                break;
        }
        if (!(first & 2))
                run_calls();
}

/* Afterwards. */

static bool is_all_answered(void)
{
        bool is_all = true;

        for (size_t i = 0; i < CLIENTS; i++) {
                const struct client *client = &clients[i];

                drain(&clients[i]);
                is_all &= client->fd < 0 || client->is_odd || client->n_answers == client->n_calls;
        }
        return is_all;
}

static void end_clients(void)
{
        world_wait(is_all_answered);
        for (size_t i = 0; i < CLIENTS; i++)
                hang_up(&clients[i]);
        run_calls();
}

/* The settings of devices, so that an input does the same each time. */
static void undo_settings(void)
{
        static const struct call undo[] = {
                { "SetScheduler", "\"device\":\"#\",\"policy\":1" },
                { "SetVgpuHeterogeneousMode", "\"device\":\"#\",\"enabled\":true" },
        };

        connect_client(&clients[0], 0);
        for (uint8_t i = 0; i < 2 * WORLD_DEVICES; i++)
                call(&clients[0], &undo[i % 2], (uint8_t)(i / 2 << 2));
        run_calls();
        end_clients();
        for (uint8_t i = 0; i < CLIENTS; i++)
                clients[i].user = i;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = { data, size };

        if (!world.manager)
                world_set_up();
        while (input.size > 0)
                one_command(&input);
        world_reset();
        run_calls();
        end_clients();
        world_clear();
        undo_settings();
        world_reset();
        return 0;
}
