/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_TEST_GUEST_H
#define SIM_TEST_GUEST_H

/*
 * Guests of the simulated driver's tests: processes that a test forks before anybody has called
 * cuInit(). What a guest checks, it checks with must(); a guest that fails ends with status 1.
 * Test and guest tell each other how far they are over a socket, never by time.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/cuda.h"
#include "base/packet.h"
#include "base/size.h"
#include "base/test.h"
#include "sim/host.h"

#define must_equal(is, shall)                                                                      \
        do {                                                                                       \
                long long is_ = (long long)(is), shall_ = (long long)(shall);                      \
                if (is_ != shall_) {                                                               \
                        (void)fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, \
                                      #is, is_, shall_);                                           \
                        exit(1);                                                                   \
                }                                                                                  \
        } while (0)

#define must(call) must_equal(call, CUDA_SUCCESS)

struct guest {
        pid_t pid;
        int socket;
};

/* guest_tell() and guest_hear() pass a number, and a descriptor if there is one. */
static inline void guest_tell(int socket, uint64_t number, int fd)
{
        must_equal(packet_send(socket, &number, sizeof(number), &fd, fd >= 0), 0);
}

static inline uint64_t guest_hear(int socket, int *ret_fd)
{
        char buffer[PACKET_SIZE_MAX];
        int fds[PACKET_FDS_MAX];
        size_t size, n_fds;
        uint64_t number;

        must_equal(packet_receive(socket, buffer, &size, fds, &n_fds), 0);
        must_equal(size, sizeof(number));
        if (ret_fd)
                *ret_fd = n_fds ? fds[0] : -1;
        memcpy(&number, buffer, sizeof(number));
        return number;
}

static inline struct guest guest_start(void (*run)(int socket))
{
        struct guest guest;
        int pair[2];

        must_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        (void)fflush(NULL);
        guest.pid = fork();
        if (guest.pid == 0) {
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void)close(pair[0]);
                run(pair[1]);
                exit(0);
        }
        (void)close(pair[1]);
        guest.socket = pair[0];
        return guest;
}

/* guest_end() - wait for its end. Returns the exit status, or 128 + the signal that ended it. */
static inline int guest_end(struct guest *guest)
{
        int status;

        must_equal(waitpid(guest->pid, &status, 0), guest->pid);
        (void)close(guest->socket);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline int guest_kill(struct guest *guest)
{
        must_equal(kill(guest->pid, SIGKILL), 0);
        return guest_end(guest);
}

/* guest_run() - run a guest that needs no other. */
static inline void guest_run(void (*run)(int socket))
{
        struct guest guest = guest_start(run);

        assert_int_equal(guest_end(&guest), 0);
}

/* guest_init() - call cuInit(), and make the primary context of device @ordinal current. */
static inline CUcontext guest_init(int ordinal)
{
        CUcontext context;

        must(cuInit(0));
        must(cuDevicePrimaryCtxRetain(&context, ordinal));
        must(cuCtxSetCurrent(context));
        return context;
}

static inline uint64_t guest_get_free(void)
{
        size_t left, total;

        must(cuMemGetInfo_v2(&left, &total));
        return left;
}

/* A host for a test program; each test gets it empty. */
static char test_directory[64];

static inline void test_host_create(const char *specification)
{
        (void)snprintf(test_directory, sizeof(test_directory), "/tmp/sim-test-XXXXXX");
        if (!mkdtemp(test_directory) || sim_host_create(test_directory, specification) < 0) {
                (void)fprintf(stderr, "no simulated host\n");
                exit(1);
        }
        (void)setenv(SIM_HOST_VARIABLE, test_directory, 1);
        (void)unsetenv("CUDA_VISIBLE_DEVICES");
}

static inline void test_host_remove(void)
{
        char folder[sizeof(test_directory) + 16];

        /* Of checkpoints whose run directory it is (src/checkpoint/note.h). */
        (void)snprintf(folder, sizeof(folder), "%s/checkpoint", test_directory);
        (void)rmdir(folder);
        (void)sim_host_remove(test_directory);
}

#endif
