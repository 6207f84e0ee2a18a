/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of a device: one kernel slice runs at a time, of all streams of all processes. */

#include "sim/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

#include "base/cleanup.h"
#include "sim/process.h"

static int open_lock(const char *kind, int device)
{
        char name[32];

        (void)snprintf(name, sizeof(name), "%s-%d", kind, device);
        return openat(process.ledger.directory, name, O_RDWR | O_CLOEXEC);
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

int engine_take(struct engine *engine, int device)
{
        int r = engine->device == device ? 0 : open_engine(engine, device);

        if (r == 0)
                r = lock(engine->turn);
        if (r < 0)
                return r;
        r = lock(engine->engine);
        (void)flock(engine->turn, LOCK_UN);
        return r;
}

void engine_give(struct engine *engine)
{
        (void)flock(engine->engine, LOCK_UN);
}

void engine_close(struct engine *engine)
{
        engine->turn = fd_close(engine->turn);
        engine->engine = fd_close(engine->engine);
        engine->device = -1;
}
