/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/image/image-session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "daemon/process.h"
#include "manager/guests/gate-link.h"
#include "manager/image/pinning.h"
#include "manager/model/device.h"
#include "manager/model/guest-life.h"
#include "manager/model/guest.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/recovery.h"

/* All real granularities are multiples of it. */
#define GRANULARITY 4096

void image_session_stop_pinning(struct image_session *session)
{
        if (session->is_pinning)
                pinning_end(session->instance->manager->pinning, session->user,
                            clock_now(CLOCK_MONOTONIC));
        session->is_pinning = false;
}

struct image_session *image_session_free(struct image_session *session)
{
        if (!session)
                return NULL;
        sd_event_source_disable_unref(session->timer);
        image_session_stop_pinning(session);
        session->instance->keeps_gates_away = false;
        for (size_t i = 0; i < session->n_members; i++) {
                struct image_member *member = &session->members[i];

                free(member->memory);
                pool_release(session->instance->manager->pool, member->reservation);
        }
        free(session->members);
        free(session->slabs);
        free(session);
        return NULL;
}

static struct image_member *add_member(struct image_session *session)
{
        struct image_member *members =
                reallocarray(session->members, session->n_members + 1, sizeof(*members));

        if (!members)
                return NULL;
        session->members = members;
        members[session->n_members] = (struct image_member){ 0 };
        return &members[session->n_members++];
}

static int add_guest(struct image_session *session, const struct guest *guest)
{
        struct image_member *member = add_member(session);

        if (!member)
                return -ENOMEM;
        member->pid = guest->pid;
        member->uid = guest->uid;
        member->start_time = guest->start_time;
        member->borrowed = guest->reservation;
        snprintf(member->name, sizeof(member->name), "%s", guest->name);
        member->memory = calloc(guest->n_memory + 1, sizeof(*member->memory));
        if (!member->memory)
                return -ENOMEM;
        member->n_memory = guest->n_memory;
        member->memory_bytes = guest->memory_bytes;
        for (size_t i = 0; i < guest->n_memory; i++)
                member->memory[i] = (struct guest_memory){ .address = guest->memory[i].address,
                                                           .size = guest->memory[i].size,
                                                           .part = guest->memory[i].part };
        return 0;
}

int image_session_add_guests(struct image_session *session)
{
        struct guest *guest;
        int r = 0;

        list_for_each(guest, &session->instance->guests, link)
                if (r == 0 && !guest_is_dead(guest) && guest->presence != GUEST_JOINING)
                        r = add_guest(session, guest);
        return r;
}

void image_session_send_away(struct image_session *session)
{
        struct guest *guest;

        session->instance->keeps_gates_away = true;
        list_for_each(guest, &session->instance->guests, link)
                if (guest->gate && guest->presence != GUEST_JOINING)
                        guest->gate = gate_link_free(guest->gate);
}

/* Processes that came back. */

static int refuse_list(struct failure *failure, const char *why)
{
        return failure_parameter(failure, "processes", "", "processes: %s", why);
}

/* As a gate has to tell them. */
static bool is_behind(const struct image_member *member, uint64_t address, uint64_t size)
{
        const struct guest_memory *last = member->memory + member->n_memory - 1;

        return address + size <= INT64_MAX &&
               (member->n_memory == 0 || address >= last->address + last->size);
}

/* @used: so far, of each device. */
static int parse_mapping(const struct instance *instance, struct image_member *member,
                         const json_t *list, uint64_t *used, struct failure *failure)
{
        json_int_t address = json_integer_value(json_array_get(list, 0));
        json_int_t size = json_integer_value(json_array_get(list, 1));
        json_int_t part = json_integer_value(json_array_get(list, 2));
        size_t n = json_array_size(list);

        if (n < 2 || n > 3 || address <= 0 || size <= 0 || size % GRANULARITY)
                return refuse_list(failure, "an allocation is no [address, size]");
        if (part < 0 || (size_t)part >= instance->n_parts)
                return refuse_list(failure, "an allocation is on a device that the vGPU has not");
        if (!is_behind(member, (uint64_t)address, (uint64_t)size))
                return refuse_list(failure, "allocations overlap, or are in no order");
        if ((uint64_t)size > instance->frame_buffer - used[part])
                return failure_set(failure, -ENOSPC, "NoRoom", "load it into a larger one",
                                   "process %d has more memory than vGPU %s", (int)member->pid,
                                   instance->name);
        used[part] += (uint64_t)size;
        member->memory[member->n_memory++] = (struct guest_memory){ .address = (uint64_t)address,
                                                                    .size = (uint64_t)size,
                                                                    .part = (uint32_t)part };
        member->memory_bytes += (uint64_t)size;
        return 0;
}

static int parse_mappings(const struct image_session *session, struct image_member *member,
                          const json_t *list, struct failure *failure)
{
        uint64_t used[INSTANCE_PARTS_MAX] = { 0 };
        size_t n = json_array_size(list);
        int r = 0;

        member->memory = calloc(n + 1, sizeof(*member->memory));
        if (!member->memory)
                return -ENOMEM;
        for (size_t i = 0; r == 0 && i < n; i++)
                r = parse_mapping(session->instance, member, json_array_get(list, i), used,
                                  failure);
        return r;
}

/*
 * Whose it is says the kernel: /proc/PID belongs to root for what its user may not trace. That user and
 * the start time are of one process, for the one that had the number before is alive at the end.
 */
static int look_up(pid_t pid, uid_t *ret_uid, uint64_t *ret_start_time)
{
        CLEANUP(fd_closep) int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        struct pollfd end = { .fd = pidfd, .events = POLLIN };
        struct stat status;
        char path[32];
        int r;

        snprintf(path, sizeof(path), "/proc/%d", (int)pid);
        if (pidfd < 0 || stat(path, &status) < 0)
                return -ESRCH;
        (void)fault_point("image.look");
        r = process_get_start_time(pid, ret_start_time);
        if (r < 0 || poll(&end, 1, 0) != 0)
                return -ESRCH;
        *ret_uid = status.st_uid;
        return 0;
}

static int look_at_process(struct image_member *member, uid_t uid, struct failure *failure)
{
        if (look_up(member->pid, &member->uid, &member->start_time) < 0)
                return failure_set(failure, -ESRCH, "GuestLost", "",
                                   "there is no process %d (any more)", (int)member->pid);
        if (uid != 0 && uid != member->uid)
                return failure_set(failure, -EPERM, "PermissionDenied", "do it as root",
                                   "process %d belongs to user %u", (int)member->pid, member->uid);
        process_get_name(member->pid, member->name);
        return 0;
}

/* It may have become another user's since, by executing. */
static int look_again(const struct image_member *member, struct failure *failure)
{
        uint64_t start_time;
        uid_t uid;

        if (look_up(member->pid, &uid, &start_time) < 0 || start_time != member->start_time)
                return failure_set(failure, -ESRCH, "GuestLost", "load it again for the others",
                                   "process %d ended while its memory was loaded",
                                   (int)member->pid);
        if (uid != member->uid)
                return failure_set(failure, -EPERM, "PermissionDenied", "do it as root",
                                   "process %d belongs to user %u now", (int)member->pid, uid);
        return 0;
}

static int check_is_no_guest(const struct image_session *session, pid_t pid,
                             struct failure *failure)
{
        if (!guest_is_any(session->instance->manager, pid))
                return 0;
        return failure_set(failure, -EBUSY, "Busy", "", "process %d is in a vGPU already",
                           (int)pid);
}

static int add_process(struct image_session *session, const json_t *process, uid_t uid,
                       struct failure *failure)
{
        json_int_t pid = json_integer_value(json_object_get(process, "pid"));
        const json_t *list = json_object_get(process, "allocations");
        struct image_member *member;
        int r;

        if (pid <= 0 || pid > INT32_MAX || !json_is_array(list))
                return refuse_list(failure, "a process has no pid or no allocations");
        for (size_t i = 0; i < session->n_members; i++)
                if (session->members[i].pid == (pid_t)pid)
                        return refuse_list(failure, "one is there twice");
        r = check_is_no_guest(session, (pid_t)pid, failure);
        if (r < 0)
                return r;
        member = add_member(session);
        if (!member)
                return -ENOMEM;
        member->pid = (pid_t)pid;
        member->is_new = true;
        r = look_at_process(member, uid, failure);
        return r < 0 ? r : parse_mappings(session, member, list, failure);
}

int image_session_add_processes(struct image_session *session, const json_t *processes, uid_t uid,
                                struct failure *failure)
{
        size_t n = json_array_size(processes);
        int r = n > 0 ? 0 : refuse_list(failure, "there are none");

        for (size_t i = 0; i < n && r == 0; i++)
                r = add_process(session, json_array_get(processes, i), uid, failure);
        return r;
}

/* The exchange. In memory it comes last, when the store has all of it. */

static int set_memory(struct guest *guest, const struct image_member *member)
{
        guest->memory = calloc(member->n_memory + 1, sizeof(*guest->memory));
        if (!guest->memory)
                return -ENOMEM;
        for (size_t i = 0; i < member->n_memory; i++)
                guest->memory[i] = (struct guest_memory){ .address = member->memory[i].address,
                                                          .size = member->memory[i].size,
                                                          .part = member->memory[i].part,
                                                          .source = -1,
                                                          .target = -1 };
        guest->n_memory = member->n_memory;
        guest->memory_bytes = member->memory_bytes;
        return 0;
}

/* As a process is that the manager finds suspended when it starts. */
static int make_guest(struct image_session *session, const struct image_member *member,
                      struct failure *failure)
{
        struct guest *guest;
        int r = guest_new(&guest, session->instance, member->pid, member->uid, member->start_time);

        if (r < 0)
                return r;
        guest->must_stay = true;
        guest->state = GATE_STATE_RELEASED;
        guest->context.state = GUEST_CONTEXT_SUSPENDED;
        r = guest_charge(guest, failure);
        if (r == 0)
                r = guest_admit(guest);
        if (r == 0)
                r = set_memory(guest, member);
        if (r < 0)
                guest_free(guest);
        return r;
}

/* It may have joined another vGPU since it was named, or be an image's there. */
static int add_guest_anew(struct image_session *session, const struct image_member *member,
                          struct failure *failure)
{
        int r = check_is_no_guest(session, member->pid, failure);

        if (r == 0)
                r = look_again(member, failure);
        return r < 0 ? r : make_guest(session, member, failure);
}

static void unmake_guests(struct image_session *session)
{
        for (size_t i = 0; i < session->n_members; i++) {
                struct guest *guest = guest_find(session->instance, session->members[i].pid);

                if (session->members[i].is_new && guest)
                        guest_free(guest);
        }
}

static void swap_reservation(struct guest *guest, struct image_member *member)
{
        struct pool_reservation *old = guest->reservation;

        guest->reservation = member->reservation;
        member->reservation = old;
}

static int exchange_member(struct image_session *session, struct image_member *member,
                           struct failure *failure)
{
        struct guest *guest = guest_find(session->instance, member->pid);
        int r = 0;

        if (!guest || guest->start_time != member->start_time)
                return failure_set(failure, -ESRCH, "GuestLost", "load it again for the others",
                                   "process %d ended while its memory was loaded",
                                   (int)member->pid);
        swap_reservation(guest, member);
        member->is_exchanged = true;
        if (guest->reservation)
                r = pool_stamp(session->instance->manager->pool, guest->reservation, guest->pid,
                               guest->start_time);
        if (r == 0 && guest->reservation)
                r = recovery_put_slabs(guest);
        return r == 0 ? recovery_store_memory(guest) : r;
}

static void undo_exchange(struct image_session *session)
{
        for (size_t i = 0; i < session->n_members; i++) {
                struct image_member *member = &session->members[i];

                if (!member->is_exchanged)
                        continue;
                swap_reservation(guest_find(session->instance, member->pid), member);
                member->is_exchanged = false;
        }
}

static int exchange_all(struct image_session *session, struct failure *failure)
{
        struct instance *instance = session->instance;
        struct store *store = instance->manager->store;
        bool is_new = session->n_members > 0 && session->members[0].is_new;
        const struct place place = instance_place(instance);
        int r;

        if (is_new && guests_count(instance) > 0)
                return failure_set(failure, -EBUSY, "Busy", "end it, and load the image again",
                                   "a process has joined vGPU %s meanwhile", instance->name);
        r = store_begin(store);
        if (r < 0)
                return r;
        for (size_t i = 0; r == 0 && i < session->n_members; i++)
                if (session->members[i].is_new)
                        r = add_guest_anew(session, &session->members[i], failure);
        for (size_t i = 0; r == 0 && i < session->n_members; i++)
                r = exchange_member(session, &session->members[i], failure);
        if (r == 0 && is_new)
                r = recovery_put_state(instance, STATE_SUSPENDED, &place);
        if (r == 0 && is_new)
                r = residency_record_put_left(&instance->residency, store, instance->id, false);
        if (r == 0)
                r = store_commit(store);
        if (r < 0) {
                undo_exchange(session);
                store_rollback(store);
                unmake_guests(session);
        } else if (is_new) {
                instance->state = STATE_SUSPENDED;
                instance->residency.has_left = false; /* who loads it resumes it */
        }
        return r;
}

int image_session_exchange(struct image_session *session, struct failure *failure)
{
        struct manager *manager = session->instance->manager;
        int r = exchange_all(session, failure);

        if (r < 0)
                return failure_from_errno(failure, r, "taking over the memory of the image");
        for (size_t i = 0; i < session->n_members; i++) {
                struct image_member *member = &session->members[i];

                guest_find(session->instance, member->pid)->is_remembered = true;
                member->reservation =
                        pool_release(manager->pool, member->reservation); /* what it had before */
        }
        recovery_sync_slabs(manager);
        observer_tell_changed(&manager->observers);
        return 0;
}
