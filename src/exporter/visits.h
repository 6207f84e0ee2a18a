/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_VISITS_H
#define EXPORTER_VISITS_H

/*
 * The connections of the server, and who has to go when there are too many. Who comes always gets a place: one of those
 * who are there already loses his, so that nobody is kept out by connections that say or read nothing. That is one of
 * whoever (peer.h) has most. Of his it is the oldest one whose request is not there yet, else the oldest. Streams of the live page
 * stay: they are bounded elsewhere (live.h).
 */

#include <stdbool.h>

/* So many are served at once; places for those that are on their way out come on top. */
#define VISITS_MAX         32
#define VISITS_LEAVING_MAX 16

/* A request's header has to be there after so long; all of a connection may take so long, unless it is exempt. */
#define VISITS_HEADER_SECONDS_MAX 10
#define VISITS_SECONDS_MAX        20

struct visits;

int visits_new(struct visits **ret_visits);
struct visits *visits_free(struct visits *visits);

/* visits_begin() - @fd has come, and whoever has to go for it is sent away. visits_end() - before @fd is closed. */
void visits_begin(struct visits *visits, int fd);
void visits_end(struct visits *visits, int fd);

/* visits_note_request() - all of a request's header is there. visits_exempt() - may it stay? */
void visits_note_request(struct visits *visits, int fd);
void visits_exempt(struct visits *visits, int fd, bool is_exempt);

/* visits_sweep() - send those away that have had their time. Returns how many there are. */
unsigned int visits_sweep(struct visits *visits);

/*
 * visits_send_all_away() - before the server ends: no more is read, and what is being answered has VISITS_END_MS to be
 * sent, at most. Returns when all have left, or after that time.
 */
#define VISITS_END_MS 1000
void visits_send_all_away(struct visits *visits);

#endif
