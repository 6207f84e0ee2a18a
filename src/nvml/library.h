/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_LIBRARY_H
#define NVML_LIBRARY_H

/* The state of the whole library: initialised or not, and which library stands behind it. */

#include <stdbool.h>

/* library_is_ours() - is it initialised, with a state page? If not, NVIDIA's library may answer alone. */
bool library_is_ours(void);

/* library_has_real() - is NVIDIA's library in use? */
bool library_has_real(void);

#endif
