/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_JOIN_H
#define GATE_JOIN_H

/* Joining: at cuInit() a process becomes part of its vGPU. */

#endif
