/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_HANDLE_H
#define SIM_HANDLE_H

/* Programs hold physical memory by numbers. Call these with the process' lock held. */

#include <stdbool.h>

/* handle_has_imported() - does the program hold memory that somebody else made? */
bool handle_has_imported(void);

#endif
