/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_SNAPSHOT_H
#define SIM_SNAPSHOT_H

/*
 * The snapshot of a checkpointed process: its device memory, kept in host memory.
 *
 * The memory files are the snapshot: what was device memory is from the checkpoint to the restore a
 * file that no device counts and that is mapped nowhere. Only what other processes hold as well
 * has to be copied, because from then on there are two.
 */

#include "abi/cuda.h"

/* snapshot_save() - save the memory. Errors: CUDA_ERROR_NOT_SUPPORTED (there is managed memory). */
CUresult snapshot_save(void);

/*
 * snapshot_restore() - to the devices that @pairs (all of the host's, or none) say. Errors:
 * CUDA_ERROR_INVALID_VALUE (pairs), CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_SUPPORTED (imported
 * memory was held); after the last two, CUDA_ERROR_OPERATING_SYSTEM for ever.
 */
CUresult snapshot_restore(const CUcheckpointGpuPair *pairs, unsigned int n_pairs);

#endif
