/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fault.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

enum action { ACTION_NONE, ACTION_KILL, ACTION_FAIL, ACTION_PAUSE };

#define POINTS_MAX 16

static const char *const action_names[] = {
        [ACTION_KILL] = "kill",
        [ACTION_FAIL] = "fail",
        [ACTION_PAUSE] = "pause",
};

struct point {
        char name[64];
        enum action action;
        unsigned int countdown; /* passes left until the action; 0: it has happened */
};

static struct {
        pthread_mutex_t lock;
        atomic_bool parsed;    /* once true, the number of points stays */
        const char *directory; /* where points are armed, or NULL */
        const char *of;        /* this process there, or NULL */
        size_t n_points;
        struct point point[POINTS_MAX];
} faults = { .lock = PTHREAD_MUTEX_INITIALIZER };

static enum action action_from_name(const char *name)
{
        for (enum action i = ACTION_KILL; i <= ACTION_PAUSE; i++)
                if (strcmp(name, action_names[i]) == 0)
                        return i;
        return ACTION_NONE;
}

static void parse_one(const char *text)
{
        struct point *point = &faults.point[faults.n_points];
        char action[16] = "";
        unsigned int n = 1;

        if (faults.n_points == POINTS_MAX ||
            sscanf(text, "%63[^=]=%15[^@]@%u", point->name, action, &n) < 2)
                return;

        point->action = action_from_name(action);
        point->countdown = n;
        if (point->action != ACTION_NONE)
                faults.n_points++;
}

static void parse(void)
{
        const char *variable = secure_getenv("OPENVGPU_FAULT");
        CLEANUP(freep) char *text = variable ? strdup(variable) : NULL;
        char *rest = text;

        for (char *one = text ? strsep(&rest, ",") : NULL; one; one = strsep(&rest, ","))
                parse_one(one);
        faults.directory = secure_getenv("OPENVGPU_FAULT_DIR");
        faults.of = secure_getenv("OPENVGPU_FAULT_OF");
        faults.parsed = true;
}

static int path_of(char *path, size_t size, const char *name, const char *suffix)
{
        int n = snprintf(path, size, "%s/%s%s", faults.directory ? faults.directory : "/tmp", name,
                         suffix);

        return n >= 0 && (size_t)n < size ? 0 : -1;
}

/*
 * What is in the file: nothing, or the number of passes until the action, and a '+' if it is to happen
 * at every pass from then on.
 */
static bool is_due(const char *path)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDWR | O_CLOEXEC);
        char text[16] = "", more = '\0';
        unsigned int n = 1;

        if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
                return false;
        (void)sscanf(text, "%u%c", &n, &more);
        if (n > 1) {
                int length = snprintf(text, sizeof(text), "%u%s", n - 1, more == '+' ? "+" : "");

                if (ftruncate(fd, 0) == 0)
                        (void)!pwrite(fd, text, (size_t)length, 0);
                return false;
        }
        return more == '+' || unlink(path) == 0;
}

/* Whoever can remove the file does what it says. */
static enum action take_armed(const char *name)
{
        char path[512], suffix[16];

        for (enum action i = ACTION_KILL; i <= ACTION_PAUSE; i++) {
                snprintf(suffix, sizeof(suffix), "=%s", action_names[i]);
                if (path_of(path, sizeof(path), name, suffix) == 0 && is_due(path))
                        return i;
        }
        return ACTION_NONE;
}

static enum action take_own(const char *name)
{
        char own[128];
        int n = snprintf(own, sizeof(own), "%s@%s", name, faults.of);

        return n >= 0 && (size_t)n < sizeof(own) ? take_armed(own) : ACTION_NONE;
}

static enum action pass(const char *name)
{
        enum action action = ACTION_NONE;

        pthread_mutex_lock(&faults.lock);
        if (!faults.parsed)
                parse();
        for (size_t i = 0; i < faults.n_points; i++) {
                struct point *point = &faults.point[i];

                if (strcmp(point->name, name) == 0 && point->countdown > 0 &&
                    --point->countdown == 0)
                        action = point->action;
        }
        pthread_mutex_unlock(&faults.lock);
        if (!action && faults.directory)
                action = take_armed(name);
        if (!action && faults.directory && faults.of)
                action = take_own(name);
        return action;
}

static void wait_for_removal(const char *name)
{
        const struct timespec interval = { .tv_nsec = 1000000 };
        char path[512];
        int fd;

        if (path_of(path, sizeof(path), name, "") < 0)
                return;
        fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        dprintf(fd, "%d\n", getpid());
        fd_close(fd);
        while (access(path, F_OK) == 0)
                nanosleep(&interval, NULL);
}

bool fault_point(const char *name)
{
        if (faults.parsed && faults.n_points == 0 && !faults.directory)
                return false;

        switch (pass(name)) {
        case ACTION_KILL:
                kill(getpid(), SIGKILL);
                return false;
        case ACTION_FAIL:
                return true;
        case ACTION_PAUSE:
                wait_for_removal(name);
                return false;
        case ACTION_NONE:
                break;
        }
        return false;
}
