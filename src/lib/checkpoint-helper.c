/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/checkpoint-helper.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <openvgpu/checkpoint.h>

#include "base/cleanup.h"
#include "base/packet.h"
#include "base/paths.h"

/* Where the helper finds its connection. */
#define CONNECTION 3

/* From the folder of the library, for $libdir being lib, lib64 or lib/TRIPLET. */
static const char *const from_library[] = { "openvgpu", "../openvgpu", "../lib/openvgpu" };

static bool has_helper(char *path, const char *directory)
{
        return paths_join(path, directory, PATHS_CHECKPOINTER) == 0 && access(path, X_OK) == 0;
}

static bool find_beside_library(char *path)
{
        char directory[PATHS_MAX], candidate[PATHS_MAX];
        Dl_info info;
        char *slash;

        if (!dladdr((void *)(uintptr_t)checkpoint_helper_start, &info) || !info.dli_fname ||
            strlen(info.dli_fname) >= sizeof(directory))
                return false;
        strcpy(directory, info.dli_fname);
        slash = strrchr(directory, '/');
        if (!slash)
                return false;
        *slash = '\0';
        for (size_t i = 0; i < sizeof(from_library) / sizeof(from_library[0]); i++)
                if (paths_join(candidate, directory, from_library[i]) == 0 &&
                    has_helper(path, candidate))
                        return true;
        return false;
}

/* $OPENVGPU_LIB or beside the program, as for all our helpers; else beside the library. */
static int find_helper(char *path)
{
        char directory[PATHS_MAX];

        if (paths_private(directory) == 0 && has_helper(path, directory))
                return 0;
        return find_beside_library(path) ? 0 : -ENOENT;
}

/* In a guest, the gate is preloaded; the helper is none. */
static bool is_for_guests(const char *assignment)
{
        return strncmp(assignment, "LD_PRELOAD=", 11) == 0 && strstr(assignment, PATHS_GATE);
}

static char **environment_new(void)
{
        size_t n = 0, n_kept = 0;
        char **environment;

        while (environ && environ[n])
                n++;
        environment = calloc(n + 1, sizeof(*environment));
        for (size_t i = 0; environment && i < n; i++)
                if (!is_for_guests(environ[i]))
                        environment[n_kept++] = environ[i];
        return environment;
}

/* Between clone and exec in a process that may have had threads: system calls only. */
static void become_helper(int socket, int null, const char *path, char **environment)
{
        char name[] = PATHS_CHECKPOINTER;
        char *const arguments[] = { name, NULL };
        sigset_t none;

        for (int fd = 0; fd < CONNECTION; fd++)
                if (dup2(null, fd) < 0)
                        _exit(127);
        if (dup2(socket, CONNECTION) < 0 || close_range(CONNECTION + 1, UINT32_MAX, 0) < 0)
                _exit(127);
        (void)setsid();
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(path, arguments, environment);
        _exit(127);
}

/* A clone without a signal at its end; the pidfd lets us wait for it all the same. */
static int spawn(struct checkpoint_helper *helper, int socket, const char *path)
{
        CLEANUP(freep) char **environment = environment_new();
        CLEANUP(fd_closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        CLEANUP(fd_closep) int high = fcntl(socket, F_DUPFD_CLOEXEC, CONNECTION + 1);
        CLEANUP(fd_closep)
        int null_high = null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, CONNECTION + 1);
        int pidfd = -1;
        long pid;

        if (!environment)
                return -ENOMEM;
        if (high < 0 || null_high < 0)
                return -errno;
        pid = syscall(SYS_clone, CLONE_PIDFD, NULL, &pidfd, NULL, NULL);
        if (pid < 0)
                return -errno;
        if (pid == 0)
                become_helper(high, null_high, path, environment);
        helper->pidfd = pidfd;
        helper->is_holding = false;
        return 0;
}

int checkpoint_helper_start(struct checkpoint_helper *helper)
{
        char path[PATHS_MAX];
        int pair[2], r;

        if (helper->socket >= 0)
                return 0;
        r = find_helper(path);
        if (r < 0)
                return r;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        r = spawn(helper, pair[1], path);
        fd_close(pair[1]);
        if (r < 0) {
                fd_close(pair[0]);
                return r;
        }
        helper->socket = pair[0];
        return 0;
}

void checkpoint_helper_stop(struct checkpoint_helper *helper)
{
        siginfo_t info;

        if (helper->socket < 0)
                return;
        helper->socket = fd_close(helper->socket);
        while (!helper->is_holding &&
               waitid(P_PIDFD, (id_t)helper->pidfd, &info, WEXITED | __WALL) < 0 && errno == EINTR)
                ;
        helper->pidfd = fd_close(helper->pidfd);
}

static void take_note(struct checkpoint_helper_notes *notes,
                      const struct checkpoint_wire_note *note)
{
        size_t i = 0;

        if (note->call[0]) {
                memcpy(notes->call, note->call, sizeof(notes->call));
                notes->pid = note->pid;
        }
        while (i < notes->n && notes->process[i].pid != note->pid)
                i++;
        if (i == CHECKPOINT_PROCESSES_MAX)
                return;
        if (i == notes->n) {
                notes->process[notes->n].pid = note->pid;
                notes->process[notes->n].start = note->start;
                notes->process[notes->n++].state_before = CHECKPOINT_NO_STATE;
        }
        if (notes->process[i].state_before == CHECKPOINT_NO_STATE)
                notes->process[i].state_before = note->state_before;
        memcpy(notes->process[i].call, note->call, sizeof(note->call));
        notes->process[i].most_ms = note->most_ms;
}

/* Calls on several processes may be under way; -1: it is not known how long one takes, or none is. */
static int find_most_ms(const struct checkpoint_helper_notes *notes)
{
        uint64_t most_ms = 0;

        for (size_t i = 0; i < notes->n; i++) {
                if (!notes->process[i].call[0])
                        continue;
                if (notes->process[i].most_ms == 0)
                        return -1;
                if (notes->process[i].most_ms > most_ms)
                        most_ms = notes->process[i].most_ms;
        }
        return most_ms == 0 ? -1 : most_ms < INT_MAX ? (int)most_ms : INT_MAX;
}

/* The first of those that have not returned. */
static void note_silent(struct checkpoint_helper_notes *notes)
{
        size_t i = 0;

        while (i < notes->n && !notes->process[i].call[0])
                i++;
        if (i == notes->n)
                return;
        memcpy(notes->call, notes->process[i].call, sizeof(notes->call));
        notes->pid = notes->process[i].pid;
}

/* Its next packet, or that a call of which it told does not return. */
static int wait_for_packet(const struct checkpoint_helper *helper,
                           const struct checkpoint_helper_notes *notes)
{
        struct pollfd fd = { .fd = helper->socket, .events = POLLIN };
        int r;

        do
                r = poll(&fd, 1, find_most_ms(notes));
        while (r < 0 && errno == EINTR);
        return r == 0 ? -ETIMEDOUT : 0;
}

static int receive(struct checkpoint_helper *helper, struct checkpoint_wire_answer *ret_answer,
                   struct checkpoint_helper_notes *notes)
{
        union {
                char bytes[PACKET_SIZE_MAX];
                struct checkpoint_header header;
                struct checkpoint_wire_note note;
                struct checkpoint_wire_answer answer;
        } packet;
        int fds[PACKET_FDS_MAX], r;
        size_t size, n_fds;

        for (;;) {
                r = wait_for_packet(helper, notes);
                if (r < 0)
                        return r;
                r = packet_receive(helper->socket, packet.bytes, &size, fds, &n_fds);
                if (r < 0)
                        return -ECONNRESET;
                packet_close_fds(fds, n_fds);
                if (size == sizeof(packet.note) && packet.header.message == CHECKPOINT_NOTE)
                        take_note(notes, &packet.note);
                else if (size == sizeof(packet.answer) &&
                         packet.header.message == CHECKPOINT_ANSWER)
                        break;
                else
                        return -ECONNRESET;
        }
        *ret_answer = packet.answer;
        helper->is_holding = packet.answer.is_holding;
        return 0;
}

int checkpoint_helper_ask(struct checkpoint_helper *helper,
                          const struct checkpoint_wire_request *request, const int *pidfds,
                          struct checkpoint_wire_answer *ret_answer,
                          struct checkpoint_helper_notes *ret_notes)
{
        int r;

        *ret_notes = (struct checkpoint_helper_notes){ 0 };
        r = packet_send(helper->socket, request, sizeof(*request), pidfds, request->n_processes);
        if (r == 0)
                r = receive(helper, ret_answer, ret_notes);
        if (r == 0)
                return 0;
        if (r == -ETIMEDOUT)
                note_silent(ret_notes);
        helper->is_holding =
                false; /* it is dead, or is now: what the driver does goes on without it */
        (void)syscall(SYS_pidfd_send_signal, helper->pidfd, SIGKILL, NULL, 0);
        checkpoint_helper_stop(helper);
        return r == -ETIMEDOUT ? -ETIMEDOUT : -ECONNRESET;
}
