/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/image/image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/packet.h"
#include "base/size.h"
#include "daemon/log.h"
#include "manager/control/control.h"
#include "manager/control/describe.h"
#include "manager/image/held.h"
#include "manager/image/image-session.h"
#include "manager/image/pinning.h"
#include "manager/model/account.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance-life.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/policy.h"
#include "manager/model/reading.h"
#include "manager/operation/copy-check.h"
#include "manager/operation/shared.h"

/* An answer is at most 1 MiB, and an entry of a list takes about 28 bytes of it. */
#define MAPPINGS_MAX 30000

/* Of what the pool may take. */
#define HELD_USER_PART 4

/* What is read ahead has let go of its room after one piece; but a disk may hang. */
#define READING_LOOK_US   10000u
#define READING_LOOKS_MAX 1000u

/* Slabs. */

static int add_slab(struct image_session *session, uint32_t slab, size_t *ret_index)
{
        uint32_t *slabs;

        for (size_t i = 0; i < session->n_slabs; i++)
                if (session->slabs[i] == slab) {
                        *ret_index = i;
                        return 0;
                }
        slabs = reallocarray(session->slabs, session->n_slabs + 1, sizeof(*slabs));
        if (!slabs)
                return -ENOMEM;
        session->slabs = slabs;
        *ret_index = session->n_slabs;
        slabs[session->n_slabs++] = slab;
        return 0;
}

/* [[index of the slab, offset, length], ...] */
static int describe_extents(struct image_session *session,
                            const struct pool_reservation *reservation, json_t *list)
{
        const struct pool_extent *extents;
        size_t n = 0, index = 0;
        int r = 0;

        extents = reservation ? pool_get_extents(reservation, &n) : NULL;
        for (size_t i = 0; i < n && r == 0; i++) {
                r = add_slab(session, extents[i].slab, &index);
                json_array_append_new(list, json_pack("[III]", (json_int_t)index,
                                                      (json_int_t)extents[i].offset,
                                                      (json_int_t)extents[i].length));
        }
        return r;
}

/* The third number only where it is not on the first device. */
static json_t *describe_mapping(const struct guest_memory *memory)
{
        json_t *list = json_pack("[II]", (json_int_t)memory->address, (json_int_t)memory->size);

        if (memory->part > 0)
                json_array_append_new(list, json_integer(memory->part));
        return list;
}

static json_t *describe_process(struct image_session *session, const struct image_member *member,
                                const struct pool_reservation *reservation)
{
        CLEANUP_JSON json_t *mappings = json_array();
        CLEANUP_JSON json_t *extents = json_array();

        for (size_t i = 0; i < member->n_memory; i++)
                json_array_append_new(mappings, describe_mapping(&member->memory[i]));
        if (describe_extents(session, reservation, extents) < 0)
                return NULL;
        return json_pack("{si, ss, sO, sO}", "pid", (int)member->pid, "name", member->name,
                         "allocations", mappings, "extents", extents);
}

static void answer(struct image_session *session, struct control_pending *pending)
{
        CLEANUP_JSON json_t *processes = json_array();

        for (size_t i = 0; i < session->n_members; i++) {
                const struct image_member *member = &session->members[i];

                json_array_append_new(processes,
                                      describe_process(session, member,
                                                       member->reservation ? member->reservation
                                                                           : member->borrowed));
        }
        control_reply(pending,
                      json_pack("{so, sO, sI}", "vgpu", describe_instance(session->instance),
                                "processes", processes, "slabs", (json_int_t)session->n_slabs));
}

/* What happened to the guests meanwhile shows now; the instance may be gone afterwards. */
static void end(struct instance *instance)
{
        instance->image = image_session_free(instance->image);
        instance_settle(instance);
}

/* Beginning. */

static int check_off(const struct instance *instance, struct failure *failure)
{
        if (instance_is_off(instance))
                return 0;
        if (guests_count(instance) == 0)
                return failure_set(failure, -EALREADY, "WrongState",
                                   "start a program in it with vgpu run",
                                   "vGPU %s has no processes: it has no memory", instance->name);
        return failure_set(failure, -EALREADY, "WrongState", "suspend it first (vgpu suspend)",
                           "vGPU %s is %s: its memory is on the device", instance->name,
                           instance_state_name(instance->state));
}

static int check_mappings(const struct image_session *session, struct failure *failure)
{
        size_t n = 0;

        for (size_t i = 0; i < session->n_members; i++)
                n += session->members[i].n_memory;
        if (n <= MAPPINGS_MAX)
                return 0;
        return failure_set(failure, -E2BIG, "NotMovable", "",
                           "vGPU %s has memory in %zu pieces; an image can have %d",
                           session->instance->name, n, MAPPINGS_MAX);
}

static int begin(struct control_pending *pending, struct instance *instance,
                 struct image_session **ret_session)
{
        struct image_session *session = calloc(1, sizeof(*session));

        if (!session)
                return -ENOMEM;
        session->instance = instance;
        session->client = pending->client;
        instance->image = *ret_session = session;
        return 0;
}

/* NULL: nothing was begun, and a session that is there is somebody else's. */
static void abandon(struct instance *instance, struct image_session *session)
{
        if (session)
                instance->image = image_session_free(session);
}

/* What is in a file is in no slab. */
static int check_in_pool(const struct instance *instance, struct failure *failure)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (guest->spilled)
                        return failure_set(failure, -EBUSY, "WrongState",
                                           "resume it, suspend it again, and try again then",
                                           "the memory of vGPU %s is on disk, not in the pool",
                                           instance->name);
        return 0;
}

/* As before a resume: a client is shown no slab in which there may be something else. */
static int check_memory(const struct instance *instance, struct failure *failure)
{
        const struct guest *guest;
        int r = 0;

        list_for_each(guest, &instance->guests, link)
                if (r == 0 && !guest_is_dead(guest) && guest->presence != GUEST_JOINING)
                        r = copy_check(guest, failure);
        return r;
}

/* After a restart the client tries again until the gates have told. */
static int check_detach(const struct instance *instance, struct failure *failure)
{
        const struct guest *untold = shared_find_untold(instance);

        if (!untold)
                return shared_check_image(instance, failure);
        (void)shared_refuse_untold(untold, failure);
        failure->name = "Busy";
        return -EBUSY;
}

int image_open(struct control_pending *pending, struct instance *instance, struct failure *failure)
{
        bool will_detach = control_call_bool(&pending->call, "detach");
        struct image_session *session = NULL;
        int r = instance_check_idle(instance, failure);

        if (r == 0)
                r = check_off(instance, failure);
        if (r == 0 && will_detach)
                r = check_detach(instance, failure);
        if (r == 0)
                r = check_in_pool(instance, failure);
        if (r == 0)
                r = check_memory(instance, failure);
        if (r == 0)
                r = begin(pending, instance, &session);
        if (r == 0)
                r = image_session_add_guests(session);
        if (r == 0)
                r = check_mappings(session, failure);
        if (r < 0) {
                abandon(instance, session);
                return r;
        }
        if (will_detach)
                image_session_send_away(session);
        log_event_of(pending->uid, LOG_LEVEL_INFO, "an image is written", "vgpu=%s uid=%u",
                     instance->name, pending->uid);
        answer(session, pending);
        return 0;
}

/* Loading: room in the pool, zeroed of what others had there, and pinned. */

static void fail(struct image_session *session, int error)
{
        struct control_pending *pending = session->pending;
        struct instance *instance = session->instance;
        struct failure failure = { 0 };

        (void)failure_from_errno(&failure, error, "preparing memory of the pool");
        control_fail(pending, &failure);
        end(instance);
}

static void end_preparation(struct image_session *session)
{
        if (session->n_preparing > 0 || !session->pending)
                return;
        image_session_stop_pinning(session);
        if (session->error)
                fail(session, session->error);
        else
                answer(session, TAKE(session->pending));
}

static void on_prepared(struct pool_reservation *reservation, int error, void *userdata)
{
        struct image_session *session = userdata;

        (void)reservation;
        if (error)
                session->error = error;
        session->n_preparing--;
        end_preparation(session);
}

static int reserve(struct image_session *session, struct image_member *member,
                   struct failure *failure)
{
        struct instance *instance = session->instance;
        struct pool *pool = instance->manager->pool;
        bool is_ready = false;
        int r;

        if (member->memory_bytes == 0)
                return 0;
        r = policy_check_pool(instance, instance->uuid, member->memory_bytes, failure);
        if (r == 0)
                r = pool_reserve(pool, &member->reservation, instance->uuid,
                                 instance_home(instance)->index, member->memory_bytes);
        if (r == 0)
                r = pool_prepare(pool, member->reservation, instance_home(instance)->index,
                                 on_prepared, session, &is_ready);
        if (r == 0 && !is_ready)
                session->n_preparing++;
        return r;
}

static int reserve_all(struct image_session *session, struct failure *failure)
{
        struct pinning *pinning = session->instance->manager->pinning;
        int r = pinning_begin(pinning, session->user, clock_now(CLOCK_MONOTONIC));

        session->is_pinning = r == 0;
        for (size_t i = 0; r == 0 && i < session->n_members; i++)
                r = reserve(session, &session->members[i], failure);
        return r;
}

/* Those who run the machine wait for nobody. */
static uint64_t get_wait_us(const struct image_session *session)
{
        if (account_is_operator(session->user))
                return 0;
        return (pinning_get_wait(session->instance->manager->pinning, session->user,
                                 clock_now(CLOCK_MONOTONIC)) +
                NS_PER_US - 1) /
               NS_PER_US;
}

static bool lacks_room(const struct image_session *session)
{
        const struct instance *instance = session->instance;
        struct failure failure = { 0 };
        uint64_t bytes = 0;

        for (size_t i = 0; i < session->n_members; i++)
                bytes += session->members[i].memory_bytes;
        return policy_check_pool(instance, instance->uuid, bytes, &failure) < 0;
}

/* Room that is read into ahead of need is nobody's, but is free only when that has ended. */
static uint64_t get_reading_wait_us(struct image_session *session)
{
        if (session->n_looks >= READING_LOOKS_MAX || !lacks_room(session) ||
            !reading_give_up(session->instance->manager))
                return 0;
        session->n_looks++;
        return READING_LOOK_US;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct image_session *session = userdata;
        struct control_pending *pending = session->pending;
        struct instance *instance = session->instance;
        uint64_t wait_us = get_wait_us(session);
        struct failure failure = { 0 };
        int r;

        (void)usec;
        if (wait_us == 0)
                wait_us = get_reading_wait_us(session);
        if (wait_us > 0) {
                (void)sd_event_source_set_time_relative(source, wait_us);
                return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        session->timer = sd_event_source_disable_unref(session->timer);
        session->pending = NULL; /* nothing that is ready at once answers before all is asked for */
        r = reserve_all(session, &failure);
        session->pending = pending;
        if (r == 0) {
                end_preparation(session);
                return 0;
        }
        (void)failure_from_errno(&failure, r, "preparing memory of the pool");
        control_fail(TAKE(session->pending), &failure);
        end(instance);
        return 0;
}

/* Now, or when its user has let others have the movers, and what is read ahead has let go of room that is missing. */
static int begin_reserving(struct image_session *session, struct failure *failure)
{
        uint64_t wait_us = get_wait_us(session);

        if (wait_us > 0)
                log_event_of(session->user, LOG_LEVEL_INFO,
                             "an image waits: its user has had the movers",
                             "vgpu=%s uid=%u ms=%" PRIu64, session->instance->name, session->user,
                             wait_us / 1000);
        else
                wait_us = get_reading_wait_us(session);
        if (wait_us == 0)
                return reserve_all(session, failure);
        return sd_event_add_time_relative(session->instance->manager->event, &session->timer,
                                          CLOCK_MONOTONIC, wait_us, 0, on_time, session);
}

int image_replace(struct control_pending *pending, struct instance *instance,
                  struct failure *failure)
{
        const json_t *processes = json_object_get(pending->call.parameters, "processes");
        struct image_session *session = NULL;
        int r = instance_check_idle(instance, failure);

        if (r == 0 && !processes)
                r = check_off(instance, failure);
        if (r == 0)
                r = check_in_pool(instance, failure);
        if (r == 0 && processes && guests_count(instance) > 0)
                r = failure_set(failure, -EBUSY, "Busy", "end them first, or load into another one",
                                "vGPU %s has processes", instance->name);
        if (r == 0)
                r = begin(pending, instance, &session);
        if (r == 0)
                r = processes
                            ? image_session_add_processes(session, processes, pending->uid, failure)
                            : image_session_add_guests(session);
        if (r == 0) {
                session->is_loading = true;
                session->user = pending->uid;
                instance->keeps_gates_away = processes && session->n_members > 0;
                r = check_mappings(session, failure);
        }
        if (r == 0)
                r = begin_reserving(session, failure);
        if (r < 0) {
                abandon(instance, session);
                return r;
        }
        session->pending = pending;
        log_event_of(pending->uid, LOG_LEVEL_INFO, "an image is loaded", "vgpu=%s uid=%u",
                     instance->name, pending->uid);
        if (!session->timer)
                end_preparation(session);
        return 0;
}

/* Going on. */

static struct image_session *find_own(const struct control_pending *pending,
                                      const struct instance *instance, struct failure *failure)
{
        struct image_session *session = instance->image;

        if (session && session->client == pending->client && !session->pending)
                return session;
        (void)failure_set(failure, -ENOENT, "WrongState", "open its memory first",
                          "no image of vGPU %s is written or read by this connection",
                          instance->name);
        return NULL;
}

/* For reading, a descriptor of its own that cannot write, nor be opened again for that. */
static int open_slab(const struct image_session *session, uint32_t slab, uid_t user, int *ret_fd)
{
        char path[32];
        int shared = pool_share(session->instance->manager->pool, slab, user);

        if (shared < 0)
                return shared;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", shared);
        *ret_fd = session->is_loading ? fcntl(shared, F_DUPFD_CLOEXEC, 3)
                                      : open(path, O_RDONLY | O_CLOEXEC);
        return *ret_fd < 0 ? -errno : 0;
}

static size_t least(size_t a, size_t b)
{
        return a < b ? a : b;
}

/* Of one user, other than our own: so much of the pool may be kept that nobody else can have. */
static int check_held(const struct control_pending *pending, struct failure *failure)
{
        const struct manager *manager = pending->manager;
        uint64_t held = held_count(manager->held, pending->uid);
        char text[SIZE_TEXT_MAX];
        struct pool_info info;

        pool_get_info(manager->pool, &info);
        if (account_is_operator(pending->uid) || held <= info.limit / HELD_USER_PART)
                return 0;
        return failure_set(failure, -EDQUOT, "NoRoom",
                           "end these programs, or make them unmap the slabs",
                           "your programs still hold %s of slabs whose memory was released",
                           size_format(text, held));
}

int image_get_slabs(struct control_pending *pending, struct instance *instance,
                    struct failure *failure)
{
        struct image_session *session = find_own(pending, instance, failure);
        size_t first = control_call_number(&pending->call, "first", 0), n = 0;
        int fds[PACKET_FDS_MAX], r = 0;

        if (!session)
                return -ENOENT;
        if (first < session->n_given)
                return failure_parameter(failure, "first", "keep the descriptors",
                                         "the first %zu slabs were given already",
                                         session->n_given);
        r = check_held(pending, failure);
        if (r == 0 && first < session->n_slabs)
                r = control_take_fds(pending, least(session->n_slabs - first, PACKET_FDS_MAX),
                                     failure);
        for (size_t i = first; i < session->n_slabs && n < PACKET_FDS_MAX && r == 0; i++) {
                r = open_slab(session, session->slabs[i], pending->uid, &fds[n]);
                if (r == 0)
                        n++;
        }
        if (r == 0)
                session->n_given = first + n;
        if (r == 0)
                control_reply_fds(pending, json_pack("{sI}", "count", (json_int_t)n), fds, n);
        packet_close_fds(fds, n);
        return r;
}

int image_commit(struct control_pending *pending, struct instance *instance,
                 struct failure *failure)
{
        struct image_session *session = find_own(pending, instance, failure);
        int r;

        if (!session)
                return -ENOENT;
        if (!session->is_loading)
                return failure_set(failure, -EINVAL, "WrongState", "",
                                   "vGPU %s was opened for reading", instance->name);
        r = image_session_exchange(session, failure);
        if (r < 0)
                return r;
        log_event_of(pending->uid, LOG_LEVEL_NOTICE, "loaded from an image", "vgpu=%s",
                     instance->name);
        control_reply(pending, json_pack("{so}", "vgpu", describe_instance(instance)));
        end(instance);
        return 0;
}

int image_close(struct control_pending *pending, struct instance *instance, struct failure *failure)
{
        if (!find_own(pending, instance, failure))
                return -ENOENT;
        control_reply(pending, json_pack("{so}", "vgpu", describe_instance(instance)));
        end(instance);
        return 0;
}

void image_client_gone(struct manager *manager, const struct control_client *client)
{
        struct instance *instance, *after;

        list_for_each_safe(instance, after, &manager->instances, link) {
                struct image_session *session = instance->image;

                if (!session || session->client != client)
                        continue;
                if (session->pending) { /* nobody reads it, but it must be ended */
                        struct failure failure = { 0 };

                        (void)failure_from_errno(&failure, -ECONNRESET, "waiting for memory");
                        control_fail(TAKE(session->pending), &failure);
                }
                end(instance);
        }
}

static void on_instance(struct instance *instance, enum instance_event event, void *userdata)
{
        (void)userdata;
        if (event == INSTANCE_UNLOADED)
                instance->image = image_session_free(instance->image);
}

static struct observer observer = { .of_instance = on_instance };

void image_subscribe(struct manager *manager)
{
        observer_add(&manager->observers, &observer, NULL);
}
