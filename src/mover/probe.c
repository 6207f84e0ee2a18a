/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/probe.h"

#include <inttypes.h>
#include <stdio.h>

#include "mover/device.h"
#include "mover/driver.h"

/* A bit for each device that lends device @index its memory. Where the driver does not say: none. */
static uint64_t find_peers(int index, int count)
{
        struct mover_done done = { 0 };
        uint64_t peers = 0;
        CUdevice id, other;
        int can;

        for (int i = 0; i < count && i < 64; i++)
                if (i != index && DRIVER_CALL(&done, cuDeviceGet, &id, index) == 0 &&
                    DRIVER_CALL(&done, cuDeviceGet, &other, i) == 0 &&
                    DRIVER_CALL(&done, cuDeviceCanAccessPeer, &can, id, other) == 0 && can)
                        peers |= 1ull << i;
        return peers;
}

static int print_device(int index, int count, int version, struct mover_done *done)
{
        char name[96] = "", bus_id[32] = "", uuid_text[DEVICE_UUID_MAX];
        CUdevice id;
        CUuuid uuid;
        size_t memory = 0;
        int r;

        r = DRIVER_CALL(done, cuDeviceGet, &id, index);
        if (r == 0)
                r = DRIVER_CALL(done, cuDeviceGetUuid, &uuid, id);
        if (r == 0)
                r = DRIVER_CALL(done, cuDeviceGetPCIBusId, bus_id, sizeof(bus_id), id);
        if (r == 0)
                r = DRIVER_CALL(done, cuDeviceTotalMem_v2, &memory, id);
        if (r == 0)
                r = DRIVER_CALL(done, cuDeviceGetName, name, sizeof(name), id);
        if (r < 0)
                return r;

        device_format_uuid(uuid_text, &uuid);
        printf("%s\t%s\t%zu\t%d\t%s\t%" PRIu64 "\n", uuid_text, bus_id, memory, version, name,
               find_peers(index, count));
        return 0;
}

int probe_print(void)
{
        struct mover_done done = { 0 };
        int count = 0, version = 0, r;

        r = DRIVER_CALL(&done, cuDriverGetVersion, &version);
        if (r == 0)
                r = DRIVER_CALL(&done, cuDeviceGetCount, &count);
        for (int i = 0; i < count && r == 0; i++)
                r = print_device(i, count, version, &done);
        if (r < 0)
                fprintf(stderr, "mover: event=probe-failed call=%s code=%d\n", done.call,
                        done.driver_code);
        return r;
}
