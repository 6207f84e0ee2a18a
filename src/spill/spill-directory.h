/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPILL_SPILL_DIRECTORY_H
#define SPILL_SPILL_DIRECTORY_H

/*
 * The directory of the spill. What is in its files is the memory of all tenants, in plain bytes: nobody else
 * may enter it. The files have no name, so nothing is left of them when nobody has them open any more.
 */

#include "daemon/failure.h"

/*
 * spill_directory_open() - open it, and make it if it is not there
 * Errors: Failed: another user owns it or may enter it, no file can be made in it, ...
 */
int spill_directory_open(int *ret_fd, const char *path, struct failure *failure);

#endif
