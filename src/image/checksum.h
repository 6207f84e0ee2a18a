/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_CHECKSUM_H
#define IMAGE_CHECKSUM_H

/*
 * CRC-32C (Castagnoli): finds what disks and copies do to data, at more bytes a second than any disk
 * has, for processors have an instruction for it. It is no protection against forgery.
 */

#include <stddef.h>
#include <stdint.h>

/* checksum_add() - continue @checksum with @size bytes at @data. The checksum of nothing is 0. */
uint32_t checksum_add(uint32_t checksum, const void *data, size_t size);

#endif
