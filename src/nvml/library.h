/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_LIBRARY_H
#define NVML_LIBRARY_H

/* The state of the whole library: initialised or not, and which library stands behind it. */

#include <stdbool.h>

/* library_is_ours() - initialised, with a state page? False also means that NVIDIA's answers alone. */
bool library_is_ours(void);

/* library_has_real() - is NVIDIA's library in use? */
bool library_has_real(void);

#endif
