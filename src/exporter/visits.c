/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/visits.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "exporter/peer.h"

#define PLACES (VISITS_MAX + VISITS_LEAVING_MAX)

struct visit {
        int fd;          /* -1: free */
        uint64_t peer;   /* who it is, as far as places are shared out */
        uint64_t number; /* of its arrival */
        uint64_t since_ns;
        bool has_request, is_exempt;
        bool is_leaving; /* it was sent away, and is closed soon */
};

struct visits {
        pthread_mutex_t lock;
        uint64_t n_begun;
        struct visit places[PLACES];
};

/* With the lock held. NULL: there is none. */
static struct visit *find(struct visits *visits, int fd)
{
        for (size_t i = 0; i < PLACES; i++)
                if (visits->places[i].fd == fd)
                        return &visits->places[i];
        return NULL;
}

/* Somebody who may be sent away. */
static bool is_guest(const struct visit *visit)
{
        return visit->fd >= 0 && !visit->is_exempt && !visit->is_leaving;
}

static size_t count_of_peer(const struct visits *visits, uint64_t peer)
{
        size_t n = 0;

        for (size_t i = 0; i < PLACES; i++)
                n += is_guest(&visits->places[i]) && visits->places[i].peer == peer;
        return n;
}

/* Is it @one's turn to go, rather than @other's? */
static bool goes_before(const struct visits *visits, const struct visit *one,
                        const struct visit *other)
{
        size_t n_one = count_of_peer(visits, one->peer);
        size_t n_other = count_of_peer(visits, other->peer);

        if (n_one != n_other)
                return n_one > n_other;
        if (one->has_request != other->has_request)
                return !one->has_request;
        return one->number < other->number;
}

/* With the lock held: he is told before the descriptor is closed, so it is never somebody else's. */
static void send_away(struct visit *visit)
{
        visit->is_leaving = true;
        (void)shutdown(visit->fd, SHUT_RDWR);
}

/* With the lock held. */
static void make_room_for(struct visits *visits, const struct visit *newest)
{
        struct visit *last = NULL;
        size_t n = 0;

        for (size_t i = 0; i < PLACES; i++) {
                struct visit *visit = &visits->places[i];

                n += visit->fd >= 0 && !visit->is_leaving;
                if (!is_guest(visit) || visit == newest)
                        continue;
                if (!last || goes_before(visits, visit, last))
                        last = visit;
        }
        if (n > VISITS_MAX && last)
                send_away(last);
}

void visits_begin(struct visits *visits, int fd)
{
        struct visit *visit;

        (void)pthread_mutex_lock(&visits->lock);
        visit = find(visits, -1);
        if (visit) {
                *visit = (struct visit){ .fd = fd,
                                         .peer = peer_get(fd),
                                         .number = visits->n_begun++,
                                         .since_ns = clock_now(CLOCK_MONOTONIC) };
                make_room_for(visits, visit);
        }
        (void)pthread_mutex_unlock(&visits->lock);
}

void visits_end(struct visits *visits, int fd)
{
        struct visit *visit;

        (void)pthread_mutex_lock(&visits->lock);
        visit = find(visits, fd);
        if (visit)
                visit->fd = -1;
        (void)pthread_mutex_unlock(&visits->lock);
}

void visits_note_request(struct visits *visits, int fd)
{
        struct visit *visit;

        (void)pthread_mutex_lock(&visits->lock);
        visit = find(visits, fd);
        if (visit)
                visit->has_request = true;
        (void)pthread_mutex_unlock(&visits->lock);
}

void visits_exempt(struct visits *visits, int fd, bool is_exempt)
{
        struct visit *visit;

        (void)pthread_mutex_lock(&visits->lock);
        visit = find(visits, fd);
        if (visit && visit->is_exempt && !is_exempt)
                visit->since_ns = clock_now(CLOCK_MONOTONIC); /* for the answer */
        if (visit)
                visit->is_exempt = is_exempt;
        (void)pthread_mutex_unlock(&visits->lock);
}

static bool is_due(const struct visit *visit, uint64_t now_ns)
{
        uint64_t most = visit->has_request ? VISITS_SECONDS_MAX : VISITS_HEADER_SECONDS_MAX;

        return !visit->is_exempt && now_ns - visit->since_ns > most * NS_PER_S;
}

unsigned int visits_sweep(struct visits *visits)
{
        unsigned int n = 0;
        uint64_t now_ns;

        (void)pthread_mutex_lock(&visits->lock);
        now_ns = clock_now(CLOCK_MONOTONIC); /* later than when any visit began */
        for (size_t i = 0; i < PLACES; i++) {
                struct visit *visit = &visits->places[i];

                n += visit->fd >= 0;
                if (visit->fd >= 0 && is_due(visit, now_ns))
                        send_away(visit);
        }
        (void)pthread_mutex_unlock(&visits->lock);
        return n;
}

/* Returns how many there are. */
static unsigned int shut_all_down(struct visits *visits, int how)
{
        unsigned int n = 0;

        (void)pthread_mutex_lock(&visits->lock);
        for (size_t i = 0; i < PLACES; i++) {
                if (visits->places[i].fd < 0)
                        continue;
                n++;
                (void)shutdown(visits->places[i].fd, how);
        }
        (void)pthread_mutex_unlock(&visits->lock);
        return n;
}

void visits_send_all_away(struct visits *visits)
{
        const struct timespec pause = { .tv_nsec = 1000000 };

        for (int i = 0; i < VISITS_END_MS && shut_all_down(visits, SHUT_RD) > 0; i++)
                (void)nanosleep(&pause, NULL);
        for (int i = 0; i < VISITS_END_MS && shut_all_down(visits, SHUT_RDWR) > 0; i++)
                (void)nanosleep(&pause, NULL);
}

int visits_new(struct visits **ret_visits)
{
        struct visits *visits = calloc(1, sizeof(*visits));

        if (!visits)
                return -ENOMEM;
        (void)pthread_mutex_init(&visits->lock, NULL);
        for (size_t i = 0; i < PLACES; i++)
                visits->places[i].fd = -1;
        *ret_visits = visits;
        return 0;
}

struct visits *visits_free(struct visits *visits)
{
        if (!visits)
                return NULL;
        (void)pthread_mutex_destroy(&visits->lock);
        free(visits);
        return NULL;
}
