/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manager's side of a mover.
 *
 * The socket is non-blocking; a message that does not fit is queued, with duplicates of
 * its descriptors. A mover ends only with its process: if the socket fails or carries a
 * malformed message, the manager kills the process, and continues when it is gone.
 *
 * A callback may free the mover, hence the references.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/packet.h"
#include "daemon/child.h"
#include "helper/mover-internal.h"

/* Packets read before the loop gets its turn again. */
#define PACKETS_A_TURN 32

/* The kernel has no greater error. */
#define ERROR_MAX 4095

static void mover_unref(struct mover *mover)
{
        if (!mover || --mover->n_refs > 0)
                return;
        sd_event_unref(mover->event);
        free(mover);
}

DEFINE_CLEANUP(struct mover *, mover_unref);

static struct mover *mover_ref(struct mover *mover)
{
        mover->n_refs++;
        return mover;
}

/* Receiving. */

static struct pending *take_pending(struct mover *mover, uint32_t id)
{
        for (struct pending **place = &mover->pending; *place; place = &(*place)->next) {
                struct pending *pending = *place;

                if (pending->id == id) {
                        *place = pending->next;
                        return pending;
                }
        }
        return NULL;
}

static void complete(struct mover *mover, struct pending *pending, const struct mover_done *done)
{
        if (pending->info)
                pending->info(mover, done->error, NULL, pending->userdata);
        else if (pending->done)
                pending->done(mover, done, pending->userdata);
        free(pending);
}

static void end_answer(struct mover *mover)
{
        if (!mover->pending && mover->idle)
                mover->idle(mover, mover->userdata);
}

/* Whose answer is nonsense waits on: for the end of the mover. */
static struct pending *find_pending(struct mover *mover, uint32_t id)
{
        struct pending *pending = mover->pending;

        while (pending && pending->id != id)
                pending = pending->next;
        return pending;
}

static int on_done(struct mover *mover, struct mover_done *done)
{
        struct pending *pending = find_pending(mover, done->header.id);

        if (!pending || done->error > 0 || done->error < -ERROR_MAX)
                return -EPROTO;
        (void)take_pending(mover, pending->id);
        done->call[sizeof(done->call) - 1] = '\0';
        complete(mover, pending, done);
        end_answer(mover);
        return 0;
}

static int on_info(struct mover *mover, const struct mover_info *info)
{
        struct pending *pending = find_pending(mover, info->header.id);

        if (!pending || !pending->info)
                return -EPROTO;
        (void)take_pending(mover, pending->id);
        pending->info(mover, 0, info, pending->userdata);
        free(pending);
        end_answer(mover);
        return 0;
}

/* Progress of a job that we have ended may still be on its way. */
static int on_progress(struct mover *mover, const struct mover_progress *progress)
{
        const struct open_job *job = *mover_find_job(mover, progress->header.job);

        if (job && job->progress)
                job->progress(mover, progress->bytes_done, progress->bytes_total, job->userdata);
        return 0;
}

/* What a job that has ended held, nobody counts any more. */
static int on_passed(struct mover *mover, const struct mover_passed *passed)
{
        const struct open_job *job = *mover_find_job(mover, passed->header.job);

        if (!job)
                return 0;
        if (!job->passed || passed->n_memories > job->n_memories)
                return -EPROTO;
        job->passed(mover, passed->n_memories, job->userdata);
        return 0;
}

/* Of a job that has ended nobody wants them. */
static int on_hashes(struct mover *mover, const struct mover_hashes *hashes)
{
        const struct open_job *job = *mover_find_job(mover, hashes->header.job);

        if (!job)
                return 0;
        if (hashes->count > MOVER_HASH_MAX || hashes->first > job->n_hashes ||
            hashes->count > job->n_hashes - hashes->first)
                return -EPROTO;
        memcpy(job->hashes + hashes->first, hashes->hash, hashes->count * sizeof(hashes->hash[0]));
        return 0;
}

static int on_returned(struct mover *mover, const struct mover_returned *returned)
{
        if (returned->pid <= 0)
                return -EPROTO;
        if (mover->returned)
                mover->returned(mover, returned->pid, mover->userdata);
        return 0;
}

static int dispatch(struct mover *mover, void *packet, size_t size)
{
        const struct mover_header *head = packet;

        if (size < sizeof(*head) || head->magic != MOVER_WIRE_MAGIC ||
            head->version != MOVER_WIRE_VERSION)
                return -EPROTO;
        if (head->message == MOVER_DONE && size == sizeof(struct mover_done))
                return on_done(mover, packet);
        if (head->message == MOVER_INFO_IS && size == sizeof(struct mover_info))
                return on_info(mover, packet);
        if (head->message == MOVER_PROGRESS && size == sizeof(struct mover_progress))
                return on_progress(mover, packet);
        if (head->message == MOVER_PASSED && size == sizeof(struct mover_passed))
                return on_passed(mover, packet);
        if (head->message == MOVER_HASHES && size == sizeof(struct mover_hashes))
                return on_hashes(mover, packet);
        if (head->message == MOVER_RETURNED && size == sizeof(struct mover_returned))
                return on_returned(mover, packet);
        return -EPROTO;
}

static int receive_one(struct mover *mover)
{
        union {
                struct mover_header align;
                struct mover_done done;
                char space[PACKET_SIZE_MAX];
        } buffer;
        int fds[PACKET_FDS_MAX];
        size_t size, n_fds;
        int r;

        if (mover->socket < 0) /* freed in a callback */
                return -EAGAIN;
        r = packet_receive(mover->socket, &buffer, &size, fds, &n_fds);
        if (r < 0)
                return r;
        packet_close_fds(fds, n_fds);
        return dispatch(mover, &buffer, size);
}

/* Its end. */

static void break_off(struct mover *mover)
{
        mover->source = sd_event_source_disable_unref(mover->source);
        mover->socket = fd_close(mover->socket);
        mover_drop_queue(mover);
}

static void forget_all(struct mover *mover)
{
        while (mover->pending) {
                struct pending *pending = mover->pending;

                mover->pending = pending->next;
                free(pending);
        }
        while (mover->jobs) {
                struct open_job *job = mover->jobs;

                mover->jobs = job->next;
                free(job);
        }
}

static int on_socket(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        CLEANUP(mover_unrefp) struct mover *mover = mover_ref(userdata);
        int r = 0;

        (void)source, (void)fd;
        if (events & EPOLLOUT)
                r = mover_send_queue(mover);
        if (r >= 0 || r == -EAGAIN) {
                r = 0;
                for (int i = 0; i < PACKETS_A_TURN && r == 0; i++)
                        r = receive_one(mover);
        }
        if (r < 0 && r != -EAGAIN && mover->socket >= 0) {
                break_off(mover);
                kill(mover->pid, SIGKILL);
        }
        return 0;
}

/* The process is gone. What it said before counts; all else failed. */
static void on_ended(void *userdata)
{
        CLEANUP(mover_unrefp) struct mover *mover = mover_ref(userdata);
        const struct mover_done done = { .error = -ECONNRESET, .process_state = -1 };

        mover->child = NULL;
        while (mover->socket >= 0 && receive_one(mover) == 0)
                ;
        break_off(mover);
        while (mover->pending)
                complete(mover, take_pending(mover, mover->pending->id), &done);
        if (mover->lost)
                mover->lost(mover, mover->userdata);
}

/* Its beginning. */

static int start(struct mover *mover, const struct mover_options *options)
{
        const char *const arguments[] = { options->program, options->device_uuid, NULL };
        int ends[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return -errno;

        CLEANUP(fd_closep) int theirs = ends[1];
        mover->socket = ends[0];
        if (fcntl(mover->socket, F_SETFL, O_NONBLOCK) < 0)
                return -errno;

        r = sd_event_add_io(mover->event, &mover->source, mover->socket, EPOLLIN, on_socket, mover);
        if (r < 0)
                return r;
        r = child_spawn(&mover->pid, arguments, options->driver_path, theirs, MOVER_SOCKET);
        if (r < 0)
                return r;
        r = child_watch(&mover->child, mover->event, mover->pid, on_ended, mover);
        if (r < 0) { /* it has done nothing yet: it dies at once */
                kill(mover->pid, SIGKILL);
                waitpid(mover->pid, NULL, 0);
        }
        return r;
}

int mover_new(struct mover **ret_mover, sd_event *event, const struct mover_options *options)
{
        CLEANUP(mover_freep) struct mover *mover = calloc(1, sizeof(*mover));
        int r;

        if (!mover)
                return -ENOMEM;

        mover->n_refs = 1;
        mover->socket = -1;
        mover->queue_end = &mover->queue;
        mover->event = sd_event_ref(event);
        mover->lost = options->lost;
        mover->returned = options->returned;
        mover->idle = options->idle;
        mover->userdata = options->userdata;
        r = start(mover, options);
        if (r < 0)
                return r;

        *ret_mover = TAKE(mover);
        return 0;
}

struct mover *mover_free(struct mover *mover)
{
        if (!mover)
                return NULL;

        break_off(mover);
        forget_all(mover);
        child_forget(TAKE(mover->child));
        mover->lost = NULL;
        mover->returned = NULL;
        mover->idle = NULL;
        mover_unref(mover);
        return NULL;
}

pid_t mover_get_pid(const struct mover *mover)
{
        return mover->pid;
}

bool mover_is_lost(const struct mover *mover)
{
        return mover->socket < 0;
}

bool mover_is_awaited(const struct mover *mover)
{
        return mover->pending || mover_is_lost(mover);
}
