/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/channel.h"

#include <stdatomic.h>
#include <stddef.h>

#include "gate/object.h"
#include "gate/quota.h"
#include "state/instance-page.h"

/* That of the device of its group: a process with several devices may have them all in one client. */
static const struct object *channel_find_subdevice_locked(const struct object *channel)
{
        const struct object *group =
                object_find_locked(OBJECT_GROUP, channel->client, channel->parent);
        const struct object *subdevice = group ? object_find_subdevice_locked(group) : NULL;

        if (subdevice)
                return subdevice;
        while ((subdevice = object_next_locked(OBJECT_SUBDEVICE, subdevice)))
                if (subdevice->client == channel->client)
                        break;
        return subdevice;
}

static void channels_write_locked(struct instance_page_channels *page)
{
        uint32_t sequence = atomic_load(&page->sequence) | 1, n = 0;
        const struct object *channel = NULL;

        atomic_store(&page->sequence, sequence);
        while ((channel = object_next_locked(OBJECT_CHANNEL, channel))) {
                const struct object *subdevice = channel_find_subdevice_locked(channel);

                if (!subdevice)
                        continue;
                if (n < INSTANCE_PAGE_CHANNELS)
                        instance_page_copy_channel(
                                &page->channel[n],
                                &(struct instance_page_channel){ channel->client, channel->object,
                                                                 subdevice->object, channel->fd });
                n++;
        }
        atomic_store(&page->n, objects_are_incomplete_locked() ? UINT32_MAX : n);
        atomic_store_explicit(&page->sequence, sequence + 1, memory_order_release);
}

void channel_publish(void)
{
        uint32_t slot;
        struct instance_page *page;

        object_lock();
        page = quota_get_page(&slot);
        if (page)
                channels_write_locked(&page->channels[slot]);
        object_unlock();
}
