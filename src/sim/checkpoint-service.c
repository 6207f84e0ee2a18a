/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checkpoint service.
 *
 * One thread serves one request at a time. A lock that waits for work looks at
 * three things: that the work may be done, that the time is over, and that the
 * caller is still there; when the caller dies, the lock is undone, also when the
 * work has ended before anybody looked.
 */

#include "sim/checkpoint-service.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "sim/call.h"
#include "sim/image.h"
#include "sim/process.h"

static struct {
        int listener;
} service = { .listener = -1 };

void checkpoint_service_address(struct sockaddr_un *address, uint32_t slot)
{
        address->sun_family = AF_UNIX;
        (void)snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/service-%u",
                       process.ledger.directory, slot);
}

static void set_state(CUprocessState state)
{
        process.ledger.slot->state = state;
}

static uint64_t now_ms(void)
{
        struct timespec time;

        (void)clock_gettime(CLOCK_MONOTONIC, &time);
        return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/* False: the time is over, or the caller is gone. @deadline 0: for ever. */
static bool wait_for_progress(int caller, uint64_t deadline)
{
        struct pollfd fds[2] = { { .fd = call_drain_fd(), .events = POLLIN },
                                 { .fd = caller, .events = POLLRDHUP } };
        uint64_t now = now_ms();
        eventfd_t ignored;
        int timeout = -1;

        if (deadline)
                timeout = deadline > now ? (int)(deadline - now) : 0;
        if (poll(fds, 2, timeout) == 0 || fds[1].revents)
                return false;
        (void)eventfd_read(call_drain_fd(), &ignored);
        return true;
}

static bool is_gone(int caller)
{
        struct pollfd fd = { .fd = caller, .events = POLLRDHUP };

        return poll(&fd, 1, 0) > 0;
}

/* False: the time is over, or the caller is gone. @deadline 0: for ever. */
static bool wait_until_drained(int caller, uint64_t deadline)
{
        while (!call_is_drained())
                if (!wait_for_progress(caller, deadline) && !call_is_drained())
                        return false;
        return !is_gone(caller);
}

static CUresult lock(const struct checkpoint_request *request, int caller)
{
        uint64_t deadline = request->timeout_ms ? now_ms() + request->timeout_ms : 0;

        call_close();
        if (!wait_until_drained(caller, deadline)) {
                call_open();
                return CUDA_ERROR_NOT_READY;
        }
        set_state(CU_PROCESS_STATE_LOCKED);
        return CUDA_SUCCESS;
}

void checkpoint_service_die(void)
{
        (void)signal(SIGSEGV, SIG_DFL);
        (void)kill(getpid(), SIGSEGV);
        for (;;)
                (void)pause();
}

static CUresult checkpoint(const struct checkpoint_request *request, int caller)
{
        CUresult result;

        (void)request;
        (void)caller;
        if (call_is_synchronizing())
                checkpoint_service_die();
        result = image_save();
        if (result == CUDA_SUCCESS)
                set_state(CU_PROCESS_STATE_CHECKPOINTED);
        return result;
}

static CUresult restore(const struct checkpoint_request *request, int caller)
{
        CUresult result = image_restore(request->pair, request->n_pairs);

        (void)caller;
        if (result == CUDA_SUCCESS)
                set_state(CU_PROCESS_STATE_LOCKED);
        return result;
}

static CUresult unlock(const struct checkpoint_request *request, int caller)
{
        (void)request;
        (void)caller;
        set_state(CU_PROCESS_STATE_RUNNING);
        call_open();
        return CUDA_SUCCESS;
}

static const struct step {
        CUprocessState from;
        CUresult (*run)(const struct checkpoint_request *request, int caller);
} steps[] = {
        [CHECKPOINT_LOCK] = { CU_PROCESS_STATE_RUNNING, lock },
        [CHECKPOINT_CHECKPOINT] = { CU_PROCESS_STATE_LOCKED, checkpoint },
        [CHECKPOINT_RESTORE] = { CU_PROCESS_STATE_CHECKPOINTED, restore },
        [CHECKPOINT_UNLOCK] = { CU_PROCESS_STATE_LOCKED, unlock },
};

static CUresult serve(const struct checkpoint_request *request, int caller)
{
        if (request->step < CHECKPOINT_LOCK || request->step > CHECKPOINT_UNLOCK ||
            request->n_pairs > HOST_DEVICES_MAX)
                return CUDA_ERROR_INVALID_VALUE;
        if (process.ledger.slot->state != (uint32_t)steps[request->step].from)
                return CUDA_ERROR_ILLEGAL_STATE;
        return steps[request->step].run(request, caller);
}

static void *run_service(void *unused)
{
        (void)unused;
        (void)pthread_setname_np(pthread_self(), "cuda-sim");
        process.ledger.slot->service_thread = gettid();
        for (;;) {
                CLEANUP(fd_closep) int caller = accept4(service.listener, NULL, NULL, SOCK_CLOEXEC);
                struct checkpoint_request request;
                struct checkpoint_answer answer;

                if (caller < 0 && errno != EINTR && errno != ECONNABORTED)
                        return NULL; /* the program has closed our descriptor */
                if (recv(caller, &request, sizeof(request), 0) != (ssize_t)sizeof(request))
                        continue;
                answer.result = (int32_t)serve(&request, caller);
                (void)!send(caller, &answer, sizeof(answer), MSG_NOSIGNAL);
        }
}

static int start_thread(void)
{
        sigset_t all, before;
        pthread_t thread;
        int r;

        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&thread, NULL, run_service, NULL);
        if (r == 0)
                (void)pthread_detach(thread);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        return -r;
}

int checkpoint_service_start(void)
{
        CLEANUP(fd_closep) int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        uint32_t slot = ledger_slot_number(&process.ledger, process.ledger.slot);
        struct sockaddr_un address;

        checkpoint_service_address(&address, slot);
        (void)unlink(address.sun_path); /* of a dead process that had the slot */
        if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            listen(listener, 16) < 0)
                return -errno;
        service.listener = TAKE_FD(listener);
        set_state(CU_PROCESS_STATE_RUNNING);
        return start_thread();
}

void checkpoint_service_abandon(void)
{
        service.listener = fd_close(service.listener);
}
