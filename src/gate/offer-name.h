/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_OFFER_NAME_H
#define GATE_OFFER_NAME_H

/* Names of mappings that are exported, by which others ask for their memory (offer.h). */

#include <stdbool.h>
#include <stdint.h>

#include "wire/gate.h"

struct mapping;

/* offer_name() - the name of @mapping, which gets one now if it has none. Errors: of getrandom(2). */
int offer_name(struct mapping *mapping, uint8_t ret_name[GATE_NAME_SIZE]);

/* offer_has_name() - without any lock: the name is whole before it is said that there is one. */
bool offer_has_name(const struct mapping *mapping, const uint8_t name[GATE_NAME_SIZE]);

/* offer_withdraw() - @mapping is on its way out: nobody is offered its memory from here on, and nobody is being. */
void offer_withdraw(struct mapping *mapping);

#endif
