/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_JOIN_H
#define GATE_JOIN_H

/* At cuInit() a process joins its vGPU. */

#endif
