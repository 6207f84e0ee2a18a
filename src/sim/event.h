/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

/* An event is a number of a stream's work, and the time when this work was done. */

#include "sim/object.h"
#include "sim/stream-object.h"

struct CUevent_st {
        struct object object;
        unsigned int flags;
        unsigned int refs; /* the program's, and each recording that is queued */
        CUstream stream;   /* of the last recording; NULL: never recorded */
        uint64_t number;
        uint64_t generation; /* counts recordings */
        uint64_t time;       /* nanoseconds, of the last recording that is done */
        uint64_t capture;    /* id of the one that it was recorded in, or 0 */
};

/* event_unref() - give up a reference; the last one ends the event. Returns NULL. With the lock held. */
CUevent event_unref(CUevent event);

/* event_happen() - note that the recording @generation is done; without the lock held. */
void event_happen(CUevent event, uint64_t generation);

#endif
