/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_REPLY_H
#define EXPORTER_REPLY_H

/* What a question gets: vgpud is asked for it, and does what was asked for. */

#include "exporter/question.h"

struct reply {
        unsigned int status; /* of HTTP */
        bool is_csv;         /* else JSON */
        char *text;          /* NULL: there was no memory */
};

/*
 * reply_make() - ask vgpud, with a connection of its own; the caller frees the text
 *
 * Blocks: for an operation, as long as it takes.
 */
void reply_make(struct reply *ret_reply, const struct question *question);

#endif
