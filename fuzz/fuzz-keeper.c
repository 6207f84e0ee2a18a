/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said to the keeper. Its source is included: it is a program, and all that is not its loop
 * takes a struct, which this target has one of, with a client that it plays itself.
 *
 * The input is a series of packets: one byte of how many descriptors, two of how many bytes.
 */
int keeper_main(void);
#define main keeper_main
#include "keeper/keeper.c"
#undef main

#include <assert.h>
#include <sys/mman.h>

#include "fuzz/target.h"

#define LABELS_MAX 64

static void drain(int client)
{
        union {
                struct keeper_packet packet;
                char space[PACKET_SIZE_MAX];
        } answer;
        int fds[PACKET_FDS_MAX];
        size_t size, n_fds;

        while (packet_receive(client, &answer, &size, fds, &n_fds) == 0) {
                assert(keeper_packet_is_whole(&answer.packet, size));
                packet_close_fds(fds, n_fds);
        }
}

static bool connect_pair(struct keeper *keeper, int *client)
{
        int pair[2];

        if (keeper->client >= 0)
                return true;
        fd_close(*client);
        *client = -1;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
                return false;
        keeper->client = pair[0];
        *client = pair[1];
        return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct keeper keeper = { .client = -1, .capacity = LABELS_MAX };
        static int memory = -1;
        int client = -1;

        if (memory < 0)
                memory = memfd_create("fuzz", MFD_CLOEXEC);

        while (size >= 3 && connect_pair(&keeper, &client)) {
                size_t n_fds = data[0] % 4, length = data[1] | (size_t)data[2] << 8;
                const int fds[] = { memory, memory, memory };

                data += 3;
                size -= 3;
                if (length > size)
                        length = size;
                if (packet_send(client, data, length, fds, n_fds) == 0)
                        receive(&keeper);
                if (keeper.client >= 0)
                        send_owed(&keeper);
                drain(client);
                data += length;
                size -= length;
                assert(keeper.table.n <= LABELS_MAX);
        }
        hang_up(&keeper);
        fd_close(client);
        fd_table_deinit(&keeper.table);
        return 0;
}
