/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of a device: one kernel slice runs at a time, of all streams of all processes. */

#include "sim/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "sim/process.h"

#define OFF_NAP_NS 200000

static int open_lock(const char *kind, int device)
{
        char name[32];

        (void)snprintf(name, sizeof(name), "%s-%d", kind, device);
        return openat(process.holdings.directory, name, O_RDWR | O_CLOEXEC);
}

static int open_engine(struct engine *engine, int device)
{
        engine_close(engine);
        engine->turn = open_lock("turn", device);
        engine->engine = open_lock("engine", device);
        if (engine->turn < 0 || engine->engine < 0)
                return -errno;
        engine->device = device;
        return 0;
}

static int lock(int fd)
{
        while (flock(fd, LOCK_EX) < 0)
                if (errno != EINTR)
                        return -errno;
        return 0;
}

/* Whoever manages the host holds processes off its devices, and may die while it does: so we look. */
static void wait_while_off(void)
{
        const struct timespec nap = { .tv_nsec = OFF_NAP_NS };

        while (holdings_is_off(&process.holdings))
                (void)nanosleep(&nap, NULL);
}

static int take(struct engine *engine)
{
        int r = lock(engine->turn);

        if (r < 0)
                return r;
        r = lock(engine->engine);
        (void)flock(engine->turn, LOCK_UN);
        return r;
}

int engine_take(struct engine *engine, int device)
{
        int r = engine->device == device ? 0 : open_engine(engine, device);

        if (r < 0)
                return r;
        for (;;) {
                wait_while_off();
                r = take(engine);
                if (r < 0 || !holdings_is_off(&process.holdings))
                        break;
                (void)flock(engine->engine, LOCK_UN); /* while we waited for it */
        }
        engine->taken_ns = clock_now(CLOCK_MONOTONIC);
        return r;
}

uint64_t engine_give(struct engine *engine)
{
        uint64_t held_ns = clock_now(CLOCK_MONOTONIC) - engine->taken_ns;

        (void)flock(engine->engine, LOCK_UN);
        holdings_note_busy(&process.holdings, engine->device, HOST_BUSY_KERNEL, held_ns);
        return held_ns;
}

void engine_close(struct engine *engine)
{
        engine->turn = fd_close(engine->turn);
        engine->engine = fd_close(engine->engine);
        engine->device = -1;
}
