/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_OFFER_INTERNAL_H
#define GATE_OFFER_INTERNAL_H

#include <pthread.h>
#include <stdint.h>

#include "abi/cuda.h"

/* What the names of mappings (offer-name.h) and what is given of them (offer.h) share. */
struct offer {
        pthread_mutex_t naming;
        pthread_mutex_t offering; /* while held, what has a name keeps its memory */
        uint32_t round;           /* of the boxes: they have been empty so many times */
        CUdeviceptr behind_last;  /* that was offered */
};

extern struct offer offer;

#endif
