/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_SAMPLER_H
#define WIRE_SAMPLER_H

/*
 * The sampler's messages to the manager that started it, over the SOCK_SEQPACKET connection that is
 * its descriptor SAMPLER_FD. The sampler ends when the manager hangs up. It repeats for each
 * device:
 *
 *     USE              of each process that the device had something to do for
 *     ERROR            instead, once: there are no samples of this device
 *     LOST             likewise: it fell off the bus
 *     MEMORY           of each process that has memory there
 *     ENCODER, CAPTURE of each session that is there
 *     THAT_IS_ALL      a session that was not told since the last one has ended
 */

#include <stdint.h>

#define SAMPLER_FD           3
#define SAMPLER_WIRE_MAGIC   0x504d4153u /* "SAMP" */
#define SAMPLER_WIRE_VERSION 2u
#define SAMPLER_ENGINES      6 /* SM, memory, encoder, decoder, JPEG, OFA */

enum sampler_message {
        SAMPLER_USE = 1,
        SAMPLER_ERROR,
        SAMPLER_LOST,
        SAMPLER_MEMORY,
        SAMPLER_ENCODER,
        SAMPLER_CAPTURE,
        SAMPLER_THAT_IS_ALL,
};

/* Numbers are NVML's. */
struct sampler_session {
        uint32_t id;
        uint32_t kind; /* codec, or type of capture */
        uint32_t width, height;
        uint32_t fps, latency_us; /* averages */
        /* of a capture */
        uint32_t display, flags;
        uint32_t max_width, max_height;
};

struct sampler_packet {
        uint32_t magic;
        uint16_t version;
        uint16_t message; /* enum sampler_message */
        uint32_t device;  /* which of the UUIDs that it was started with */
        uint32_t pid;     /* 0 where it is not about one */
        union {
                struct {
                        uint32_t percent[SAMPLER_ENGINES];
                        uint64_t period_us; /* of which that is the average */
                } use;
                uint64_t memory; /* bytes */
                struct sampler_session session;
                int32_t error; /* NVML's */
        };
};

#endif
