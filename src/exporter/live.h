/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_LIVE_H
#define EXPORTER_LIVE_H

/*
 * The live page's stream: server-sent events, the same to all who look. A thread reads the state page while somebody looks, a few
 * times a second, and sleeps otherwise. Between two events a connection is suspended.
 *
 * A reader first gets what was before (the event "past"), then a state (the event "message"), then what has changed since
 * that state (the event "change"), each time all of it. When something has changed that a change cannot say, there is
 * another state. A reader who is too slow gets the newest of each, never those in between.
 */

#include <microhttpd.h>
#include <stdbool.h>

/*
 * So many may look at once; the other connections are for those who scrape. Who comes when there are so many gets a
 * place of whoever (peer.h) has most, if that is two more than his own.
 */
#define LIVE_STREAMS_MAX 8

/* Who has so long read nothing of what waits for him has to go: another one may want the place. */
#define LIVE_SECONDS_MAX 10

struct live;
struct scrape;

#define LIVE_RATE_DEFAULT 4
#define LIVE_RATE_MAX     10

/* live_new() - @rate: updates a second */
int live_new(struct live **ret_live, struct scrape *scrape, unsigned int rate);

/* live_serve() - answer with the stream. 1: too many look; nothing was answered. */
int live_serve(struct live *live, struct MHD_Connection *connection);

/* live_sweep() - end streams that nobody reads; called now and then. */
void live_sweep(struct live *live);

/* live_end() - end all streams: before the daemon is stopped. live_free() - after that. Returns NULL. */
void live_end(struct live *live);
struct live *live_free(struct live *live);

#endif
