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
#include "gate/child.h"
#include "gate/drain.h"
#include "gate/ending.h"
#include "gate/entry.h"
#include "gate/fate.h"
#include "gate/fork-guard.h"
#include "gate/import.h"
#include "gate/link.h"
#include "gate/log.h"
#include "gate/move.h"
#include "gate/offer.h"
#include "gate/pool-import.h"
#include "gate/quota.h"
#include "gate/ticket.h"
#include "gate/turns.h"
#include "gate/visible.h"
#include "gate/vmm.h"
#include "gate/whole.h"

/*
 * How long to wait before a manager is looked for again; doubled up to the last. Who was one for less
 * than the last is as good as none.
 */
#define RETRY_FIRST_NS 50000000
#define RETRY_LAST_NS  1000000000

/* Between two looks whether streams are done with memory of others that the program has freed. */
#define GIVE_BACK_MS 20

/* For the exchange of a piece of memory that another process has asked for. */
#define EXCHANGE_MS 500

static struct {
        int socket;
        enum gate_state state;
        bool may_be_unfilled; /* from RELEASE to OPEN: only the manager can open */
        bool is_created;      /* CREATE made some of the memory, since RELEASE */
        struct {
                bool is_under_way; /* the last of its messages has not come */
                int error;         /* the first, which the answer to the last one tells */
                struct move move;
        } series;           /* of MAP messages */
        bool is_question;   /* of the TAKE that is under way */
        bool is_taking;     /* TAKE has not been answered */
        int offered_fd;     /* under way to the manager; the child of a fork closes it */
        bool wants_waiting; /* the manager wants to know whether a thread waits at the closed gate */
        bool is_waiting_told;
        enum gate_fate fate; /* other than STAYS: it has been said, and the connection is to end */
        int fds[PACKET_FDS_MAX]; /* that came with the message; the child of a fork closes them */
        size_t n_fds;
        bool has_lost_fds; /* more came than the process may have: none is here */
} agent = { .socket = -1, .offered_fd = -1 };

union message {
        struct gate_header header;
        struct gate_close close;
        struct gate_step step;
        struct gate_command command;
        struct gate_allocations allocations;
        struct gate_watch_message watch;
        struct gate_take take;
        struct gate_imported imported;
        struct gate_offer offer;
        char bytes[PACKET_SIZE_MAX];
};

/* Answers return an error only when the connection is no good, or has had its last answer. */

/* Whoever gets this answer may give our slot to another process. */
static int send_last(enum gate_message type, void *message, uint32_t size, enum gate_fate fate)
{
        log_write("%s; leaving the vGPU",
                  fate == GATE_FATE_ENDS ? "the driver has ended" : "the context is broken");
        agent.fate = fate;
        quota_leave();
        (void)link_send(agent.socket, type, message, size, NULL, 0);
        return -ESHUTDOWN;
}

/* What cannot be done for a broken context matters to nobody while its memory is where it was. */
static enum gate_fate fate_now(int error, CUresult code)
{
        enum gate_fate fate = error < 0 ? fate_of(code) : GATE_FATE_STAYS;

        return fate == GATE_FATE_BROKEN && !agent.may_be_unfilled ? GATE_FATE_STAYS : fate;
}

static int answer(enum gate_message type, int error, const struct move *move)
{
        struct gate_result result = { .error = -error,
                                      .driver_code = move->code,
                                      .bytes = move->bytes,
                                      .fate = fate_now(error, move->code),
                                      .state = agent.state };

        if (error < 0)
                log_write("step %d failed: %s, %s %d", type, strerrordesc_np(-error), move->call,
                          move->code);
        strncpy(result.call, move->call, sizeof(result.call) - 1);
        if (result.fate != GATE_FATE_STAYS)
                return send_last(type, &result, sizeof(result), result.fate);
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

        r = drain_close(deadline_ns, ret_call, ret_code);
        if (r == 0 && fault_point("gate-close")) {
                *ret_call = "gate-close";
                r = -EIO;
                drain_open();
        }
        return r;
}

static int answer_closed(int error, const char *call, CUresult code, uint32_t n_launches)
{
        struct gate_closed closed = { .error = -error,
                                      .driver_code = code,
                                      .can_step = 1,
                                      .n_launches = (uint16_t)n_launches };
        struct move all;

        if (error == 0) { /* else it is open again, and what we would count may go meanwhile */
                pool_import_settle();
                all = move_count();
                closed.movable_bytes = all.bytes;
                closed.n_allocations = all.count;
        }
        closed.holds = quota_get_holds();
        closed.n_imports = vmm_count_imports();
        if (error < 0) {
                closed.fate = fate_of(code);
                strncpy(closed.call, call, sizeof(closed.call) - 1);
        }
        if (closed.fate == GATE_FATE_ENDS)
                return send_last(GATE_CLOSED, &closed, sizeof(closed), closed.fate);
        return link_send(agent.socket, GATE_CLOSED, &closed, sizeof(closed), NULL, 0);
}

static int on_close(const union message *message, int *fds)
{
        const char *call = "";
        CUresult code = CUDA_SUCCESS;
        int r = 0;

        (void)fds;
        fork_guard_start();
        if (agent.state == GATE_STATE_OPEN) {
                ending_watch();
                r = close_gate(message->close.timeout_ms, &call, &code);
                if (r == 0)
                        agent.state = GATE_STATE_CLOSED;
        }
        log_write("close: %s", r < 0 ? strerrordesc_np(-r) : "done");
        return answer_closed(r, call, code, 0);
}

/* Where memory was released and may not be filled again, nobody may launch anything. */
static int on_step(const union message *message, int *fds)
{
        const struct gate_step *step = &message->step;
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);
        const char *call = "";
        CUresult code = CUDA_SUCCESS;
        uint32_t n_launches = 0;
        int r;

        (void)fds;
        if (step->n_launches == 0 || step->n_launches > UINT16_MAX)
                return -EPROTO;
        if (agent.state != GATE_STATE_CLOSED || agent.may_be_unfilled)
                return -EPROTO;
        r = drain_step(step->n_launches, now_ns + step->window_ms * (uint64_t)1000000,
                       now_ns + step->timeout_ms * (uint64_t)1000000, &n_launches, &call, &code);
        if (r < 0) { /* who waits at it the next time is to be told of again */
                agent.state = GATE_STATE_OPEN;
                agent.is_waiting_told = false;
        }
        log_write("step of %u: %s", n_launches, r < 0 ? strerrordesc_np(-r) : "done");
        return answer_closed(r, call, code, n_launches);
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
        int r;

        (void)fds;
        if (agent.state == GATE_STATE_OPEN || agent.series.is_under_way)
                return answer_not_now(GATE_RELEASED);
        r = import_let_go(&move);
        if (r == 0) {
                agent.may_be_unfilled |= import_are_away();
                r = move_release(&move, message->command.range);
        }
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

        (void)fds;
        if (agent.state != GATE_STATE_RELEASED || agent.series.is_under_way)
                return answer_not_now(GATE_CREATED);
        r = move_create(&move, message->command.range, agent.socket);
        if (r == 0) {
                agent.state = move_is_complete() ? GATE_STATE_CLOSED : GATE_STATE_RELEASED;
                agent.is_created = true;
        }
        return answer(GATE_CREATED, r, &move);
}

static void begin_series(void)
{
        agent.series.is_under_way = true;
        agent.series.error = agent.state == GATE_STATE_RELEASED ? 0 : -EBUSY;
        agent.series.move = (struct move){ .call = "" };
}

/* What comes after a failure is swallowed: the manager has sent it already, and awaits one answer. */
static int on_map(const union message *message, int *fds)
{
        if (!agent.series.is_under_way)
                begin_series();
        if (agent.series.error == 0) {
                agent.series.error = agent.has_lost_fds ? -EMFILE
                                                        : move_attach(&agent.series.move,
                                                                      &message->allocations, fds);
                if (agent.series.error < 0)
                        move_detach();
        }
        if (!(message->allocations.flags & GATE_BATCH_LAST))
                return 0;
        agent.series.is_under_way = false;
        if (agent.series.error == 0) {
                move_keep();
                agent.state = move_is_complete() ? GATE_STATE_CLOSED : GATE_STATE_RELEASED;
                agent.is_created |= (message->allocations.flags & GATE_BATCH_GIVEN) != 0;
        }
        return answer(GATE_MAPPED, agent.series.error, &agent.series.move);
}

static int on_open(const union message *message, int *fds)
{
        const struct move move = { .call = "" };

        (void)message;
        (void)fds;
        if (agent.state == GATE_STATE_RELEASED || import_are_away())
                return answer_not_now(GATE_OPENED);
        if (fault_point("gate-open"))
                return answer(GATE_OPENED, -EIO, &move);
        whole_mend();
        agent.state = GATE_STATE_OPEN;
        agent.may_be_unfilled = agent.is_created = agent.is_waiting_told = false;
        drain_open();
        log_write("open");
        return answer(GATE_OPENED, 0, &move);
}

/* Memory that is gone for ever matters only to who has let it go. */
static int end_taking(int error, const struct move *move, bool is_question)
{
        struct gate_result result = { .error = -error, .bytes = 0, .fate = GATE_FATE_BEREFT };

        agent.is_taking = false;
        if (error != -EOWNERDEAD || is_question)
                return answer(GATE_TAKEN, error, move);
        log_write("the process that made some of our memory has ended");
        import_give_up();
        return send_last(GATE_TAKEN, &result, sizeof(result), GATE_FATE_BEREFT);
}

static int on_take(const union message *message, int *fds)
{
        const struct move move = { .call = "" };
        int r;

        (void)fds;
        if (agent.state != GATE_STATE_CLOSED || agent.is_taking)
                return answer_not_now(GATE_TAKEN);
        agent.is_taking = true;
        agent.is_question = message->take.is_question != 0;
        r = import_take(agent.is_question);
        return r > 0 ? 0 : end_taking(r, &move, agent.is_question);
}

/* To a question of the agent, or of a thread of the application. */
static int on_imported(const union message *message, int *fds)
{
        struct move move;
        int r = import_answer(&message->imported, message->imported.error == 0 ? fds[0] : -1);

        if (r == -EPROTO)
                return r;
        if (r == -ESTALE || !agent.is_taking)
                return 0;
        r = import_take_next(&move);
        return r > 0 ? 0 : end_taking(r, &move, agent.is_question);
}

static void drop_offered(void)
{
        fork_guard_enter();
        agent.offered_fd = fd_close(agent.offered_fd);
        fork_guard_leave();
}

static int try_to_offer(const uint8_t name[GATE_NAME_SIZE], bool is_closed)
{
        int r;

        fork_guard_enter();
        r = offer_make(&agent.offered_fd, name, is_closed);
        fork_guard_leave();
        return r;
}

/* Nobody may use the memory while it is exchanged. Who waits for it asks again if that takes too long. */
static int offer_after_exchange(const uint8_t name[GATE_NAME_SIZE])
{
        const char *call = "";
        CUresult code = CUDA_SUCCESS;
        int r = close_gate(EXCHANGE_MS, &call, &code);

        log_write("closed to exchange memory: %s", r < 0 ? strerrordesc_np(-r) : "done");
        if (r < 0)
                return r == -ETIMEDOUT ? -EAGAIN : r;
        r = try_to_offer(name, true);
        drain_open();
        return r;
}

static int on_offer(const union message *message, int *fds)
{
        struct gate_offered offered = { .number = message->offer.number };
        int r;

        (void)fds;
        fork_guard_start();
        r = try_to_offer(message->offer.name, agent.state == GATE_STATE_CLOSED);
        if (r == -EBUSY && agent.state == GATE_STATE_OPEN)
                r = offer_after_exchange(message->offer.name);
        if (r == -EBUSY)
                r = -EAGAIN;
        if (r == 0 && fault_point("gate-offer"))
                r = -EIO;
        offered.error = -r;
        r = link_send(agent.socket, GATE_OFFERED, &offered, sizeof(offered), &agent.offered_fd,
                      r == 0);
        drop_offered();
        return r;
}

static int on_watch(const union message *message, int *fds)
{
        (void)fds;
        if (message->watch.watch > GATE_WATCH_TURNS)
                return -EPROTO;
        turns_watch(message->watch.watch);
        agent.wants_waiting = message->watch.wants_waiting != 0;
        agent.is_waiting_told = false;
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
        { GATE_STEP, sizeof(struct gate_step), on_step },
        { GATE_TAKE, sizeof(struct gate_take), on_take },
        { GATE_IMPORTED, sizeof(struct gate_imported), on_imported },
        { GATE_OFFER, sizeof(struct gate_offer), on_offer },
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
                        n_fds_wanted = agent.has_lost_fds ? 0 : message->allocations.count;
                if (header->message == GATE_IMPORTED && size == sizeof(message->imported))
                        n_fds_wanted = message->imported.error == 0;
                if (size != actions[i].size || n_fds != n_fds_wanted || n_fds > GATE_BATCH_MAX)
                        return -EPROTO;
                return actions[i].act(message, fds);
        }
        return -EPROTO;
}

/* The process has too many open files: the kernel drops descriptors, and what we have got of them is closed. */
static bool has_lost_fds(const union message *message, size_t size)
{
        const struct gate_header *header = &message->header;

        if (size < sizeof(*header) || header->magic != GATE_WIRE_MAGIC)
                return false;
        return (header->message == GATE_IMPORTED && size == sizeof(message->imported)) ||
               (header->message == GATE_MAP && size == sizeof(message->allocations));
}

/* There is a message: nobody who wants to fork waits for it. */
static int receive(union message *message, size_t *ret_size)
{
        int r;

        fork_guard_enter();
        r = packet_receive(agent.socket, message, ret_size, agent.fds, &agent.n_fds);
        fork_guard_leave();
        agent.has_lost_fds = r == -EMSGSIZE && has_lost_fds(message, *ret_size);
        if (!agent.has_lost_fds)
                return r;
        if (message->header.message == GATE_IMPORTED)
                message->imported.error = EMFILE;
        return 0;
}

static void drop_fds(void)
{
        packet_close_fds(agent.fds, agent.n_fds);
        agent.n_fds = 0;
}

static int tell_waiting(void)
{
        struct gate_waiting waiting;

        if (!agent.wants_waiting || agent.is_waiting_told || agent.state == GATE_STATE_OPEN ||
            caller_count_waiting() == 0)
                return 0;
        agent.is_waiting_told = true;
        log_write("a thread waits at the closed gate");
        return link_send(agent.socket, GATE_WAITING, &waiting, sizeof(waiting), NULL, 0);
}

/* Who comes to the closed gate wakes us after it has counted itself: none is missed. */
static int wait_for_message(void)
{
        int r, most_ms;

        do {
                r = tell_waiting();
                if (r == 0)
                        r = visible_tell_news(agent.socket);
                most_ms = -1;
                if (r == 0 && agent.state == GATE_STATE_OPEN && pool_import_give_back())
                        most_ms = GIVE_BACK_MS;
        } while (r == 0 && !turns_wait(agent.socket, agent.state == GATE_STATE_OPEN, most_ms));
        return r;
}

static int serve(void)
{
        union message message;
        size_t size;
        int r;

        do {
                memset(&message, 0, sizeof(message.allocations));
                r = wait_for_message();
                if (r == 0)
                        r = receive(&message, &size);
                if (r < 0)
                        break;
                r = act(&message, size, agent.fds, agent.n_fds);
                fork_guard_enter();
                drop_fds();
                fork_guard_leave();
        } while (r == 0);
        return r;
}

/* The manager is gone. What the guest had left as it was, it may go on with. */
static void lose(int error)
{
        log_write("lost the manager: %s", strerrordesc_np(-error));
        agent.socket = fd_close(agent.socket);
        import_connect(-1);
        agent.is_taking = false;
        turns_watch(GATE_WATCH_NOTHING);
        agent.wants_waiting = false;
        if (agent.series.is_under_way) {
                if (agent.series.error == 0)
                        move_detach();
                agent.series.is_under_way = false;
        }
        if (agent.fate != GATE_FATE_STAYS ||
            (agent.state == GATE_STATE_CLOSED && !agent.may_be_unfilled)) {
                agent.state = GATE_STATE_OPEN;
                agent.may_be_unfilled = agent.is_created = false;
                drain_open();
                log_write("open, as nobody else would do it");
        }
}

static enum gate_state state_to_tell(void)
{
        return agent.state == GATE_STATE_CLOSED && agent.is_created ? GATE_STATE_CREATED
                                                                    : agent.state;
}

static void wait_longer(uint64_t *interval_ns)
{
        const struct timespec interval = clock_timespec(*interval_ns);

        nanosleep(&interval, NULL);
        *interval_ns *= 2;
        if (*interval_ns > RETRY_LAST_NS)
                *interval_ns = RETRY_LAST_NS;
}

void agent_describe(struct gate_join *join)
{
        join->n_imports = vmm_count_imports();
        join->ticket_slot = ticket_get_slot();
        visible_tell_seen(join->seen);
}

static void reconnect(uint64_t *interval_ns)
{
        struct gate_welcome welcome;
        char text[GATE_TEXT_MAX];

        for (;;) {
                const struct link_report report = { state_to_tell(), agent_describe };

                agent.socket = link_join(&report, &welcome, text);
                if (agent.socket >= 0)
                        break;
                agent.socket = -1;
                log_write("cannot join again: %s", text);
                wait_longer(interval_ns);
        }
        log_write("joined again, slot %u", welcome.slot);
        import_connect(agent.socket);
        if (vmm_count_imports() > 0)
                (void)import_tell_used(agent.socket); /* what is broken shows when it is served */
}

static void *agent_run(void *argument)
{
        int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        uint64_t interval_ns = RETRY_FIRST_NS;

        (void)argument;
        (void)pthread_setname_np(pthread_self(), "openvgpu-gate");
        caller_exempt();
        if (drain_prepare() < 0)
                log_to_user("no membarrier(2) here: this process cannot be suspended");
        /* Once, before anybody can suspend the process: then no call of the driver would return. */
        DRIVER(cuThreadExchangeStreamCaptureMode)(&mode);
        for (;;) {
                uint64_t joined_ns = clock_now(CLOCK_MONOTONIC);

                lose(serve());
                if (agent.fate == GATE_FATE_ENDS)
                        break;
                agent.fate = GATE_FATE_STAYS;
                if (clock_now(CLOCK_MONOTONIC) - joined_ns >= RETRY_LAST_NS)
                        interval_ns = RETRY_FIRST_NS;
                else
                        wait_longer(&interval_ns);
                reconnect(&interval_ns);
        }
        return NULL;
}

int agent_start(int socket)
{
        sigset_t all, before;
        pthread_t thread;
        int r;

        agent.socket = socket;
        import_connect(socket);
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before); /* the new thread inherits it */
        r = -pthread_create(&thread, NULL, agent_run, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r < 0)
                agent_forget();
        else
                pthread_detach(thread);
        return r;
}

void agent_forget(void)
{
        agent.socket = fd_close(agent.socket);
        drop_fds();
        agent.offered_fd = fd_close(agent.offered_fd);
        agent.is_taking = false;
        agent.state = GATE_STATE_OPEN;
        agent.may_be_unfilled = agent.series.is_under_way = agent.is_created = false;
        agent.wants_waiting = agent.is_waiting_told = false;
        agent.fate = GATE_FATE_STAYS;
}
