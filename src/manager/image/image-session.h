/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_IMAGE_SESSION_H
#define MANAGER_IMAGE_SESSION_H

/* What a client has begun to do with an image: with which processes, and where their memory is. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/failure.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "pool/pool.h"

struct control_client;
struct control_pending;

struct image_member {
        pid_t pid;
        uid_t uid;
        uint64_t start_time;
        char name[PROCESS_NAME_MAX];
        bool is_new; /* to become a guest, when it is loaded */
        bool is_exchanged;
        struct guest_memory *memory;
        size_t n_memory;
        uint64_t memory_bytes;
        const struct pool_reservation *borrowed; /* its guest's; only good while it is opened */
        struct pool_reservation *reservation;    /* loading: the new place, ours */
};

struct image_session {
        struct instance *instance;
        const struct control_client *client; /* that began it; only to be compared */
        bool is_loading;
        struct image_member *members;
        size_t n_members;
        uint32_t *slabs;         /* that the client was told of */
        size_t n_slabs, n_given; /* and that it was given */

        struct control_pending *pending; /* waits for what follows */
        uid_t user;                      /* that has asked */
        sd_event_source *timer;          /* until movers may pin for him again, and there is room */
        size_t n_looks;                  /* for that */
        bool is_pinning;
        size_t n_preparing;
        int error;
};

/* image_session_free() - nothing was changed. NULL is fine. Returns NULL. */
struct image_session *image_session_free(struct image_session *session);

/* image_session_add_guests() - all of the instance, with their memory as they have it. */
int image_session_add_guests(struct image_session *session);

/*
 * image_session_add_processes() - such that came back from an image: [{pid, allocations}, ...]
 * Errors: InvalidParameter; PermissionDenied, a process is not @uid's.
 */
int image_session_add_processes(struct image_session *session, const json_t *processes, uid_t uid,
                                struct failure *failure);

/* image_session_send_away() - hang up on all gates of the instance, until the session ends. */
void image_session_send_away(struct image_session *session);

/* image_session_stop_pinning() - movers do no more for it, if they did. */
void image_session_stop_pinning(struct image_session *session);

/* image_session_exchange() - the guests have the new memory now; all or none. */
int image_session_exchange(struct image_session *session, struct failure *failure);

#endif
