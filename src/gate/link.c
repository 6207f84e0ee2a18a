/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/packet.h"
#include "base/paths.h"
#include "base/uuid-bytes.h"
#include "gate/channel.h"
#include "gate/entry.h"
#include "gate/leave.h"
#include "gate/log.h"
#include "gate/quota.h"
#include "gate/wait.h"
#include "wire/door.h"

/*
 * A manager that is there answers at once, unless the vGPU is suspended: then it answers when that is
 * resumed, and we wait like any call of a suspended guest. After so long the log says so.
 */
#define HINT_AFTER_MS 1000

/* A manager that goes while we wait, or has just gone, is looked for again: it may be starting anew. */
#define RESTART_NS       30000000000
#define RESTART_FIRST_NS 50000000 /* between two looks; doubled up to the last */
#define RESTART_LAST_NS  400000000

/* As the environment said when it was first asked; of a new one the UUID, once it was made. */
static char link_vgpu[GATE_VGPU_NAME_MAX];

bool link_is_wanted(void)
{
        const char *vgpu = getenv("OPENVGPU_VGPU");

        if (!link_vgpu[0] && vgpu)
                strncpy(link_vgpu, vgpu, sizeof(link_vgpu) - 1);
        return link_vgpu[0] != '\0';
}

/* Field 22 of /proc/self/stat, counted behind the name, which may contain anything. */
static uint64_t start_time(void)
{
        CLEANUP(fd_closep) int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
        char text[1024];
        ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
        const char *at;

        if (n <= 0)
                return 0;
        text[n] = '\0';
        at = strrchr(text, ')');
        for (int field = 2; at && field < 22; field++)
                at = strchr(at + 1, ' ');
        return at ? strtoull(at + 1, NULL, 10) : 0;
}

uint64_t link_get_start_time(void)
{
        static _Atomic uint64_t known;
        uint64_t time = atomic_load(&known);

        if (time == 0) {
                time = start_time();
                atomic_store(&known, time);
        }
        return time;
}

bool link_get_vgpu(uint8_t ret_uuid[16])
{
        return uuid_to_bytes(link_vgpu, ret_uuid);
}

static int driver_version(void)
{
        static int version; /* asked once: in a suspended process the driver would not answer */

        if (!version)
                DRIVER(cuDriverGetVersion)(&version);
        return version;
}

int link_send(int socket, enum gate_message type, void *message, uint32_t size, const int *fds,
              uint32_t n_fds)
{
        struct gate_header *header = message;

        header->magic = GATE_WIRE_MAGIC;
        header->version = GATE_WIRE_VERSION;
        header->message = (uint16_t)type;
        return packet_send(socket, message, size, fds, n_fds);
}

static int send_join(int socket, const struct link_report *report)
{
        struct gate_join join = { .state = report->state,
                                  .driver_version = (uint32_t)driver_version(),
                                  .start_time = link_get_start_time() };

        report->describe(&join);
        memcpy(join.vgpu, link_vgpu, sizeof(join.vgpu));
        return link_send(socket, GATE_JOIN, &join, sizeof(join), NULL, 0);
}

union answer {
        struct gate_header header;
        struct gate_welcome welcome;
        struct gate_refused refused;
        char bytes[PACKET_SIZE_MAX];
};

struct waiting {
        struct leave leave;
        int socket;
};

static void hang_up(struct leave *leave)
{
        close(((struct waiting *)leave)->socket);
}

/* A handler that leaves the wait leaves nothing open. */
static int wait_for_answer(int socket, int timeout_ms)
{
        struct waiting waiting = { .socket = socket };
        int r;

        leave_begin(&waiting.leave, hang_up);
        r = wait_for_message(socket, timeout_ms);
        leave_end(&waiting.leave);
        return r;
}

static int receive_answer(int socket, union answer *answer, size_t *ret_size, int *fds,
                          size_t *ret_n_fds)
{
        int r = wait_for_answer(socket, HINT_AFTER_MS);

        if (r == -ETIMEDOUT) {
                log_write(
                        "waiting for the vGPU; if it is suspended, 'vgpu resume' continues this process; otherwise vgpud is stopped");
                r = wait_for_answer(socket, -1);
        }
        return r < 0 ? r : packet_receive(socket, answer, ret_size, fds, ret_n_fds);
}

static int refused(const union answer *answer, size_t size, char *ret_text)
{
        if (size != sizeof(answer->refused))
                return -EPROTO;
        snprintf(ret_text, GATE_TEXT_MAX, "%.*s", GATE_TEXT_MAX - 1, answer->refused.text);
        return -EACCES;
}

static bool is_welcome(const struct gate_welcome *welcome, size_t size, size_t n_fds)
{
        uint32_t n_seen;

        if (size < gate_welcome_size(1) || size > sizeof(*welcome) || welcome->n_devices < 1 ||
            welcome->n_devices > GATE_DEVICES_MAX || welcome->n_devices != n_fds)
                return false;
        n_seen = gate_welcome_count(size);
        if (size != gate_welcome_size(n_seen) || n_seen < welcome->n_devices)
                return false;
        for (uint32_t i = 0; i < n_seen; i++)
                if (!memchr(welcome->device_uuid[i], 0, sizeof(welcome->device_uuid[i])))
                        return false;
        return true;
}

/* What the answer says; a descriptor that is used is taken out of @fds. */
static int understand(const union answer *answer, size_t size, int *fds, size_t n_fds,
                      char *ret_text)
{
        const struct gate_header *header = &answer->header;
        int r;

        snprintf(ret_text, GATE_TEXT_MAX, "the manager is of another version (%s here)",
                 OPENVGPU_VERSION);
        if (size < sizeof(*header) || header->magic != GATE_WIRE_MAGIC)
                return -EPROTO;
        if (header->message == GATE_REFUSED)
                return refused(answer, size, ret_text);
        if (header->version != GATE_WIRE_VERSION || header->message != GATE_WELCOME ||
            !is_welcome(&answer->welcome, size, n_fds))
                return -EPROTO;
        snprintf(ret_text, GATE_TEXT_MAX, "the instance page is of another version");
        r = quota_attach(fds, answer->welcome.n_devices, answer->welcome.slot);
        if (r == 0)
                channel_publish();
        return r;
}

/* Managers come and go; where there never was one, none will be waited for. */
static bool is_home_of_managers(void)
{
        char run[PATHS_MAX];

        return paths_run(run) == 0 && access(run, F_OK) == 0;
}

static bool is_hang_up(int error)
{
        return error == -ENODATA || error == -ECONNRESET || error == -EPIPE;
}

static bool may_come_back(int error)
{
        return is_hang_up(error) || error == -ECONNREFUSED || error == -EAGAIN ||
               (error == -ENOENT && is_home_of_managers());
}

/* The connection, with its answer. */
static int ask(const struct link_report *report, union answer *answer, size_t *ret_size, int *fds,
               size_t *ret_n_fds, char *ret_text)
{
        CLEANUP(fd_closep) int socket = -1;
        int r = strcmp(link_vgpu, GATE_VGPU_NEW) == 0
                        ? door_order(wait_for_answer, link_vgpu, ret_text)
                        : 0;

        if (r < 0)
                return r;
        socket = door_connect(ret_text);
        if (socket < 0)
                return socket;
        r = send_join(socket, report);
        if (r == 0)
                r = receive_answer(socket, answer, ret_size, fds, ret_n_fds);
        if (r == 0)
                return TAKE_FD(socket);
        snprintf(ret_text, GATE_TEXT_MAX, "the manager hung up (%s); the log of vgpud says why",
                 strerrordesc_np(-r));
        return r;
}

/* The same, also when the manager is gone or dies before it has answered, and another one starts. */
static int ask_surely(const struct link_report *report, union answer *answer, size_t *ret_size,
                      int *fds, size_t *ret_n_fds, char *ret_text)
{
        long interval_ns = RESTART_FIRST_NS;
        uint64_t end_ns = clock_now(CLOCK_MONOTONIC) + RESTART_NS;
        int socket = ask(report, answer, ret_size, fds, ret_n_fds, ret_text);
        bool has_been_there = may_come_back(socket);

        if (has_been_there)
                log_write("%s; waiting for another manager", ret_text);
        while (socket < 0 && has_been_there && clock_now(CLOCK_MONOTONIC) < end_ns) {
                if (!wait_nap(interval_ns))
                        return -ECANCELED;
                if (interval_ns < RESTART_LAST_NS)
                        interval_ns *= 2;
                if (socket == -EAGAIN) /* a manager is there, and has others before us */
                        end_ns = clock_now(CLOCK_MONOTONIC) + RESTART_NS;
                socket = ask(report, answer, ret_size, fds, ret_n_fds, ret_text);
        }
        return socket;
}

int link_join(const struct link_report *report, struct gate_welcome *ret_welcome, char *ret_text)
{
        CLEANUP(fd_closep) int socket = -1;
        int fds[PACKET_FDS_MAX];
        union answer answer;
        size_t size = 0, n_fds = 0;
        int r;

        socket = ask_surely(report, &answer, &size, fds, &n_fds, ret_text);
        if (socket < 0)
                return socket;
        r = understand(&answer, size, fds, n_fds, ret_text);
        packet_close_fds(fds, n_fds);
        if (r < 0)
                return r;
        memset(ret_welcome, 0, sizeof(*ret_welcome));
        memcpy(ret_welcome, &answer, size);
        return TAKE_FD(socket);
}
