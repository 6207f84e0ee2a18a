/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CHECKPOINT_SERVICE_H
#define SIM_CHECKPOINT_SERVICE_H

/*
 * The checkpoint service: a thread in every process that uses the simulated driver, on which
 * others call the four checkpoint steps. One request and one answer a connection, to the socket
 * "services/SLOT" in the host's directory; states and thread ids need no service, they stand in
 * the process' slot.
 */

#include <stdint.h>

#include "abi/cuda.h"
#include "sim/host-layout.h"

enum checkpoint_step {
        CHECKPOINT_LOCK = 1,
        CHECKPOINT_CHECKPOINT,
        CHECKPOINT_RESTORE,
        CHECKPOINT_UNLOCK,
};

struct checkpoint_request {
        uint32_t step;
        uint32_t timeout_ms; /* LOCK; 0: for ever */
        uint32_t n_pairs;    /* RESTORE */
        CUcheckpointGpuPair pair[HOST_DEVICES_MAX];
};

struct checkpoint_answer {
        int32_t result; /* CUresult */
};

/* checkpoint_service_start() - in cuInit(). checkpoint_service_abandon() - in a forked child. */
int checkpoint_service_start(void);
void checkpoint_service_abandon(void);

/* checkpoint_service_address() - a name below /proc, which is short whatever the directory is. */
struct sockaddr_un;
void checkpoint_service_address(struct sockaddr_un *address, uint32_t slot);

#endif
