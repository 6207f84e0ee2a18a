/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The peer: what NVIDIA's own checkpoint of a process costs, called the way the
 * driver's documentation says, with nothing of ours in the target.
 *
 *     driver-checkpoint PID [OLD_ORDINAL NEW_ORDINAL]
 *
 * Locks, checkpoints, restores (onto another device if two ordinals are given:
 * every device is listed, the two exchanged) and unlocks process PID, and prints
 * the seconds of each step.
 */
#include <stdlib.h>

#include "tests/guests/driver.h"

#define DEVICES_MAX 16

static double timed(CUresult result, double start, const char *step)
{
        must_succeed(result, step);
        return now() - start;
}

static unsigned int pair_all(CUcheckpointGpuPair *pairs, int from, int to)
{
        int n = 0;

        must(DRIVER(cuDeviceGetCount)(&n));
        if (n > DEVICES_MAX)
                n = DEVICES_MAX;
        for (int i = 0; i < n; i++) {
                must(DRIVER(cuDeviceGetUuid)(&pairs[i].oldUuid, i));
                must(DRIVER(cuDeviceGetUuid)(&pairs[i].newUuid, i == from ? to
                                                                : i == to ? from
                                                                          : i));
        }
        return (unsigned int)n;
}

int main(int argc, char **argv)
{
        CUcheckpointLockArgs lock = { .timeoutMs = 60000 };
        CUcheckpointGpuPair pairs[DEVICES_MAX];
        CUcheckpointRestoreArgs restore = { 0 };
        CUcheckpointCheckpointArgs checkpoint = { 0 };
        CUcheckpointUnlockArgs unlock = { 0 };
        int pid = argc >= 2 ? atoi(argv[1]) : 0;
        double start;

        if (pid <= 0 || (argc != 2 && argc != 4)) {
                fprintf(stderr, "usage: driver-checkpoint PID [OLD_ORDINAL NEW_ORDINAL]\n");
                return 2;
        }
        must(DRIVER(cuInit)(0));
        if (argc == 4) {
                restore.gpuPairsCount = pair_all(pairs, atoi(argv[2]), atoi(argv[3]));
                restore.gpuPairs = pairs;
        }

        start = now();
        printf("lock %.4f\n", timed(DRIVER(cuCheckpointProcessLock)(pid, &lock), start, "lock"));
        start = now();
        printf("checkpoint %.4f\n",
               timed(DRIVER(cuCheckpointProcessCheckpoint)(pid, &checkpoint), start, "checkpoint"));
        start = now();
        printf("restore %.4f\n",
               timed(DRIVER(cuCheckpointProcessRestore)(pid, &restore), start, "restore"));
        start = now();
        printf("unlock %.4f\n",
               timed(DRIVER(cuCheckpointProcessUnlock)(pid, &unlock), start, "unlock"));
        return 0;
}
