/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/object.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "gate/child.h"
#include "gate/log.h"
#include "wire/resource-manager.h"

/* A context has some 30 that we follow. */
#define OBJECTS_MAX  1024
#define CONTROLS_MAX 128

/*
 * Memory that was mapped not long ago: a channel is made right behind the memory of its ring. A restore maps all memory
 * first, and that can be more; so memory that has rings keeps its place.
 */
#define MAPS_MAX 128

struct map {
        uint32_t client, memory;
        int fd; /* -1: it has been mapped */
        bool has_rings;
        uint64_t address, length, offset;
};

static struct {
        pthread_mutex_t lock;
        struct object object[OBJECTS_MAX];
        size_t n;
        bool is_incomplete;
        uint64_t n_made;
        struct object_control control[CONTROLS_MAX];
        size_t n_controls;
        struct map map[MAPS_MAX];
        size_t next_map;
} objects = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* MAPs whose mmap() has not come: mmap() is everybody's, and mostly has nothing to do with us. */
static _Atomic uint32_t n_awaited;

void object_lock(void)
{
        pthread_mutex_lock(&objects.lock);
}

void object_unlock(void)
{
        pthread_mutex_unlock(&objects.lock);
}

bool objects_are_incomplete_locked(void)
{
        return objects.is_incomplete;
}

struct object *object_next_locked(enum object_kind kind, const struct object *object)
{
        for (size_t i = object ? (size_t)(object - objects.object) + 1 : 0; i < objects.n; i++)
                if (objects.object[i].kind == kind)
                        return &objects.object[i];
        return NULL;
}

struct object *object_find_locked(enum object_kind kind, uint32_t client, uint32_t object)
{
        struct object *one = NULL;

        while ((one = object_next_locked(kind, one)))
                if (one->client == client && one->object == object)
                        return one;
        return NULL;
}

static bool client_is_there_locked(uint32_t client)
{
        for (size_t i = 0; i < objects.n; i++)
                if (objects.object[i].client == client)
                        return true;
        return false;
}

struct object *object_find_subdevice_locked(const struct object *group)
{
        struct object *one = NULL;

        while ((one = object_next_locked(OBJECT_SUBDEVICE, one)))
                if (one->client == group->client && one->parent == group->parent)
                        return one;
        return NULL;
}

struct object_control *object_next_control_locked(const struct object_control *control)
{
        size_t next = control ? (size_t)(control - objects.control) + 1 : 0;

        return next < objects.n_controls ? &objects.control[next] : NULL;
}

static struct map *map_find_locked(uint32_t client, uint32_t memory)
{
        for (size_t i = 0; i < MAPS_MAX; i++)
                if (objects.map[i].client == client && objects.map[i].memory == memory &&
                    objects.map[i].address != 0)
                        return &objects.map[i];
        return NULL;
}

/* That of the same memory if that has rings, in its client before; else the oldest of those that have none. */
static struct map *map_place_locked(const struct rm_map *call)
{
        struct map *map;

        for (size_t i = 0; i < MAPS_MAX; i++) {
                map = &objects.map[i];
                if (map->memory == call->memory &&
                    (map->client == call->client ||
                     (map->has_rings && !client_is_there_locked(map->client))))
                        return map;
        }
        for (size_t i = 0; i < MAPS_MAX; i++) {
                map = &objects.map[objects.next_map++ % MAPS_MAX];
                if (!map->has_rings)
                        break;
        }
        return map;
}

/* The object, or all of a client. */
static bool objects_remove_locked(uint32_t client, uint32_t object)
{
        size_t kept = 0;

        for (size_t i = 0; i < objects.n; i++) {
                const struct object *one = &objects.object[i];

                if (one->client != client || (client != object && one->object != object))
                        objects.object[kept++] = *one;
        }
        if (kept == objects.n)
                return false;
        objects.n = kept;
        return true;
}

static const struct object *child_find_locked(uint32_t client, uint32_t parent)
{
        for (size_t i = 0; i < objects.n; i++)
                if (objects.object[i].client == client && objects.object[i].parent == parent &&
                    objects.object[i].object != parent)
                        return &objects.object[i];
        return NULL;
}

/* With all below it: only the uppermost of what is freed is said. A device is no object that we list, and has such. */
static bool objects_drop_locked(uint32_t client, uint32_t object)
{
        bool found = objects_remove_locked(client, object);
        const struct object *child;

        while (client != object && (child = child_find_locked(client, object)))
                found |= objects_drop_locked(client, child->object);
        if (objects.n == 0)
                objects.is_incomplete = false;
        return found;
}

static void object_add_locked(const struct object *object)
{
        if (objects.n == OBJECTS_MAX) {
                if (!objects.is_incomplete)
                        log_write("more channels than can be followed");
                objects.is_incomplete = true;
                return;
        }
        objects.object[objects.n] = *object;
        objects.object[objects.n++].serial = ++objects.n_made;
}

/* What the library says of a channel when it makes it. */
static void channel_describe_locked(struct object *channel, const struct rm_alloc *call)
{
        struct rm_channel parameters;
        struct map *map;

        if (!call->parameters)
                return;
        memcpy(&parameters, (const void *)(uintptr_t)call->parameters, sizeof(parameters));
        channel->ring = parameters.ring;
        channel->n_entries = parameters.n_entries;
        map = map_find_locked(call->client, parameters.user_memory[0]);
        if (!map)
                return;
        map->has_rings = true;
        channel->map.address = map->address;
        channel->map.length = map->length;
        channel->user = map->address + parameters.user_offset[0] - map->offset;
}

/* Only groups on the graphics engine, only channels in these. */
static bool object_identify_locked(const struct rm_alloc *call, enum object_kind *ret_kind)
{
        struct rm_channel_group group;

        if (call->class == RM_CLASS_SUBDEVICE) {
                *ret_kind = OBJECT_SUBDEVICE;
                return true;
        }
        if (call->class == RM_CLASS_DEBUGGER) {
                *ret_kind = OBJECT_DEBUGGER;
                return true;
        }
        if (RM_IS_USERMODE_CLASS(call->class)) {
                *ret_kind = OBJECT_USERMODE;
                return true;
        }
        if (call->class == RM_CLASS_CHANNEL_GROUP && call->parameters) {
                memcpy(&group, (const void *)(uintptr_t)call->parameters, sizeof(group));
                *ret_kind = OBJECT_GROUP;
                return group.engine == RM_ENGINE_GRAPHICS;
        }
        if (RM_IS_CHANNEL_CLASS(call->class)) {
                *ret_kind = OBJECT_CHANNEL;
                return object_find_locked(OBJECT_GROUP, call->client, call->parent) != NULL;
        }
        *ret_kind = OBJECT_COMPUTE;
        return RM_IS_COMPUTE_CLASS(call->class) &&
               object_find_locked(OBJECT_CHANNEL, call->client, call->parent);
}

static bool alloc_note(int fd, const struct rm_alloc *call)
{
        struct object object = {
                .fd = fd, .client = call->client, .parent = call->parent, .object = call->object
        };

        bool is_channel = false;

        object_lock();
        if (object_identify_locked(call, &object.kind)) {
                (void)objects_drop_locked(object.client,
                                          object.object); /* of a client that was closed */
                is_channel = object.kind == OBJECT_CHANNEL;
                if (is_channel)
                        channel_describe_locked(&object, call);
                object_add_locked(&object);
        }
        object_unlock();
        return is_channel;
}

static bool free_note(const struct rm_free *call)
{
        bool is_dropped;

        object_lock();
        is_dropped = objects_drop_locked(call->client, call->object);
        object_unlock();
        return is_dropped;
}

static void token_note_locked(const struct rm_control *call)
{
        struct object *channel = object_find_locked(OBJECT_CHANNEL, call->client, call->object);

        if (channel)
                memcpy(&channel->token, (const void *)(uintptr_t)call->parameters,
                       sizeof(channel->token));
}

static struct object_control *control_place_locked(const struct object_control *control)
{
        struct object_control *one = NULL;

        while ((one = object_next_control_locked(one)))
                if (one->client == control->client && one->object == control->object &&
                    one->command == control->command && one->group == control->group)
                        return one;
        if (objects.n_controls < CONTROLS_MAX)
                return &objects.control[objects.n_controls++];
        memmove(objects.control, objects.control + 1,
                (CONTROLS_MAX - 1) * sizeof(*objects.control));
        return &objects.control[CONTROLS_MAX - 1]; /* the first is the oldest */
}

static void control_keep_locked(const struct rm_control *call)
{
        struct object_control control = { .client = call->client,
                                          .object = call->object,
                                          .command = call->command,
                                          .size = call->parameters_size };

        if (call->parameters_size > sizeof(control.parameters))
                return;
        memcpy(control.parameters, (const void *)(uintptr_t)call->parameters, control.size);
        if (call->command == RM_COMMAND_SET_TIME_SLICE)
                control.group = call->object;
        else if (call->command == RM_COMMAND_SET_PREEMPTION_MODE) /* its second word */
                memcpy(&control.group, control.parameters + sizeof(uint32_t),
                       sizeof(control.group));
        *control_place_locked(&control) = control;
}

static void control_note(const struct rm_control *call)
{
        if (call->status != RM_OK || !call->parameters)
                return;
        switch (call->command) {
        case RM_COMMAND_GET_DOORBELL_TOKEN:
                object_lock();
                token_note_locked(call);
                object_unlock();
                break;
        case RM_COMMAND_SET_EXCEPTION_MASK:
        case RM_COMMAND_SET_PREEMPTION_MODE:
        case RM_COMMAND_SET_TIME_SLICE:
                object_lock();
                control_keep_locked(call);
                object_unlock();
                break;
        default:
                break;
        }
}

static void map_note(const struct rm_map *call)
{
        struct map *map;

        if (call->status != RM_OK)
                return;
        object_lock();
        for (size_t i = 0; i < MAPS_MAX; i++)
                if (objects.map[i].fd == call->fd)
                        objects.map[i].fd = -1; /* its mmap() has been, or will not be */
        map = map_place_locked(call);
        *map = (struct map){ .client = call->client,
                             .memory = call->memory,
                             .fd = call->fd,
                             .has_rings = map->has_rings && map->memory == call->memory,
                             .length = call->length,
                             .offset = call->offset };
        atomic_fetch_add(&n_awaited, 1);
        object_unlock();
}

static void map_finish_locked(struct map *map, const void *address)
{
        struct object *usermode = object_find_locked(OBJECT_USERMODE, map->client, map->memory);

        map->address = (uintptr_t)address;
        map->fd = -1;
        if (usermode) {
                usermode->map.address = map->address;
                usermode->map.length = map->length;
        }
}

void object_note_map(int fd, const void *address)
{
        if (fd < 0 || atomic_load_explicit(&n_awaited, memory_order_relaxed) == 0)
                return;
        object_lock();
        for (size_t i = 0; i < MAPS_MAX; i++) {
                struct map *map = &objects.map[i];

                if (map->client != 0 && map->fd == fd && map->address == 0) {
                        map_finish_locked(map, address);
                        atomic_fetch_sub(&n_awaited, 1);
                        break;
                }
        }
        object_unlock();
}

bool object_note(int fd, unsigned long request, const void *argument)
{
        size_t size = _IOC_SIZE(request);
        struct rm_alloc call = { 0 };
        union {
                struct rm_alloc_short brief;
                struct rm_free free;
                struct rm_control control;
                struct rm_map map;
        } other;

        if (_IOC_TYPE(request) != RM_IOCTL_TYPE)
                return false;
        if (_IOC_NR(request) == RM_IOCTL_ALLOC && size == sizeof(call)) {
                memcpy(&call, argument, sizeof(call));
                return call.status == RM_OK && alloc_note(fd, &call);
        }
        if (_IOC_NR(request) == RM_IOCTL_ALLOC && size == sizeof(other.brief)) {
                memcpy(&other.brief, argument, sizeof(other.brief));
                memcpy(&call, &other.brief, offsetof(struct rm_alloc_short, parameters_size));
                return other.brief.status == RM_OK && alloc_note(fd, &call);
        }
        if (_IOC_NR(request) == RM_IOCTL_FREE && size == sizeof(other.free)) {
                memcpy(&other.free, argument, sizeof(other.free));
                return other.free.status == RM_OK && free_note(&other.free);
        }
        if (_IOC_NR(request) == RM_IOCTL_CONTROL && size == sizeof(other.control)) {
                memcpy(&other.control, argument, sizeof(other.control));
                control_note(&other.control);
        } else if (_IOC_NR(request) == RM_IOCTL_MAP && size == sizeof(other.map)) {
                memcpy(&other.map, argument, sizeof(other.map));
                map_note(&other.map);
        }
        return false;
}

void object_forget(void)
{
        pthread_mutex_init(&objects.lock, NULL);
        objects.n = objects.n_controls = 0;
        memset(objects.map, 0, sizeof(objects.map));
        objects.is_incomplete = false;
        atomic_store(&n_awaited, 0);
}
