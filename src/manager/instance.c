/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/instance.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/size.h"
#include "base/text.h"
#include "daemon/log.h"
#include "daemon/uuid.h"
#include "manager/account.h"
#include "manager/backlog.h"
#include "manager/burial.h"
#include "manager/custody.h"
#include "manager/device.h"
#include "manager/guest.h"
#include "manager/launch.h"
#include "manager/manager.h"
#include "manager/observer.h"
#include "manager/policy.h"
#include "manager/schedule.h"
#include "manager/settings.h"
#include "manager/virtual.h"

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static const char *const state_names[] = {
        [BOARD_IDLE] = "idle",
        [BOARD_RUNNING] = "running",
        [BOARD_SUSPENDING] = "suspending",
        [BOARD_SUSPENDED] = "suspended",
        [BOARD_EVICTED] = "evicted",
        [BOARD_RESUMING] = "resuming",
        [BOARD_MIGRATING] = "migrating",
        [BOARD_FAILED] = "failed",
};

const char *instance_state_name(enum board_instance_state state)
{
        return state_names[state];
}

bool instance_is_off(const struct instance *instance)
{
        return instance->state == BOARD_SUSPENDED || instance->state == BOARD_EVICTED;
}

bool instance_is_bound_for(const struct instance *instance, const struct device *device)
{
        return instance->course.target == device && instance->device != device;
}

bool instance_is_usable(const struct instance *instance)
{
        return instance->state == BOARD_IDLE || instance->state == BOARD_RUNNING;
}

/* Finding and checking. */

/* Two letters wrong at most, and not all of them. */
static struct instance *refuse_name(const struct manager *manager, const char *name,
                                    struct failure *failure)
{
        char hint[STORE_NAME_MAX + 32] = "vgpu ls lists the vGPUs";
        const struct instance *instance;
        size_t least = 3;

        list_for_each(instance, &manager->instances, link) {
                size_t distance = text_distance(name, instance->name);

                if (distance >= least || distance >= strlen(instance->name))
                        continue;
                least = distance;
                snprintf(hint, sizeof(hint), "did you mean '%s'?", instance->name);
        }
        (void)failure_set(failure, -ENOENT, "NoSuchVgpu", hint, "there is no vGPU '%.64s'", name);
        return NULL;
}

struct instance *instance_find(struct manager *manager, const char *name, struct failure *failure)
{
        struct instance *instance;

        list_for_each(instance, &manager->instances, link)
                if (strcmp(instance->name, name) == 0 || strcasecmp(instance->uuid, name) == 0)
                        return instance;
        return refuse_name(manager, name, failure);
}

struct instance *instance_find_settled(struct manager *manager, const char *name,
                                       struct failure *failure)
{
        struct instance *instance = instance_find(manager, name, failure);

        if (!instance)
                return NULL;
        burial_finish(manager->burial, instance);
        return instance_find(manager, name, failure);
}

static bool has_name(const struct manager *manager, const char *name)
{
        const struct instance *instance;

        list_for_each(instance, &manager->instances, link)
                if (strcmp(instance->name, name) == 0)
                        return true;
        return false;
}

int instance_check_name(const char *name, struct failure *failure)
{
        size_t length = strlen(name);
        uint8_t uuid[16];

        if (length == UUID_TEXT_MAX - 1 && uuid_parse(uuid, name) == 0)
                return failure_parameter(failure, "name", "choose another name",
                                         "'%.64s' would be taken for a UUID", name);
        if (length > 0 && strspn(name, "0123456789") == length)
                return failure_parameter(failure, "name", "put a letter into it",
                                         "'%.64s' would be taken for the id of a vGPU", name);
        if (length > 0 && length < STORE_NAME_MAX && strspn(name, LETTERS_AND_DIGITS) > 0 &&
            strspn(name, LETTERS_AND_DIGITS "._-") == length)
                return 0;
        return failure_parameter(
                failure, "name",
                "use 1 to 63 letters, digits, '.', '_' or '-', the first of them a "
                "letter or digit",
                "'%.64s' cannot be the name of a vGPU", name);
}

int instance_check_owner(const struct instance *instance, uid_t uid, struct failure *failure)
{
        if (uid == instance->owner || account_is_operator(uid))
                return 0;
        return failure_set(failure, -EPERM, "PermissionDenied", "ask its owner, or do it as root",
                           "vGPU %s belongs to user %u, you are user %u", instance->name,
                           instance->owner, uid);
}

struct instance *instance_find_own(struct manager *manager, const char *name, uid_t uid,
                                   struct failure *failure)
{
        struct instance *instance = instance_find(manager, name, failure);

        return instance && instance_check_owner(instance, uid, failure) == 0 ? instance : NULL;
}

/* In memory. */

static int on_creator_gone(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct instance *instance = userdata;

        (void)fd, (void)events;
        sd_event_source_set_enabled(source, SD_EVENT_OFF);
        instance->is_creator_gone = true;
        instance_settle(instance);
        return 0;
}

static int watch_creator(struct instance *instance)
{
        CLEANUP(fd_closep) int pidfd = -1;
        int r;

        if (!instance->is_transient)
                return 0;
        r = process_open(instance->creator, instance->creator_start, &pidfd);
        if (r == -ESRCH) {
                instance->is_creator_gone = true;
                return 0;
        }
        if (r < 0)
                return r;
        r = sd_event_add_io(instance->manager->event, &instance->creator_source, pidfd, EPOLLIN,
                            on_creator_gone, instance);
        if (r < 0)
                return r;
        sd_event_source_set_io_fd_own(instance->creator_source, true);
        pidfd = -1;
        return 0;
}

struct instance *instance_free(struct instance *instance)
{
        struct guest *guest, *after;

        if (!instance)
                return NULL;
        observer_tell_instance(&instance->manager->observers, instance, INSTANCE_UNLOADED);
        list_for_each_safe(guest, after, &instance->guests, link)
                guest_unload(guest);
        launch_drop_all(instance);
        list_remove(&instance->link);
        sd_event_source_disable_unref(instance->creator_source);
        sd_event_source_disable_unref(instance->catch_up_timer);
        backlog_end_lack(instance);
        page_deinit(&instance->page);
        account_end(&instance->charge);
        accounting_deinit(&instance->meter.accounting);
        free(instance);
        return NULL;
}
DEFINE_CLEANUP(struct instance *, instance_free);

/* Its page, which is in the table of the keeper as well, and its creator. */
static const struct account_cost cost = { { [ACCOUNT_OBJECTS] = 1, [ACCOUNT_DESCRIPTORS] = 3 } };

static int instance_new(struct instance **ret_instance, struct manager *manager,
                        const struct store_instance *stored)
{
        struct instance *instance = calloc(1, sizeof(*instance));

        if (!instance)
                return -ENOMEM;
        *instance = (struct instance){
                .manager = manager,
                .id = stored->id,
                .device = device_find_uuid(manager, stored->device_uuid),
                .frame_buffer = stored->frame_buffer,
                .created_ns = stored->created_ns,
                .owner = stored->owner,
                .state = stored->state,
                .page = { .fd = -1 },
                .board_slot = UINT32_MAX,
                .encoder_capacity = 100,
                .placement = BOARD_PLACEMENT_NONE,
                .is_transient = stored->is_transient,
                .creator = stored->creator,
                .creator_start = stored->creator_start,
        };
        snprintf(instance->name, sizeof(instance->name), "%s", stored->name);
        snprintf(instance->uuid, sizeof(instance->uuid), "%s", stored->uuid);
        list_init(&instance->link);
        list_init(&instance->guests);
        list_init(&instance->turns);
        list_init(&instance->launches);
        *ret_instance = instance;
        return 0;
}

/* Creating. */

static struct device *roomiest_device(struct manager *manager)
{
        struct device *best = NULL;
        uint64_t most = 0;

        for (size_t i = 0; i < manager->n_devices; i++) {
                struct device *device = &manager->device[i];
                uint64_t promised = device_get_promised(device, NULL);
                uint64_t left =
                        promised < device->memory_total ? device->memory_total - promised : 0;

                if (device->meter.is_lost)
                        left = 0;
                if (!best || left > most) {
                        best = device;
                        most = left;
                }
        }
        return best;
}

#define MADE_UP_NAME "vgpu-%u"

/* N of a name as make_up_name() gives it; 0: it is none. */
static unsigned int made_up_number(const char *name)
{
        char same[STORE_NAME_MAX];
        unsigned int n;

        if (sscanf(name, MADE_UP_NAME, &n) != 1)
                return 0;
        snprintf(same, sizeof(same), MADE_UP_NAME, n);
        return strcmp(same, name) == 0 ? n : 0;
}

/* With the lowest number that is free: at most one for each vGPU is taken. */
static void make_up_name(struct manager *manager, char name[STORE_NAME_MAX])
{
        bool is_taken[BOARD_INSTANCES_MAX + 2] = { true };
        struct instance *instance;
        unsigned int n;

        list_for_each(instance, &manager->instances, link) {
                n = made_up_number(instance->name);
                if (n <= BOARD_INSTANCES_MAX)
                        is_taken[n] = true;
        }
        for (n = 1; is_taken[n]; n++)
                ;
        snprintf(name, STORE_NAME_MAX, MADE_UP_NAME, n);
}

/* What the gate takes from the device at once: less is of no use, but is "40" without its G. */
#define FRAME_BUFFER_MIN (2 * MIB)

static int check_size(const struct device *device, uint64_t frame_buffer, struct failure *failure)
{
        char wanted[SIZE_TEXT_MAX], total[SIZE_TEXT_MAX];

        if (frame_buffer < FRAME_BUFFER_MIN)
                return failure_parameter(failure, "frame_buffer", "sizes have a unit: 40G, 512M",
                                         "a vGPU has at least 2 MiB, not %s",
                                         size_format(wanted, frame_buffer));
        if (frame_buffer <= device->memory_total)
                return 0;
        size_format(total, device->memory_total);
        return failure_set(failure, -ENOSPC, "NoRoom", "ask for less", "device %u has %s, not %s",
                           device->index, total, size_format(wanted, frame_buffer));
}

static int check_request(struct manager *manager, const struct instance_request *request,
                         const struct device *device, struct failure *failure)
{
        int r = request->name ? instance_check_name(request->name, failure) : 0;

        if (r == 0 && request->name &&
            (has_name(manager, request->name) || virtual_find(manager->stage, request->name)))
                r = failure_set(failure, -EEXIST, "VgpuExists",
                                "choose another name, or vgpu rm that one",
                                "there is a vGPU '%s' already", request->name);
        if (r == 0)
                r = policy_check_limits(manager, request->owner, request->frame_buffer, failure);
        if (r == 0)
                r = check_size(device, request->frame_buffer, failure);
        if (r == 0)
                r = device_check_room(device, request->frame_buffer, NULL, failure);
        if (r == 0)
                r = settings_check_size(device, request->frame_buffer, NULL, failure);
        if (r == 0)
                r = schedule_check_share(device, NULL, request->share, failure);
        return r;
}

static int make_stored(struct manager *manager, const struct instance_request *request,
                       const struct device *device, struct store_instance *stored)
{
        int r = 0;

        *stored = (struct store_instance){
                .frame_buffer = request->frame_buffer,
                .created_ns = clock_now(CLOCK_REALTIME),
                .state = BOARD_IDLE,
                .owner = request->owner,
                .is_transient = request->is_transient,
                .creator = request->creator,
        };
        snprintf(stored->device_uuid, sizeof(stored->device_uuid), "%s", device->uuid);
        if (request->name)
                snprintf(stored->name, sizeof(stored->name), "%s", request->name);
        else
                make_up_name(manager, stored->name);
        if (request->is_transient)
                r = process_get_start_time(request->creator, &stored->creator_start);
        if (request->uuid)
                snprintf(stored->uuid, sizeof(stored->uuid), "%s", request->uuid);
        else if (r == 0)
                r = uuid_make(stored->uuid);
        return r;
}

/* All of it or nothing: the share is in the same transaction. */
static int add_instance(struct manager *manager, struct store_instance *stored, uint32_t share,
                        struct instance **ret_instance, struct failure *failure)
{
        CLEANUP(instance_freep) struct instance *instance = NULL;
        int r = stored->is_transient ? store_begin(manager->store)
                                     : store_begin_durable(manager->store);

        if (r < 0)
                return r;
        r = store_add_instance(manager->store, stored);
        if (r == 0)
                r = instance_new(&instance, manager, stored);
        if (r == 0)
                r = account_take(manager->accounts, &instance->charge, instance->owner, &cost,
                                 failure);
        if (r == 0)
                r = page_create(&instance->page, instance->frame_buffer);
        if (r == 0)
                r = custody_put_page(instance);
        if (r == 0)
                r = watch_creator(instance);
        if (r == 0 && instance->is_creator_gone)
                r = -ESRCH;
        if (r == 0 && share)
                r = settings_set_share(instance, share, failure);
        if (r == 0)
                r = store_commit(manager->store);
        if (r < 0) {
                store_rollback(manager->store);
                if (instance)
                        custody_drop_page(instance);
                return r;
        }
        list_append(&manager->instances, &instance->link);
        observer_tell_instance(&instance->manager->observers, instance, INSTANCE_ADDED);
        *ret_instance = TAKE(instance);
        return 0;
}

int instance_create(struct manager *manager, const struct instance_request *request,
                    struct instance **ret_instance, struct failure *failure)
{
        struct device *device = request->device ? request->device : roomiest_device(manager);
        struct store_instance stored;
        struct instance *instance = NULL;
        int r = check_request(manager, request, device, failure);

        if (r == 0)
                r = make_stored(manager, request, device, &stored);
        if (r == 0)
                r = add_instance(manager, &stored, request->share, &instance, failure);
        if (r < 0)
                return failure_from_errno(failure, r, "creating the vGPU");

        log_event_of(instance->owner, LOG_LEVEL_INFO, "created",
                     "vgpu=%s uuid=%s device=%u frame_buffer=%" PRIu64 " uid=%u transient=%d",
                     instance->name, instance->uuid, device->index, instance->frame_buffer,
                     instance->owner, instance->is_transient);
        observer_tell_changed(&manager->observers);
        *ret_instance = instance;
        return 0;
}

int instance_restore(struct manager *manager, const struct store_instance *stored)
{
        CLEANUP(instance_freep) struct instance *instance = NULL;
        int r = instance_new(&instance, manager, stored);

        if (r < 0)
                return r;
        if (!instance->device) {
                log_event(LOG_LEVEL_ERROR, "the device of a vGPU is gone; moved to device 0",
                          "vgpu=%s device=%s", stored->name, stored->device_uuid);
                instance->device = &manager->device[0];
        }
        r = account_force(manager->accounts, &instance->charge, instance->owner, &cost);
        if (r == 0)
                r = custody_get_page(instance);
        if (r < 0)
                return r;
        r = watch_creator(instance);
        if (r < 0)
                return r;
        list_append(&manager->instances, &instance->link);
        observer_tell_instance(&instance->manager->observers, instance, INSTANCE_LOADED);
        instance = NULL;
        return 0;
}

/* Changing and removing. */

void instance_set_state(struct instance *instance, enum board_instance_state state)
{
        instance->state = state;
        if (store_set_instance(instance->manager->store, instance->id, state,
                               instance->device->uuid) < 0)
                backlog_add_instance(instance);
        observer_tell_changed(&instance->manager->observers);
}

static int remove_from_store(struct instance *instance)
{
        struct store *store = instance->manager->store;
        int r = instance->is_transient ? store_begin(store) : store_begin_durable(store);

        if (r == 0)
                r = store_remove_instance(store, instance->id);
        if (r == 0)
                r = store_commit(store);
        if (r < 0)
                store_rollback(store);
        return r;
}

static int forget(struct instance *instance)
{
        struct manager *manager = instance->manager;
        int r = remove_from_store(instance);

        if (r < 0)
                return r;
        log_event_of(instance->owner, LOG_LEVEL_INFO, "removed", "vgpu=%s", instance->name);
        custody_drop_page(instance);
        observer_tell_instance(&instance->manager->observers, instance, INSTANCE_REMOVED);
        instance_free(instance);
        observer_tell_changed(&manager->observers);
        return 0;
}

static int check_no_image(const struct instance *instance, struct failure *failure)
{
        if (!instance->image)
                return 0;
        return failure_set(failure, -EBUSY, "Busy", "try again when it is over",
                           "an image of vGPU %s is being written or read", instance->name);
}

int instance_check_idle(const struct instance *instance, struct failure *failure)
{
        if (instance->operation && instance_is_usable(instance))
                return failure_set(failure, -EBUSY, "Busy", "try again in a moment",
                                   "the last operation of vGPU %s is not quite over",
                                   instance->name);
        if (instance->operation)
                return failure_set(failure, -EBUSY, "Busy", "try again when it is over",
                                   "vGPU %s is %s", instance->name,
                                   instance_state_name(instance->state));
        return check_no_image(instance, failure);
}

int instance_remove(struct instance *instance, struct failure *failure)
{
        size_t n = instance_count_guests(instance) + list_count(&instance->launches);
        int r = check_no_image(instance, failure);

        if (r < 0)
                return r;
        /* First: an operation passes by itself, its processes do not. */
        if (n > 0)
                return failure_set(failure, -EBUSY, "Busy",
                                   n == 1 ? "end it first (vgpu ls -l shows it)"
                                          : "end them first (vgpu ls -l shows them)",
                                   "vGPU %s has %zu process%s", instance->name, n,
                                   n == 1 ? "" : "es");
        r = instance_check_idle(instance, failure);
        if (r < 0)
                return r;
        r = forget(instance);
        return r < 0 ? failure_from_errno(failure, r, "removing the vGPU") : 0;
}

void instance_settle(struct instance *instance)
{
        enum board_instance_state wanted = instance->state;
        size_t n = instance_count_guests(instance);

        if (instance->operation || instance->image)
                return;
        if (n == 0 && instance->is_transient && instance->is_creator_gone) {
                (void)forget(instance);
                return;
        }
        if (n == 0)
                wanted = BOARD_IDLE;
        else if (instance->state == BOARD_IDLE)
                wanted = BOARD_RUNNING;
        if (wanted != instance->state) {
                instance_set_state(instance, wanted);
                if (store_remove_operation(instance->manager->store, instance->id) < 0)
                        backlog_add_instance(instance);
        }
        if (instance_is_usable(instance))
                observer_tell_instance(&instance->manager->observers, instance, INSTANCE_SETTLED);
        observer_tell_changed(
                &instance->manager->observers); /* which settles the devices, once for all */
}

size_t instance_count_guests(const struct instance *instance)
{
        const struct guest *guest;
        size_t n = 0;

        list_for_each(guest, &instance->guests, link)
                n += !guest->is_dead;
        return n;
}

uint64_t instance_get_used(const struct instance *instance)
{
        const struct guest *guest;
        uint64_t sum = 0;

        list_for_each(guest, &instance->guests, link) {
                struct page_use use;

                if (guest->is_dead || guest->slot == UINT32_MAX)
                        continue;
                page_read(&instance->page, guest->slot, instance->frame_buffer, &use);
                sum += use.movable + use.fixed;
        }
        return sum < instance->frame_buffer ? sum : instance->frame_buffer; /* they may lie */
}
