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
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "sim/call.h"
#include "sim/context.h"
#include "sim/memory-file.h"
#include "sim/memory.h"
#include "sim/process.h"
#include "sim/snapshot.h"

static struct {
        int listener;
        bool is_spoiled; /* no checkpoint of this process succeeds any more */
} service = { .listener = -1 };

void checkpoint_service_address(struct sockaddr_un *address, uint32_t slot)
{
        address->sun_family = AF_UNIX;
        (void)snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/services/%u",
                       process.holdings.directory, slot);
}

static void set_state(CUprocessState state)
{
        holdings_set_state(&process.holdings, state);
}

static uint64_t now_ms(void)
{
        return clock_now(CLOCK_MONOTONIC) / NS_PER_MS;
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

/* For as long as a checkpoint takes: so those of several processes need several times as much. */
struct room {
        uint64_t taken[HOST_DEVICES_MAX];
};

static void room_deinit(struct room *room)
{
        PROCESS_LOCKED();

        for (int at = 0; at < HOST_DEVICES_MAX; at++)
                if (room->taken[at] > 0)
                        holdings_refund(&process.holdings, at, room->taken[at]);
}

static bool take_room(struct room *room)
{
        PROCESS_LOCKED();

        for (CUcontext context = process.contexts; context; context = context->next)
                if (context->cost > 0 && !context_take_room(context, room->taken))
                        return false;
        return true;
}

/* As an H200 with driver 580: one that had too little memory of the device is the last of its process. */
static CUresult find_room(struct room *room)
{
        if (service.is_spoiled)
                return CUDA_ERROR_UNKNOWN;
        service.is_spoiled = !take_room(room);
        return service.is_spoiled ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static bool never_returns(void)
{
        PROCESS_LOCKED();

        return memory_has_bounded_host_pool();
}

static CUresult checkpoint(const struct checkpoint_request *request, int caller)
{
        CLEANUP(room_deinit) struct room room = { 0 };
        CUresult result = find_room(&room);

        (void)request;
        (void)caller;
        while (never_returns()) /* nor does the process run: it can only be ended */
                (void)pause();
        if (result != CUDA_SUCCESS)
                return result;
        if (call_is_synchronizing())
                process_die();
        result = snapshot_save();
        if (result == CUDA_SUCCESS)
                set_state(CU_PROCESS_STATE_CHECKPOINTED);
        return result;
}

static CUresult restore(const struct checkpoint_request *request, int caller)
{
        CUresult result = snapshot_restore(request->pair, request->n_pairs);

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
        if (process.holdings.own.state != (uint32_t)steps[request->step].from)
                return CUDA_ERROR_ILLEGAL_STATE;
        return steps[request->step].run(request, caller);
}

static void answer(int caller, CUresult result)
{
        const struct checkpoint_answer message = { .result = (int32_t)result };

        (void)!send(caller, &message, sizeof(message), MSG_NOSIGNAL);
}

/* False: the program has closed our descriptor. */
static bool serve_next(void)
{
        CLEANUP(fd_closep) int caller = accept4(service.listener, NULL, NULL, SOCK_CLOEXEC);
        struct checkpoint_request request;

        if (caller < 0)
                return errno == EINTR || errno == ECONNABORTED;
        if (recv(caller, &request, sizeof(request), 0) != (ssize_t)sizeof(request))
                return true;
        answer(caller, serve(&request, caller));
        return true;
}

static sem_t thread_started;

static void *run_service(void *unused)
{
        (void)unused;
        (void)pthread_setname_np(pthread_self(), "cuda-sim");
        holdings_set_service_thread(&process.holdings, gettid());
        (void)sem_post(&thread_started);
        while (serve_next())
                continue;
        return NULL;
}

/* Waits until it can be asked for: on a busy machine the program may be far ahead of a thread that has not run yet. */
static int start_thread(void)
{
        sigset_t all, before;
        pthread_t thread;
        int r;

        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        (void)sem_init(&thread_started, 0, 0);
        r = pthread_create(&thread, NULL, run_service, NULL);
        if (r == 0)
                (void)pthread_detach(thread);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        while (r == 0 && sem_wait(&thread_started) < 0)
                continue; /* a signal came */
        return -r;
}

int checkpoint_service_start(void)
{
        CLEANUP(fd_closep) int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        struct sockaddr_un address;

        checkpoint_service_address(&address, (uint32_t)process.holdings.number);
        /* Of a dead process that had the slot, or what another user of the host has put there. */
        if (unlink(address.sun_path) < 0)
                (void)rmdir(address.sun_path);
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
