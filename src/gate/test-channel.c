/* SPDX-License-Identifier: Apache-2.0 */
/* What the instance page says of the channels of a process, by the ioctls that it makes. */
#include <string.h>

#include "base/test.h"
#include "gate/channel.h"
#include "gate/child.h"
#include "gate/object.h"
#include "gate/quota.h"
#include "state/instance-page.h"
#include "wire/resource-manager.h"

#define CLIENT  0xc1d00001u
#define CHANNEL 0xc86fu /* a class */
#define FD      9

#define REQUEST_ALLOC \
        _IOC(_IOC_READ | _IOC_WRITE, RM_IOCTL_TYPE, RM_IOCTL_ALLOC, sizeof(struct rm_alloc))
#define REQUEST_FREE \
        _IOC(_IOC_READ | _IOC_WRITE, RM_IOCTL_TYPE, RM_IOCTL_FREE, sizeof(struct rm_free))

static struct instance_page page;

struct instance_page *__wrap_quota_get_page(uint32_t *ret_slot);

struct instance_page *__wrap_quota_get_page(uint32_t *ret_slot)
{
        *ret_slot = 1;
        return &page;
}

static int set_up(void **state)
{
        (void)state;
        memset(&page, 0, sizeof(page));
        object_forget();
        return 0;
}

static void make(uint32_t parent, uint32_t object, uint32_t class)
{
        union {
                struct rm_channel_group group;
                struct rm_channel channel;
        } parameters = { .group.engine = RM_ENGINE_GRAPHICS };
        struct rm_alloc call = { .client = CLIENT,
                                 .parent = parent,
                                 .object = object,
                                 .class = class,
                                 .parameters = (uintptr_t)&parameters };

        if (object_note(FD, REQUEST_ALLOC, &call))
                channel_publish();
}

static void drop(uint32_t object)
{
        struct rm_free call = { .client = CLIENT, .object = object };

        if (object_note(FD, REQUEST_FREE, &call))
                channel_publish();
}

/* A device's handles begin with its number. */
static void make_device(uint32_t device)
{
        make(device, device + 1, RM_CLASS_SUBDEVICE);
        make(device, device + 2, RM_CLASS_CHANNEL_GROUP);
        make(device + 2, device + 3, CHANNEL);
        make(device + 2, device + 4, CHANNEL);
}

static void expect(uint32_t i, uint32_t channel, uint32_t subdevice)
{
        const struct instance_page_channel *told = &page.channels[1].channel[i];

        assert_int_equal(told->client, CLIENT);
        assert_int_equal(told->channel, channel);
        assert_int_equal(told->subdevice, subdevice);
        assert_int_equal(told->fd, FD);
}

static void test_channels_are_told_with_their_subdevice(void **state)
{
        (void)state;

        make_device(0x10);
        assert_int_equal(page.channels[1].n, 2);
        expect(0, 0x13, 0x11);
        drop(0x13);
        assert_int_equal(page.channels[1].n, 1);
        expect(0, 0x14, 0x11);
}

static void test_each_channel_goes_with_its_own_device(void **state)
{
        (void)state;

        make_device(0x10);
        make_device(0x20);
        assert_int_equal(page.channels[1].n, 4);
        expect(0, 0x13, 0x11);
        expect(1, 0x14, 0x11);
        expect(2, 0x23, 0x21);
        expect(3, 0x24, 0x21);
}

/* Of a device whose subdevice is told otherwise than by its device, any of the client does. */
static void test_a_channel_whose_device_is_not_known_has_any(void **state)
{
        (void)state;

        make(0x99, 0x11, RM_CLASS_SUBDEVICE);
        make(0x10, 0x12, RM_CLASS_CHANNEL_GROUP);
        make(0x12, 0x13, CHANNEL);
        assert_int_equal(page.channels[1].n, 1);
        expect(0, 0x13, 0x11);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_channels_are_told_with_their_subdevice, set_up),
                cmocka_unit_test_setup(test_each_channel_goes_with_its_own_device, set_up),
                cmocka_unit_test_setup(test_a_channel_whose_device_is_not_known_has_any, set_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
