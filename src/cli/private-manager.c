/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/private-manager.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* What vgpud gets to end by itself; far more than it needs. */
#define END_MS 10000

/* The socket of a manager is at most so far below the directory. */
#define SOCKET_NAME_MAX 24

/* Files. */

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
        (void)status;
        (void)kind;
        (void)where;
        (void)remove(path);
        return 0;
}

static void remove_tree(const char *directory)
{
        (void)nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int make_directory(struct private_manager *manager)
{
        const char *temporary = getenv("TMPDIR");
        struct sockaddr_un address;
        int r;

        /* A socket has a short path. */
        if (!temporary || temporary[0] != '/' ||
            strlen(temporary) + sizeof("/vgpu-sim-XXXXXX/run") + SOCKET_NAME_MAX >
                    sizeof(address.sun_path))
                temporary = "/tmp";
        r = paths_join(manager->directory, temporary, "vgpu-sim-XXXXXX");
        if (r < 0)
                return r;
        if (!mkdtemp(manager->directory)) {
                r = -errno;
                manager->directory[0] = '\0';
                return r;
        }
        r = paths_join(manager->run_directory, manager->directory, "run");
        return r == 0 ? paths_join(manager->log_path, manager->directory, "log") : r;
}

/* vgpud is beside us. */
static int find_program(char *path)
{
        char self[PATHS_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

        if (n < 0)
                return -errno;
        self[n] = '\0';
        *strrchr(self, '/') = '\0';
        return paths_join(path, self, "vgpud");
}

/* In the process that becomes vgpud. */

static void open_as(const char *path, int flags, int as)
{
        int fd = open(path, flags | O_CLOEXEC, 0600);

        if (fd < 0 || dup2(fd, as) < 0)
                _exit(127);
}

static void become_manager(const struct private_manager *manager, const char *scenario,
                           const char *notices, pid_t supervisor)
{
        char program[PATHS_MAX], state[PATHS_MAX];
        sigset_t none;

        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != supervisor)
                _exit(127);
        sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        open_as("/dev/null", O_RDONLY, STDIN_FILENO);
        open_as(manager->log_path, O_WRONLY | O_CREAT | O_APPEND, STDOUT_FILENO);
        open_as(manager->log_path, O_WRONLY | O_CREAT | O_APPEND, STDERR_FILENO);
        if (find_program(program) < 0 || paths_join(state, manager->directory, "state") < 0 ||
            setenv("NOTIFY_SOCKET", notices, 1) < 0)
                _exit(127);
        execl(program, program, "--scenario", scenario, "--run-dir", manager->run_directory,
              "--state-dir", state, "--pool-limit", "64M", "--slab-size", "2M", (char *)NULL);
        fprintf(stderr, "vgpud: cannot execute %s: %s\n", program, strerrordesc_np(errno));
        _exit(127);
}

/* The supervisor. */

static int open_notices(const struct private_manager *manager, struct sockaddr_un *ret_address)
{
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        *ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
        if (snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "%s/notify",
                     manager->directory) >= (int)sizeof(ret_address->sun_path) ||
            fd < 0 || bind(fd, (const struct sockaddr *)ret_address, sizeof(*ret_address)) < 0) {
                fd_close(fd);
                return -1;
        }
        return fd;
}

static bool is_ready(int notices)
{
        char text[512];
        ssize_t n = recv(notices, text, sizeof(text) - 1, MSG_DONTWAIT);

        text[n < 0 ? 0 : n] = '\0';
        return strstr(text, "READY=1");
}

/* Until vgpud is ready, has ended, or nobody wants it any more. */
static bool wait_ready(int notices, int pidfd, int lifeline)
{
        struct pollfd poll_fds[] = { { .fd = notices, .events = POLLIN },
                                     { .fd = pidfd, .events = POLLIN },
                                     { .fd = lifeline, .events = POLLIN } };

        for (;;) {
                if (poll(poll_fds, 3, -1) < 0 && errno != EINTR)
                        return false;
                if (poll_fds[0].revents && is_ready(notices))
                        return true;
                if (poll_fds[1].revents || poll_fds[2].revents)
                        return false;
        }
}

static void wait_end(int fd)
{
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

        while (poll(&poll_fd, 1, -1) < 0 && errno == EINTR)
                ;
}

static void end_manager(pid_t pid, int pidfd)
{
        struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

        (void)kill(pid, SIGTERM);
        if (poll(&poll_fd, 1, END_MS) <= 0)
                (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
}

/* What ends our caller must not end us before we have cleaned up. */
static const int ignored[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE };

static void leave_caller(void)
{
        sigset_t none;

        (void)setsid();
        for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
                (void)signal(ignored[i], SIG_IGN);
        sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                open_as("/dev/null", O_RDWR, fd);
}

static void restore_signals(void)
{
        for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
                (void)signal(ignored[i], SIG_DFL);
}

static void be_supervisor(const struct private_manager *manager, const char *scenario, int lifeline,
                          int ready)
{
        struct sockaddr_un address;
        pid_t self = getpid(), pid;
        int notices, pidfd;

        leave_caller();
        notices = open_notices(manager, &address);
        pid = notices < 0 ? -1 : fork();
        if (pid == 0) {
                restore_signals();
                become_manager(manager, scenario, address.sun_path, self);
        }
        if (pid > 0) {
                pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
                if (pidfd >= 0 && wait_ready(notices, pidfd, lifeline))
                        (void)!write(ready, "r", 1);
                fd_close(ready);
                wait_end(lifeline); /* our starter has ended it, or its own life */
                end_manager(pid, pidfd);
        }
        remove_tree(manager->directory);
        _exit(0);
}

/* The caller's side. */

/* What vgpud has said to people, without what it logs. */
static void read_problem(const struct private_manager *manager, char *problem)
{
        static const char prefix[] = "vgpud: ";
        FILE *file = fopen(manager->log_path, "re");
        char line[PRIVATE_MANAGER_PROBLEM_MAX];

        snprintf(problem, PRIVATE_MANAGER_PROBLEM_MAX, "vgpud has ended without a message");
        if (!file)
                return;
        while (fgets(line, sizeof(line), file))
                if (strncmp(line, prefix, strlen(prefix)) == 0) {
                        line[strcspn(line, "\n")] = '\0';
                        snprintf(problem, PRIVATE_MANAGER_PROBLEM_MAX, "%s", line + strlen(prefix));
                        break;
                }
        fclose(file);
}

static int start(struct private_manager *manager, const char *scenario, char *problem)
{
        int lifeline[2] = { -1, -1 }, ready[2] = { -1, -1 }, r = 0;
        char byte;

        if (pipe2(lifeline, O_CLOEXEC) < 0 || pipe2(ready, O_CLOEXEC) < 0)
                r = -errno;
        if (r == 0) {
                manager->supervisor = fork();
                r = manager->supervisor < 0 ? -errno : 0;
        }
        if (r == 0 && manager->supervisor == 0) {
                fd_close(lifeline[1]);
                fd_close(ready[0]);
                be_supervisor(manager, scenario, lifeline[0], ready[1]);
        }
        manager->lifeline = lifeline[1];
        fd_close(lifeline[0]);
        fd_close(ready[1]);
        if (r == 0 && read(ready[0], &byte, 1) != 1) {
                read_problem(manager, problem);
                r = -EINVAL;
        }
        fd_close(ready[0]);
        return r;
}

int private_manager_new(struct private_manager **ret_manager, const char *scenario, char *problem)
{
        CLEANUP(private_manager_freep)
        struct private_manager *manager = calloc(1, sizeof(*manager));
        int r;

        problem[0] = '\0';
        if (!manager)
                return -ENOMEM;
        manager->lifeline = -1;
        r = make_directory(manager);
        if (r == 0)
                r = start(manager, scenario, problem);
        if (r == 0)
                *ret_manager = TAKE(manager);
        return r;
}

struct private_manager *private_manager_free(struct private_manager *manager)
{
        if (!manager)
                return NULL;
        fd_close(manager->lifeline);
        if (manager->supervisor > 0)
                while (waitpid(manager->supervisor, NULL, 0) < 0 && errno == EINTR)
                        ;
        if (manager->directory[0])
                remove_tree(manager->directory);
        free(manager);
        return NULL;
}
