/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_OFFER_INTERNAL_H
#define GATE_OFFER_INTERNAL_H

#include <pthread.h>

/* What the names of mappings (offer-name.h) and what is given of them (offer.h) share. */
struct offer {
        pthread_mutex_t naming;
        pthread_mutex_t offering; /* while held, what has a name keeps its memory */
};

extern struct offer offer;

#endif
