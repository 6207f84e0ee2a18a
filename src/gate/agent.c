/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/agent.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/packet.h"
#include "gate/caller.h"
#include "gate/drain.h"
#include "gate/entry.h"
#include "gate/link.h"
#include "gate/log.h"
#include "gate/move.h"
#include "gate/quota.h"
#include "gate/turns.h"

/* How long to wait before a manager is looked for again; doubled up to the last. */
#define RETRY_FIRST_NS 50000000
#define RETRY_LAST_NS  1000000000 /* not inclusive of what tv_nsec can hold: see reconnect() */

static struct {
        int socket;
        enum gate_state state;
        bool may_be_unfilled; /* from RELEASE to OPEN: only the manager can open */
        bool is_mapping;      /* in the middle of a series of MAP messages */
        bool is_created;      /* CLOSED with memory that CREATE made */
} agent = { .socket = -1 };

union message {
        struct gate_header header;
        struct gate_close close;
        struct gate_command command;
        struct gate_allocations allocations;
        struct gate_watch_message watch;
        char bytes[PACKET_SIZE_MAX];
};

/* Answers return an error only when the connection is no good. */

static int answer(enum gate_message type, int error, const struct move *move)
{
        struct gate_result result = { .error = -error,
                                      .driver_code = move->code,
                                      .bytes = move->bytes };

        if (error < 0)
                log_write("step %d failed: %s, %s %d", type, strerrordesc_np(-error), move->call,
                          move->code);
        strncpy(result.call, move->call, sizeof(result.call) - 1);
        return link_send(agent.socket, type, &result, sizeof(result), NULL, 0);
}

/* For a step that does not fit the state: nothing has been done. */
static int answer_not_now(enum gate_message type)
{
        const struct move move = { .call = "" };

        return answer(type, -EBUSY, &move);
}

static int close_gate(uint32_t timeout_ms, const char **ret_call, CUresult *ret_code)
{
        uint64_t deadline_ns = clock_now(CLOCK_MONOTONIC) + timeout_ms * (uint64_t)1000000;
        int r;

        r = drain_close(deadline_ns, ret_call);
        if (r < 0)
                return r;
        r = drain_finish(deadline_ns, ret_call, ret_code);
        if (r == 0 && fault_point("gate-close")) {
                *ret_call = "gate-close";
                r = -EIO;
        }
        if (r < 0)
                drain_open();
        return r;
}

static int on_close(const union message *message, int *fds)
{
        struct gate_closed closed = { .error = 0 };
        const char *call = "";
        CUresult code = CUDA_SUCCESS;
        struct move all;
        int r = 0;

        (void)fds;
        if (agent.state == GATE_STATE_OPEN) {
                r = close_gate(message->close.timeout_ms, &call, &code);
                if (r == 0)
                        agent.state = GATE_STATE_CLOSED;
        }
        log_write("close: %s", r < 0 ? strerrordesc_np(-r) : "done");
        closed.error = -r;
        closed.driver_code = code;
        if (r == 0) { /* else it is open again, and what we would count may go meanwhile */
                all = move_count();
                closed.movable_bytes = all.bytes;
                closed.n_allocations = all.count;
        }
        closed.holds = quota_get_holds();
        if (r < 0)
                strncpy(closed.call, call, sizeof(closed.call) - 1);
        return link_send(agent.socket, GATE_CLOSED, &closed, sizeof(closed), NULL, 0);
}

static int on_export(const union message *message, int *fds)
{
        struct move move;
        int r;

        (void)message;
        (void)fds;
        if (agent.state != GATE_STATE_CLOSED)
                return answer_not_now(GATE_EXPORTED);
        r = move_export(&move, agent.socket);
        return answer(GATE_EXPORTED, r, &move);
}

static int on_release(const union message *message, int *fds)
{
        struct move move = { .call = "" };
        int r = 0;

        (void)message;
        (void)fds;
        if (agent.state == GATE_STATE_OPEN)
                return answer_not_now(GATE_RELEASED);
        if (agent.state == GATE_STATE_CLOSED)
                r = move_release(&move);
        if (r == 0) {
                agent.state = GATE_STATE_RELEASED;
                agent.may_be_unfilled = true;
                agent.is_created = false;
        }
        return answer(GATE_RELEASED, r, &move);
}

static int on_create(const union message *message, int *fds)
{
        struct move move;
        int r;

        (void)message;
        (void)fds;
        if (agent.state != GATE_STATE_RELEASED || agent.is_mapping)
                return answer_not_now(GATE_CREATED);
        r = move_create(&move);
        if (r == 0) {
                r = move_export(&move, agent.socket);
                if (r < 0)
                        move_detach();
        }
        if (r == 0) {
                agent.state = GATE_STATE_CLOSED;
                agent.is_created = true;
        }
        return answer(GATE_CREATED, r, &move);
}

static int on_map(const union message *message, int *fds)
{
        bool is_last = message->allocations.last;
        struct move move;
        int r;

        if (agent.state != GATE_STATE_RELEASED)
                return answer_not_now(GATE_MAPPED);
        r = move_attach(&move, &message->allocations, fds);
        agent.is_mapping = r == 0 && !is_last;
        if (r == 0 && !is_last)
                return 0;
        if (r < 0)
                move_detach();
        else
                agent.state = GATE_STATE_CLOSED;
        return answer(GATE_MAPPED, r, &move);
}

static int on_open(const union message *message, int *fds)
{
        const struct move move = { .call = "" };

        (void)message;
        (void)fds;
        if (agent.state == GATE_STATE_RELEASED)
                return answer_not_now(GATE_OPENED);
        if (fault_point("gate-open"))
                return answer(GATE_OPENED, -EIO, &move);
        agent.state = GATE_STATE_OPEN;
        agent.may_be_unfilled = agent.is_created = false;
        drain_open();
        log_write("open");
        return answer(GATE_OPENED, 0, &move);
}

static int on_watch(const union message *message, int *fds)
{
        (void)fds;
        if (message->watch.watch > GATE_WATCH_TURNS)
                return -EPROTO;
        turns_watch(message->watch.watch);
        return 0;
}

static const struct {
        enum gate_message type;
        size_t size;
        int (*act)(const union message *message, int *fds);
} actions[] = {
        { GATE_CLOSE, sizeof(struct gate_close), on_close },
        { GATE_EXPORT, sizeof(struct gate_command), on_export },
        { GATE_RELEASE, sizeof(struct gate_command), on_release },
        { GATE_CREATE, sizeof(struct gate_command), on_create },
        { GATE_MAP, sizeof(struct gate_allocations), on_map },
        { GATE_OPEN, sizeof(struct gate_command), on_open },
        { GATE_WATCH, sizeof(struct gate_watch_message), on_watch },
};

/* A manager that talks nonsense is left, and asked again who it is. */
static int act(const union message *message, size_t size, int *fds, size_t n_fds)
{
        const struct gate_header *header = &message->header;
        size_t n_fds_wanted = 0;

        if (size < sizeof(*header) || header->magic != GATE_WIRE_MAGIC ||
            header->version != GATE_WIRE_VERSION)
                return -EPROTO;
        for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
                if (header->message != actions[i].type)
                        continue;
                if (header->message == GATE_MAP)
                        n_fds_wanted = message->allocations.count;
                if (size != actions[i].size || n_fds != n_fds_wanted || n_fds > GATE_BATCH_MAX)
                        return -EPROTO;
                return actions[i].act(message, fds);
        }
        return -EPROTO;
}

static int serve(void)
{
        union message message;
        int fds[PACKET_FDS_MAX];
        size_t size, n_fds;
        int r;

        do {
                memset(&message, 0, sizeof(message.allocations));
                turns_wait(agent.socket, agent.state == GATE_STATE_OPEN);
                r = packet_receive(agent.socket, &message, &size, fds, &n_fds);
                if (r < 0)
                        break;
                r = act(&message, size, fds, n_fds);
                packet_close_fds(fds, n_fds);
        } while (r == 0);
        return r;
}

/* The manager is gone. What the guest had left as it was, it may go on with. */
static void lose(int error)
{
        log_write("lost the manager: %s", strerrordesc_np(-error));
        agent.socket = fd_close(agent.socket);
        turns_watch(GATE_WATCH_NOTHING);
        if (agent.is_mapping) {
                move_detach();
                agent.is_mapping = false;
        }
        if (agent.state == GATE_STATE_CLOSED && !agent.may_be_unfilled) {
                agent.state = GATE_STATE_OPEN;
                drain_open();
                log_write("open, as nobody else would do it");
        }
}

static void reconnect(void)
{
        struct timespec interval = { .tv_nsec = RETRY_FIRST_NS };
        struct gate_welcome welcome;
        char text[GATE_TEXT_MAX];

        for (;;) {
                agent.socket = link_join(agent.is_created ? GATE_STATE_CREATED : agent.state,
                                         &welcome, text);
                if (agent.socket >= 0)
                        break;
                agent.socket = -1;
                log_write("cannot join again: %s", text);
                nanosleep(&interval, NULL);
                interval.tv_nsec *= 2;
                if (interval.tv_nsec >= RETRY_LAST_NS || interval.tv_sec > 0)
                        interval = (struct timespec){ .tv_sec = 1 };
        }
        log_write("joined again, slot %u", welcome.slot);
}

static void *agent_run(void *argument)
{
        int mode = CU_STREAM_CAPTURE_MODE_RELAXED;

        (void)argument;
        (void)pthread_setname_np(pthread_self(), "openvgpu-gate");
        caller_exempt();
        if (drain_prepare() < 0)
                log_to_user("no membarrier(2) here: this process cannot be suspended");
        for (;;) {
                int r;

                DRIVER(cuThreadExchangeStreamCaptureMode)(&mode);
                mode = CU_STREAM_CAPTURE_MODE_RELAXED;
                r = serve();
                lose(r);
                reconnect();
        }
        return NULL;
}

int agent_start(int socket)
{
        sigset_t all, before;
        pthread_t thread;
        int r;

        agent.socket = socket;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before); /* the new thread inherits it */
        r = -pthread_create(&thread, NULL, agent_run, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r < 0)
                agent.socket = fd_close(agent.socket);
        else
                pthread_detach(thread);
        return r;
}

void agent_forget(void)
{
        agent.socket = fd_close(agent.socket);
        agent.state = GATE_STATE_OPEN;
        agent.may_be_unfilled = agent.is_mapping = agent.is_created = false;
}
