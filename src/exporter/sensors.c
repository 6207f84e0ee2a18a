/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/sensors.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* More devices than a host has; and a UUID is shorter. */
#define DEVICES_MAX 64
#define UUID_MAX    64

struct sensors {
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool is_asked, is_answered, must_end;
        char uuids[DEVICES_MAX][UUID_MAX];
        size_t n;
        struct vgpu_device_sensors *readings[DEVICES_MAX];
        struct vgpu_host *host; /* the thread's own */
};

/* In the thread, without the lock: who asked changes nothing until there is an answer. */
static void ask(struct sensors *sensors)
{
        uint32_t device;

        for (size_t i = 0; i < sensors->n; i++) {
                sensors->readings[i] = NULL;
                if (vgpu_device_find(sensors->host, sensors->uuids[i], &device) < 0 ||
                    vgpu_device_lookup_sensors(sensors->host, device, &sensors->readings[i]) < 0)
                        sensors->readings[i] = NULL;
        }
}

static void *run_sensors(void *userdata)
{
        struct sensors *sensors = userdata;

        (void)pthread_mutex_lock(&sensors->lock);
        while (!sensors->must_end) {
                if (!sensors->is_asked || sensors->is_answered) {
                        (void)pthread_cond_wait(&sensors->changed, &sensors->lock);
                        continue;
                }
                (void)pthread_mutex_unlock(&sensors->lock);
                ask(sensors);
                (void)pthread_mutex_lock(&sensors->lock);
                sensors->is_answered = true;
                (void)pthread_cond_broadcast(&sensors->changed);
        }
        (void)pthread_mutex_unlock(&sensors->lock);
        return NULL;
}

int sensors_new(struct sensors **ret_sensors)
{
        struct sensors *sensors = calloc(1, sizeof(*sensors));
        pthread_condattr_t attributes;
        int r;

        if (!sensors)
                return -ENOMEM;
        r = vgpu_host_new(&sensors->host, NULL);
        if (r < 0) {
                free(sensors);
                return r;
        }
        (void)pthread_condattr_init(&attributes);
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        (void)pthread_cond_init(&sensors->changed, &attributes);
        (void)pthread_condattr_destroy(&attributes);
        (void)pthread_mutex_init(&sensors->lock, NULL);
        r = -pthread_create(&sensors->thread, NULL, run_sensors, sensors);
        if (r < 0) {
                (void)vgpu_host_free(sensors->host);
                free(sensors);
                return r;
        }
        *ret_sensors = sensors;
        return 0;
}

/* With the lock held: an answer that nobody fetched. */
static void drop_answer(struct sensors *sensors)
{
        for (size_t i = 0; i < sensors->n && sensors->is_answered; i++)
                sensors->readings[i] = vgpu_free(sensors->readings[i]);
        sensors->is_asked = sensors->is_answered = false;
}

struct sensors *sensors_free(struct sensors *sensors)
{
        bool is_busy;

        if (!sensors)
                return NULL;
        (void)pthread_mutex_lock(&sensors->lock);
        sensors->must_end = true;
        is_busy = sensors->is_asked && !sensors->is_answered;
        (void)pthread_cond_broadcast(&sensors->changed);
        (void)pthread_mutex_unlock(&sensors->lock);
        if (is_busy) /* perhaps for ever: what it uses stays until the process has ended */
                return NULL;
        (void)pthread_join(sensors->thread, NULL);
        drop_answer(sensors);
        (void)pthread_cond_destroy(&sensors->changed);
        (void)pthread_mutex_destroy(&sensors->lock);
        (void)vgpu_host_free(sensors->host);
        free(sensors);
        return NULL;
}

/* With the lock held. */
static void put_question(struct sensors *sensors, const char *const *uuids, size_t n)
{
        sensors->n = n;
        for (size_t i = 0; i < n; i++) {
                size_t length = strnlen(uuids[i], UUID_MAX - 1);

                memcpy(sensors->uuids[i], uuids[i], length);
                sensors->uuids[i][length] = '\0';
        }
        sensors->is_asked = true;
        (void)pthread_cond_broadcast(&sensors->changed);
}

int sensors_read(struct sensors *sensors, const char *const *uuids, size_t n, int timeout_ms,
                 struct vgpu_device_sensors **readings)
{
        struct timespec deadline = clock_in((uint32_t)timeout_ms);
        size_t n_asked = n < DEVICES_MAX ? n : DEVICES_MAX;
        int r = 0;

        memset(readings, 0, n * sizeof(*readings));
        (void)pthread_mutex_lock(&sensors->lock);
        if (sensors->is_answered)
                drop_answer(sensors); /* it came too late for who asked */
        if (sensors->is_asked)
                r = -ETIMEDOUT;
        else
                put_question(sensors, uuids, n_asked);
        while (r == 0 && !sensors->is_answered)
                r = -pthread_cond_timedwait(&sensors->changed, &sensors->lock, &deadline);
        if (r == 0 || sensors->is_answered) {
                memcpy(readings, sensors->readings, n_asked * sizeof(*readings));
                sensors->is_asked = sensors->is_answered = false;
                r = 0;
        }
        (void)pthread_mutex_unlock(&sensors->lock);
        return r;
}
