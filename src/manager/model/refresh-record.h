/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_REFRESH_RECORD_H
#define MANAGER_REFRESH_RECORD_H

/* What the last copy that followed a guest was of: operation/refresh.h. */

#include <stdbool.h>
#include <stdint.h>

struct refreshed {
        bool is_any;      /* its copy followed it entirely, */
        uint32_t n_works; /* when it had had so much work (instance-page.h) */
        uint64_t n_launches;
        uint64_t not_before_ns, pause_ns; /* CLOCK_MONOTONIC */
};

#endif
