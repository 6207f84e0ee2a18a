/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_SAMPLER_H
#define WIRE_SAMPLER_H

/*
 * What the sampler tells the manager that started it, over the SOCK_SEQPACKET connection that is its
 * descriptor SAMPLER_FD: one packet for each process that a device had something to do for. It ends
 * when the manager hangs up.
 */

#include <stdint.h>

#define SAMPLER_FD           3
#define SAMPLER_WIRE_MAGIC   0x504d4153u /* "SAMP" */
#define SAMPLER_WIRE_VERSION 1u
#define SAMPLER_ENGINES      6 /* SM, memory, encoder, decoder, JPEG, OFA */

struct sampler_packet {
        uint32_t magic;
        uint16_t version;
        uint16_t device; /* which of the UUIDs that it was started with */
        uint32_t pid;    /* 0: there are no samples of this device, because of @error */
        int32_t error;   /* NVML's */
        uint32_t percent[SAMPLER_ENGINES];
        uint64_t period_us; /* of which that is the average */
};

#endif
