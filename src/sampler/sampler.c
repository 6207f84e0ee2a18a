/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sampler NVML-LIBRARY UUID...: what wire/sampler.h says. */
#include "wire/sampler.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi/nvml.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/privilege.h"
#include "sampler/library.h"
#include "sampler/present.h"
#include "sampler/use.h"

#define INTERVAL_MS 500

/* What a process that has just joined did before the sampler ran: the manager knows when it joined. */
#define BEFORE_US 1000000u

struct device {
        nvmlDevice_t handle;
        struct use use;
        struct present present;
};

static unsigned long long now_us(void)
{
        return clock_now(CLOCK_REALTIME) / NS_PER_US;
}

static struct device *find_devices(char **uuids, uint16_t n)
{
        struct device *devices = calloc(n, sizeof(*devices));

        for (uint16_t i = 0; devices && i < n; i++) {
                nvmlReturn_t r = library.find(uuids[i], &devices[i].handle);

                devices[i].use.seen_us = now_us() - BEFORE_US;
                if (r != NVML_SUCCESS && use_tell_error(&devices[i].use, i, r) < 0)
                        exit(0);
        }
        return devices;
}

static bool has_manager(void)
{
        struct pollfd poll_fd = { .fd = SAMPLER_FD, .events = POLLIN };

        return poll(&poll_fd, 1, INTERVAL_MS) == 0;
}

int main(int argc, char **argv)
{
        uint16_t n = (uint16_t)(argc - 2);
        CLEANUP(freep) struct device *devices = NULL;

        (void)privilege_keep(PRIVILEGE_SAMPLER);
        if (argc < 3) {
                fprintf(stderr, "vgpu-sampler is started by vgpud\n");
                return 2;
        }
        if (library_load(argv[1]) < 0 || library.init() != NVML_SUCCESS)
                return 1;
        devices = find_devices(argv + 2, n);
        if (!devices)
                return 1;
        while (has_manager())
                for (uint16_t i = 0; i < n; i++)
                        if (devices[i].handle &&
                            (use_tell(&devices[i].use, devices[i].handle, i) < 0 ||
                             present_tell(&devices[i].present, devices[i].handle, i) < 0))
                                return 0;
        return 0;
}
