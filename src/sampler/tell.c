/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/tell.h"

#include <errno.h>
#include <sys/socket.h>

int tell(struct sampler_packet *packet, enum sampler_message message, uint32_t device)
{
        packet->magic = SAMPLER_WIRE_MAGIC;
        packet->version = SAMPLER_WIRE_VERSION;
        packet->message = (uint16_t)message;
        packet->device = device;
        return send(SAMPLER_FD, packet, sizeof(*packet), MSG_NOSIGNAL) == (ssize_t)sizeof(*packet)
                       ? 0
                       : -EPIPE;
}
