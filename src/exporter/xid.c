/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/xid.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openvgpu/device-event.h>
#include <openvgpu/device.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define COUNTS_MAX (32 * (XID_NUMBERS_MAX + 1))

/* How long the thread waits at a time, and after an error; and how long xid_free() waits for it. */
#define WAIT_MS  250
#define PAUSE_MS 5000
#define END_MS   1000

struct xid {
        pthread_t thread;
        bool has_thread;
        struct vgpu_host *host;          /* the thread's own, as the watch is */
        struct vgpu_device_watch *watch; /* NULL: not yet, or not again */

        pthread_mutex_t lock;
        pthread_cond_t changed;

        /* With the lock held. */
        bool must_end, has_ended;
        struct xid_count counts[COUNTS_MAX];
        size_t n;
};

DEFINE_CLEANUP(struct xid *, xid_free);

/* Counting. */

/* With the lock held. NULL: there is no more room, of more devices than a host has. */
static struct xid_count *find(struct xid *xid, const char *uuid, uint32_t number)
{
        size_t n_numbers = 0;

        for (size_t i = 0; i < xid->n; i++) {
                if (strcmp(xid->counts[i].uuid, uuid) != 0)
                        continue;
                if (xid->counts[i].number == number)
                        return &xid->counts[i];
                n_numbers++;
        }
        if (n_numbers >= XID_NUMBERS_MAX && number != XID_OTHERS)
                return find(xid, uuid, XID_OTHERS);
        if (xid->n == COUNTS_MAX)
                return NULL;
        xid->counts[xid->n].number = number;
        (void)snprintf(xid->counts[xid->n].uuid, XID_UUID_MAX, "%s", uuid);
        return &xid->counts[xid->n++];
}

static void count(struct xid *xid, const char *uuid, uint64_t number)
{
        struct xid_count *counted;

        (void)pthread_mutex_lock(&xid->lock);
        counted = find(xid, uuid, number < XID_OTHERS ? (uint32_t)number : XID_OTHERS);
        if (counted) {
                counted->count++;
                counted->last = (double)clock_now(CLOCK_REALTIME) / 1e9;
        }
        (void)pthread_mutex_unlock(&xid->lock);
}

/* The thread. */

/* True: look again at once. */
static bool take_event(struct xid *xid)
{
        CLEANUP(freep) struct vgpu_device_event *event = NULL;
        CLEANUP(freep) char *uuid = NULL;

        if (!xid->watch && vgpu_device_watch_new(&xid->watch, xid->host, VGPU_DEVICE_EVENT_XID) < 0)
                return false;
        if (vgpu_device_watch_wait(xid->watch, WAIT_MS, &event) < 0)
                return vgpu_host_get_error(xid->host)->kind == VGPU_ERROR_TIMED_OUT;
        if (vgpu_device_get_uuid(xid->host, event->device, &uuid) == 0)
                count(xid, uuid, event->data);
        return true;
}

static void *run_xid(void *userdata)
{
        struct xid *xid = userdata;
        struct timespec deadline;
        bool is_fine;

        (void)pthread_mutex_lock(&xid->lock);
        while (!xid->must_end) {
                (void)pthread_mutex_unlock(&xid->lock);
                is_fine = take_event(xid);
                (void)pthread_mutex_lock(&xid->lock);
                deadline = clock_in(PAUSE_MS);
                while (!is_fine && !xid->must_end &&
                       pthread_cond_timedwait(&xid->changed, &xid->lock, &deadline) != ETIMEDOUT)
                        ;
        }
        xid->has_ended = true;
        (void)pthread_cond_broadcast(&xid->changed);
        (void)pthread_mutex_unlock(&xid->lock);
        return NULL;
}

/* Life. */

int xid_new(struct xid **ret_xid)
{
        CLEANUP(xid_freep) struct xid *xid = calloc(1, sizeof(*xid));
        pthread_condattr_t attributes;
        int r;

        if (!xid)
                return -ENOMEM;
        (void)pthread_condattr_init(&attributes);
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        (void)pthread_cond_init(&xid->changed, &attributes);
        (void)pthread_condattr_destroy(&attributes);
        (void)pthread_mutex_init(&xid->lock, NULL);
        r = vgpu_host_new(&xid->host, NULL);
        if (r < 0)
                return r;
        *ret_xid = TAKE(xid);
        return 0;
}

/* False: a driver holds the thread, perhaps for ever. */
static bool end_thread(struct xid *xid)
{
        struct timespec deadline = clock_in(END_MS);
        bool has_ended;

        if (!xid->has_thread)
                return true;
        (void)pthread_mutex_lock(&xid->lock);
        xid->must_end = true;
        (void)pthread_cond_broadcast(&xid->changed);
        while (!xid->has_ended &&
               pthread_cond_timedwait(&xid->changed, &xid->lock, &deadline) != ETIMEDOUT)
                ;
        has_ended = xid->has_ended;
        (void)pthread_mutex_unlock(&xid->lock);
        if (has_ended)
                (void)pthread_join(xid->thread, NULL);
        return has_ended;
}

struct xid *xid_free(struct xid *xid)
{
        if (!xid || !end_thread(xid))
                return NULL;
        xid->watch = vgpu_device_watch_free(xid->watch);
        xid->host = vgpu_host_free(xid->host);
        (void)pthread_cond_destroy(&xid->changed);
        (void)pthread_mutex_destroy(&xid->lock);
        free(xid);
        return NULL;
}

int xid_read(struct xid *xid, struct xid_count **ret_counts, size_t *ret_n)
{
        struct xid_count *counts;
        int r = 0;

        if (!xid->has_thread) {
                r = -pthread_create(&xid->thread, NULL, run_xid, xid);
                xid->has_thread = r == 0;
        }
        if (r < 0)
                return r;
        counts = calloc(COUNTS_MAX, sizeof(*counts));
        if (!counts)
                return -ENOMEM;
        (void)pthread_mutex_lock(&xid->lock);
        memcpy(counts, xid->counts, xid->n * sizeof(*counts));
        *ret_n = xid->n;
        (void)pthread_mutex_unlock(&xid->lock);
        *ret_counts = counts;
        return 0;
}
