/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_WORK_RUN_H
#define SIM_WORK_RUN_H

/* Does work. */

#include "sim/work.h"

/* work_run() - does @work in @stream of a context. The process' lock is not held. */
CUresult work_run(struct work *work, CUstream stream);

#endif
