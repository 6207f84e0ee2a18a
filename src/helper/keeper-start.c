/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/keeper-start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#define CHILD_LISTEN_FD 3

static int listening_socket_new(int *ret_socket, const struct sockaddr_un *address)
{
        CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return -errno;
        if (unlink(address->sun_path) < 0 && errno != ENOENT) /* of a keeper that was killed */
                return -errno;
        if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
                return -errno;

        *ret_socket = TAKE_FD(fd);
        return 0;
}

static int move_fd(int from, int to)
{
        if (from == to)
                return fcntl(from, F_SETFD, 0);
        return dup2(from, to);
}

/* In the child: only calls that are safe after fork(). Returns when a step fails, with errno. */
static void become_keeper(char *program, int listening, int null)
{
        char *const arguments[] = { program, NULL };
        sigset_t none;

        sigemptyset(&none);
        if (setsid() < 0 || chdir("/") < 0)
                return;
        if (listen(listening, SOMAXCONN) < 0) /* here, so that its peer credentials name us */
                return;
        for (int fd = 0; fd < 3; fd++)
                if (move_fd(null, fd) < 0)
                        return;
        if (move_fd(listening, CHILD_LISTEN_FD) < 0)
                return;
        pthread_sigmask(SIG_SETMASK, &none, NULL);
        execv(program, arguments);
}

/* Two forks: the keeper's parent ends, so that nobody has to reap the keeper. */
static pid_t fork_keeper(char *program, int listening, int null, int report)
{
        pid_t child = fork();

        if (child != 0)
                return child;

        child = fork();
        if (child == 0)
                become_keeper(program, listening, null);
        if (child <= 0 && write(report, &errno, sizeof(errno)) < 0)
                _exit(2);
        _exit(0);
}

/* Above the descriptors that the child sets up: those must not be overwritten before they move. */
static int above_standard(int *fd)
{
        int high = fcntl(*fd, F_DUPFD_CLOEXEC, CHILD_LISTEN_FD + 1);

        if (high < 0)
                return -errno;
        fd_close(*fd);
        *fd = high;
        return 0;
}

int keeper_start(char *program, const struct sockaddr_un *address)
{
        CLEANUP(fd_closep) int listening = -1;
        CLEANUP(fd_closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        CLEANUP(fd_closep) int report = -1;
        int ends[2], error = 0, r;
        ssize_t n;
        pid_t child;

        if (null < 0 || pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        report = ends[0];
        CLEANUP(fd_closep) int report_child = ends[1];

        r = listening_socket_new(&listening, address);
        if (r == 0)
                r = above_standard(&listening);
        if (r == 0)
                r = above_standard(&null);
        if (r == 0)
                r = above_standard(&report_child);
        if (r < 0)
                return r;

        child = fork_keeper(program, listening, null, report_child);
        if (child < 0)
                return -errno;
        report_child = fd_close(report_child);

        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
                ;
        do
                n = read(report, &error, sizeof(error)); /* ends when the keeper runs */
        while (n < 0 && errno == EINTR);
        if (n == sizeof(error)) {
                unlink(address->sun_path);
                return -error;
        }
        return 0;
}
