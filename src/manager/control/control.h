/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_CONTROL_H
#define MANAGER_CONTROL_H

/*
 * The control socket: clients, their calls one after another, and the answers.
 *
 * A call that takes long (an operation) is answered later; until then nothing more
 * is read from its client. A client that hangs up does not end what it asked for.
 */

#include <jansson.h>
#include <sys/types.h>

#include "daemon/control-call.h"
#include "daemon/failure.h"
#include "manager/model/account.h"

struct control;
struct control_client;
struct control_service;
struct manager;
struct writer;

/* A call under way. Whoever handles it ends it with control_reply() or control_fail(), once. */
struct control_pending {
        struct manager *manager;
        const struct control_service *service;
        struct control_call call;
        struct control_client *client; /* NULL: hung up */
        uid_t uid;
        pid_t pid;
        bool sees_all;  /* usage and events of all users: an operator, a watcher or a steward */
        bool moves_all; /* all vGPUs: an operator or a steward */
        struct account_charge charge;
};

/* Root and the user of vgpud may call everything. Stewards are the members of --stewards. */
enum control_caller {
        CONTROL_ANYBODY, /* what of the answer he may see, or how much he may have, the function knows */
        CONTROL_OWNER,       /* of the vGPU that its parameter "name" names */
        CONTROL_OWNER_WAITS, /* the same; during an operation that nobody else waits for the call does */
        CONTROL_OWNER_STEWARD_WAITS, /* the same; stewards may call it too */
        CONTROL_STEWARD,             /* stewards, whoever owns the vGPU */
        CONTROL_OPERATOR,            /* nobody else */
};

/* What can be called, and by whom. */
struct control_method {
        const char *name;
        enum control_caller caller;
        /* 0: it was or will be answered; negative: the caller answers with the failure */
        int (*function)(struct control_pending *pending, struct failure *failure);
        const struct control_parameter *parameters;
};

/* Who deals with calls. */
struct control_service {
        /* @pending is answered now or later */
        void (*call)(struct control_pending *pending);
        /* it has hung up: end what it has begun; @client is only to be compared */
        void (*client_gone)(struct manager *manager, const struct control_client *client);
        /* an answer goes out: what has happened until then is not forgotten any more */
        void (*before_answer)(struct manager *manager);
};

int control_new(struct control **ret_control, struct manager *manager,
                const struct control_service *service);
struct control *control_free(struct control *control);

/* control_start() - begin to answer. */
void control_start(struct control *control);

/* control_reply() - takes @parameters. @pending is gone afterwards. */
void control_reply(struct control_pending *pending, json_t *parameters);

/* control_reply_text() - the same with the whole message, which is taken out of @writer. */
void control_reply_text(struct control_pending *pending, struct writer *writer);

/* control_take_fds() - charge its user for @n descriptors of the answer. Errors: -EDQUOT, NoRoom. */
int control_take_fds(struct control_pending *pending, size_t n, struct failure *failure);

/* control_reply_fds() - with at most PACKET_FDS_MAX descriptors, which stay the caller's. */
void control_reply_fds(struct control_pending *pending, json_t *parameters, const int *fds,
                       size_t n_fds);
void control_fail(struct control_pending *pending, const struct failure *failure);

/* control_call_again() - soon, from the event loop: what its method waited for has ended. */
void control_call_again(struct control_pending *pending);

/*
 * control_progress() - takes @parameters. Only to a client that asked for it and reads: what a slow
 * one misses is worth nothing later.
 */
void control_progress(struct control_pending *pending, json_t *parameters);

#endif
