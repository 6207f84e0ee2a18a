/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/channel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "gate/child.h"
#include "gate/log.h"
#include "gate/quota.h"
#include "state/instance-page.h"
#include "wire/resource-manager.h"

/* Objects that we follow: subdevices, groups and channels. A process has some thirty. */
#define OBJECTS_MAX 512

enum kind { SUBDEVICE, GROUP, CHANNEL };

struct object {
        enum kind kind;
        int fd; /* that it was made on */
        uint32_t client, parent, object;
};

static struct {
        pthread_mutex_t lock;
        struct object object[OBJECTS_MAX];
        size_t n;
        bool is_incomplete; /* there were more: what is told must not be relied on */
} channels = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const struct object *find_locked(enum kind kind, uint32_t client, uint32_t object)
{
        for (size_t i = 0; i < channels.n; i++)
                if (channels.object[i].kind == kind && channels.object[i].client == client &&
                    (object == 0 || channels.object[i].object == object))
                        return &channels.object[i];
        return NULL;
}

/* That of the device of its group: a process with several devices may have them all in one client. */
static const struct object *find_subdevice_locked(const struct object *channel)
{
        const struct object *group = find_locked(GROUP, channel->client, channel->parent);

        for (size_t i = 0; group && i < channels.n; i++)
                if (channels.object[i].kind == SUBDEVICE &&
                    channels.object[i].client == channel->client &&
                    channels.object[i].parent == group->parent)
                        return &channels.object[i];
        return find_locked(SUBDEVICE, channel->client, 0);
}

static void write_locked(struct instance_page_channels *page)
{
        uint32_t sequence = atomic_load(&page->sequence) | 1, n = 0;

        atomic_store(&page->sequence, sequence);
        for (size_t i = 0; i < channels.n; i++) {
                const struct object *channel = &channels.object[i];
                const struct object *subdevice =
                        channel->kind == CHANNEL ? find_subdevice_locked(channel) : NULL;

                if (!subdevice)
                        continue;
                if (n < INSTANCE_PAGE_CHANNELS)
                        instance_page_copy_channel(
                                &page->channel[n],
                                &(struct instance_page_channel){ channel->client, channel->object,
                                                                 subdevice->object, channel->fd });
                n++;
        }
        atomic_store(&page->n, channels.is_incomplete ? UINT32_MAX : n);
        atomic_store_explicit(&page->sequence, sequence + 1, memory_order_release);
}

static void publish_locked(void)
{
        uint32_t slot;
        struct instance_page *page = quota_get_page(&slot);

        if (page)
                write_locked(&page->channels[slot]);
}

void channel_publish(void)
{
        pthread_mutex_lock(&channels.lock);
        publish_locked();
        pthread_mutex_unlock(&channels.lock);
}

/* The object, and what it is the parent of: handles are only said when they are freed one by one. */
static bool drop_locked(uint32_t client, uint32_t object)
{
        bool is_client = client == object, found = false;
        size_t kept = 0;

        for (size_t i = 0; i < channels.n; i++) {
                const struct object *one = &channels.object[i];

                if (one->client == client &&
                    (is_client || one->object == object || one->parent == object))
                        found = true;
                else
                        channels.object[kept++] = *one;
        }
        channels.n = kept;
        return found;
}

static void add_locked(const struct object *object)
{
        if (channels.n == OBJECTS_MAX) {
                if (!channels.is_incomplete)
                        log_write("more channels than can be followed");
                channels.is_incomplete = true;
                return;
        }
        channels.object[channels.n++] = *object;
}

/* Only groups on the graphics engine, only channels in these. */
static bool identify_locked(const struct rm_alloc *call, enum kind *ret_kind)
{
        struct rm_channel_group group;

        if (call->class == RM_CLASS_SUBDEVICE) {
                *ret_kind = SUBDEVICE;
                return true;
        }
        if (call->class == RM_CLASS_CHANNEL_GROUP && call->parameters) {
                memcpy(&group, (const void *)(uintptr_t)call->parameters, sizeof(group));
                *ret_kind = GROUP;
                return group.engine == RM_ENGINE_GRAPHICS;
        }
        if (!RM_IS_CHANNEL_CLASS(call->class))
                return false;
        *ret_kind = CHANNEL;
        return find_locked(GROUP, call->client, call->parent) != NULL;
}

static void note_alloc(int fd, const struct rm_alloc *call)
{
        struct object object = {
                .fd = fd, .client = call->client, .parent = call->parent, .object = call->object
        };

        pthread_mutex_lock(&channels.lock);
        if (identify_locked(call, &object.kind)) {
                (void)drop_locked(object.client, object.object); /* of a client that was closed */
                add_locked(&object);
                if (object.kind == CHANNEL)
                        publish_locked();
        }
        pthread_mutex_unlock(&channels.lock);
}

static void note_free(const struct rm_free *call)
{
        pthread_mutex_lock(&channels.lock);
        if (drop_locked(call->client, call->object)) {
                if (channels.n == 0)
                        channels.is_incomplete = false;
                publish_locked();
        }
        pthread_mutex_unlock(&channels.lock);
}

void channel_note(int fd, unsigned long request, const void *argument)
{
        size_t size = _IOC_SIZE(request);
        struct rm_alloc_short brief;
        struct rm_alloc call = { 0 };
        struct rm_free free_call;

        if (_IOC_TYPE(request) != RM_IOCTL_TYPE)
                return;
        if (_IOC_NR(request) == RM_IOCTL_ALLOC && size == sizeof(call)) {
                memcpy(&call, argument, sizeof(call));
                if (call.status == RM_OK)
                        note_alloc(fd, &call);
        } else if (_IOC_NR(request) == RM_IOCTL_ALLOC && size == sizeof(brief)) {
                memcpy(&brief, argument, sizeof(brief));
                memcpy(&call, &brief, offsetof(struct rm_alloc_short, parameters_size));
                if (brief.status == RM_OK)
                        note_alloc(fd, &call);
        } else if (_IOC_NR(request) == RM_IOCTL_FREE && size == sizeof(free_call)) {
                memcpy(&free_call, argument, sizeof(free_call));
                if (free_call.status == RM_OK)
                        note_free(&free_call);
        }
}

void channel_forget(void)
{
        pthread_mutex_init(&channels.lock, NULL);
        channels.n = 0;
        channels.is_incomplete = false;
}
