/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_SERVER_H
#define EXPORTER_SERVER_H

/*
 * The HTTP server: libmicrohttpd in a thread of its own. What is bounded:
 *
 *     connections   VISITS_MAX at once (visits.h); who comes takes the place of one who keeps others out
 *     headers       SERVER_HEADER_MAX bytes of a request
 *     time          VISITS_HEADER_SECONDS_MAX for a request's header, VISITS_SECONDS_MAX for all of a
 *                   connection, one request each; but for those of
 *                   the live page (live.h), of which LIVE_STREAMS_MAX are served at once, as long as
 *                   they are read
 *     questions     the state page and the sensors are read at most ten times a second, however many ask us
 */

#define SERVER_HEADER_MAX 16384

struct host_names;
struct scrape;
struct server;
struct tls;

struct server_options {
        struct scrape *scrape;
        const struct host_names *names; /* NULL: any; for a socket that no browser reaches */
        const struct tls *tls;          /* NULL: without */
        unsigned int rate;              /* of the live page: updates a second */
};

/*
 * server_new() - serve on the listening socket @fd, which is the server's from then on; borrows the rest
 *
 * Errors: -EIO, also of a certificate and a key that are no pair; -ENOTSUP: libmicrohttpd has no TLS.
 */
int server_new(struct server **ret_server, int fd, const struct server_options *options);
struct server *server_free(struct server *server);

/* server_get_wake() - a descriptor that is readable once there is a connection. */
int server_get_wake(const struct server *server);

/* server_sweep() - end connections that have had their time. Returns how many are left. */
unsigned int server_sweep(struct server *server);

#endif
