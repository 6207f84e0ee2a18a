/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_DESK_H
#define EXPORTER_DESK_H

/*
 * The desk: where the page asks for more than it shows to everybody, and asks for something to be done.
 *
 *     GET  /vgpu?uuid=UUID              processes of a vGPU; with the token its day and its events
 *     GET  /usage?month=2026-11         usage by tenant; &format=csv. Only with the token
 *     POST /actions                     suspend, resume, migrate, share. Only with the token
 *
 * Each is done by a thread of its own, so that nobody else waits for vgpud; DESK_ERRANDS_MAX at once, and of those
 * without the token at most DESK_STRANGERS_MAX. Its connection is suspended meanwhile.
 *
 * The token comes in a header that a browser sends for no other page, and a request that says that it comes from
 * another page is refused. In DESK_PERIOD_SECONDS at most DESK_ACTIONS_MAX actions are begun; who brings a wrong token
 * after DESK_WRONG_MAX others hears that it is too often, whereas the right one always counts.
 */

#include <microhttpd.h>
#include <stdbool.h>

#define DESK_ERRANDS_MAX    6
#define DESK_STRANGERS_MAX  2
#define DESK_ACTIONS_MAX    20
#define DESK_WRONG_MAX      20
#define DESK_PERIOD_SECONDS 10

struct desk;
struct token;

/* desk_new() - @token: borrowed; NULL: there is none, and only processes are told. */
int desk_new(struct desk **ret_desk, const struct token *token);

/* desk_knows() - is @url one of those above? */
bool desk_knows(const char *url);

/* desk_serve() - for libmicrohttpd's access handler, as often as it calls. */
enum MHD_Result desk_serve(struct desk *desk, struct MHD_Connection *connection, const char *url,
                           const char *method, const char *upload, size_t *upload_size,
                           void **context);

/* desk_is_waiting() - the connection of @context waits for vgpud, which has not answered yet. */
bool desk_is_waiting(const void *context);

/* desk_forget() - a request has ended, and @context with it; NULL is fine. */
void desk_forget(void *context);

/* desk_end() - answer all who wait: before the daemon is stopped. desk_free() - after that. Returns NULL. */
void desk_end(struct desk *desk);
struct desk *desk_free(struct desk *desk);

#endif
