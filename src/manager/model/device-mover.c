/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/device-mover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/uuid.h"
#include "manager/model/ceiling.h"
#include "manager/model/clean-copy.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/promise.h"
#include "manager/model/restore-room.h"
#include "manager/model/silence.h"

/*
 * A mover that dies is not started again ahead of need for so long: it may be a habit. Nor is it asked for a context
 * again that there was no room for.
 */
#define REST_US 1000000

/* Probing. */

static int add_device(struct manager *manager, const struct mover_device *found)
{
        struct device *device = &manager->device[manager->n_devices];

        if (manager->n_devices == STATE_DEVICES_MAX)
                return -E2BIG;
        *device = (struct device){
                .manager = manager,
                .index = (uint32_t)manager->n_devices,
                .memory_total = found->memory_total,
                .driver_version = found->driver_version,
        };
        list_init(&device->errands);
        list_init(&device->admissions);
        room_init(&device->room);
        if (uuid_parse(device->uuid_bytes, found->uuid) < 0)
                return -EPROTO;
        snprintf(device->uuid, sizeof(device->uuid), "%s", found->uuid);
        device->peers = found->peers;
        snprintf(device->pci_bus_id, sizeof(device->pci_bus_id), "%s", found->pci_bus_id);
        snprintf(device->name, sizeof(device->name), "%s", found->name);
        manager->n_devices++;
        log_event(LOG_LEVEL_INFO, "found device", "device=%u uuid=%s name=\"%s\" pci=%s",
                  device->index, device->uuid, device->name, device->pci_bus_id);
        return 0;
}

int device_probe_all(struct manager *manager, struct failure *failure)
{
        CLEANUP(freep) struct mover_device *found = NULL;
        size_t n = 0;
        int r = mover_probe(&found, &n, manager->mover_path, manager->driver_path);

        if (r < 0 && r != -ENODEV)
                return failure_set(failure, r, "Failed", "is the installation complete?",
                                   "%s could not look for devices: %s", manager->mover_path,
                                   strerror(-r));
        if (n == 0)
                return failure_set(failure, -ENODEV, "Failed",
                                   "check it with nvidia-smi; to try without a GPU: vgpud "
                                   "--simulate 2xH200",
                                   "the driver %s shows no GPU", manager->driver_path);
        for (size_t i = 0; r == 0 && i < n; i++)
                r = add_device(manager, &found[i]);
        return r < 0 ? failure_from_errno(failure, r, "looking for devices") : 0;
}

/* The mover. */

/* What the pool asked of a mover and waits for. */
struct errand {
        struct list link; /* in device->errands */
        struct device *device;
        enum pool_action action;
        uint32_t slab;
};

static struct errand *errand_free(struct errand *errand)
{
        if (errand)
                list_remove(&errand->link);
        free(errand);
        return NULL;
}
DEFINE_CLEANUP(struct errand *, errand_free);

/* Its context is there, or will not be: who waited for that may go on. */
static void end_asking(struct device *device)
{
        if (!device->asks_context)
                return;
        device->asks_context = false;
        room_forget(&device->context_room);
        ceiling_look(device);
}

static void on_call_returned(struct mover *mover, pid_t pid, void *userdata)
{
        (void)mover;
        silence_returned(userdata, pid);
}

static void on_mover_lost(struct mover *mover, void *userdata)
{
        struct device *device = userdata;

        log_event(LOG_LEVEL_WARNING, "a mover died", "device=%u pid=%d", device->index,
                  (int)mover_get_pid(mover));
        device->mover = mover_free(mover);
        device->has_context = device->wants_all = false;
        pool_device_lost(device->manager->pool, device->index);
        room_lose(&device->room);
        if (ceiling_is_on(device)) /* what it held is free from now on */
                ceiling_look(device);
        device->wanted = 0;
        (void)sd_event_now(device->manager->event, CLOCK_MONOTONIC, &device->rest_until_us);
        device->rest_until_us += REST_US;
        observer_tell_device(&device->manager->observers, device, DEVICE_MOVER_LOST);
        silence_lost(device);
}

static void on_mover_idle(struct mover *mover, void *userdata)
{
        struct device *device = userdata;

        (void)mover;
        if (device->mover_use == DEVICE_MOVER_RETIRES)
                device_settle(device);
}

static int start_mover(struct device *device)
{
        struct manager *manager = device->manager;
        const struct mover_options options = {
                .program = manager->mover_path,
                .device_uuid = device->uuid,
                .driver_path = manager->driver_path,
                .lost = on_mover_lost,
                .returned = on_call_returned,
                .idle = on_mover_idle,
                .userdata = device,
        };
        int r = mover_new(&device->mover, manager->event, &options);

        if (r < 0) {
                device->mover = NULL;
                log_event(LOG_LEVEL_ERROR, "a mover could not be started",
                          "device=%u program=%s error=\"%s\"", device->index, manager->mover_path,
                          strerror(-r));
                return r;
        }
        device->generation++;
        device->is_mover_stored = false;
        (void)mover_key(device->mover, manager->hash_key, NULL,
                        NULL); /* without it, it copies all */
        return 0;
}

/* Noted before it is asked for anything; if the store refuses, the next time. */
static void store_mover(struct device *device)
{
        if (device->is_mover_stored)
                return;
        device->is_mover_stored =
                store_put_mover(device->manager->store, mover_get_pid(device->mover)) == 0;
        if (!device->is_mover_stored)
                log_event(LOG_LEVEL_WARNING,
                          "should vgpud die now, the next will not wait for a mover",
                          "device=%u pid=%d", device->index, (int)mover_get_pid(device->mover));
}

int device_get_mover(struct device *device, struct mover **ret_mover)
{
        int r = 0;

        if (device->mover && mover_is_lost(device->mover))
                return -ECONNRESET; /* until the last of it is gone */
        if (!device->mover)
                r = start_mover(device);
        if (r < 0)
                return r;
        store_mover(device);
        device->mover_use = DEVICE_MOVER_WORKS;
        *ret_mover = device->mover;
        return 0;
}

/* Nobody waits for an answer of it. */
static void let_mover_go(struct device *device)
{
        if (!device->mover)
                return;
        (void)store_remove_mover(device->manager->store, mover_get_pid(device->mover));
        device->mover = mover_free(device->mover);
        device->has_context = device->wants_all = false;
        pool_device_lost(device->manager->pool, device->index);
        device->wanted = 0;
}

/*
 * A mover that is let go in the middle of something works on for a moment: it would zero a slab that another vGPU has
 * been given meanwhile. And who awaits an answer of it, or its end, would wait for ever. So it ends what it does first,
 * and gets no more.
 */
static void retire_mover(struct device *device)
{
        if (device->mover && mover_is_awaited(device->mover)) {
                device->mover_use = DEVICE_MOVER_RETIRES;
                pool_rest(device->manager->pool, device->index);
                device->wanted = UINT64_MAX; /* nobody's wish: pool_want() will be told anew */
                device->wants_all = false;
                return;
        }
        let_mover_go(device);
}

/* What it would need of the pool beside what it has there. */
static uint64_t wanted_of(const struct guest *guest)
{
        uint64_t has = clean_copy_get_length(guest);
        struct page_use use = { 0 };

        if (!guest->reservation && !guest->spilled)
                guest_get_use(guest, &use);
        return use.movable > has ? use.movable - has : 0;
}

/* Does anything on @device need its mover, and how much of the pool would evicting all take? */
static bool is_wanted(const struct device *device, uint64_t *ret_bytes)
{
        const struct instance *instance;
        const struct guest *guest;
        bool wanted = silence_needs(device) || restore_room_is_kept(device);

        *ret_bytes = 0;
        list_for_each(instance, &device->manager->instances, link) {
                if (instance_is_bound_for(instance, device))
                        wanted = true;
                if (!instance_is_on(instance, device) || list_is_empty(&instance->guests))
                        continue;
                wanted = true;
                list_for_each(guest, &instance->guests, link) {
                        *ret_bytes += wanted_of(guest);
                }
        }
        return wanted;
}

/* Is there a vGPU that could come here? */
static bool may_be_moved_to(const struct device *device)
{
        const struct instance *instance;

        list_for_each(instance, &device->manager->instances, link)
                if (!instance_is_on(instance, device) && !list_is_empty(&instance->guests))
                        return true;
        return false;
}

/* What the pool keeps ready grows and shrinks in these steps, not with every allocation. */
static uint64_t round_up(uint64_t bytes, uint64_t slab_size)
{
        return (bytes + slab_size - 1) / slab_size * slab_size;
}

static uint64_t now_us(const struct device *device)
{
        uint64_t now = 0;

        (void)sd_event_now(device->manager->event, CLOCK_MONOTONIC, &now);
        return now;
}

static bool is_resting(const struct device *device)
{
        return now_us(device) < device->rest_until_us;
}

/* The store still has it: the next manager waits for its end. */
void device_deinit(struct device *device)
{
        struct errand *errand, *after;

        list_for_each_safe(errand, after, &device->errands, link)
                errand_free(errand);
        ceiling_deinit(device);
        device->mover = mover_free(device->mover);
}

/* What had slabs or a context is let go, and a new one takes its place. */
static void stand_by(struct device *device)
{
        bool is_useful = may_be_moved_to(device);

        if (device->mover_use != DEVICE_MOVER_STANDS_BY || !is_useful)
                retire_mover(device);
        if (is_useful && !device->mover && !is_resting(device) && start_mover(device) == 0)
                device->mover_use = DEVICE_MOVER_STANDS_BY;
}

static void want(struct device *device, uint64_t bytes, bool wants_all)
{
        struct pool *pool = device->manager->pool;
        struct pool_info info;

        pool_get_info(pool, &info);
        bytes = round_up(bytes, info.slab_size);
        if (bytes != device->wanted) {
                device->wanted = bytes;
                pool_want(pool, device->index, bytes);
        }
        if (wants_all != device->wants_all) {
                device->wants_all = wants_all;
                pool_want_all(pool, device->index, wants_all);
        }
}

static void on_own_context(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct device *device = userdata;

        (void)mover;
        device->has_context |= done->error == 0;
        if (done->error)
                device->no_context_until_us = now_us(device) + REST_US;
        end_asking(device);
}

/*
 * On an overcommitted device programs wait until others have left, for which the mover needs its context. Once they
 * have filled the device it is too late for that: it would have no room. So nobody takes any before. Nor beside a
 * restore that no operation waits for, as nobody knows what is left.
 */
static bool needs_context(const struct device *device)
{
        return (promise_is_overcommitted(device) && promise_get_sum(device, NULL) > 0) ||
               restore_room_is_kept(device);
}

static void hold_context(struct device *device, struct mover *mover)
{
        if (!needs_context(device) || device->has_context || device->asks_context ||
            now_us(device) < device->no_context_until_us)
                return;
        device->asks_context = mover_context(mover, on_own_context, device) == 0;
        if (!device->asks_context)
                return;
        /* How much it takes is not known, and need not be: without a context nobody may take more. */
        room_promise(&device->room, &device->context_room, 1);
        ceiling_look(device);
}

void device_settle(struct device *device)
{
        struct mover *mover;
        uint64_t bytes;
        bool is_in_use = is_wanted(device, &bytes);
        bool wants_all = (device->manager->options->pin_ahead >> device->index & 1) &&
                         (is_in_use || may_be_moved_to(device));

        if (!is_in_use && !wants_all && !needs_context(device)) {
                stand_by(device);
                return;
        }
        if (!device->mover && is_resting(device))
                return;
        if (device_get_mover(device, &mover) < 0)
                return;
        want(device, bytes, wants_all);
        hold_context(device, mover);
}

/* The pool's errands. */

static void on_errand(struct mover *mover, const struct mover_done *done, void *userdata)
{
        CLEANUP(errand_freep) struct errand *errand = userdata;
        struct manager *manager = errand->device->manager;

        (void)mover;
        if (done->error == 0 && errand->action == POOL_ADD)
                errand->device->has_context = true;
        if (done->error < 0 && done->error != -ECONNRESET)
                log_event(LOG_LEVEL_WARNING, "a slab could not be prepared",
                          "device=%u slab=%u action=%d error=\"%s\" call=%.63s code=%d",
                          errand->device->index, errand->slab, (int)errand->action,
                          strerror(-done->error), done->call, done->driver_code);
        if (done->error != -ECONNRESET) /* a loss is told by pool_device_lost() */
                pool_work_done(manager->pool, errand->action, errand->device->index, errand->slab,
                               done->error);
}

int device_work(const struct pool_work *work, void *userdata)
{
        struct manager *manager = userdata;
        struct device *device = &manager->device[work->device];
        CLEANUP(errand_freep) struct errand *errand = calloc(1, sizeof(*errand));
        struct mover *mover;
        int r;

        if (!errand)
                return -ENOMEM;
        *errand = (struct errand){ .device = device, .action = work->action, .slab = work->slab };
        list_init(&errand->link);
        r = device_get_mover(device, &mover);
        if (r < 0)
                return r;
        if (work->action == POOL_ADD)
                r = mover_slab_add(mover, work->slab, work->fd, work->size, on_errand, errand);
        else if (work->action == POOL_ZERO)
                r = mover_slab_zero(mover, work->slab, on_errand, errand);
        else
                r = mover_slab_remove(mover, work->slab, on_errand, errand);
        if (r == 0) {
                list_append(&device->errands, &errand->link);
                errand = NULL;
        }
        return r;
}
