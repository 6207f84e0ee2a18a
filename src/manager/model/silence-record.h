/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SILENCE_RECORD_H
#define MANAGER_SILENCE_RECORD_H

/* What a guest has of a call of the driver on it that has not returned: silence.h. */

struct device;

enum silence_state {
        SILENCE_NONE = 0,
        SILENCE_LASTS,
        SILENCE_OVER, /* what it left undone may be undone now */
};

struct silence {
        enum silence_state state;
        struct device *device; /* whose mover made the call */
        char call[48];
};

#endif
