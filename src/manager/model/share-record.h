/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SHARE_RECORD_H
#define MANAGER_SHARE_RECORD_H

/* What is under way of a guest's asking for memory of others, and of others' asking for its: guests/share.h. */

#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"

struct share_news;
struct share_question;

struct share_guest {
        uint32_t ticket_slot;            /* that its tickets bear, and 1; 0: they bear its own */
        struct list questions;           /* share_question: for memory that it has made */
        struct share_question *question; /* its own; NULL: none yet */
        struct share_news *news;         /* of whose memory it has; NULL: none yet */
        char refusal[128]; /* why it got no memory of another process, last; "": it did */
        pid_t silent_maker; /* who did not answer when it last asked for memory; 0: who was asked did */
        uint64_t n_may_tell, n_may_offer; /* times that it may send USES, OFFERED */
};

#endif
