/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_LIVE_H
#define EXPORTER_LIVE_H

/*
 * The live page's stream: server-sent events, one state a second to all who look. A thread asks vgpud for
 * it while somebody looks, and sleeps otherwise. Between two states a connection is suspended.
 *
 * A reader who is too slow for a state gets the newest one after it, never those in between.
 */

#include <microhttpd.h>

/* So many may look at once; the other connections are for those who scrape. */
#define LIVE_STREAMS_MAX 8

struct live;
struct scrape;

int live_new(struct live **ret_live, struct scrape *scrape);

/* live_serve() - answer with the stream. 1: too many look; nothing was answered. */
int live_serve(struct live *live, struct MHD_Connection *connection);

/* live_end() - end all streams: before the daemon is stopped. live_free() - after that. Returns NULL. */
void live_end(struct live *live);
struct live *live_free(struct live *live);

#endif
