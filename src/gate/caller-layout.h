/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_CALLER_LAYOUT_H
#define GATE_CALLER_LAYOUT_H

/* struct caller as the jump stubs see it; caller.c asserts that C agrees. */

#define CALLER_SIZE     1024 /* and its alignment: a frame's address gives its caller's */
#define CALLER_TOP      0
#define CALLER_LAUNCHES 8

#define CALLER_FRAMES 64 /* the first frame; the last one ends where the caller ends */
#define FRAME_SIZE    32
#define FRAME_RETURN  0
#define FRAME_RBX     8
#define FRAME_ENTRY   16
#define FRAME_STACK   24

/* Launches that a caller keeps to itself before it adds them to the instance page. */
#define CALLER_LAUNCHES_MAX 64

/* Beside the entry in what a stub passes on: the call gives the device work, and that is watched. */
#define ENTRY_WATCHED 0x80000000

/* Stubs for driver functions that are younger than our table; see address.c. */
#define ENTRY_SPARES 64 /* as many as stub-x86_64.S makes */

#endif
