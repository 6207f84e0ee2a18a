/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLER_TELL_H
#define SAMPLER_TELL_H

#include "wire/sampler.h"

/* tell() - send @packet, whose head is filled in. Errors: -EPIPE, the manager has hung up. */
int tell(struct sampler_packet *packet, enum sampler_message message, uint32_t device);

#endif
