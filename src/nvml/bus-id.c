/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/bus-id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One hexadecimal number of at most 32 bits, no sign, space or 0x; *text moves behind it. */
static bool parse_part(unsigned int *ret_part, const char **text)
{
        size_t n_digits = strspn(*text, "0123456789abcdefABCDEF");
        unsigned long value;
        char *end;

        value = strtoul(*text, &end, 16);
        if (n_digits == 0 || end != *text + n_digits || value > UINT32_MAX)
                return false;
        *ret_part = (unsigned int)value;
        *text = end;
        return true;
}

static bool skip(const char **text, char separator)
{
        bool is_there = **text == separator;

        *text += is_there;
        return is_there;
}

bool bus_id_parse(struct bus_id *ret_id, const char *text)
{
        struct bus_id id = { 0 };
        unsigned int part[3];
        size_t n = 0;

        do {
                if (n == 3 || !parse_part(&part[n], &text))
                        return false;
                n++;
        } while (skip(&text, ':'));

        if (skip(&text, '.') ? !parse_part(&id.function, &text) : n < 3)
                return false;
        if (n < 2 || *text != '\0')
                return false;
        id.domain = n == 3 ? part[0] : 0;
        id.bus = part[n - 2];
        id.device = part[n - 1];
        *ret_id = id;
        return true;
}

static void format(char *text, const struct bus_id *id)
{
        snprintf(text, BUS_ID_MAX, "%08X:%02X:%02X.%X", id->domain, id->bus, id->device,
                 id->function);
}

void bus_id_format(char *text, const struct state_device *device)
{
        const struct bus_id id = { .domain = device->pci_domain,
                                   .bus = device->pci_bus,
                                   .device = device->pci_device };

        format(text, &id);
}

void bus_id_rewrite(char *to, const char *text)
{
        struct bus_id id;

        if (bus_id_parse(&id, text))
                format(to, &id);
        else
                snprintf(to, BUS_ID_MAX, "%s", text);
}

void bus_id_format_legacy(char *text, const struct state_device *device)
{
        snprintf(text, BUS_ID_LEGACY_MAX, "%04X:%02X:%02X.0", device->pci_domain & 0xffff,
                 device->pci_bus & 0xff, device->pci_device & 0xff);
}
