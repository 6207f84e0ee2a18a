/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_PEER_H
#define EXPORTER_PEER_H

/*
 * Who a connection is, as far as places are shared out: a user of this machine, by a unix socket or on loopback, or an
 * address of the network. Whoever has one address of IPv6 usually has all that begin with the same 8 bytes, which
 * therefore count as one. Where the kernel does not say whose a connection on loopback is, its address counts.
 */

#include <stdint.h>

/* peer_get() - of the connection @fd, as a number; 0 if it cannot be known. */
uint64_t peer_get(int fd);

#endif
