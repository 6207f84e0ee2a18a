/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_METHODS_HISTORY_H
#define MANAGER_METHODS_HISTORY_H

/* What happened to vGPUs. */
#include <stddef.h>

#include "manager/control/control.h"

extern const struct control_method methods_history[];
extern const size_t n_methods_history;

#endif
