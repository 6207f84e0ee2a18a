/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "exporter/host-name.h"
#include "exporter/live.h"
#include "exporter/page.h"
#include "exporter/response.h"
#include "exporter/scrape.h"
#include "exporter/tls.h"
#include "exporter/visits.h"

/* So old may an answer be that somebody else has got. */
#define FRESH_NS 100 * NS_PER_MS

#define TYPE_OPEN_METRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define TYPE_SCRIPT       "text/javascript; charset=utf-8"

static const struct {
        const char *path, *type, *text;
} files[] = {
        { "/", "text/html; charset=utf-8", page_html },
        { "/page.css", "text/css; charset=utf-8", page_css },
        { "/draw.js", TYPE_SCRIPT, draw_js },
        { "/devices.js", TYPE_SCRIPT, devices_js },
        { "/vgpus.js", TYPE_SCRIPT, vgpus_js },
        { "/vgpu.js", TYPE_SCRIPT, vgpu_js },
        { "/page.js", TYPE_SCRIPT, page_js },
};

struct server {
        struct MHD_Daemon *daemon;
        struct server_options is;
        struct live *live;
        struct visits *visits;
        int wake;

        /* The last answer in each format; of the server's thread. */
        struct {
                struct MHD_Response *response;
                uint64_t taken_ns, took_ns;
        } last[2];
};

/* Connections. */

static int get_fd(struct MHD_Connection *connection)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        return info ? info->connect_fd : -1;
}

/* Told before the descriptor is closed. */
static void on_connection(void *userdata, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
        struct server *server = userdata;

        (void)context;
        if (code != MHD_CONNECTION_NOTIFY_STARTED) {
                visits_end(server->visits, get_fd(connection));
                return;
        }
        visits_begin(server->visits, get_fd(connection));
        (void)eventfd_write(server->wake, 1);
}

unsigned int server_sweep(struct server *server)
{
        eventfd_t woken;

        (void)eventfd_read(server->wake, &woken);
        live_sweep(server->live);
        return visits_sweep(server->visits);
}

/* Answers. */

static bool wants_open_metrics(struct MHD_Connection *connection)
{
        const char *accept =
                MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);

        return accept && strstr(accept, "application/openmetrics-text");
}

/* Whoever came while it was taken gets it too: a vgpud that is slow is not asked once for each. */
static bool is_fresh(const struct server *server, bool is_open, uint64_t now_ns)
{
        return server->last[is_open].response &&
               now_ns - server->last[is_open].taken_ns < FRESH_NS + server->last[is_open].took_ns;
}

/* NULL: there was no memory. Borrowed, until the next one is made. */
static struct MHD_Response *get_metrics(struct server *server, bool is_open)
{
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);
        CLEANUP(text_deinitp) struct text text = { 0 };
        struct MHD_Response *response;

        if (is_fresh(server, is_open, now_ns))
                return server->last[is_open].response;
        if (scrape_take(server->is.scrape, is_open, &text) < 0)
                return NULL;
        response = response_new(text.bytes, text.size,
                                is_open ? TYPE_OPEN_METRICS : RESPONSE_TYPE_TEXT,
                                MHD_RESPMEM_MUST_FREE);
        if (!response)
                return NULL;
        text = (struct text){ 0 };
        if (server->last[is_open].response)
                MHD_destroy_response(server->last[is_open].response);
        server->last[is_open].response = response;
        server->last[is_open].taken_ns = clock_now(CLOCK_MONOTONIC);
        server->last[is_open].took_ns = server->last[is_open].taken_ns - now_ns;
        return response;
}

static enum MHD_Result answer_metrics(struct server *server, struct MHD_Connection *connection)
{
        struct MHD_Response *response = get_metrics(server, wants_open_metrics(connection));

        if (!response)
                return response_answer(connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
                                       RESPONSE_TYPE_TEXT, "out of memory\n");
        return MHD_queue_response(connection, MHD_HTTP_OK, response);
}

static enum MHD_Result answer_events(struct server *server, struct MHD_Connection *connection)
{
        int r = live_serve(server->live, connection);

        if (r > 0)
                return response_answer(connection, MHD_HTTP_SERVICE_UNAVAILABLE, RESPONSE_TYPE_TEXT,
                                       "too many look at the page; close another one\n");
        visits_exempt(server->visits, get_fd(connection), true);
        return r == 0 ? MHD_YES : MHD_NO;
}

/* None of our paths and values has an escape: one that has is another one, whatever it would become. */
static size_t leave_escapes(void *userdata, struct MHD_Connection *connection, char *text)
{
        (void)userdata, (void)connection;
        return strlen(text);
}

/* Who asks behind a proxy could name one host to it and another one to us. */
static enum MHD_Result count_host(void *userdata, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
        unsigned int *n = userdata;

        (void)kind, (void)value;
        *n += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
        return MHD_YES;
}

static bool has_two_hosts(struct MHD_Connection *connection)
{
        unsigned int n = 0;

        (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, count_host, &n);
        return n > 1;
}

static bool is_called_by_its_name(const struct server *server, struct MHD_Connection *connection)
{
        return !server->is.names ||
               host_name_is_allowed(server->is.names,
                                    MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                                                MHD_HTTP_HEADER_HOST));
}

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection,
                                  const char *url, const char *method, const char *version,
                                  const char *upload, size_t *upload_size, void **context)
{
        struct server *server = userdata;

        (void)version, (void)upload, (void)upload_size, (void)context;
        visits_note_request(server->visits, get_fd(connection));
        if (has_two_hosts(connection))
                return response_answer(connection, MHD_HTTP_BAD_REQUEST, RESPONSE_TYPE_TEXT,
                                       "more than one Host\n");
        if (!is_called_by_its_name(server, connection))
                return response_answer(
                        connection, MHD_HTTP_MISDIRECTED_REQUEST, RESPONSE_TYPE_TEXT,
                        "not a name of this server: use its address, or start vgpu-exporter "
                        "with --host NAME\n");
        if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
                return response_refuse_method(connection, "GET, HEAD");
        if (strcmp(url, "/metrics") == 0)
                return answer_metrics(server, connection);
        if (strcmp(url, "/events") == 0 && strcmp(method, MHD_HTTP_METHOD_GET) == 0)
                return answer_events(server, connection);
        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
                if (strcmp(url, files[i].path) == 0)
                        return response_answer(connection, MHD_HTTP_OK, files[i].type,
                                               files[i].text);
        return response_answer(connection, MHD_HTTP_NOT_FOUND, RESPONSE_TYPE_TEXT,
                               "not found; there are / and /metrics\n");
}

/* Life. */

static int start(struct server *server, int fd)
{
        const struct tls *tls = server->is.tls;
        struct MHD_OptionItem secrets[] = {
                { MHD_OPTION_HTTPS_MEM_KEY, 0, tls ? tls->key : NULL },
                { MHD_OPTION_HTTPS_MEM_CERT, 0, tls ? tls->certificate : NULL },
                { MHD_OPTION_END, 0, NULL },
        };

        server->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (server->wake < 0)
                return -errno;
        if (tls && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
                return -ENOTSUP;
        /* Not epoll: with its edges, 0.9.75 sees some hang up only when they have been idle for long. */
        server->daemon = MHD_start_daemon(
                MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | (tls ? MHD_USE_TLS : 0u),
                0, NULL, NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, fd,
                MHD_OPTION_CONNECTION_LIMIT, (unsigned int)(VISITS_MAX + VISITS_LEAVING_MAX),
                MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SERVER_HEADER_MAX,
                MHD_OPTION_UNESCAPE_CALLBACK, leave_escapes, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1,
                MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_ARRAY,
                tls ? secrets : &secrets[2], MHD_OPTION_END);
        return server->daemon ? 0 : -EIO;
}

int server_new(struct server **ret_server, int fd, const struct server_options *options)
{
        struct server *server = calloc(1, sizeof(*server));
        int r;

        if (!server) {
                fd_close(fd);
                return -ENOMEM;
        }
        server->is = *options;
        server->wake = -1;
        r = visits_new(&server->visits);
        if (r == 0)
                r = live_new(&server->live, options->scrape, options->rate);
        if (r == 0)
                r = start(server, fd);
        if (r < 0) {
                fd_close(fd); /* else the daemon's */
                (void)server_free(server);
                return r;
        }
        *ret_server = server;
        return 0;
}

/*
 * It is stopped when nobody is there any more: while it stops, libmicrohttpd (0.9.75) answers who sends what is no
 * request with a response that it has not made.
 */
static void stop(struct server *server)
{
        int fd = MHD_quiesce_daemon(server->daemon);

        live_end(server->live);
        visits_send_all_away(server->visits);
        MHD_stop_daemon(server->daemon);
        fd_close(fd);
}

struct server *server_free(struct server *server)
{
        if (!server)
                return NULL;
        if (server->daemon)
                stop(server);
        server->live = live_free(server->live);
        for (size_t i = 0; i < 2; i++)
                if (server->last[i].response)
                        MHD_destroy_response(server->last[i].response);
        server->visits = visits_free(server->visits);
        fd_close(server->wake);
        free(server);
        return NULL;
}

int server_get_wake(const struct server *server)
{
        return server->wake;
}
