/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CHECKPOINT_SERVICE_H
#define SIM_CHECKPOINT_SERVICE_H

/*
 * The checkpoint service: a thread in every process that uses the simulated driver, on which
 * others call the four checkpoint steps. One request and one answer a connection, to the socket
 * "services/SLOT" in the host's directory; states and thread ids need no service, they stand in
 * the process' slot.
 *
 * With custom storage the answer is followed by the files of the process' memory, and the connection
 * stays: for one more request, COMPLETE, and its answer. Whoever closes it before has left the process
 * half saved: then it has failed. (Documentation knows no way to abort; what the real driver makes of a
 * caller that dies is not known.)
 */

#include <stdint.h>

#include "abi/cuda.h"
#include "base/packet.h"
#include "sim/host-layout.h"

enum checkpoint_step {
        CHECKPOINT_LOCK = 1,
        CHECKPOINT_CHECKPOINT,
        CHECKPOINT_RESTORE,
        CHECKPOINT_UNLOCK,
        CHECKPOINT_COMPLETE, /* on the connection of a checkpoint or restore with custom storage */
};

struct checkpoint_request {
        uint32_t step;
        uint32_t timeout_ms; /* LOCK; 0: for ever */
        uint32_t n_pairs;    /* RESTORE */
        uint32_t wants_storage;
        uint32_t
                contexts; /* with storage: bit N, the caller holds a primary context on host device N */
        CUcheckpointGpuPair pair[HOST_DEVICES_MAX];
};

struct checkpoint_answer {
        int32_t result; /* CUresult */
};

/* As many messages as it takes, each with a descriptor for each file. */
struct checkpoint_files {
        uint32_t n;
        uint32_t is_last;
        struct {
                uint64_t size;
                int32_t device; /* of the host */
                uint32_t reserved;
        } file[PACKET_FDS_MAX];
};

/* checkpoint_service_start() - in cuInit(). checkpoint_service_abandon() - in a forked child. */
int checkpoint_service_start(void);
void checkpoint_service_abandon(void);

/* checkpoint_service_address() - a name below /proc, which is short whatever the directory is. */
struct sockaddr_un;
void checkpoint_service_address(struct sockaddr_un *address, uint32_t slot);

#endif
