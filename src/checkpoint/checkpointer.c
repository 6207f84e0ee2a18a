/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-checkpointer: makes the driver's checkpoint calls for libopenvgpu. The calls can crash or
 * hang, and a process that has started the driver can no longer fork or be checkpointed itself.
 *
 * The library starts it with a connection as descriptor 3. It serves one request after another, and
 * ends with the connection, or when it holds no process any more (holder.h). It ignores signals
 * from the terminal: Ctrl-C ends the library's process, and this ends the connection.
 */

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/packet.h"
#include "checkpoint/action.h"
#include "checkpoint/holder.h"
#include "wire/checkpoint.h"

#define CONNECTION 3

static void ignore_signals(void)
{
        static const int signals[] = {
                SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGXFSZ
        };

        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
                (void)signal(signals[i], SIG_IGN);
}

static bool is_request(const struct checkpoint_wire_request *request, size_t size)
{
        return size == sizeof(*request) && request->header.magic == CHECKPOINT_WIRE_MAGIC &&
               request->header.message == CHECKPOINT_REQUEST;
}

/* Who is held may be unlocked by somebody else meanwhile. */
static bool wait_for_request(void)
{
        struct pollfd fd = { .fd = CONNECTION, .events = POLLIN };

        while (poll(&fd, 1, holder_check() ? HOLDER_CHECK_MS : -1) == 0)
                ;
        return true;
}

static void serve(void)
{
        static union {
                char bytes[PACKET_SIZE_MAX];
                struct checkpoint_wire_request request;
        } packet;
        struct checkpoint_wire_answer answer;
        int fds[PACKET_FDS_MAX];
        size_t size, n_fds;

        while (wait_for_request() &&
               packet_receive(CONNECTION, packet.bytes, &size, fds, &n_fds) == 0) {
                if (!is_request(&packet.request, size)) {
                        packet_close_fds(fds, n_fds);
                        return;
                }
                action_run(&packet.request, fds, n_fds, CONNECTION, &answer);
                if (packet_send(CONNECTION, &answer, sizeof(answer), NULL, 0) < 0)
                        return;
        }
}

int main(void)
{
        ignore_signals();
        (void)prctl(PR_SET_NAME, "vgpu-checkpoint");
        /* All devices: a restore wants to hear of each of them, whatever our caller may see. */
        (void)unsetenv("CUDA_VISIBLE_DEVICES");
        serve();
        while (holder_check())
                (void)poll(NULL, 0, HOLDER_CHECK_MS);
        return 0;
}
