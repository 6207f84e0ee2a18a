/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of a device: one kernel slice runs at a time, of all streams of all processes. */

#include "sim/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "sim/process.h"

#define OFF_NAP_NS 200000

/* Measured: so long does a kernel that cannot be interrupted keep another process off the device. */
#define AWAITED_MAX_NS 4400000000u

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

/* Streams of ours that wait for each device: the others know of the first and of the last. */
static struct {
        pthread_mutex_t lock;
        uint32_t n[HOST_DEVICES_MAX];
} waiting = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void begin_waiting(int device)
{
        (void)pthread_mutex_lock(&waiting.lock);
        if (waiting.n[device]++ == 0)
                holdings_tell_waiting(&process.holdings, device, true);
        (void)pthread_mutex_unlock(&waiting.lock);
}

static void end_waiting(int device)
{
        (void)pthread_mutex_lock(&waiting.lock);
        if (--waiting.n[device] == 0)
                holdings_tell_waiting(&process.holdings, device, false);
        (void)pthread_mutex_unlock(&waiting.lock);
}

static int take(struct engine *engine)
{
        int r;

        begin_waiting(engine->device);
        r = lock(engine->turn);
        if (r == 0) {
                r = lock(engine->engine);
                (void)flock(engine->turn, LOCK_UN);
        }
        end_waiting(engine->device);
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
        engine->awaited_ns = 0;
        return r;
}

static uint64_t note_slice(struct engine *engine, uint64_t now)
{
        uint64_t held_ns = now - engine->taken_ns;

        holdings_note_busy(&process.holdings, engine->device, HOST_BUSY_KERNEL, held_ns);
        engine->taken_ns = now;
        return held_ns;
}

uint64_t engine_give(struct engine *engine)
{
        uint64_t now = clock_now(CLOCK_MONOTONIC);

        (void)flock(engine->engine, LOCK_UN);
        return note_slice(engine, now);
}

bool engine_keep(struct engine *engine, uint64_t *ret_ns)
{
        uint64_t now = clock_now(CLOCK_MONOTONIC);

        *ret_ns = note_slice(engine, now);
        if (!holdings_are_awaited(&process.holdings, engine->device))
                engine->awaited_ns = 0;
        else if (engine->awaited_ns == 0)
                engine->awaited_ns = now;
        return engine->awaited_ns == 0 || now - engine->awaited_ns < AWAITED_MAX_NS;
}

void engine_close(struct engine *engine)
{
        engine->turn = fd_close(engine->turn);
        engine->engine = fd_close(engine->engine);
        engine->device = -1;
}
