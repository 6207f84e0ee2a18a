/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_FOOTPRINT_H
#define MANAGER_FOOTPRINT_H

/*
 * What the driver's restore of a process takes of a device: its contexts, with all
 * that the driver keeps for them, and the memory that only the driver moves.
 *
 * The contexts are known from the last checkpoint, by what became free, and from
 * what the meter sees of the process beside what its gate has charged; the larger
 * counts. Of a process of which neither is known, or of which the meter has not yet seen the same
 * twice, more than most take is assumed: NVIDIA's library and the gate are not asked at one moment, and a
 * process that has just begun takes more from one moment to the next. A restore that is promised too little
 * loses the process.
 */

#include <stddef.h>
#include <stdint.h>

struct device;
struct guest;

/*
 * footprint_get() - of @guest on @device as part @part of its vGPU, with a margin. Where it has contexts on several
 * devices, each is taken to be like the largest; where it has none, the margin is left.
 */
uint64_t footprint_get(const struct guest *guest, size_t part, const struct device *device);

/* footprint_get_unknown() - what is assumed of the contexts of a process of which nothing is known. */
uint64_t footprint_get_unknown(const struct device *device);

/* footprint_get_mover() - what its mover takes of @device: its context, and the margin that it keeps. */
uint64_t footprint_get_mover(const struct device *device);

/* footprint_note() - remember what is known of @guest now, as it leaves its device. */
void footprint_note(struct guest *guest);

/* footprint_measure() - so many bytes became free when @guest alone left its device. */
void footprint_measure(struct guest *guest, uint64_t bytes);

/* footprint_load() - as a former manager knew it. */
void footprint_load(struct guest *guest);

#endif
