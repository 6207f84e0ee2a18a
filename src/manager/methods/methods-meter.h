/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_METHODS_METER_H
#define MANAGER_METHODS_METER_H

/* The methods of the control protocol that tell what was used. */

#include "manager/control/control.h"

extern const struct control_method methods_meter[];
extern const size_t n_methods_meter;

#endif
