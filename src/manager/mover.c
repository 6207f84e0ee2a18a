/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manager's side of a mover.
 *
 * The socket is non-blocking; what does not fit is queued, with duplicates of its
 * descriptors. What ends a mover is always the end of its process: when the
 * socket fails or speaks nonsense we kill it, and go on when it is gone.
 *
 * A callback may free the mover, hence the references.
 */

#include "manager/mover.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/packet.h"
#include "manager/child.h"

/* Packets read before the loop gets its turn again. */
#define PACKETS_A_TURN 32

/* A request that waits for its DONE or INFO_IS. */
struct pending {
        struct pending *next;
        uint32_t id;
        mover_done_fn done; /* one of these two, or neither */
        mover_info_fn info;
        void *userdata;
};

/* A job that has begun and not been ended: where its progress goes. */
struct open_job {
        struct open_job *next;
        uint32_t id;
        enum mover_job_kind kind;
        size_t n_memories;
        mover_progress_fn progress;
        void *userdata;
};

struct queued_packet {
        struct queued_packet *next;
        size_t size;
        size_t n_fds;
        int fds[PACKET_FDS_MAX];
        char bytes[];
};

struct mover {
        unsigned int n_refs;
        sd_event *event;
        sd_event_source *source; /* of the socket */
        int socket;              /* -1: broken off */
        pid_t pid;
        struct child *child; /* NULL: gone */
        uint32_t last_id, last_job;
        struct pending *pending; /* the youngest first */
        struct open_job *jobs;
        struct queued_packet *queue, **queue_end;
        mover_lost_fn lost;
        void *userdata;
};

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

/* Sending. */

static void queued_packet_free(struct queued_packet *packet)
{
        if (packet)
                packet_close_fds(packet->fds, packet->n_fds);
        free(packet);
}

DEFINE_CLEANUP(struct queued_packet *, queued_packet_free);

static int enqueue(struct mover *mover, const void *message, size_t size, const int *fds,
                   size_t n_fds)
{
        CLEANUP(queued_packet_freep) struct queued_packet *packet = NULL;
        int r;

        packet = calloc(1, sizeof(*packet) + size);
        if (!packet)
                return -ENOMEM;

        memcpy(packet->bytes, message, size);
        packet->size = size;
        for (; packet->n_fds < n_fds; packet->n_fds++) {
                packet->fds[packet->n_fds] = fcntl(fds[packet->n_fds], F_DUPFD_CLOEXEC, 3);
                if (packet->fds[packet->n_fds] < 0)
                        return -errno;
        }

        r = sd_event_source_set_io_events(mover->source, EPOLLIN | EPOLLOUT);
        if (r < 0)
                return r;
        *mover->queue_end = packet;
        mover->queue_end = &TAKE(packet)->next;
        return 0;
}

/* A socket that is broken is noticed by the loop, which then completes everything. */
static int send_packet(struct mover *mover, const void *message, size_t size, const int *fds,
                       size_t n_fds)
{
        int r = -EAGAIN;

        if (mover->socket < 0)
                return -ECONNRESET;
        if (!mover->queue)
                r = packet_send(mover->socket, message, size, fds, n_fds);
        if (r == -EAGAIN)
                r = enqueue(mover, message, size, fds, n_fds);
        return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

/* -EAGAIN: not all could be sent. */
static int send_queue(struct mover *mover)
{
        while (mover->queue) {
                struct queued_packet *packet = mover->queue;
                int r = packet_send(mover->socket, packet->bytes, packet->size, packet->fds,
                                    packet->n_fds);

                if (r < 0)
                        return r;
                mover->queue = packet->next;
                if (!mover->queue)
                        mover->queue_end = &mover->queue;
                queued_packet_free(packet);
        }
        return sd_event_source_set_io_events(mover->source, EPOLLIN);
}

static struct mover_header header(enum mover_message message, uint32_t id, uint32_t job)
{
        return (struct mover_header){ .magic = MOVER_WIRE_MAGIC,
                                      .version = MOVER_WIRE_VERSION,
                                      .message = (uint16_t)message,
                                      .id = id,
                                      .job = job };
}

/* Sends @message, which begins with its header, and remembers who waits for the answer. */
static int request(struct mover *mover, void *message, size_t size, const int *fds, size_t n_fds,
                   struct pending waiting)
{
        CLEANUP(freep) struct pending *pending = malloc(sizeof(*pending));
        struct mover_header *head = message;
        int r;

        if (!pending)
                return -ENOMEM;

        *pending = waiting;
        pending->id = head->id = ++mover->last_id;
        r = send_packet(mover, message, size, fds, n_fds);
        if (r < 0)
                return r;

        pending->next = mover->pending;
        mover->pending = TAKE(pending);
        return 0;
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

static struct open_job **find_job(struct mover *mover, uint32_t id)
{
        struct open_job **job = &mover->jobs;

        while (*job && (*job)->id != id)
                job = &(*job)->next;
        return job;
}

static void complete(struct mover *mover, struct pending *pending, const struct mover_done *done)
{
        if (pending->info)
                pending->info(mover, done->error, NULL, pending->userdata);
        else if (pending->done)
                pending->done(mover, done, pending->userdata);
        free(pending);
}

static int on_done(struct mover *mover, struct mover_done *done)
{
        struct pending *pending = take_pending(mover, done->header.id);

        if (!pending || done->error > 0)
                return -EPROTO;
        done->call[sizeof(done->call) - 1] = '\0';
        complete(mover, pending, done);
        return 0;
}

static int on_info(struct mover *mover, const struct mover_info *info)
{
        CLEANUP(freep) struct pending *pending = take_pending(mover, info->header.id);

        if (!pending || !pending->info)
                return -EPROTO;
        pending->info(mover, 0, info, pending->userdata);
        return 0;
}

/* Progress of a job that we have ended may still be on its way. */
static int on_progress(struct mover *mover, const struct mover_progress *progress)
{
        const struct open_job *job = *find_job(mover, progress->header.job);

        if (job && job->progress)
                job->progress(mover, progress->bytes_done, progress->bytes_total, job->userdata);
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
        while (mover->queue) {
                struct queued_packet *packet = mover->queue;

                mover->queue = packet->next;
                queued_packet_free(packet);
        }
        mover->queue_end = &mover->queue;
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
                r = send_queue(mover);
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

/* Requests. */

int mover_info(struct mover *mover, mover_info_fn done, void *userdata)
{
        struct mover_header message = header(MOVER_INFO, 0, 0);

        return request(mover, &message, sizeof(message), NULL, 0,
                       (struct pending){ .info = done, .userdata = userdata });
}

int mover_context(struct mover *mover, bool wanted, mover_done_fn done, void *userdata)
{
        struct mover_context message = { .header = header(MOVER_CONTEXT, 0, 0), .wanted = wanted };

        return request(mover, &message, sizeof(message), NULL, 0,
                       (struct pending){ .done = done, .userdata = userdata });
}

static int request_slab(struct mover *mover, enum mover_message what, uint32_t slab, uint64_t size,
                        int fd, mover_done_fn done, void *userdata)
{
        struct mover_slab message = { .header = header(what, 0, 0), .slab = slab, .size = size };

        return request(mover, &message, sizeof(message), &fd, fd >= 0,
                       (struct pending){ .done = done, .userdata = userdata });
}

int mover_slab_add(struct mover *mover, uint32_t slab, int fd, uint64_t size, mover_done_fn done,
                   void *userdata)
{
        if (fd < 0)
                return -EBADF;
        return request_slab(mover, MOVER_SLAB_ADD, slab, size, fd, done, userdata);
}

int mover_slab_zero(struct mover *mover, uint32_t slab, mover_done_fn done, void *userdata)
{
        return request_slab(mover, MOVER_SLAB_ZERO, slab, 0, -1, done, userdata);
}

int mover_slab_remove(struct mover *mover, uint32_t slab, mover_done_fn done, void *userdata)
{
        return request_slab(mover, MOVER_SLAB_REMOVE, slab, 0, -1, done, userdata);
}

int mover_checkpoint(struct mover *mover, pid_t pid, enum mover_checkpoint_action action,
                     uint32_t timeout_ms, const struct mover_pair *pairs, size_t n_pairs,
                     mover_done_fn done, void *userdata)
{
        struct mover_checkpoint message = { .header = header(MOVER_CHECKPOINT, 0, 0),
                                            .pid = pid,
                                            .action = action,
                                            .timeout_ms = timeout_ms,
                                            .n_pairs = (uint32_t)n_pairs };

        if (n_pairs > MOVER_PAIRS_MAX || (n_pairs > 0 && action != MOVER_CHECKPOINT_RESUME))
                return -EINVAL;
        if (n_pairs > 0)
                memcpy(message.pair, pairs, n_pairs * sizeof(*pairs));
        return request(mover, &message, sizeof(message), NULL, 0,
                       (struct pending){ .done = done, .userdata = userdata });
}

/* Jobs. */

static size_t min(size_t a, size_t b)
{
        return a < b ? a : b;
}

static int send_memories(struct mover *mover, enum mover_message what, const struct open_job *job,
                         const uint64_t *sizes, const int *fds)
{
        int r = 0;

        for (size_t first = 0; first < job->n_memories && r == 0; first += MOVER_MEMORY_MAX) {
                size_t count = min(job->n_memories - first, MOVER_MEMORY_MAX);
                struct mover_memory message = { .header = header(what, 0, job->id),
                                                .first = (uint32_t)first,
                                                .count = (uint32_t)count };

                memcpy(message.size, sizes + first, count * sizeof(*sizes));
                r = send_packet(mover, &message, sizeof(message), fds + first, count);
        }
        return r;
}

static int send_segments(struct mover *mover, uint32_t id, const struct mover_segment *segments,
                         size_t n)
{
        int r = 0;

        for (size_t first = 0; first < n && r == 0; first += MOVER_SEGMENT_MAX) {
                size_t count = min(n - first, MOVER_SEGMENT_MAX);
                struct mover_segments message = { .header = header(MOVER_JOB_SEGMENTS, 0, id),
                                                  .count = (uint32_t)count };

                memcpy(message.segment, segments + first, count * sizeof(*segments));
                r = send_packet(mover, &message, sizeof(message), NULL, 0);
        }
        return r;
}

static bool is_whole(const struct mover_job *job)
{
        bool has_source = job->source_uuid && job->source_sizes && job->source_fds;

        if (job->n_memories > UINT32_MAX || job->n_segments > UINT32_MAX)
                return false;
        if (job->kind == MOVER_PEER)
                return has_source && strlen(job->source_uuid) < MOVER_UUID_MAX &&
                       job->n_segments == 0;
        return (job->kind == MOVER_OUT || job->kind == MOVER_IN) && !job->source_uuid &&
               !job->source_fds;
}

static int send_begin(struct mover *mover, const struct open_job *open, const struct mover_job *job)
{
        struct mover_job_begin message = { .header = header(MOVER_JOB_BEGIN, 0, open->id),
                                           .kind = job->kind,
                                           .n_memories = (uint32_t)job->n_memories,
                                           .n_segments = (uint32_t)job->n_segments };
        int r;

        if (job->source_uuid)
                memcpy(message.source_uuid, job->source_uuid, strlen(job->source_uuid) + 1);
        r = send_packet(mover, &message, sizeof(message), NULL, 0);
        if (r == 0 && job->kind == MOVER_PEER)
                r = send_memories(mover, MOVER_JOB_SOURCE, open, job->source_sizes,
                                  job->source_fds);
        if (r == 0)
                r = send_segments(mover, open->id, job->segments, job->n_segments);
        return r;
}

int mover_job_begin(struct mover *mover, uint32_t *ret_id, const struct mover_job *job)
{
        CLEANUP(freep) struct open_job *open = NULL;
        int r;

        if (!is_whole(job))
                return -EINVAL;

        open = malloc(sizeof(*open));
        if (!open)
                return -ENOMEM;

        *open = (struct open_job){ .next = mover->jobs,
                                   .id = ++mover->last_job,
                                   .kind = job->kind,
                                   .n_memories = job->n_memories,
                                   .progress = job->progress,
                                   .userdata = job->userdata };
        r = send_begin(mover, open, job);
        if (r < 0) { /* the mover knows a part of it: without an end it would keep that */
                struct mover_header end = header(MOVER_JOB_END, ++mover->last_id, open->id);

                (void)request(mover, &end, sizeof(end), NULL, 0, (struct pending){ 0 });
                return r;
        }

        *ret_id = open->id;
        mover->jobs = TAKE(open);
        return 0;
}

int mover_job_stage(struct mover *mover, uint32_t id, uint64_t limit)
{
        struct mover_stage message = { .header = header(MOVER_JOB_STAGE, 0, id), .limit = limit };

        if (!*find_job(mover, id))
                return mover->socket < 0 ? -ECONNRESET : -EINVAL;
        return send_packet(mover, &message, sizeof(message), NULL, 0);
}

int mover_job_run(struct mover *mover, uint32_t id, const uint64_t *sizes, const int *fds,
                  mover_done_fn done, void *userdata)
{
        struct mover_header message = header(MOVER_JOB_RUN, 0, id);
        const struct open_job *job = *find_job(mover, id);
        int r;

        if (!job)
                return mover->socket < 0 ? -ECONNRESET : -EINVAL;
        r = send_memories(mover, MOVER_JOB_MEMORY, job, sizes, fds);
        if (r < 0)
                return r;
        return request(mover, &message, sizeof(message), NULL, 0,
                       (struct pending){ .done = done, .userdata = userdata });
}

int mover_job_end(struct mover *mover, uint32_t id, mover_done_fn done, void *userdata)
{
        struct mover_header message = header(MOVER_JOB_END, 0, id);
        struct open_job **place = find_job(mover, id);
        struct open_job *job = *place;

        if (!job)
                return mover->socket < 0 ? -ECONNRESET : -EINVAL;
        *place = job->next;
        free(job);
        return request(mover, &message, sizeof(message), NULL, 0,
                       (struct pending){ .done = done, .userdata = userdata });
}
