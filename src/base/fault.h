/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

/*
 * Fault points: named places in our programs at which a test makes something go
 * wrong, so that "the manager dies after the export" is a test and not a race.
 *
 * OPENVGPU_FAULT holds a comma-separated list of POINT=ACTION[@N]; the action
 * happens the N-th time (default: the first) that the point is passed:
 *
 *     kill    the process kills itself with SIGKILL
 *     fail    fault_point() answers true, and the caller fails the step
 *     pause   the file OPENVGPU_FAULT_DIR/POINT is created, with the process' id
 *             as a line, and the process waits until somebody removes it: time
 *             for a test to kill it or others
 *
 * A file OPENVGPU_FAULT_DIR/POINT=ACTION arms a point while the process runs. The process that
 * passes the point next removes the file and takes the action; others do not. With a number N in
 * the file, the action happens at the N-th pass (the file counts down); with "N+", at the N-th pass
 * and all later ones, until somebody removes the file.
 *
 * Of several processes that pass the same point, one with OPENVGPU_FAULT_OF=NAME is meant by a file
 * POINT@NAME=ACTION.
 *
 * Without these variables a point costs one comparison.
 */

#include <stdbool.h>

/* fault_point() - pass the point @name; true when the step shall fail. */
bool fault_point(const char *name);

#endif
