/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler itself costs with a crowd of vGPUs, on one device and on eight that it has together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "scheduler/scheduler.h"

#define DEVICES     8
#define MEMBERS_MAX 4096
#define CHANGES     2000

static struct scheduler scheduler;
static struct scheduler_member member[MEMBERS_MAX];

static double now_ms(void)
{
        return (double)clock_now(CLOCK_MONOTONIC) / 1e6;
}

static void fill(uint32_t n, bool is_joint)
{
        const struct scheduler_settings settings = { .policy = SCHEDULER_BEST_EFFORT };

        scheduler_init(&scheduler);
        scheduler_configure(&scheduler, &settings);
        memset(member, 0, sizeof(member));
        for (uint32_t i = 0; i < n; i++) {
                member[i].id = i + 1;
                member[i].devices = is_joint ? (uint64_t)(random() % ((1 << DEVICES) - 1) + 1) : 1;
                member[i].share = i == 0 ? 10 : 0;
                scheduler_add(&scheduler, &member[i]);
        }
}

static void measure(uint32_t n, bool is_joint)
{
        double start, change, all;
        uint64_t sum = 0;

        fill(n, is_joint);
        start = now_ms();
        for (int i = 0; i < CHANGES; i++) {
                struct scheduler_member *one = &member[(uint32_t)random() % n];

                scheduler_set_work(&scheduler, one, !one->has_work);
        }
        change = (now_ms() - start) / CHANGES;
        scheduler_set_share(&scheduler, &member[0], 20);
        start = now_ms();
        for (uint32_t i = 0; i < n; i++)
                sum += scheduler_get_entitled(&member[i]);
        all = now_ms() - start;
        printf("%5u vGPUs, %s: %8.4f ms a change of work, %9.4f ms for what all are entitled to "
               "(sum %llu)\n",
               n, is_joint ? "8 devices" : " 1 device", change, all, (unsigned long long)sum);
}

int main(void)
{
        static const uint32_t sizes[] = { 64, 256, MEMBERS_MAX };

        srandom(15);
        for (int is_joint = 0; is_joint <= 1; is_joint++)
                for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
                        measure(sizes[i], is_joint);
        return EXIT_SUCCESS;
}
