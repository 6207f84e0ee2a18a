/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/fate.h"

#include "abi/cuda-fault.h"

enum gate_fate fate_of(CUresult code)
{
        if (code == CUDA_ERROR_DEINITIALIZED)
                return GATE_FATE_ENDS;
        return cuda_breaks_context(code) ? GATE_FATE_BROKEN : GATE_FATE_STAYS;
}
