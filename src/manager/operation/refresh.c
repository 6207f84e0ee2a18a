/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/refresh.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/size.h"
#include "daemon/log.h"
#include "daemon/options.h"
#include "daemon/process.h"
#include "manager/guests/guest-request.h"
#include "manager/model/clean-copy.h"
#include "manager/model/device-mover.h"
#include "manager/model/device.h"
#include "manager/model/guest-life.h"
#include "manager/model/guest.h"
#include "manager/model/instance-life.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/policy.h"
#include "manager/model/sharing.h"
#include "manager/operation/job-lists.h"
#include "manager/operation/operation-internal.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"

/* It has no work: who needs longer has some now. */
#define CLOSE_MS 200

/* Thousands of pieces take a second; more than this is a hang. */
#define ANSWER_MS 10000

/* So long an operation on another device waits for one of a mover that does not answer. */
#define OVERDUE_US 1000000

/* Memory that others may write to while the gate is closed: network cards, processes of no vGPU, other machines. */
#define WRITTEN_BY_OTHERS                                                                         \
        (GATE_HOLDS_IMPORTED | GATE_HOLDS_REGISTERED | GATE_HOLDS_FABRIC | GATE_HOLDS_MULTICAST | \
         GATE_HOLDS_EXPORTED)

/* After one that was ended by the program: it may be one that looks at its GPU again and again. */
#define PAUSE_FIRST_NS 2000000000u
#define PAUSE_LAST_NS  ((uint64_t)64 * 1000000000)

struct refresh {
        struct device *device;
        uint32_t job, generation; /* of the mover that has the job */
        bool has_job, must_stop, was_wanted;
        bool is_holding; /* the mover, and what the pool has of the guest */
        bool is_taken;   /* something may have been written to the copy */
        bool is_overdue;
        bool is_whole;          /* all that had changed was copied */
        uint32_t n_connections; /* of its gate, when that was closed */
        uint32_t n_shared;      /* of the guest, when it began */
        uint64_t began_ns;
        uint32_t n_works; /* of the guest, when its gate was closed */
        uint64_t n_launches;
        uint64_t bytes, unchanged, copied;
        sd_event_source *timer;
};

/* The end. */

static void refresh_free(struct guest *guest)
{
        struct refresh *refresh = guest->refresh;

        if (!refresh)
                return;
        refresh->device->refreshing = NULL;
        sd_event_source_disable_unref(refresh->timer);
        free(refresh);
        guest->refresh = NULL;
}

static void pause_for(struct guest *guest, uint64_t first_ns)
{
        uint64_t pause_ns = 2 * guest->refreshed.pause_ns;

        if (pause_ns < first_ns)
                pause_ns = first_ns;
        if (pause_ns > PAUSE_LAST_NS)
                pause_ns = PAUSE_LAST_NS;
        guest->refreshed.pause_ns = pause_ns;
        guest->refreshed.not_before_ns = clock_now(CLOCK_MONOTONIC) + pause_ns;
}

static void note_end(struct guest *guest, const char *why)
{
        const struct refresh *refresh = guest->refresh;
        uint64_t now = clock_now(CLOCK_MONOTONIC);

        log_event_of(guest->payer, LOG_LEVEL_DEBUG,
                     !why ? "refreshed what the pool has of a process" : "refreshed in part",
                     "vgpu=%s pid=%d bytes=%" PRIu64 " unchanged=%" PRIu64 " copied=%" PRIu64
                     " seconds=%.3f reason=\"%s\"",
                     guest->instance->name, (int)guest->pid, refresh->bytes, refresh->unchanged,
                     refresh->copied, (double)(now - refresh->began_ns) / 1e9, why ? why : "");
        if (why) {
                pause_for(guest, PAUSE_FIRST_NS);
                return;
        }
        guest->refreshed.is_any = true;
        guest->refreshed.n_works = refresh->n_works;
        guest->refreshed.n_launches = refresh->n_launches;
        guest->refreshed.pause_ns = guest->refreshed.not_before_ns = 0;
}

/* @why: it has not come to its end; NULL: it has. The guest may be freed. */
static void end(struct guest *guest, const char *why)
{
        struct manager *manager = guest->instance->manager;

        note_end(guest, why);
        refresh_free(guest);
        guest->residency.is_wanting = false; /* its gate is open */
        instance_bury_at_last(guest);
        operation_wake_all(manager);
}

/* open: then it has been closed all the time. */

static bool is_connected_still(const struct guest *guest)
{
        return !guest_is_dead(guest) && guest->gate && guest->state == GATE_STATE_CLOSED &&
               guest->n_connections == guest->refresh->n_connections;
}

static void end_distrusted(struct guest *guest, const char *why)
{
        if (guest->refresh->is_taken)
                clean_copy_drop(guest);
        end(guest, why);
}

static void on_opened(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        const struct refresh *refresh = guest->refresh;

        (void)userdata;
        if (answer->error || guest->n_connections != refresh->n_connections)
                end_distrusted(guest, "its gate hung up");
        else if (guest->sharing.n_shared !=
                 refresh->n_shared) /* that process may have written to it */
                end_distrusted(guest, "it began to share memory");
        else
                end(guest, refresh->is_whole     ? NULL
                           : refresh->was_wanted ? "its program goes on"
                           : refresh->must_stop  ? "an operation began"
                                                 : "it could not be copied");
}

static void open_gate(struct guest *guest)
{
        guest_forget_memory(guest);
        if (is_connected_still(guest))
                guest_request(guest, GATE_OPEN, ANSWER_MS, on_opened, NULL);
        else
                end_distrusted(guest, "its gate hung up");
}

/* let go: the mover holds nothing, and the copy is spare again. */

static void let_go(struct guest *guest)
{
        bool has_moved;

        /* Blocks that others hold too take the place of its own only now: what it gives back may be zeroed at once. */
        if (clean_copy_complete(guest, &has_moved) < 0)
                clean_copy_spoil(guest);
        guest->refresh->is_holding = false;
        clean_copy_put_back(guest);
        operation_wake_all(guest->instance->manager);
        open_gate(guest);
}

static void on_job_ended(struct mover *mover, const struct mover_done *done, void *userdata)
{
        (void)mover, (void)done; /* gone with the mover is gone as well */
        let_go(userdata);
}

static void end_job(struct guest *guest)
{
        struct refresh *refresh = guest->refresh;
        const struct device *device = refresh->device;
        bool has_job = refresh->has_job && refresh->generation == device->generation &&
                       device->mover && !mover_is_lost(device->mover);

        refresh->has_job = false;
        if (!has_job || mover_job_end(device->mover, refresh->job, on_job_ended, guest) < 0)
                let_go(guest);
}

/* copy. */

/* What is in the slabs is known, if the mover has said it or has written nothing. */
static void note_copied(struct guest *guest, const struct mover_done *done)
{
        bool is_known = done->error == 0 || (done->error != -ECONNRESET && !done->is_torn);

        clean_copy_end(guest, is_known, is_known);
}

static void on_run(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest *guest = userdata;
        struct refresh *refresh = guest->refresh;

        (void)mover;
        note_copied(guest, done);
        if (done->error == 0) {
                refresh->is_whole = done->bytes == refresh->bytes;
                refresh->unchanged = done->unchanged;
                refresh->copied = done->bytes - done->unchanged;
        } else {
                log_event_of(guest->payer, LOG_LEVEL_WARNING,
                             "the copy of a process without work could not be refreshed",
                             "vgpu=%s pid=%d device=%u call=%.63s code=%d error=\"%s\"",
                             guest->instance->name, (int)guest->pid, refresh->device->index,
                             done->call[0] ? done->call : "-", done->driver_code,
                             strerror(-done->error));
        }
        end_job(guest);
}

static uint32_t get_rate(const struct manager *manager)
{
        uint64_t mib = manager->options->refresh_rate / MIB;

        return mib < UINT32_MAX ? (uint32_t)mib : UINT32_MAX;
}

static int begin_job(struct guest *guest, struct mover *mover, const struct guest_job *all,
                     const struct job_lists *lists)
{
        CLEANUP(freep) struct mover_segment *segments = NULL;
        struct refresh *refresh = guest->refresh;
        struct mover_job job = { .kind = MOVER_OUT,
                                 .n_memories = lists->n,
                                 .rate = get_rate(guest->instance->manager) };
        int r = job_lists_make_segments(all, &segments, &job.n_segments);

        if (r < 0)
                return r;
        job.segments = segments;
        job.hashes = clean_copy_begin(guest, false, &job.n_hashes);
        if (!job.hashes)
                return -ESTALE;
        r = mover_job_begin(mover, &refresh->job, &job);
        if (r < 0)
                return r;
        refresh->has_job = true;
        refresh->generation = refresh->device->generation;
        return mover_job_run(mover, refresh->job, lists->sizes, lists->sources, on_run, guest);
}

static void copy(struct guest *guest)
{
        const struct guest_job all = { .guest = guest, .n = guest->n_memory };
        CLEANUP(job_lists_deinit) struct job_lists lists = { 0 };
        struct mover_done done = { 0 };
        struct mover *mover;
        int r = guest->refresh->must_stop ? -ECANCELED : 0;

        if (r == 0)
                r = job_lists_make(&lists, &all);
        if (r == 0)
                r = device_get_mover(guest->refresh->device, &mover);
        if (r == 0)
                r = begin_job(guest, mover, &all, &lists);
        if (r == 0)
                return;
        done.error = r == -ECONNRESET ? -EIO : r; /* nothing was written */
        note_copied(guest, &done);
        end_job(guest);
}

/* take: the copy is the guest's reservation, ready on the device. */

static void on_prepared(struct pool_reservation *reservation, int error, void *userdata)
{
        struct guest *guest = userdata;

        (void)reservation;
        if (error < 0)
                guest->refresh->must_stop = true;
        copy(guest);
}

/*
 * It has more memory than its copy, or less: another copy, which has nothing yet. Only where nobody has to go for
 * it: what is copied ahead of need shall not cost another what is copied already.
 */
static bool make_copy(struct guest *guest)
{
        const struct instance *instance = guest->instance;
        struct pool *pool = instance->manager->pool;
        struct failure failure = { 0 };
        char owner[POOL_OWNER_MAX];
        struct pool_info info;

        pool_get_info(pool, &info);
        policy_name_owner(instance, owner);
        if (info.used + info.spare + info.held + guest->memory_bytes > info.limit ||
            policy_check_pool(instance, owner, guest->memory_bytes, &failure) < 0)
                return false;
        clean_copy_drop(guest);
        return pool_reserve_in(pool, &guest->reservation, owner, instance->uuid,
                               guest->refresh->device->index, guest->memory_bytes) == 0;
}

static bool take_copy(struct guest *guest)
{
        if (guest->memory_bytes != clean_copy_get_length(guest))
                return make_copy(guest);
        return clean_copy_take(guest, guest->memory_bytes);
}

static void take(struct guest *guest)
{
        struct refresh *refresh = guest->refresh;
        bool is_ready = false;
        int r;

        refresh->bytes = guest->memory_bytes;
        if (guest->memory_bytes == 0 || !refresh_can(guest) || !take_copy(guest)) {
                open_gate(guest);
                return;
        }
        refresh->is_holding = refresh->is_taken = true;
        log_event_of(guest->payer, LOG_LEVEL_DEBUG, "what the pool has of a process follows it",
                     "vgpu=%s pid=%d bytes=%" PRIu64, guest->instance->name, (int)guest->pid,
                     refresh->bytes);
        r = pool_prepare(guest->instance->manager->pool, guest->reservation, refresh->device->index,
                         on_prepared, guest, &is_ready);
        if (r < 0)
                refresh->must_stop = true;
        if (r < 0 || is_ready)
                copy(guest);
}

/* close, export. */

static void read_work(const struct guest *guest, uint32_t *ret_n_works, uint64_t *ret_n_launches)
{
        const struct instance_page_slot *slot =
                &guest->instance->part[0].page.map->slot[guest->slot];

        *ret_n_works = atomic_load(&slot->n_works);
        *ret_n_launches = atomic_load(&slot->n_launches);
}

static void on_exported(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        (void)userdata;
        if (answer->error || guest->refresh->must_stop || !is_connected_still(guest))
                open_gate(guest);
        else
                take(guest);
}

static void on_closed(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        struct refresh *refresh = guest->refresh;

        (void)userdata;
        read_work(guest, &refresh->n_works, &refresh->n_launches);
        refresh->n_connections = guest->n_connections;
        if (answer->error) {
                end(guest, "its gate did not close");
        } else if (refresh->must_stop || answer->holds & WRITTEN_BY_OTHERS) {
                open_gate(guest);
        } else {
                guest_forget_memory(guest);
                guest_request(guest, GATE_EXPORT, ANSWER_MS, on_exported, NULL);
        }
}

/* The beginning. */

/* One that copies while its programs run needs no more than its devices; then it has all of these stopped. */
static bool is_in_the_way(const struct operation *operation, const struct device *device)
{
        return operation->ahead.n_guests == 0 || place_has(&operation->source, device);
}

static bool is_left_alone(const struct device *device)
{
        const struct instance *instance;

        list_for_each(instance, &device->manager->instances, link)
                if (instance->operation && is_in_the_way(instance->operation, device))
                        return false;
        return true;
}

static bool may_be_asked(const struct guest *guest)
{
        return !guest_is_dead(guest) && guest->gate && !guest->request.done &&
               guest->presence == GUEST_PRESENT && guest->state == GATE_STATE_OPEN &&
               guest->context.state == GUEST_CONTEXT_RUNNING && guest->sharing.n_imports == 0 &&
               !sharing_is_any(guest) && !process_is_stopped(guest->pid);
}

static struct page_use read_use(const struct guest *guest)
{
        const struct instance *instance = guest->instance;
        struct page_use use;

        page_read(&instance->part[0].page, guest->slot, instance->frame_buffer, &use);
        return use;
}

bool refresh_can(const struct guest *guest)
{
        const struct instance *instance = guest->instance;
        const struct device *device = instance_home(instance);

        if (instance->manager->options->refresh_rate == 0 || instance->n_parts > 1 ||
            instance->state != STATE_RUNNING || !device->mover || mover_is_lost(device->mover) ||
            !device->has_context || !clean_copy_can_be_taken(guest))
                return false;
        return !(read_use(guest).holds & WRITTEN_BY_OTHERS);
}

bool refresh_is_due(const struct guest *guest, uint64_t now)
{
        uint32_t n_works;
        uint64_t n_launches;

        if (guest->slot == UINT32_MAX || clean_copy_get_length(guest) == 0 ||
            guest->refreshed.not_before_ns > now)
                return false;
        read_work(guest, &n_works, &n_launches);
        return !guest->refreshed.is_any ||
               read_use(guest).movable != clean_copy_get_length(guest) ||
               n_works != guest->refreshed.n_works || n_launches != guest->refreshed.n_launches;
}

bool refresh_start(struct guest *guest)
{
        struct instance *instance = guest->instance;
        struct device *device = instance_home(instance);
        struct refresh *refresh;

        if (device->refreshing || !is_left_alone(device) || !may_be_asked(guest) ||
            !refresh_can(guest))
                return false;
        refresh = calloc(1, sizeof(*refresh));
        if (!refresh)
                return false;
        refresh->device = device;
        refresh->n_shared = guest->sharing.n_shared;
        refresh->began_ns = clock_now(CLOCK_MONOTONIC);
        guest->refresh = refresh;
        device->refreshing = guest;
        guest_request(guest, GATE_CLOSE, CLOSE_MS, on_closed, NULL);
        return true;
}

/* Stopping. */

static int on_overdue(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct guest *guest = userdata;

        (void)source, (void)usec;
        guest->refresh->is_overdue = true;
        operation_wake_all(guest->instance->manager);
        return 0;
}

static void stop(struct guest *guest)
{
        struct refresh *refresh = guest->refresh;

        if (!refresh || refresh->must_stop)
                return;
        refresh->must_stop = true;
        if (refresh->has_job && refresh->generation == refresh->device->generation &&
            refresh->device->mover)
                (void)mover_job_stop(refresh->device->mover, refresh->job);
        (void)sd_event_add_time_relative(guest->instance->manager->event, &refresh->timer,
                                         CLOCK_MONOTONIC, OVERDUE_US, 0, on_overdue, guest);
}

void refresh_stop_all(struct manager *manager)
{
        for (size_t i = 0; i < manager->n_devices; i++)
                if (manager->device[i].refreshing)
                        stop(manager->device[i].refreshing);
}

bool refresh_must_wait(const struct operation *operation)
{
        const struct manager *manager = operation->instance->manager;

        for (size_t i = 0; i < manager->n_devices; i++) {
                const struct device *device = &manager->device[i];
                const struct guest *guest = device->refreshing;
                bool is_near = place_has(&operation->source, device) ||
                               place_has(&operation->target, device);

                if (guest &&
                    (guest->instance == operation->instance ||
                     (guest->refresh->is_holding && (is_near || !guest->refresh->is_overdue))))
                        return true;
        }
        return false;
}

static void note_wanted(struct guest *guest)
{
        guest->refresh->was_wanted = true;
        log_event_of(guest->payer, LOG_LEVEL_DEBUG, "a program waits for what is copied of it",
                     "vgpu=%s pid=%d", guest->instance->name, (int)guest->pid);
}

static void on_guest(struct guest *guest, enum guest_event event, void *userdata)
{
        (void)userdata;
        if (!guest->refresh)
                return;
        if (event == GUEST_WANTS)
                note_wanted(guest);
        if (event == GUEST_UNLOADED)
                refresh_free(guest);
        else if (event == GUEST_WANTS || event == GUEST_LEFT || event == GUEST_RETURNED)
                stop(guest);
}

static struct observer observer = { .of_guest = on_guest };

void refresh_subscribe(struct manager *manager)
{
        observer_add(&manager->observers, &observer, NULL);
}
