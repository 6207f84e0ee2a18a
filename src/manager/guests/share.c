/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/guests/share.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/uuid-bytes.h"
#include "daemon/foreign.h"
#include "daemon/log.h"
#include "manager/guests/gate-link.h"
#include "manager/guests/ticket-process.h"
#include "manager/model/account.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/sharing.h"
#include "manager/socket/fair-queue.h"
#include "wire/gate.h"

/* Between two looks whether memory is there again that another vGPU of a group brings back. */
#define LOOK_AGAIN_US 20000

/* A gate answers at once; one that does not is stopped, or hangs. */
#define ANSWER_US 10000000

struct share_question {
        struct guest *user;
        uint64_t asked_number; /* as its user counts */
        struct gate_ticket ticket;
        struct fair_entry entry;
        bool is_blocked;     /* the user's socket was full: share_flush() answers */
        int blocked_error;   /* what, then */
        struct guest *maker; /* that has been asked; or NULL */
        struct list link;    /* in maker->questions */
        uint64_t number;
        uint64_t deadline_ns; /* CLOCK_MONOTONIC */
        sd_event_source *timer;
};

/* What a gate has said last of whose memory it has, and what its user's next turn applies. */
struct share_news {
        struct guest *user;
        struct gate_uses uses;
        struct fair_entry entry;
};

/* The end of a question. */

static void stop(struct share_question *question)
{
        list_remove(&question->link);
        question->timer = sd_event_source_disable_unref(question->timer);
        question->maker = NULL;
        question->is_blocked = false;
}

/*
 * A broken connection shows as a hang-up. For one that is full no descriptor is kept: its gate asks again.
 */
static void answer(struct share_question *question, int error, const int *fd)
{
        struct gate_imported imported = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_IMPORTED },
                .number = question->asked_number,
                .error = -error,
        };
        struct guest *user = question->user;
        int r = -ENOTCONN;

        stop(question);
        if (user->gate)
                r = gate_link_send(user->gate, &imported, sizeof(imported), fd, error == 0);
        if (r == 0 && error == 0)
                user->share.n_may_tell++;
        question->is_blocked = r == -EAGAIN;
        question->blocked_error = error ? error : -EAGAIN;
}

void share_flush(struct guest *user)
{
        if (user->share.question && user->share.question->is_blocked)
                answer(user->share.question, user->share.question->blocked_error, NULL);
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct share_question *question = userdata;
        struct guest *user = question->user, *maker = question->maker;

        (void)source, (void)usec;
        log_event_of(maker->payer, LOG_LEVEL_WARNING, "a gate does not say where its memory is",
                     "vgpu=%s pid=%d asked_by=%d", maker->instance->name, (int)maker->pid,
                     (int)user->pid);
        user->share.silent_maker = maker->pid;
        answer(question, -ETIMEDOUT, NULL);
        return 0;
}

/* Once, for a program may ask in a loop. */
static void refuse(struct guest *user, const char *why)
{
        if (strcmp(user->share.refusal, why) == 0)
                return;
        snprintf(user->share.refusal, sizeof(user->share.refusal), "%s", why);
        log_event_of(user->payer, LOG_LEVEL_WARNING, "refused memory of another process",
                     "vgpu=%s pid=%d reason=\"%s\"", user->instance->name, (int)user->pid, why);
        observer_tell_guest(&user->instance->manager->observers, user, GUEST_REFUSED);
}

/* Whose memory is it? */

static struct instance *find_instance(const struct manager *manager, const uint8_t uuid[16])
{
        struct instance *instance;
        uint8_t bytes[16];

        list_for_each(instance, &manager->instances, link)
                if (uuid_to_bytes(instance->uuid, bytes) && memcmp(bytes, uuid, 16) == 0)
                        return instance;
        return NULL;
}

static struct guest *find_guest(const struct instance *instance, const struct gate_process *process)
{
        struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (!guest_is_dead(guest) && ticket_process_get_slot(guest) == process->slot &&
                    guest->start_time == process->start_time)
                        return guest;
        return NULL;
}

/* In a container the number of a user says nothing; there only the vGPU counts. */
static bool is_confined(const struct guest *guest)
{
        return guest->gate && guest->gate->only[0];
}

static int find_maker_in(const struct guest *user, const struct instance *instance,
                         const struct gate_process *process, struct guest **ret_maker)
{
        struct guest *maker;

        if (instance != user->instance &&
            (instance->owner != user->instance->owner || is_confined(user)))
                return -EPERM;
        maker = find_guest(instance, process);
        if (!maker || maker == user)
                return -ESRCH;
        if (instance != user->instance && is_confined(maker))
                return -EPERM;
        *ret_maker = maker;
        return 0;
}

static int find_maker(const struct guest *user, const struct gate_process *process,
                      struct guest **ret_maker)
{
        const struct instance *instance = find_instance(user->instance->manager, process->vgpu);

        return instance ? find_maker_in(user, instance, process, ret_maker) : -ESRCH;
}

/* Asking. */

/* An operation has asked once who outside of its vGPU shares memory with it: until its end that stays true. */
static bool may_begin_to_share(const struct guest *user, const struct guest *maker)
{
        return maker->instance == user->instance || !maker->instance->operation;
}

/*
 * What it had before it is given again. But nobody shall open before it is filled: only those that go together
 * open together. A new manager does not know any more who went together.
 */
static bool may_take_again(const struct guest *user, const struct guest *maker)
{
        uint64_t group = user->instance->course.group;

        return user->request.message == GATE_TAKE &&
               (!maker->is_unfilled || (group && group == maker->instance->course.group));
}

static bool may_offer(const struct guest *user, const struct guest *maker)
{
        return (may_begin_to_share(user, maker) || may_take_again(user, maker)) && maker->gate &&
               maker->context.state == GUEST_CONTEXT_RUNNING && maker->state != GATE_STATE_RELEASED;
}

static int ask(struct share_question *question)
{
        static uint64_t next_number;
        struct gate_offer offer = { .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_OFFER } };
        struct guest *maker;
        int r = find_maker(question->user, &question->ticket.process, &maker);

        if (r == 0 && !may_offer(question->user, maker))
                r = -EAGAIN;
        if (r < 0)
                return r;
        offer.number = question->number = ++next_number;
        memcpy(offer.name, question->ticket.name, sizeof(offer.name));
        r = sd_event_add_time_relative(question->user->instance->manager->event, &question->timer,
                                       CLOCK_MONOTONIC, ANSWER_US, 0, on_timeout, question);
        if (r < 0)
                return r;
        if (gate_link_send(maker->gate, &offer, sizeof(offer), NULL, 0) < 0) {
                question->timer = sd_event_source_disable_unref(question->timer);
                return -EAGAIN;
        }
        maker->share.n_may_offer++;
        question->maker = maker;
        list_append(&maker->share.questions, &question->link);
        return 0;
}

static int on_look_again(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct share_question *question = userdata;

        (void)source, (void)usec;
        question->timer = sd_event_source_disable_unref(question->timer);
        fair_wait(&question->entry);
        return 0;
}

/* A gate that takes memory again does not ask twice; others do, and may be closed meanwhile. */
static bool waits(struct share_question *question)
{
        const struct guest *user = question->user;

        return user->request.message == GATE_TAKE && !user->request.is_question &&
               clock_now(CLOCK_MONOTONIC) < question->deadline_ns &&
               sd_event_add_time_relative(user->instance->manager->event, &question->timer,
                                          CLOCK_MONOTONIC, LOOK_AGAIN_US, 1000, on_look_again,
                                          question) >= 0;
}

static void on_turn(void *userdata)
{
        struct share_question *question = userdata;
        int r = ask(question);

        if (r == -EPERM)
                refuse(question->user, "it is another owner's");
        if (r < 0 && !(r == -EAGAIN && waits(question)))
                answer(question, r, NULL);
}

static struct share_question *question_of(struct guest *user)
{
        CLEANUP(freep) struct share_question *question = NULL;

        if (user->share.question)
                return user->share.question;
        question = calloc(1, sizeof(*question));
        if (!question)
                return NULL;
        list_init(&question->link);
        question->user = user;
        if (fair_init(&question->entry, user->instance->manager->fair_queue, user->payer, on_turn,
                      question) < 0)
                return NULL;
        user->share.question = question;
        return TAKE(question);
}

int share_receive_import(struct guest *user, const void *message, size_t size, size_t n_fds)
{
        const struct gate_import *import = message;
        struct share_question *question = question_of(user);

        if (size != sizeof(*import) || n_fds > 0 || user->presence == GUEST_JOINING)
                return -EPROTO;
        if (!question)
                return -ENOMEM;
        stop(question); /* the one before is withdrawn */
        user->share.silent_maker = 0;
        question->asked_number = import->number;
        question->ticket = import->ticket;
        question->deadline_ns = clock_now(CLOCK_MONOTONIC) + ANSWER_US * 1000ull;
        fair_wait(&question->entry);
        return 0;
}

/* The answer of the process that made the memory. */

/* Descriptors that a process does not read are its user's to pay, and it may ask again and again. */
static bool may_be_sent_more(const struct guest *user)
{
        const struct accounts *accounts = user->instance->manager->accounts;

        return account_get_room(accounts, user->payer, ACCOUNT_DESCRIPTORS) > 0;
}

static struct share_question *find_question(const struct guest *maker, uint64_t number)
{
        struct share_question *question;

        list_for_each(question, &maker->share.questions, link)
                if (question->number == number)
                        return question;
        return NULL;
}

static int understand(const struct gate_offered *offered)
{
        switch (offered->error) {
        case 0:
        case EAGAIN:
        case ENOENT:
                return -offered->error;
        default:
                return -EIO;
        }
}

static int give(struct guest *user, struct guest *maker)
{
        int r = 0;

        if (!may_be_sent_more(user)) {
                refuse(user, "vgpud has too many descriptors for its user, many of them unread");
                return -ENOMEM;
        }
        r = sharing_add(user, maker);
        if (r < 0)
                refuse(user, "it has memory of too many processes");
        return r;
}

int share_receive_offered(struct guest *maker, const void *message, size_t size, int *fds,
                          size_t n_fds)
{
        const struct gate_offered *offered = message;
        struct share_question *question;
        int r;

        if (size != sizeof(*offered) || maker->share.n_may_offer == 0 || offered->error < 0 ||
            n_fds != (offered->error == 0) || (n_fds == 1 && !foreign_is_memory(fds[0])))
                return -EPROTO;
        maker->share.n_may_offer--;
        question = find_question(maker, offered->number);
        if (!question)
                return 0; /* who asked is gone, or waits no longer */
        r = understand(offered);
        if (r == 0 && !may_offer(question->user, maker))
                r = -EAGAIN;
        if (r == 0)
                r = give(question->user, maker);
        answer(question, r, fds);
        return 0;
}

/* What a gate says of whose memory it has. */

static void add_makers_in(struct guest *user, const struct instance *instance,
                          const struct gate_uses *uses)
{
        struct guest *maker;
        uint8_t uuid[16];

        if (!uuid_to_bytes(instance->uuid, uuid))
                return;
        for (uint32_t i = 0; i < uses->count; i++) {
                int r = -EPERM;

                if (memcmp(uses->process[i].vgpu, uuid, sizeof(uuid)) == 0)
                        r = find_maker_in(user, instance, &uses->process[i], &maker);
                if (r == 0)
                        (void)sharing_add(user, maker);
                else if (r == -ESRCH)
                        (void)sharing_await(user, &uses->process[i]);
        }
}

static void on_news_turn(void *userdata)
{
        const struct share_news *news = userdata;
        struct guest *user = news->user;
        const struct instance *instance;

        if (news->uses.count == 0)
                user->sharing.n_imports = 0;
        if (news->uses.count < GATE_USES_MAX) /* else there may be more than it says */
                sharing_forget(user);
        if (news->uses.count > 0)
                list_for_each(instance, &user->instance->manager->instances, link)
                        add_makers_in(user, instance, &news->uses);
        user->sharing.has_told = true;
}

static struct share_news *news_of(struct guest *user)
{
        struct share_news *news = user->share.news;

        if (news)
                return news;
        news = calloc(1, sizeof(*news));
        if (!news)
                return NULL;
        news->user = user;
        if (fair_init(&news->entry, user->instance->manager->fair_queue, user->payer, on_news_turn,
                      news) < 0) {
                free(news);
                return NULL;
        }
        user->share.news = news;
        return news;
}

/*
 * Once after each connection and for each piece that it was given. To find the processes takes time, so it
 * waits for its user's turn. In that turn only what it has said last is true.
 */
int share_receive_uses(struct guest *user, const void *message, size_t size, size_t n_fds)
{
        const struct gate_uses *uses = message;
        struct share_news *news;

        if (size != sizeof(*uses) || n_fds > 0 || uses->count > GATE_USES_MAX ||
            user->share.n_may_tell == 0)
                return -EPROTO;
        user->share.n_may_tell--;
        if (uses->error)
                refuse(user, "it has too many open files (ulimit -n)");
        news = news_of(user);
        if (!news)
                return -ENOMEM;
        news->uses = *uses;
        fair_wait(&news->entry);
        return 0;
}

/* It was let go, or its users told a new manager before it did: they have its memory all the while. */
static void meet_users(struct guest *maker)
{
        struct gate_process process;
        struct instance *instance;
        struct guest *user, *found;

        if (!ticket_process_get(maker, &process))
                return;
        list_for_each(instance, &maker->instance->manager->instances, link)
                list_for_each(user, &instance->guests, link)
                        if (sharing_awaits(user, &process) &&
                            find_maker_in(user, maker->instance, &process, &found) == 0)
                                sharing_meet(user, found, &process);
}

void share_attach(struct guest *guest, const struct gate_join *join)
{
        bool had_tickets = guest->share.ticket_slot != 0;
        uint32_t n_imports = join->n_imports;

        guest->share.ticket_slot = join->ticket_slot;
        guest->sharing.has_told |= n_imports == 0; /* else it is about to */
        guest->sharing.n_imports = n_imports;
        if (n_imports == 0)
                sharing_forget(guest);
        guest->share.n_may_tell = (uint64_t)n_imports + 1;
        guest->share.n_may_offer = 0;
        if (!had_tickets && guest->share.ticket_slot != 0)
                meet_users(guest);
}

/* Those who wait for it ask again. */
static void end_questions(struct guest *maker, int error)
{
        struct share_question *question, *after;

        list_for_each_safe(question, after, &maker->share.questions, link)
                answer(question, error, NULL);
}

void share_detach(struct guest *guest)
{
        if (guest->share.question) {
                fair_deinit(&guest->share.question->entry);
                stop(guest->share.question);
                free(guest->share.question);
                guest->share.question = NULL;
        }
        if (guest->share.news) { /* it says so again when it is back */
                fair_deinit(&guest->share.news->entry);
                free(guest->share.news);
                guest->share.news = NULL;
        }
        end_questions(guest, guest_is_dead(guest) ? -ESRCH : -EAGAIN);
}

static void on_guest(struct guest *guest, enum guest_event event, void *userdata)
{
        struct gate_process process;

        (void)userdata;
        if (event != GUEST_LEFT && event != GUEST_UNLOADED)
                return;
        share_detach(guest);
        if (event == GUEST_LEFT && guest->let_go_reason[0] && ticket_process_get(guest, &process))
                sharing_part(guest, &process);
        sharing_end(guest);
}

static struct observer observer = { .of_guest = on_guest };

void share_subscribe(struct manager *manager)
{
        observer_add(&manager->observers, &observer, NULL);
}
