/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_METHODS_SETTING_H
#define MANAGER_METHODS_SETTING_H

/* The methods of the control protocol that change settings; for root only. */

#include "manager/control/control.h"

extern const struct control_method methods_setting[];
extern const size_t n_methods_setting;

#endif
