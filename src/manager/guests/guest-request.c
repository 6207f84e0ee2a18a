/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/guests/guest-request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/packet.h"
#include "daemon/log.h"
#include "manager/guests/gate-link.h"
#include "manager/guests/guest-allocations.h"
#include "manager/guests/guest-watch.h"
#include "manager/guests/share.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"

/* What a gate may need beyond the time that it was given for draining; if it is stopped, in vain. */
#define CLOSE_SLACK_MS   3000
#define STOPPED_SLACK_MS 50

/*
 * Who waits for the room of others does not wait for one that is stopped, but a debugger stops processes for a moment. A
 * gate that has been told to let its memory go gets longer: without it, what is left undone has failed.
 */
#define STOPPED_LOOK_MS    40
#define STOPPED_LOOKS      2
#define STOPPED_LOOKS_AWAY 12

/*
 * After a hang-up: the death of the process or a new connection is told within this, and on a busy machine within
 * the second. Only a process that is stopped will not move.
 */
#define HANGUP_GRACE_MS 3000
#define HANGUP_LAST_MS  6000

static const struct {
        enum gate_message request, answer;
        enum gate_state state; /* after success */
        const char *name;
} requests[] = {
        { GATE_CLOSE, GATE_CLOSED, GATE_STATE_CLOSED, "close" },
        { GATE_STEP, GATE_CLOSED, GATE_STATE_CLOSED, "step" },
        { GATE_EXPORT, GATE_EXPORTED, GATE_STATE_CLOSED, "export" },
        { GATE_RELEASE, GATE_RELEASED, GATE_STATE_RELEASED, "release" },
        { GATE_CREATE, GATE_CREATED, GATE_STATE_CLOSED, "create" },
        { GATE_MAP, GATE_MAPPED, GATE_STATE_CLOSED, "map" },
        { GATE_OPEN, GATE_OPENED, GATE_STATE_OPEN, "open" },
        { GATE_TAKE, GATE_TAKEN, GATE_STATE_CLOSED, "take" },
};

/* The end of a request. */

static void complete(struct guest *guest, const struct guest_answer *answer)
{
        guest_done_fn done = guest->request.done;
        void *userdata = guest->request.userdata;

        sd_event_source_disable_unref(guest->request.timer);
        sd_event_source_disable_unref(guest->request.look);
        memset(&guest->request, 0, sizeof(guest->request));
        done(guest, answer, userdata);
}

void guest_end_request(struct guest *guest, int error)
{
        const struct guest_answer answer = { .error = error };

        if (guest->request.done)
                complete(guest, &answer);
}

/* Alone, a gate opens unless it was told to let its memory go. */
static void note_loss(struct guest *guest)
{
        if (!guest->must_stay)
                guest->state = GATE_STATE_OPEN;
}

static void set_timer(struct guest *guest, uint32_t ms);

static const char *get_name(enum gate_message request)
{
        for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
                if (requests[i].request == request)
                        return requests[i].name;
        return "connect"; /* which is no message */
}

static void log_time_out(const struct guest *guest)
{
        log_event_of(guest->payer, LOG_LEVEL_WARNING, "a gate does not answer",
                     "vgpu=%s pid=%d request=%s timeout_ms=%u blocked=%d resting=%d",
                     guest->instance->name, (int)guest->pid, get_name(guest->request.message),
                     guest->request.timeout_ms, guest->request.is_blocked,
                     guest->gate && guest->gate->resting_ns > 0);
}

/* What it would answer later is out of turn. */
static void give_up(struct guest *guest)
{
        log_time_out(guest);
        if (!guest->gate || !guest->request.is_sent) {
                guest_end_request(guest, -ENOTCONN);
                return;
        }
        guest->gate = gate_link_free(guest->gate);
        share_detach(guest);
        note_loss(guest);
        guest_end_request(guest, -ETIMEDOUT);
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct guest *guest = userdata;

        (void)source, (void)usec;
        if (guest_has_ended(guest)) { /* the loop has not come to it yet */
                guest_end_request(guest, -ESRCH);
                return 0;
        }
        if (guest->request.rest_ms > 0 && !process_is_stopped(guest->pid)) {
                set_timer(guest, guest->request.rest_ms);
                guest->request.rest_ms = 0;
                return 0;
        }
        give_up(guest);
        return 0;
}

static void set_timer(struct guest *guest, uint32_t ms)
{
        struct manager *manager = guest->instance->manager;

        guest->request.timer = sd_event_source_disable_unref(guest->request.timer);
        (void)sd_event_add_time_relative(manager->event, &guest->request.timer, CLOCK_MONOTONIC,
                                         (uint64_t)ms * 1000, 0, on_timeout, guest);
}

static void look_later(struct guest *guest);

static int on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct guest *guest = userdata;
        unsigned int most = guest->must_stay ? STOPPED_LOOKS_AWAY : STOPPED_LOOKS;

        (void)source, (void)usec;
        guest->request.n_stopped =
                process_is_stopped(guest->pid) ? guest->request.n_stopped + 1 : 0;
        if (guest->request.n_stopped >= most)
                give_up(guest);
        else
                look_later(guest);
        return 0;
}

static void look_later(struct guest *guest)
{
        guest->request.look = sd_event_source_disable_unref(guest->request.look);
        (void)sd_event_add_time_relative(guest->instance->manager->event, &guest->request.look,
                                         CLOCK_MONOTONIC, STOPPED_LOOK_MS * 1000, 1000, on_look,
                                         guest);
}

/* Closing, in steps or not, ends with the operation's time. */
static void start_timer(struct guest *guest, uint32_t timeout_ms)
{
        bool is_close = guest->request.message == GATE_STEP || guest->request.message == GATE_CLOSE;
        uint32_t course_ms = is_close ? timeout_ms : guest->instance->course.timeout_ms;
        uint32_t all = is_close ? timeout_ms + CLOSE_SLACK_MS : timeout_ms;
        uint32_t first = all;

        if (guest->instance->operation && course_ms + STOPPED_SLACK_MS < all)
                first = course_ms + STOPPED_SLACK_MS;
        guest->request.rest_ms = all - first;
        set_timer(guest, first);
        if (guest->instance->course.gives_up_stopped)
                look_later(guest);
}

/* Requests. */

/* All that are filled, in one batch: guest_request_gifts(). */
static int send_gifts(struct guest *guest)
{
        struct gate_allocations batch = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_MAP },
                .flags = GATE_BATCH_LAST | GATE_BATCH_GIVEN,
        };
        int fds[GATE_BATCH_MAX];

        for (size_t i = 0; i < guest->n_memory; i++) {
                const struct guest_memory *memory = &guest->memory[i];

                if (memory->gift != GUEST_GIFT_MAPPING)
                        continue;
                batch.allocation[batch.count] =
                        (struct gate_allocation){ memory->address, memory->size };
                fds[batch.count++] = memory->target;
        }
        return gate_link_send(guest->gate, &batch, sizeof(batch), fds, batch.count);
}

static int send_command(struct guest *guest)
{
        const struct gate_header header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION,
                                            (uint16_t)guest->request.message };
        struct gate_command command = { header, guest->request.range };
        struct gate_close close = { .header = header, .timeout_ms = guest->request.timeout_ms };
        struct gate_step step = { .header = header,
                                  .n_launches = guest->request.n_launches,
                                  .window_ms = guest->request.window_ms,
                                  .timeout_ms = guest->request.timeout_ms };
        struct gate_take take = { .header = header, .is_question = guest->request.is_question };

        if (guest->request.is_of_gifts)
                return send_gifts(guest);
        if (guest->request.message == GATE_CLOSE)
                return gate_link_send(guest->gate, &close, sizeof(close), NULL, 0);
        if (guest->request.message == GATE_STEP)
                return gate_link_send(guest->gate, &step, sizeof(step), NULL, 0);
        if (guest->request.message == GATE_TAKE)
                return gate_link_send(guest->gate, &take, sizeof(take), NULL, 0);
        return gate_link_send(guest->gate, &command, sizeof(command), NULL, 0);
}

/* So many descriptors a gate gets at once: fewer where its process may not have so many more (EMFILE). */
static size_t map_width(const struct guest *guest)
{
        return guest->map_width ? guest->map_width : GATE_BATCH_MAX;
}

static int send_map_batch(struct guest *guest)
{
        struct gate_allocations batch = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_MAP },
        };
        size_t first = guest->request.n_sent;
        int fds[GATE_BATCH_MAX], r;

        while (batch.count < map_width(guest) && first + batch.count < guest->n_memory) {
                const struct guest_memory *memory = &guest->memory[first + batch.count];

                batch.allocation[batch.count] =
                        (struct gate_allocation){ memory->address, memory->size };
                fds[batch.count++] = memory->source;
        }
        batch.flags = first + batch.count == guest->n_memory ? GATE_BATCH_LAST : 0;
        r = gate_link_send(guest->gate, &batch, sizeof(batch), fds, batch.count);
        if (r == 0)
                guest->request.n_sent += batch.count;
        return r;
}

static int send_map(struct guest *guest)
{
        int r;

        do
                r = send_map_batch(guest);
        while (r == 0 && guest->request.n_sent < guest->n_memory);
        return r == -EAGAIN ? 0 : r; /* guest_flush() goes on */
}

/* A broken connection shows as a hang-up. One that is full: guest_flush() sends it. */
static void send_request(struct guest *guest)
{
        guest->request.is_sent = true;
        if (guest->request.message == GATE_RELEASE)
                guest->must_stay = true;
        if (guest->request.message == GATE_MAP && !guest->request.is_of_gifts)
                (void)send_map(guest);
        else
                guest->request.is_blocked = send_command(guest) == -EAGAIN;
}

static int on_connected(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void)source, (void)usec;
        guest_end_request(userdata, 0);
        return 0;
}

void guest_request(struct guest *guest, enum gate_message message, uint32_t timeout_ms,
                   guest_done_fn done, void *userdata)
{
        guest_request_range(guest, message, GATE_RANGE_ALL, timeout_ms, done, userdata);
}

void guest_request_range(struct guest *guest, enum gate_message message, struct gate_range range,
                         uint32_t timeout_ms, guest_done_fn done, void *userdata)
{
        guest->request.message = message;
        guest->request.range = range;
        guest->request.timeout_ms = timeout_ms;
        guest->request.done = done;
        guest->request.userdata = userdata;
        start_timer(guest, timeout_ms);
        if (!guest->gate)
                return;
        if (message) {
                send_request(guest);
                return;
        }
        guest->request.timer = sd_event_source_disable_unref(guest->request.timer);
        /* At once, to 1 us: an accuracy of 0 stands for 250 ms. */
        (void)sd_event_add_time_relative(guest->instance->manager->event, &guest->request.timer,
                                         CLOCK_MONOTONIC, 0, 1, on_connected, guest);
}

void guest_request_step(struct guest *guest, uint32_t n_launches, uint32_t window_ms,
                        uint32_t timeout_ms, guest_done_fn done, void *userdata)
{
        guest->request.n_launches = n_launches;
        guest->request.window_ms = window_ms;
        guest_request(guest, GATE_STEP, timeout_ms, done, userdata);
}

void guest_request_gifts(struct guest *guest, uint32_t timeout_ms, guest_done_fn done,
                         void *userdata)
{
        size_t n = 0;

        for (size_t i = 0; i < guest->n_memory && n < GATE_BATCH_MAX; i++)
                if (guest->memory[i].gift == GUEST_GIFT_FILLED) {
                        guest->memory[i].gift = GUEST_GIFT_MAPPING;
                        n++;
                }
        guest->request.is_of_gifts = true;
        guest_request(guest, GATE_MAP, timeout_ms, done, userdata);
}

void guest_request_take(struct guest *guest, bool is_question, uint32_t timeout_ms,
                        guest_done_fn done, void *userdata)
{
        guest->request.is_question = is_question;
        guest_request(guest, GATE_TAKE, timeout_ms, done, userdata);
}

/* What the gate was not told because its socket was full. */
void guest_flush(struct guest *guest)
{
        if (guest->request.message == GATE_MAP && guest->request.is_sent &&
            !guest->request.is_of_gifts && guest->request.n_sent < guest->n_memory)
                (void)send_map(guest);
        if (guest->request.is_blocked)
                guest->request.is_blocked = send_command(guest) == -EAGAIN;
        share_flush(guest);
        guest_watch_flush(guest);
}

/* Waiting requests that the news of the gate's state answers. */
static bool is_done_by(enum gate_message message, enum gate_state state)
{
        return message == 0 || (message == GATE_CLOSE && state == GATE_STATE_CLOSED) ||
               (message == GATE_OPEN && state == GATE_STATE_OPEN);
}

static void name_device(struct gate_welcome *welcome, uint32_t at, const struct device *device)
{
        snprintf(welcome->device_uuid[at], sizeof(welcome->device_uuid[at]), "%s", device->uuid);
}

static bool has_part_on(const struct instance *instance, const struct device *device)
{
        for (size_t i = 0; i < instance->n_parts; i++)
                if (instance->part[i].device == device)
                        return true;
        return false;
}

/* Behind those of the vGPU; a driver might not start with one that is lost. Returns how many devices are named. */
static uint32_t name_others(struct gate_welcome *welcome, const struct instance *instance)
{
        const struct manager *manager = instance->manager;
        uint32_t n = welcome->n_devices;

        for (size_t i = 0; i < manager->n_devices && n < GATE_SEEN_MAX; i++)
                if (!manager->device[i].meter.is_lost &&
                    !has_part_on(instance, &manager->device[i]))
                        name_device(welcome, n++, &manager->device[i]);
        return n;
}

/* Unless it has told. */
static void note_seen(struct guest *guest, const struct gate_welcome *welcome, uint32_t n)
{
        if (guest->seen[0])
                return;
        for (uint32_t i = 0; i < n; i++)
                guest->seen[i] = gate_mark(welcome->device_uuid[i]);
}

/* One of GATE_WIRE_HIDDEN: only if its driver sees them. A younger one says which it sees. */
static bool is_told_of_others(const struct guest *guest)
{
        return guest->gate->version >= GATE_WIRE_SEEN ||
               (guest->gate->version >= GATE_WIRE_HIDDEN && guest->instance->n_parts > 1);
}

int guest_welcome(struct guest *guest)
{
        const struct instance *instance = guest->instance;
        uint32_t n_named = (uint32_t)instance->n_parts;
        struct gate_welcome welcome = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_WELCOME },
                .slot = guest->slot,
                .n_devices = n_named,
        };
        int fds[INSTANCE_PARTS_MAX];

        for (size_t i = 0; i < instance->n_parts; i++) {
                name_device(&welcome, (uint32_t)i, instance->part[i].device);
                fds[i] = instance->part[i].page.fd;
        }
        if (is_told_of_others(guest)) {
                n_named = name_others(&welcome, instance);
                note_seen(guest, &welcome,
                          guest->gate->version >= GATE_WIRE_SEEN ? welcome.n_devices : n_named);
        }
        return gate_link_send(guest->gate, &welcome, gate_welcome_size(n_named), fds,
                              instance->n_parts);
}

void guest_attach(struct guest *guest, struct gate_link *gate, const struct gate_join *join)
{
        enum gate_state state = join->state;

        if (guest->gate) { /* it was faster than the news of its hang-up */
                gate_link_free(guest->gate);
                guest->gate = NULL;
                share_detach(guest);
        }
        guest->gate = gate;
        guest->n_connections++;
        guest->is_confined = gate->only[0] != '\0';
        memset(guest->seen, 0, sizeof(guest->seen));
        if (gate->version >= GATE_WIRE_HIDDEN)
                memcpy(guest->seen, join->seen, sizeof(guest->seen));
        share_attach(guest, join);
        guest->is_unfilled = state == GATE_STATE_CREATED;
        guest->state = guest->is_unfilled ? GATE_STATE_CLOSED : state;
        guest->must_stay = state != GATE_STATE_OPEN;
        guest_watch_forget(guest);
        if (guest->slot != UINT32_MAX)
                (void)guest_welcome(guest); /* before all else: the gate waits for that */
        if (!guest->request.done)
                return;
        if (guest->request.is_sent)
                guest_end_request(guest, -ECONNRESET);
        else if (is_done_by(guest->request.message, guest->state))
                guest_end_request(guest, 0);
        else
                send_request(guest);
}

static void wait_for_return(struct guest *guest)
{
        guest->request.rest_ms = HANGUP_LAST_MS;
        set_timer(guest, HANGUP_GRACE_MS);
}

void guest_detach(struct guest *guest, int error)
{
        guest->gate = NULL;
        share_detach(guest);
        note_loss(guest);
        if (error == -EPROTO)
                guest_end_request(guest, -EPROTO);
        else if (guest->request.done && guest->request.is_sent)
                wait_for_return(guest);
}

/* Answers. */

/* Whose part was done has none. */
static bool is_fate(uint32_t fate, int32_t error)
{
        return fate == GATE_FATE_STAYS || (fate <= GATE_FATE_BEREFT && error > 0);
}

static int receive_closed(struct guest *guest, const void *message, size_t size)
{
        const struct gate_closed *closed = message;
        struct guest_answer answer = { 0 };

        if (size != sizeof(*closed) || closed->error < 0 || !is_fate(closed->fate, closed->error) ||
            closed->n_imports > GATE_IMPORTS_MAX)
                return -EPROTO;
        answer.error = -closed->error;
        answer.fate = closed->fate;
        answer.driver_code = closed->driver_code;
        answer.bytes = closed->movable_bytes;
        answer.holds = closed->holds;
        answer.can_step = closed->can_step != 0;
        answer.n_launches = closed->n_launches;
        memcpy(answer.call, closed->call, sizeof(answer.call) - 1);
        if (closed->error && guest->state == GATE_STATE_CLOSED) /* by a step that has failed */
                guest_watch_renew(guest);
        guest->state = closed->error ? GATE_STATE_OPEN : GATE_STATE_CLOSED;
        guest->sharing.n_imports = closed->n_imports;
        complete(guest, &answer);
        return 0;
}

static bool is_complete(const struct guest *guest)
{
        const struct gate_range *range = &guest->request.range;

        return guest->request.message != GATE_CREATE ||
               guest->request.n_received ==
                       guest_find_memory(guest, range->to) - guest_find_memory(guest, range->from);
}

static bool makes_parts(const struct guest *guest)
{
        return guest->request.message == GATE_CREATE || guest->request.is_of_gifts;
}

/* It has mapped nothing of them. Where it keeps descriptors for good, that ends with one at a time. */
static bool map_in_smaller_parts(struct guest *guest, const struct gate_result *result)
{
        if (result->error != EMFILE || guest->request.message != GATE_MAP ||
            guest->request.is_of_gifts || guest->request.n_sent < guest->n_memory ||
            map_width(guest) == 1)
                return false;
        guest->map_width = (uint32_t)(map_width(guest) / 2);
        guest->request.n_sent = 0;
        (void)send_map(guest);
        return true;
}

static int receive_result(struct guest *guest, enum gate_state state, const void *message,
                          size_t size)
{
        const struct gate_result *result = message;
        struct guest_answer answer = { 0 };

        if (size != sizeof(*result) || result->error < 0 || !is_fate(result->fate, result->error))
                return -EPROTO;
        if (result->error == 0 && !guest->request.refused && !is_complete(guest))
                return -EPROTO;
        if (map_in_smaller_parts(guest, result))
                return 0;
        if (makes_parts(guest) && result->state == GATE_STATE_RELEASED)
                state = GATE_STATE_RELEASED; /* a part of it is still without memory */
        answer.error = -result->error;
        answer.fate = result->fate;
        answer.driver_code = result->driver_code;
        answer.bytes = result->bytes;
        memcpy(answer.call, result->call, sizeof(answer.call) - 1);
        if (result->error == 0 && guest->request.message == GATE_RELEASE &&
            guest->request.range.from == 0)
                guest->has_gifts = false;
        if (result->error == 0 && guest->request.message != GATE_TAKE) {
                guest->is_unfilled = makes_parts(guest) && guest->n_memory > 0;
                guest->state = state;
        }
        if (guest->state == GATE_STATE_OPEN) {
                guest->must_stay = false;
                guest_watch_renew(guest);
        }
        if (answer.error == 0)
                answer.error = guest->request.refused;
        complete(guest, &answer);
        return 0;
}

static int receive(struct guest *guest, const void *message, size_t size, int *fds, size_t n_fds)
{
        const struct gate_header *header = message;

        if (header->message == GATE_ALLOCATIONS &&
            (guest->request.message == GATE_EXPORT || guest->request.message == GATE_CREATE))
                return guest_receive_allocations(guest, message, size, fds, n_fds);

        for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
                if (header->message != requests[i].answer ||
                    guest->request.message != requests[i].request || n_fds > 0)
                        continue;
                if (header->message == GATE_CLOSED)
                        return receive_closed(guest, message, size);
                return receive_result(guest, requests[i].state, message, size);
        }
        return -EPROTO;
}

static int receive_seen(struct guest *guest, const void *message, size_t size, size_t n_fds)
{
        const struct gate_seen *seen = message;

        if (guest->gate->version < GATE_WIRE_SEEN || size != sizeof(*seen) || n_fds > 0)
                return -EPROTO;
        memcpy(guest->seen, seen->mark, sizeof(guest->seen));
        return 0;
}

int guest_receive(struct guest *guest, const void *message, size_t size, int *fds, size_t n_fds)
{
        const struct gate_header *header = message;

        switch (header->message) {
        case GATE_WAITING:
                return guest_watch_receive(guest, size, n_fds);
        case GATE_SEEN:
                return receive_seen(guest, message, size, n_fds);
        case GATE_IMPORT:
                return share_receive_import(guest, message, size, n_fds);
        case GATE_OFFERED:
                return share_receive_offered(guest, message, size, fds, n_fds);
        case GATE_USES:
                return share_receive_uses(guest, message, size, n_fds);
        default:
                break;
        }
        return guest->request.is_sent ? receive(guest, message, size, fds, n_fds) : -EPROTO;
}
