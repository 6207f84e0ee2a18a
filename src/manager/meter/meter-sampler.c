/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/meter/meter-sampler.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "daemon/child.h"
#include "daemon/log.h"
#include "manager/meter/meter-internal.h"
#include "manager/meter/meter-outside.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/session.h"
#include "wire/sampler.h"

/* A sample is shown until the next one should have come. */
#define TOLD_NS 2500000000ull

#define RETRY_NS 10000000000ull

struct meter_sampler {
        struct manager *manager;
        sd_event_source *source; /* of the socket to it; NULL: it does not run */
        struct child *child;
        uint64_t retry_ns; /* not before */
};

static void hang_up(struct meter_sampler *sampler)
{
        session_drop_all(sampler->manager);
        sampler->source = sd_event_source_disable_unref(sampler->source); /* closes the socket */
        if (sampler->child)
                child_forget(sampler->child);
        sampler->child = NULL;
}

static struct guest *find_guest(struct manager *manager, const struct device *device, pid_t pid)
{
        struct instance *instance;
        struct guest *guest;

        list_for_each(instance, &manager->instances, link) {
                if (!instance_is_on(instance, device))
                        continue;
                list_for_each(guest, &instance->guests, link)
                        if (guest->pid == pid && guest->meter.record.serial)
                                return guest;
        }
        return NULL;
}

static size_t find_part(const struct instance *instance, const struct device *device)
{
        size_t i = 0;

        while (i + 1 < instance->n_parts && instance->part[i].device != device)
                i++;
        return i;
}

/* What a process did before it joined, or more than it can have done, is not counted. */
static void add_sample(struct guest *guest, size_t part, const struct sampler_packet *packet)
{
        struct meter_guest_part *mine = &guest->meter.part[part];
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);
        uint64_t life_ns = guest->meter.record.life_ns + (now_ns - guest->meter.since_ns);
        uint64_t period_ns = packet->use.period_us * 1000;

        if (period_ns > life_ns)
                period_ns = life_ns;
        for (int engine = 0; engine < METER_ENGINES; engine++) {
                uint32_t percent = packet->use.percent[engine];

                mine->told_percent[engine] = percent < 100 ? percent : 100;
                meter_add_use(guest, part, (enum meter_engine)engine,
                              rate_estimate(percent, period_ns));
        }
        mine->told_until_ns = now_ns + TOLD_NS;
}

/*
 * What the process has on the device and the gate has not charged: its contexts, with all that the driver
 * keeps for them. While an operation takes its memory off, that cannot be told; nor while it has memory that another
 * process has made, of which NVIDIA's library says nothing (measured on driver 580.159.03).
 *
 * Both are read one after the other, and a process that has just begun loads its code for seconds. So one reading
 * may be far too small; two that are the same are not.
 */
static void note_memory(struct guest *guest, size_t part, uint64_t bytes)
{
        const struct instance *instance = guest->instance;
        const struct device *device = instance->part[part].device;
        struct meter_guest_part *mine = &guest->meter.part[part];
        uint64_t charged, context;
        struct page_use use;

        if (instance->state != STATE_RUNNING || guest->has_gifts)
                return;
        guest_get_use_of(guest, &instance->part[part], &use);
        charged = use.movable + use.fixed;
        if (bytes > device->memory_total)
                bytes = device->memory_total; /* who is promised more is never moved */
        context = bytes > charged ? bytes - charged : 0;
        mine->is_steady = mine->context_bytes == context && mine->charged_bytes == charged;
        mine->context_bytes = context;
        mine->charged_bytes = charged;
}

static void take_error(struct device *device, int32_t error)
{
        device->meter.has_samples = false;
        log_event(
                LOG_LEVEL_WARNING,
                "NVIDIA's library does not report the use of a device by process: GPU time there is known only where turns are enforced",
                "device=%u nvml_error=%d", device->index, error);
}

/* Errors: -EPIPE, it talks nonsense. */
static int take(struct device *device, const struct sampler_packet *packet)
{
        struct guest *guest = find_guest(device->manager, device, (pid_t)packet->pid);
        size_t part = guest ? find_part(guest->instance, device) : 0;

        switch (packet->message) {
        case SAMPLER_USE:
                device->meter.has_samples = true;
                device->meter.is_lost = false;
                if (guest)
                        add_sample(guest, part, packet);
                return 0;
        case SAMPLER_ERROR:
                take_error(device, packet->error);
                return 0;
        case SAMPLER_LOST:
                device->meter.has_samples = false;
                device->meter.is_lost = true;
                log_event(LOG_LEVEL_ERROR, "a device fell off the bus; its programs are lost",
                          "device=%u uuid=%s", device->index, device->uuid);
                return 0;
        case SAMPLER_MEMORY:
                if (guest)
                        note_memory(guest, part, packet->memory);
                else if (device->manager->meter)
                        meter_outside_see(device->manager->meter->outside, (pid_t)packet->pid);
                return 0;
        case SAMPLER_ENCODER:
        case SAMPLER_CAPTURE:
                if (guest)
                        session_tell(guest, device, packet->message == SAMPLER_CAPTURE,
                                     &packet->session);
                return 0;
        case SAMPLER_THAT_IS_ALL:
                session_settle(device);
                return 0;
        }
        return -EPIPE;
}

static int receive(struct meter_sampler *sampler, int fd)
{
        struct manager *manager = sampler->manager;
        struct sampler_packet packet;
        ssize_t got = recv(fd, &packet, sizeof(packet), MSG_DONTWAIT);

        if (got < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (got != (ssize_t)sizeof(packet) || packet.magic != SAMPLER_WIRE_MAGIC ||
            packet.version != SAMPLER_WIRE_VERSION || packet.device >= manager->n_devices)
                return -EPIPE;
        return take(&manager->device[packet.device], &packet) < 0 ? -EPIPE : 1;
}

static int on_packet(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct meter_sampler *sampler = userdata;
        int r;

        (void)source, (void)events;
        do
                r = receive(sampler, fd);
        while (r > 0);
        if (r == 0)
                return 0;
        log_event(LOG_LEVEL_WARNING, "the sampler has ended; it is started again after a while",
                  "seconds=%d", (int)(RETRY_NS / 1000000000u));
        hang_up(sampler);
        sampler->retry_ns = clock_now(CLOCK_MONOTONIC) + RETRY_NS;
        return 0;
}

static void on_ended(void *userdata)
{
        struct meter_sampler *sampler = userdata;

        sampler->child = NULL; /* its socket says so too */
}

static int spawn(struct meter_sampler *sampler, int fd)
{
        const struct manager *manager = sampler->manager;
        const char *arguments[STATE_DEVICES_MAX + 3];
        char program[PATHS_MAX];
        size_t n = 0;
        pid_t pid;
        int r = paths_join(program, manager->options->private_directory, PATHS_SAMPLER);

        if (r < 0)
                return r;
        arguments[n++] = program;
        arguments[n++] = manager->real_nvml;
        for (size_t i = 0; i < manager->n_devices; i++)
                arguments[n++] = manager->device[i].uuid;
        arguments[n] = NULL;
        r = child_spawn(&pid, arguments, NULL, fd, SAMPLER_FD);
        return r < 0 ? r : child_watch(&sampler->child, manager->event, pid, on_ended, sampler);
}

static int start(struct meter_sampler *sampler)
{
        CLEANUP(fd_closep) int ours = -1;
        CLEANUP(fd_closep) int its = -1;
        int pair[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        its = pair[1];
        r = spawn(sampler, its);
        if (r < 0)
                return r;
        r = sd_event_add_io(sampler->manager->event, &sampler->source, ours, EPOLLIN, on_packet,
                            sampler);
        if (r < 0)
                return r;
        (void)sd_event_source_set_io_fd_own(sampler->source, true);
        (void)TAKE_FD(ours);
        return 0;
}

void meter_sampler_stop(struct meter_sampler *sampler)
{
        if (sampler->source)
                hang_up(sampler);
}

void meter_sampler_tick(struct meter_sampler *sampler)
{
        int r;

        if (sampler->source || clock_now(CLOCK_MONOTONIC) < sampler->retry_ns)
                return;
        r = start(sampler);
        if (r < 0) {
                log_event(LOG_LEVEL_ERROR, "the sampler cannot be started", "error=\"%s\"",
                          strerror(-r));
                sampler->retry_ns = clock_now(CLOCK_MONOTONIC) + RETRY_NS;
        }
}

int meter_sampler_new(struct meter_sampler **ret_sampler, struct manager *manager)
{
        struct meter_sampler *sampler = calloc(1, sizeof(*sampler));

        if (!sampler)
                return -ENOMEM;
        sampler->manager = manager;
        *ret_sampler = sampler;
        return 0;
}

struct meter_sampler *meter_sampler_free(struct meter_sampler *sampler)
{
        if (!sampler)
                return NULL;
        hang_up(sampler);
        free(sampler);
        return NULL;
}
