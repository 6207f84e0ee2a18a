/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/meter/meter-outside.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/list.h"
#include "base/process-stat.h"
#include "daemon/log.h"
#include "daemon/process.h"
#include "manager/meter/meter-internal.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"

/* The gate of a running process joins a new manager within a moment. */
#define GRACE_NS 5000000000u

/* Real devices are looked at about once in a second. */
#define GONE_NS 5000000000u

/* More are not remembered; the others are seen when some have ended. */
#define SEEN_MAX 4096

struct seen {
        struct list link;
        pid_t pid;
        uint64_t start_time;
        uint64_t first_ns, last_ns;
        char vgpu[64]; /* as its environment says; "": it is no vGPU's */
        bool is_told;
};

struct meter_outside {
        struct manager *manager;
        struct list seen;
        size_t n;
};

int meter_outside_new(struct meter_outside **ret_outside, struct manager *manager)
{
        struct meter_outside *outside = calloc(1, sizeof(*outside));

        if (!outside)
                return -ENOMEM;
        outside->manager = manager;
        list_init(&outside->seen);
        *ret_outside = outside;
        return 0;
}

static void forget(struct meter_outside *outside, struct seen *seen)
{
        list_remove(&seen->link);
        outside->n--;
        free(seen);
}

struct meter_outside *meter_outside_free(struct meter_outside *outside)
{
        struct seen *seen, *next;

        if (!outside)
                return NULL;
        list_for_each_safe(seen, next, &outside->seen, link)
                forget(outside, seen);
        free(outside);
        return NULL;
}

static void read_vgpu(struct seen *seen)
{
        CLEANUP(freep) char *environment = environment_read(seen->pid);
        const char *vgpu = environment ? environment_get(environment, "OPENVGPU_VGPU") : NULL;

        if (vgpu)
                (void)snprintf(seen->vgpu, sizeof(seen->vgpu), "%s", vgpu);
}

static struct seen *find_or_add(struct meter_outside *outside, pid_t pid, uint64_t now_ns)
{
        struct process_stat stat;
        struct seen *seen;

        if (process_stat_read(&stat, pid) < 0)
                return NULL;
        list_for_each(seen, &outside->seen, link)
                if (seen->pid == pid && seen->start_time == stat.start)
                        return seen;
        seen = outside->n < SEEN_MAX ? calloc(1, sizeof(*seen)) : NULL;
        if (!seen)
                return NULL;
        seen->pid = pid;
        seen->start_time = stat.start;
        seen->first_ns = now_ns;
        read_vgpu(seen);
        list_append(&outside->seen, &seen->link);
        outside->n++;
        return seen;
}

/* A process says itself which vGPU it is of, so it is believed of a vGPU of its user alone. */
static struct instance *find_instance(struct meter_outside *outside, const struct seen *seen,
                                      uid_t *ret_user)
{
        struct failure unused = { 0 };
        struct instance *instance = instance_find(outside->manager, seen->vgpu, &unused);

        if (process_get_user(seen->pid, ret_user) < 0)
                return NULL;
        return instance && instance->owner == *ret_user ? instance : NULL;
}

static bool end(const struct seen *seen)
{
        CLEANUP(fd_closep) int pidfd = -1;

        return process_open(seen->pid, seen->start_time, &pidfd) == 0 &&
               syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0;
}

/* @user has the process; the lines count as those that this user causes. */
static void tell(struct meter_outside *outside, struct seen *seen, struct instance *instance,
                 uid_t user)
{
        char name[PROCESS_NAME_MAX], quoted[LOG_QUOTED_MAX];
        bool is_ended = outside->manager->options->is_strict && end(seen);

        process_get_name(seen->pid, name);
        (void)snprintf(instance->outside, sizeof(instance->outside),
                       "process %d (%.40s) uses the GPU past the gate, and no quota holds for it%s",
                       (int)seen->pid, name, is_ended ? ": it was ended" : "");
        if (seen->is_told)
                return;
        seen->is_told = true;
        log_event_of_program(&(struct log_program){ user, instance->id, instance->name },
                             LOG_LEVEL_WARNING, "a process of a vGPU uses the GPU past the gate",
                             "vgpu=%s pid=%d name=%s ended=%s", instance->name, (int)seen->pid,
                             log_quote(quoted, name), is_ended ? "yes" : "no");
        observer_tell_instance(&outside->manager->observers, instance, INSTANCE_OUTSIDE);
}

void meter_outside_see(struct meter_outside *outside, pid_t pid)
{
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);
        struct instance *instance;
        struct seen *seen;
        uid_t user;

        if (pid <= 0 || guest_is_any(outside->manager, pid))
                return;
        seen = find_or_add(outside, pid, now_ns);
        if (!seen)
                return;
        seen->last_ns = now_ns;
        if (!seen->vgpu[0] || now_ns - seen->first_ns < GRACE_NS)
                return;
        instance = find_instance(outside, seen, &user);
        if (instance)
                tell(outside, seen, instance, user);
}

void meter_outside_tick(struct meter_outside *outside)
{
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);
        struct seen *seen, *next;

        list_for_each_safe(seen, next, &outside->seen, link) {
                struct failure unused = { 0 };
                struct instance *instance;

                if (now_ns - seen->last_ns < GONE_NS)
                        continue;
                instance =
                        seen->is_told ? instance_find(outside->manager, seen->vgpu, &unused) : NULL;
                if (instance)
                        instance->outside[0] = '\0';
                forget(outside, seen);
        }
}
