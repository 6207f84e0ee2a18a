/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/desk.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/list.h"
#include "exporter/question.h"
#include "exporter/reply.h"
#include "exporter/response.h"
#include "exporter/token.h"

/* So many in a period; the caller holds the lock. */
struct pace {
        uint64_t since_ns;
        unsigned int n;
};

/* The desk lives until the last errand has ended, which may be later than the server. */
struct desk {
        const struct token *token;
        pthread_mutex_t lock;
        unsigned int n_users; /* the server, and errands */
        unsigned int n_errands, n_strangers;
        struct list errands; /* that are under way */
        struct pace actions, wrong;
        bool must_end;
};

/* Of its thread and of its request: whoever leaves last frees it. */
struct errand {
        struct list link;
        struct desk *desk;
        struct MHD_Connection *connection; /* that is suspended; NULL: not any more */
        unsigned int n_users;
        bool is_done;
        struct question question;
        struct reply reply;
};

struct request {
        struct errand *errand; /* NULL: none yet */
        size_t size;
        char body[QUESTION_BODY_MAX + 1]; /* one byte more: it is too long */
};

static struct desk *desk_unref(struct desk *desk)
{
        bool is_last;

        (void)pthread_mutex_lock(&desk->lock);
        is_last = --desk->n_users == 0;
        (void)pthread_mutex_unlock(&desk->lock);
        if (!is_last)
                return NULL;
        (void)pthread_mutex_destroy(&desk->lock);
        free(desk);
        return NULL;
}

static bool may_go(struct pace *pace, unsigned int most)
{
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        if (pace->n == 0 || now_ns - pace->since_ns > DESK_PERIOD_SECONDS * NS_PER_S)
                *pace = (struct pace){ .since_ns = now_ns };
        return pace->n++ < most;
}

/* Errands. */

static void errand_unref(struct errand *errand)
{
        struct desk *desk = errand->desk;
        bool is_last;

        (void)pthread_mutex_lock(&desk->lock);
        is_last = --errand->n_users == 0;
        (void)pthread_mutex_unlock(&desk->lock);
        if (!is_last)
                return;
        free(errand->reply.text);
        free(errand);
        (void)desk_unref(desk);
}

/* With the lock held: its request is served again. */
static void wake(struct errand *errand)
{
        if (errand->connection)
                MHD_resume_connection(errand->connection);
        errand->connection = NULL;
}

static void *run_errand(void *userdata)
{
        struct errand *errand = userdata;
        struct desk *desk = errand->desk;

        reply_make(&errand->reply, &errand->question);
        (void)pthread_mutex_lock(&desk->lock);
        errand->is_done = true;
        desk->n_errands--;
        desk->n_strangers -= !errand->question.has_token;
        list_remove(&errand->link);
        wake(errand);
        (void)pthread_mutex_unlock(&desk->lock);
        errand_unref(errand);
        return NULL;
}

/* With the lock held. Nobody waits for the thread: an operation may take longer than we live. */
static int start_errand(struct desk *desk, struct errand *errand)
{
        pthread_attr_t attributes;
        pthread_t thread;
        int r;

        (void)pthread_attr_init(&attributes);
        (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        r = -pthread_create(&thread, &attributes, run_errand, errand);
        (void)pthread_attr_destroy(&attributes);
        if (r < 0)
                return r;
        desk->n_users++;
        desk->n_errands++;
        desk->n_strangers += !errand->question.has_token;
        list_append(&desk->errands, &errand->link);
        MHD_suspend_connection(errand->connection);
        return 0;
}

static bool has_room(const struct desk *desk, const struct question *question)
{
        return !desk->must_end && desk->n_errands < DESK_ERRANDS_MAX &&
               (question->has_token || desk->n_strangers < DESK_STRANGERS_MAX);
}

/* 1: there is no room. */
static int send_out(struct desk *desk, struct MHD_Connection *connection,
                    const struct question *question, struct request *request)
{
        struct errand *errand = calloc(1, sizeof(*errand));
        int r = 1;

        if (!errand)
                return -ENOMEM;
        *errand = (struct errand){
                .desk = desk, .connection = connection, .n_users = 2, .question = *question
        };
        list_init(&errand->link);
        (void)pthread_mutex_lock(&desk->lock);
        if (has_room(desk, question))
                r = start_errand(desk, errand);
        (void)pthread_mutex_unlock(&desk->lock);
        if (r == 0)
                request->errand = errand;
        else
                free(errand);
        return r;
}

/* Answers. */

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned int status,
                              const char *why)
{
        return response_answer(connection, status, RESPONSE_TYPE_TEXT, why);
}

static bool is_done(const struct errand *errand)
{
        bool is_done;

        (void)pthread_mutex_lock(&errand->desk->lock);
        is_done = errand->is_done;
        (void)pthread_mutex_unlock(&errand->desk->lock);
        return is_done;
}

static enum MHD_Result answer(struct MHD_Connection *connection, const struct errand *errand)
{
        const struct reply *reply = &errand->reply;
        struct MHD_Response *response;
        enum MHD_Result result;

        if (!is_done(errand))
                return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                              "vgpu-exporter ends; what was asked for may still be done\n");
        if (!reply->text)
                return refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
        response = response_new(reply->text, strlen(reply->text),
                                reply->is_csv ? RESPONSE_TYPE_CSV : RESPONSE_TYPE_JSON,
                                MHD_RESPMEM_MUST_COPY);
        if (!response)
                return MHD_NO;
        if (reply->is_csv)
                (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_DISPOSITION,
                                              "attachment; filename=\"usage.csv\"");
        result = MHD_queue_response(connection, reply->status, response);
        MHD_destroy_response(response);
        return result;
}

/* Who asks. */

static const char *get_header(struct MHD_Connection *connection, const char *name)
{
        return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* A browser says from where a request comes, whatever the page wants; other programs say nothing. */
static bool is_from_our_page(struct MHD_Connection *connection)
{
        const char *origin = get_header(connection, MHD_HTTP_HEADER_ORIGIN);
        const char *site = get_header(connection, "Sec-Fetch-Site");
        const char *host = get_header(connection, MHD_HTTP_HEADER_HOST);
        const char *name = origin ? strstr(origin, "://") : NULL;

        if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
                return false;
        return !origin || (name && host && strcasecmp(name + 3, host) == 0);
}

enum shown { SHOWN_NONE, SHOWN_RIGHT, SHOWN_WRONG, SHOWN_TOO_OFTEN };

static enum shown check_token(struct desk *desk, struct MHD_Connection *connection)
{
        const char *authorization = get_header(connection, MHD_HTTP_HEADER_AUTHORIZATION);
        bool is_seldom;

        if (!authorization)
                return SHOWN_NONE;
        if (desk->token && token_matches(desk->token, authorization))
                return SHOWN_RIGHT;
        (void)pthread_mutex_lock(&desk->lock);
        is_seldom = may_go(&desk->wrong, DESK_WRONG_MAX);
        (void)pthread_mutex_unlock(&desk->lock);
        return is_seldom ? SHOWN_WRONG : SHOWN_TOO_OFTEN;
}

static enum MHD_Result refuse_token(const struct desk *desk, struct MHD_Connection *connection,
                                    enum shown shown)
{
        if (!desk->token)
                return refuse(connection, MHD_HTTP_FORBIDDEN,
                              "start vgpu-exporter with --token-file FILE\n");
        if (shown == SHOWN_TOO_OFTEN)
                return refuse(connection, MHD_HTTP_TOO_MANY_REQUESTS,
                              "too many wrong tokens; wait ten seconds\n");
        return refuse(connection, MHD_HTTP_FORBIDDEN,
                      shown == SHOWN_NONE ? "this needs the token\n" : "the token is wrong\n");
}

/* What is asked. NULL: it is a question. */

static const char *get_argument(struct MHD_Connection *connection, const char *name)
{
        return MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}

static const char *parse(struct question *question, struct MHD_Connection *connection,
                         const struct request *request)
{
        const char *format = get_argument(connection, "format");

        switch (question->kind) {
        case QUESTION_VGPU:
                return question_parse_uuid(question, get_argument(connection, "uuid"))
                               ? NULL
                               : "say ?uuid=UUID\n";
        case QUESTION_USAGE:
                question->is_csv = format && strcmp(format, "csv") == 0;
                return question_parse_month(question, get_argument(connection, "month"))
                               ? NULL
                               : "say ?month=2026-11\n";
        case QUESTION_ACT:
                break;
        }
        return question_parse_action(question, request->body, request->size);
}

static bool is_json(struct MHD_Connection *connection)
{
        const char *type = get_header(connection, MHD_HTTP_HEADER_CONTENT_TYPE);

        return type && strncasecmp(type, "application/json", 16) == 0 &&
               (type[16] == '\0' || type[16] == ';');
}

static const struct {
        const char *url, *method;
        enum question_kind kind;
} table[] = {
        { "/vgpu", MHD_HTTP_METHOD_GET, QUESTION_VGPU },
        { "/usage", MHD_HTTP_METHOD_GET, QUESTION_USAGE },
        { "/actions", MHD_HTTP_METHOD_POST, QUESTION_ACT },
};

#define TABLE_SIZE (sizeof(table) / sizeof(table[0]))

static size_t find(const char *url)
{
        size_t i = 0;

        while (i < TABLE_SIZE && strcmp(table[i].url, url) != 0)
                i++;
        return i;
}

bool desk_knows(const char *url)
{
        return find(url) < TABLE_SIZE;
}

static enum MHD_Result go(struct desk *desk, struct MHD_Connection *connection,
                          const struct question *question, struct request *request)
{
        int r = send_out(desk, connection, question, request);

        if (r == 0)
                return MHD_YES;
        return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                      r > 0 ? "too much is asked at once; try again\n" : "out of memory\n");
}

static bool is_paced(struct desk *desk)
{
        bool is_fine;

        (void)pthread_mutex_lock(&desk->lock);
        is_fine = may_go(&desk->actions, DESK_ACTIONS_MAX);
        (void)pthread_mutex_unlock(&desk->lock);
        return is_fine;
}

/* The token comes before everything else: a stranger learns nothing from what is wrong with a question. */
static enum MHD_Result begin(struct desk *desk, struct MHD_Connection *connection,
                             enum question_kind kind, struct request *request)
{
        struct question question = { .kind = kind };
        enum shown shown = check_token(desk, connection);
        const char *wrong;

        if (shown != SHOWN_RIGHT && (shown != SHOWN_NONE || kind != QUESTION_VGPU))
                return refuse_token(desk, connection, shown);
        if (kind == QUESTION_ACT && !is_json(connection))
                return refuse(connection, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                              "send application/json\n");
        question.has_token = shown == SHOWN_RIGHT;
        wrong = parse(&question, connection, request);
        if (wrong)
                return refuse(connection, MHD_HTTP_BAD_REQUEST, wrong);
        if (kind == QUESTION_ACT && !is_paced(desk))
                return refuse(connection, MHD_HTTP_TOO_MANY_REQUESTS,
                              "too many actions; wait ten seconds\n");
        return go(desk, connection, &question, request);
}

/* What is too long is read to its end, and kept no further. */
static void add_body(struct request *request, const char *upload, size_t *upload_size)
{
        size_t room = sizeof(request->body) - request->size;
        size_t n = *upload_size < room ? *upload_size : room;

        memcpy(request->body + request->size, upload, n);
        request->size += n;
        *upload_size = 0;
}

enum MHD_Result desk_serve(struct desk *desk, struct MHD_Connection *connection, const char *url,
                           const char *method, const char *upload, size_t *upload_size,
                           void **context)
{
        struct request *request = *context;
        size_t i = find(url);

        if (!is_from_our_page(connection))
                return refuse(connection, MHD_HTTP_FORBIDDEN, "not from another page\n");
        if (strcmp(method, table[i].method) != 0)
                return response_refuse_method(connection, table[i].method);
        if (!request) {
                *context = calloc(1, sizeof(*request));
                return *context ? MHD_YES : MHD_NO;
        }
        if (*upload_size > 0) {
                add_body(request, upload, upload_size);
                return MHD_YES;
        }
        return request->errand ? answer(connection, request->errand)
                               : begin(desk, connection, table[i].kind, request);
}

bool desk_is_waiting(const void *context)
{
        const struct request *request = context;

        return request && request->errand && !is_done(request->errand);
}

void desk_forget(void *context)
{
        struct request *request = context;

        if (!request)
                return;
        if (request->errand)
                errand_unref(request->errand);
        free(request);
}

/* Life. */

int desk_new(struct desk **ret_desk, const struct token *token)
{
        struct desk *desk = calloc(1, sizeof(*desk));

        if (!desk)
                return -ENOMEM;
        desk->token = token;
        desk->n_users = 1;
        list_init(&desk->errands);
        (void)pthread_mutex_init(&desk->lock, NULL);
        *ret_desk = desk;
        return 0;
}

void desk_end(struct desk *desk)
{
        struct errand *errand;

        (void)pthread_mutex_lock(&desk->lock);
        desk->must_end = true;
        list_for_each(errand, &desk->errands, link)
                wake(errand);
        (void)pthread_mutex_unlock(&desk->lock);
}

struct desk *desk_free(struct desk *desk)
{
        return desk ? desk_unref(desk) : NULL;
}
