/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_RESPONSE_H
#define EXPORTER_RESPONSE_H

/* Answers, with the headers that all of them have: nothing is kept, framed, or read as what it is not. */

#include <microhttpd.h>

#define RESPONSE_TYPE_TEXT "text/plain; version=0.0.4; charset=utf-8"

/* response_new() - NULL: no memory, and @bytes are still the caller's. */
struct MHD_Response *response_new(const void *bytes, size_t size, const char *type,
                                  enum MHD_ResponseMemoryMode mode);

/* response_answer() - with @text, which stays for ever. */
enum MHD_Result response_answer(struct MHD_Connection *connection, unsigned int status,
                                const char *type, const char *text);

/* response_refuse_method() - only @allowed can be asked here. */
enum MHD_Result response_refuse_method(struct MHD_Connection *connection, const char *allowed);

#endif
