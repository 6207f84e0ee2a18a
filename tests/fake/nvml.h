/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H

/*
 * A libnvidia-ml.so.1 that plays a host with three devices, as a driver of some age would: it is built
 * once for each age, with the functions and struct versions of that age and no others.
 *
 *   device 0  vGPUs 11 and 3251634327, in time slices
 *   device 1  GPU instances 5 and 6 (MIG), vGPU 21 in the first
 *   device 2  off the bus
 *
 * A test that has loaded it reaches into it through the symbol fake_nvml. A program that is only
 * started with it is told by $FAKE_NVML: "nvmlDeviceGetCount_v2=15" makes that function answer 15.
 */

#include <stdbool.h>

#include "abi/nvml.h"

#define FAKE_NVML_SYMBOL "fake_nvml"

#define FAKE_TRAIN 11u
#define FAKE_INFER 3251634327u
#define FAKE_MIG   21u

#define FAKE_TYPE_BIG   500u /* on device 0 */
#define FAKE_TYPE_SMALL 501u
#define FAKE_TYPE_MIG   700u /* on device 1 */

#define FAKE_GPU_INSTANCE 5u

struct fake_nvml {
        unsigned int driver; /* 390, 535, ...: which one it plays; not to be changed */

        /* To be set by the test. */
        const char *answer_of; /* this function ... */
        nvmlReturn_t answer;   /* ... answers that */
        unsigned int grow;     /* so often, there is more when the caller comes with the room */
        bool is_insatiable;    /* no room is enough */
        bool is_crippled;      /* metadata claims to be longer than it is */
        bool is_silent;        /* utilization: nothing new */
        const char *watch;     /* a function to look out for */
        unsigned int xid;      /* device 0 has this error, once; 0: none */

        /* To be read by the test. */
        unsigned int n_init, n_shutdown;
        unsigned int n_calls;
        bool was_called; /* @watch was */
        unsigned int n_event_sets;
        unsigned int set[6]; /* what the last function that sets something was given */
};

#endif
