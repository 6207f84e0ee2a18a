/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_METHODS_IMAGE_H
#define MANAGER_METHODS_IMAGE_H

/* The methods of the control protocol with which images are written and loaded. */

#include "manager/control/control.h"

extern const struct control_method methods_image[];
extern const size_t n_methods_image;

#endif
