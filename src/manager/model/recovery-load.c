/* SPDX-License-Identifier: Apache-2.0 */
/* What a former manager left in the store and in the keeper. */
#include "manager/model/recovery-load.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/process.h"
#include "manager/model/backing.h"
#include "manager/model/backlog.h"
#include "manager/model/device.h"
#include "manager/model/footprint.h"
#include "manager/model/guest-life.h"
#include "manager/model/guest.h"
#include "manager/model/instance-life.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/place-text.h"
#include "manager/model/policy.h"
#include "manager/model/pool-group.h"
#include "manager/model/recovery-internal.h"
#include "manager/model/recovery.h"
#include "manager/model/reserve.h"
#include "manager/model/restore-room.h"
#include "manager/model/spill-use.h"
#include "manager/model/spilled.h"

static int drop_ownerless_page(const char *label, int fd, void *userdata)
{
        struct manager *manager = userdata;
        struct failure failure = { 0 };
        char uuid[STORE_UUID_MAX];

        (void)fd;
        if (sscanf(label + strlen(RECOVERY_PAGE), "%47[^/]", uuid) != 1 ||
            !instance_find(manager, uuid, &failure))
                (void)keeper_drop(manager->keeper, label);
        return 0;
}

static bool is_memory_known(struct manager *manager, const char *label)
{
        char uuid[STORE_UUID_MAX];
        struct failure failure = { 0 };
        struct instance *instance;
        uint64_t address, size;
        struct guest *guest;
        int pid;

        if (sscanf(label, "%*[^/]/%47[^/]/%d/%" SCNx64 "/%" SCNx64, uuid, &pid, &address, &size) !=
            4)
                return false;
        instance = instance_find(manager, uuid, &failure);
        guest = instance ? guest_find(instance, pid) : NULL;
        for (size_t i = 0; guest && i < guest->n_memory; i++)
                if (guest->memory[i].address == address && guest->memory[i].size == size)
                        return true;
        return false;
}

static int drop_ownerless_memory(const char *label, int fd, void *userdata)
{
        struct manager *manager = userdata;

        (void)fd;
        if (!is_memory_known(manager, label))
                (void)keeper_drop(manager->keeper, label);
        return 0;
}

/* Loading. */

static int adopt_slab(const char *label, int fd, void *userdata)
{
        struct manager *manager = userdata;
        CLEANUP(fd_closep) int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        int r = own < 0 ? -errno
                        : pool_adopt(manager->pool,
                                     (uint32_t)strtoul(label + strlen(RECOVERY_SLAB), NULL, 10),
                                     own);

        if (r == 0)
                (void)TAKE_FD(own);
        else
                log_event(LOG_LEVEL_ERROR, "a slab in the keeper cannot be used",
                          "label=%s error=\"%s\"", label, strerror(-r));
        return 0;
}

static int adopt_reservation(struct guest *guest, const char *owner,
                             const struct store_extent *stored, size_t n)
{
        CLEANUP(freep) struct pool_extent *extents = calloc(n + 1, sizeof(*extents));
        struct pool_mark mark = { .pid = guest->pid, .start_time = guest->start_time };

        if (!extents)
                return -ENOMEM;
        if (n == 0)
                return 0;
        if (stored[0].slab == SPILLED_SLAB)
                return spilled_adopt(guest, &stored[0]);
        for (size_t i = 0; i < n; i++)
                extents[i] =
                        (struct pool_extent){ stored[i].slab, stored[i].offset, stored[i].length };
        mark.generation = stored[0].generation;
        snprintf(mark.owner, sizeof(mark.owner), "%s", guest->instance->uuid);
        return pool_adopt_reservation(guest->instance->manager->pool, &guest->reservation, owner,
                                      &mark, extents, n);
}

/* Whatever the database says. */
static uint32_t part_of(const struct guest *guest, const struct store_allocation *allocation)
{
        return allocation->part < guest->instance->n_parts ? allocation->part : 0;
}

static int adopt_allocations(struct guest *guest, const struct store_allocation *allocations,
                             size_t n)
{
        struct keeper *keeper = guest->instance->manager->keeper;
        char label[KEEPER_LABEL_MAX];

        guest->memory = calloc(n + 1, sizeof(*guest->memory));
        if (!guest->memory)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                struct guest_memory *memory = &guest->memory[i];
                int fd;

                *memory = (struct guest_memory){ .address = allocations[i].address,
                                                 .size = allocations[i].size,
                                                 .part = part_of(guest, &allocations[i]),
                                                 .source = -1,
                                                 .target = -1 };
                guest->n_memory++;
                guest->memory_bytes += memory->size;
                recovery_memory_label(label, RECOVERY_PARKED, guest, memory);
                memory->is_parked = keeper_find(keeper, label) >= 0;
                recovery_memory_label(label, RECOVERY_MEMORY, guest, memory);
                if (memory->is_parked)
                        (void)keeper_drop(keeper, label);
                fd = keeper_find(keeper, label);
                if (fd < 0)
                        continue;
                memory->source = fcntl(fd, F_DUPFD_CLOEXEC, 3);
                if (memory->source < 0)
                        return -errno;
        }
        return 0;
}

static int load_memory(struct guest *guest, const char *owner)
{
        CLEANUP(freep) struct store_allocation *allocations = NULL;
        CLEANUP(freep) struct store_extent *extents = NULL;
        size_t n_allocations, n_extents;
        int r = store_get_memory(guest->instance->manager->store, guest->instance->id, guest->pid,
                                 &allocations, &n_allocations, &extents, &n_extents);

        if (r == 0)
                r = adopt_allocations(guest, allocations, n_allocations);
        if (r == 0)
                r = adopt_reservation(guest, owner, extents, n_extents);
        return r;
}

/* Statements are not nested: a list of the processes is made first. */
struct process_list {
        struct store_process *processes;
        size_t n;
};

static int list_process(const struct store_process *process, void *userdata)
{
        struct process_list *list = userdata;
        struct store_process *processes =
                reallocarray(list->processes, list->n + 1, sizeof(*processes));

        if (!processes)
                return -ENOMEM;
        list->processes = processes;
        list->processes[list->n++] = *process;
        return 0;
}

/*
 * Extents and descriptors count where the memory is off its device, or on its way. Anything else is
 * what the store could not be told to forget, and may be somebody else's by now.
 */
static bool counts_memory(struct instance *instance)
{
        struct store_operation operation;

        return instance_is_off(instance) ||
               store_get_operation(instance->manager->store, instance->id, &operation) == 0;
}

static int load_claims(struct guest *guest, const char *owner)
{
        struct instance *instance = guest->instance;
        int r;

        if (!counts_memory(instance) && !guest_is_away(guest)) {
                instance->is_unsettled = true; /* recovery_load() has it brought up to date */
                return 0;
        }
        r = load_memory(guest, owner);
        guest->is_remembered = true;
        if (r != -ENOENT && r != -EINVAL && r != -ESTALE)
                return r;
        log_event(LOG_LEVEL_ERROR, "the memory of a suspended process is lost",
                  "vgpu=%s pid=%d reason=%s", instance->name, (int)guest->pid,
                  r == -ENOENT   ? "slab-or-file-gone"
                  : r == -ESTALE ? "other-memory"
                                 : "bad-extents");
        return 0; /* a resume is refused while it lives; the others of its vGPU lose nothing */
}

/* Has it become another program while no manager was there? */
static bool was_replaced(const struct guest *guest)
{
        const struct instance *instance = guest->instance;
        uint64_t mark;

        return guest->program != 0 &&
               store_get_program(instance->manager->store, instance->id, guest->pid, &mark) == 0 &&
               mark != guest->program;
}

/* As guest_succeed(), with the guest itself. */
static int load_successor(struct guest *guest)
{
        struct instance *instance = guest->instance;

        log_event_of(guest->payer, LOG_LEVEL_INFO, "process became another program",
                     "vgpu=%s pid=%d", instance->name, (int)guest->pid);
        (void)store_remove_process(instance->manager->store, instance->id, guest->pid);
        if (instance_is_usable(instance))
                guest_unload(guest);
        else
                guest_set_presence(guest, GUEST_JOINING);
        return 0;
}

static int load_guest(struct instance *instance, const struct store_process *process,
                      const char *owner)
{
        struct place place = place_parse(instance->manager, process->context_device);
        uid_t user = instance->owner;
        struct guest *guest;
        int r;

        (void)process_get_user(process->pid, &user); /* root's may be in the vGPU of another user */
        r = guest_new(&guest, instance, process->pid, user, process->start_time);
        if (r == -ESRCH) {
                (void)store_remove_process(instance->manager->store, instance->id, process->pid);
                return 0; /* if the store keeps it: the next manager finds it gone as well */
        }
        if (r < 0)
                return r;
        guest->payer = instance->owner;
        if (was_replaced(guest))
                return load_successor(guest);
        r = guest_claim_slot(guest, process->slot);
        if (r < 0)
                return r;
        guest->must_stay = true; /* as far as we know, until it connects */
        guest->state = instance_is_off(instance) ? GATE_STATE_RELEASED : GATE_STATE_OPEN;
        guest->context.state = process->context & ~RECOVERY_ABSENT;
        if ((process->context & RECOVERY_ABSENT) && !instance_is_off(instance)) {
                guest_set_presence(guest, GUEST_ABSENT);
                guest->state = GATE_STATE_RELEASED;
        }
        if (place_count(&place) == instance->n_parts)
                guest->context.place = place;
        guest->context.target = place_parse(instance->manager, process->context_target);
        recovery_note_stored(guest);
        footprint_load(guest);
        restore_room_load(guest);                            /* before anybody else is admitted */
        guest->n_refused_told = guest_count_refusals(guest); /* the former manager has told them */
        observer_tell_guest(&guest->instance->manager->observers, guest, GUEST_LOADED);
        return load_claims(guest, owner);
}

/* Do the slabs with the memory of this process say that all in them is its vGPU's? */
static bool is_apart(const struct instance *instance, pid_t pid)
{
        const struct manager *manager = instance->manager;
        CLEANUP(freep) struct store_allocation *allocations = NULL;
        CLEANUP(freep) struct store_extent *extents = NULL;
        size_t n_allocations, n_extents;
        bool is = store_get_memory(manager->store, instance->id, pid, &allocations, &n_allocations,
                                   &extents, &n_extents) == 0;

        for (size_t i = 0; is && i < n_extents; i++) {
                const struct pool_extent extent = { .slab = extents[i].slab };

                is = extent.slab == SPILLED_SLAB ||
                     pool_has_none_but(manager->pool, &extent, 1, instance->uuid);
        }
        return is;
}

/*
 * Slabs of a vGPU of an overcommitted device are its own, as its promise counts them (promise.h); what it had in its
 * group's before the device was overcommitted stays there. Its processes may have parts of the same slab, so all of
 * it is its own or nothing is.
 */
static void name_owner(const struct instance *instance, const struct process_list *list,
                       char ret_name[POOL_OWNER_MAX])
{
        bool is = true;

        for (size_t i = 0; is && i < list->n; i++)
                is = is_apart(instance, list->processes[i].pid);
        if (is)
                policy_name_owner(instance, ret_name);
        else
                pool_group_name(instance, ret_name);
}

static int load_guests(struct instance *instance)
{
        struct process_list list = { 0 };
        char owner[POOL_OWNER_MAX];
        int r = store_each_process(instance->manager->store, instance->id, list_process, &list);

        if (r == 0)
                name_owner(instance, &list, owner);
        for (size_t i = 0; r == 0 && i < list.n; i++)
                r = load_guest(instance, &list.processes[i], owner);
        free(list.processes);
        for (size_t i = 0; r == 0 && i < instance->n_parts; i++)
                page_mend(&instance->part[i].page);
        return r;
}

static int load_instance(const struct store_instance *stored, void *userdata)
{
        return instance_restore(userdata, stored);
}

/* With less pool or disk than before nobody loses anything, but not all can leave. */
static void hold_promises(struct manager *manager)
{
        struct failure failure = { 0 };
        char quoted[LOG_QUOTED_MAX];

        if (backing_hold_all(manager, &failure) < 0)
                log_event(LOG_LEVEL_WARNING, "not all vGPUs can leave their devices at once",
                          "reason=%s hint=\"%s\"", log_quote(quoted, failure.message),
                          failure.hint);
}

int recovery_load(struct manager *manager)
{
        struct instance *instance;
        int r;

        (void)keeper_list(manager->keeper, RECOVERY_SLAB, adopt_slab, manager);
        r = store_each_instance(manager->store, load_instance, manager);
        if (r == 0)
                r = pool_group_restore(manager);
        if (r < 0)
                return r;
        list_for_each(instance, &manager->instances, link) {
                r = load_guests(instance);
                if (r < 0)
                        return r;
                if (instance->is_unsettled)
                        backlog_add_instance(instance);
        }
        (void)keeper_list(manager->keeper, RECOVERY_PAGE, drop_ownerless_page, manager);
        (void)keeper_list(manager->keeper, RECOVERY_MEMORY, drop_ownerless_memory, manager);
        (void)keeper_list(manager->keeper, RECOVERY_PARKED, drop_ownerless_memory, manager);
        spilled_drop_ownerless(manager);
        reserve_drop_ownerless(manager);
        recovery_sync_slabs(manager);
        hold_promises(manager);
        return 0;
}
