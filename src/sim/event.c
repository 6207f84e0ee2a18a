/* SPDX-License-Identifier: Apache-2.0 */
/* An event is a number of a stream's work, and the time when this work was done. */

#include "sim/event.h"

#include <stdlib.h>

#include "base/clock.h"

CUevent event_unref(CUevent event)
{
        if (--event->refs > 0)
                return NULL;
        if (event->stream)
                (void)stream_unref(event->stream);
        free(event);
        return NULL;
}

void event_happen(CUevent event, uint64_t generation)
{
        PROCESS_LOCKED();

        if (event->generation == generation)
                event->time = clock_now(CLOCK_MONOTONIC);
        (void)event_unref(event);
}
