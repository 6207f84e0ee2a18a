/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_PLACE_TEXT_H
#define MANAGER_PLACE_TEXT_H

/* Places as text. */

#include "daemon/failure.h"
#include "manager/model/place.h"
#include "store/store.h"

struct manager;

#define PLACE_TEXT_MAX (GATE_DEVICES_MAX * sizeof("4294967295,"))

/*
 * place_format() - for the store: the UUIDs, with commas. place_parse() - nowhere, if one of the devices is
 * not there any more.
 */
void place_format(const struct place *place, char ret_text[STORE_PLACE_MAX]);
struct place place_parse(struct manager *manager, const char *text);

/* place_describe() - for people: "0,1". */
const char *place_describe(const struct place *place, char ret_text[PLACE_TEXT_MAX]);

/* place_find() - as people write it: "0,GPU-3c1e", in this order. Errors: NoSuchDevice, InvalidParameter. */
int place_find(struct manager *manager, const char *list, struct place *ret_place,
               struct failure *failure);

#endif
