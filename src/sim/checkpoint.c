/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint calls, in the process that makes them. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/process-stat.h"
#include "sim/checkpoint-service.h"
#include "sim/process.h"

/*
 * So long the real driver tries to reach the thread that answers for a process, when a tracer has
 * stopped it (measured: 580.159).
 */
#define PATIENCE_MS 15000

/* A zombie has exited; so says the real driver, too. */
static bool is_running(int pid)
{
        struct process_stat stat;

        return process_stat_read(&stat, pid) == 0 && stat.state != 'Z' && stat.state != 'X';
}

/* A process and what its slot says, which any user of the host can have written. */
struct found {
        int pid, number;
        struct host_slot slot;
};

static bool is_thread_of(int pid, int thread)
{
        char path[48];

        (void)snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, thread);
        return access(path, F_OK) == 0;
}

/* The state of a process is told by the thread that restores it. */
static CUresult wait_for_service(const struct found *found)
{
        const struct timespec moment = { .tv_nsec = 1000000 };

        struct process_stat stat;

        for (int ms = 0; ms < PATIENCE_MS; ms++) {
                if (process_stat_read(&stat, found->slot.service_thread) < 0 ||
                    (stat.state != 't' && stat.state != 'T'))
                        return CUDA_SUCCESS;
                (void)nanosleep(&moment, NULL);
        }
        return CUDA_ERROR_OPERATING_SYSTEM;
}

/*
 * The real driver needs the right to trace the process. Here to read from it is enough, so that a
 * kernel that lets nobody trace but a parent (Yama) does not keep simulated GPUs from its users.
 */
static bool is_forbidden(int pid)
{
        CLEANUP(fd_closep) int fd = -1;
        char path[32];

        (void)snprintf(path, sizeof(path), "/proc/%d/environ", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 && (errno == EACCES || errno == EPERM);
}

static CUresult find_slot(struct found *ret_found, int pid)
{
        PROCESS_LOCKED();

        if (is_forbidden(pid))
                return CUDA_ERROR_OPERATING_SYSTEM;
        ret_found->pid = pid;
        ret_found->number = holdings_find(&process.holdings, pid, &ret_found->slot);
        if (ret_found->number < 0)
                return is_running(pid) ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_OPERATING_SYSTEM;
        return ret_found->slot.state <= CU_PROCESS_STATE_RESTORING ? CUDA_SUCCESS
                                                                   : CUDA_ERROR_OPERATING_SYSTEM;
}

/* Another process may have put its own socket there. */
static bool is_served_by(int fd, int pid)
{
        struct ucred peer;
        socklen_t size = sizeof(peer);

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == pid;
}

/* A process that dies meanwhile closes the connection without an answer. */
static CUresult ask(const struct found *found, const struct checkpoint_request *request)
{
        CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        struct checkpoint_answer answer;
        struct sockaddr_un address;
        ssize_t n;

        checkpoint_service_address(&address, (uint32_t)found->number);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            !is_served_by(fd, found->pid) ||
            send(fd, request, sizeof(*request), MSG_NOSIGNAL) != (ssize_t)sizeof(*request))
                return CUDA_ERROR_OPERATING_SYSTEM;
        do
                n = recv(fd, &answer, sizeof(answer), 0);
        while (n < 0 && errno == EINTR);
        return n == (ssize_t)sizeof(answer) ? (CUresult)answer.result : CUDA_ERROR_OPERATING_SYSTEM;
}

static CUresult ask_process(int pid, const struct checkpoint_request *request)
{
        struct found found;
        CUresult result = find_slot(&found, pid);

        return result ? result : ask(&found, request);
}

CUresult sim_cuCheckpointProcessGetState(int pid, CUprocessState *state)
{
        struct found found;
        CUresult result;

        if (!state)
                return CUDA_ERROR_INVALID_VALUE;
        result = find_slot(&found, pid);
        if (result == CUDA_SUCCESS)
                result = wait_for_service(&found);
        if (result == CUDA_SUCCESS)
                result = find_slot(&found, pid);
        if (result == CUDA_SUCCESS)
                *state = (CUprocessState)found.slot.state;
        return result;
}

CUresult sim_cuCheckpointProcessGetRestoreThreadId(int pid, int *tid)
{
        struct found found;
        CUresult result;

        if (!tid)
                return CUDA_ERROR_INVALID_VALUE;
        result = find_slot(&found, pid);
        if (result == CUDA_SUCCESS && !is_thread_of(pid, found.slot.service_thread))
                result = CUDA_ERROR_OPERATING_SYSTEM;
        if (result == CUDA_SUCCESS)
                *tid = found.slot.service_thread;
        return result;
}

CUresult sim_cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args)
{
        struct checkpoint_request request = { .step = CHECKPOINT_LOCK };

        if (args)
                request.timeout_ms = args->timeoutMs;
        return ask_process(pid, &request);
}

CUresult sim_cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args)
{
        struct checkpoint_request request = { .step = CHECKPOINT_CHECKPOINT };

        (void)args;
        return ask_process(pid, &request);
}

/* The real driver crashes its caller on a count without pairs; that is no use to anybody. */
CUresult sim_cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args)
{
        struct checkpoint_request request = { .step = CHECKPOINT_RESTORE };

        if (args && args->gpuPairsCount) {
                if (!args->gpuPairs || args->gpuPairsCount > HOST_DEVICES_MAX)
                        return CUDA_ERROR_INVALID_VALUE;
                request.n_pairs = args->gpuPairsCount;
                memcpy(request.pair, args->gpuPairs, args->gpuPairsCount * sizeof(request.pair[0]));
        }
        return ask_process(pid, &request);
}

CUresult sim_cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args)
{
        struct checkpoint_request request = { .step = CHECKPOINT_UNLOCK };

        (void)args;
        return ask_process(pid, &request);
}
