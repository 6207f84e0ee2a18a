/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_METHOD_H
#define GATE_METHOD_H

/*
 * The words that the driver's library sends a compute channel: a header names a method, data follow. Of those that it
 * sends when it makes a context, its restore of a checkpoint leaves out two, without which the device cannot
 * interrupt a kernel: the address of the trap handler, and behind it a register of the multiprocessors that is
 * written by way of the graphics engine's falcon. Both are found here, and kept word by word.
 *
 * The library writes another register so later, of the cache. It is not the context's, and not sent again: the falcon
 * takes its time, and of two commands that come at once the first is lost (H100).
 *
 * The names and numbers are those of NVIDIA's public class headers (clc3c0.h, Volta, to clcdc0.h, Blackwell).
 * Older devices have the trap handler at another method and are not understood.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* It is 9. */
#define METHOD_KEPT_MAX 32

struct method_scan {
        bool is_compute[8]; /* by subchannel: an object of a compute class is bound there */
        bool has_object;    /* the channel's first words were seen: nothing has been overwritten */
        bool has_trap_handler;
        bool has_register;
        bool is_broken; /* words that are no methods, or more to keep than there is room for */
        uint32_t kept[METHOD_KEPT_MAX];
        size_t n_kept;
};

/* method_scan() - go on with @n words of one entry of the ring. An entry ends what it begins. */
void method_scan(struct method_scan *scan, const uint32_t *words, size_t n);

/* method_scan_is_whole() - is @scan that of a context as its driver made it? */
static inline bool method_scan_is_whole(const struct method_scan *scan)
{
        return scan->has_object && scan->has_register && !scan->is_broken;
}

#endif
