/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/response.h"

#include <string.h>

/* The page and what it loads: from us, and from nowhere else. */
#define POLICY_PAGE                                                                     \
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " \
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
#define POLICY_NOTHING "default-src 'none'; frame-ancestors 'none'"

struct MHD_Response *response_new(const void *bytes, size_t size, const char *type,
                                  enum MHD_ResponseMemoryMode mode)
{
        void *content;
        struct MHD_Response *response;

        memcpy(&content, &bytes, sizeof(content)); /* it only reads */
        response = MHD_create_response_from_buffer(size, content, mode);
        if (!response)
                return NULL;
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
        (void)MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
        (void)MHD_add_response_header(response, "Content-Security-Policy",
                                      strncmp(type, "text/html", 9) == 0 ? POLICY_PAGE
                                                                         : POLICY_NOTHING);
        return response;
}

static enum MHD_Result queue(struct MHD_Connection *connection, unsigned int status,
                             const char *type, const char *text, const char *allowed)
{
        struct MHD_Response *response =
                response_new(text, strlen(text), type, MHD_RESPMEM_PERSISTENT);
        enum MHD_Result result;

        if (!response)
                return MHD_NO;
        if (allowed)
                (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allowed);
        result = MHD_queue_response(connection, status, response);
        MHD_destroy_response(response);
        return result;
}

enum MHD_Result response_answer(struct MHD_Connection *connection, unsigned int status,
                                const char *type, const char *text)
{
        return queue(connection, status, type, text, NULL);
}

enum MHD_Result response_refuse_method(struct MHD_Connection *connection, const char *allowed)
{
        return queue(connection, MHD_HTTP_METHOD_NOT_ALLOWED, RESPONSE_TYPE_TEXT,
                     "this method is not allowed here\n", allowed);
}
