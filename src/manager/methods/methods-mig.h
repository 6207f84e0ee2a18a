/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_METHODS_MIG_H
#define MANAGER_METHODS_MIG_H

/* The methods that make and end GPU instances and compute instances; for root only. */

#include "manager/control/control.h"

extern const struct control_method methods_mig[];
extern const size_t n_methods_mig;

#endif
