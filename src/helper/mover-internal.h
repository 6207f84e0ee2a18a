/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELPER_MOVER_INTERNAL_H
#define HELPER_MOVER_INTERNAL_H

/* The parts of the manager's side of a mover, for its own files. */

#include "helper/mover.h"

struct queued_packet;

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
        struct hash_value *hashes; /* the caller's, or NULL */
        size_t n_hashes;
        mover_progress_fn progress;
        mover_passed_fn passed;
        void *userdata;
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
        mover_returned_fn returned;
        mover_idle_fn idle;
        void *userdata;
};

/*
 * mover_send() - or queue it. A socket that is broken is no error: the loop notices that, and then
 * completes everything. Errors: -ECONNRESET (it was noticed), -ENOMEM, -EBADF.
 */
int mover_send(struct mover *mover, const void *message, size_t size, const int *fds, size_t n_fds);

/* mover_send_queue() - Errors: -EAGAIN, not all could be sent; others: the socket is broken. */
int mover_send_queue(struct mover *mover);
void mover_drop_queue(struct mover *mover);

struct mover_header mover_make_header(enum mover_message message, uint32_t id, uint32_t job);

/*
 * mover_request() - send @message, which begins with its header, and remember who waits for the
 * answer: @waiting without its id
 */
int mover_request(struct mover *mover, void *message, size_t size, const int *fds, size_t n_fds,
                  struct pending waiting);

/* mover_find_job() - the place in the list of the open job @id; NULL is in it for none. */
struct open_job **mover_find_job(struct mover *mover, uint32_t id);

#endif
