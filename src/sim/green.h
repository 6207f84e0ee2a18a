/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_GREEN_H
#define SIM_GREEN_H

/* Green contexts: parts of a primary one, with streams of their own. With the process' lock held. */

#include "sim/context.h"

/* green_find() - return the context of a live green one, else NULL. */
CUcontext green_find(CUgreenCtx green);

#endif
