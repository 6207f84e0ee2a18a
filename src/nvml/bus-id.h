/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_BUS_ID_H
#define NVML_BUS_ID_H

/* Reads and writes PCI bus ids as NVML and its clients do. */

#include <stdbool.h>

#include "abi/nvml.h"
#include "state/state-page.h"

/* The size of a bus id as text, with its NUL; the old form is shorter. */
#define BUS_ID_MAX        NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE
#define BUS_ID_LEGACY_MAX NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE

struct bus_id {
        unsigned int domain, bus, device, function;
};

/*
 * bus_id_parse() - read domain:bus:device.function, domain:bus:device or bus:device.function, all
 * hexadecimal. False: the text has none of these forms.
 */
bool bus_id_parse(struct bus_id *ret_id, const char *text);

/* bus_id_rewrite() - write @text, which may have any of these forms, as bus_id_format() does. */
void bus_id_rewrite(char *to, const char *text);

/* bus_id_format() - write "00000000:17:00.0"; the legacy form has four digits for the domain. */
void bus_id_format(char *text, const struct state_device *device);
void bus_id_format_legacy(char *text, const struct state_device *device);

#endif
