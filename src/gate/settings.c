/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/settings.h"

#include <stdlib.h>
#include <string.h>

struct settings settings;

/* In a container also set-user-id programs load the gate: no user may have them load or write what he says. */

static void copy(char *to, const char *name)
{
        const char *value = secure_getenv(name);

        /* A path that does not fit names nothing. */
        if (value && strlen(value) < PATHS_MAX)
                memcpy(to, value, strlen(value) + 1);
}

static bool is_set(const char *name)
{
        const char *value = secure_getenv(name);

        return value && value[0] == '1';
}

void settings_read(void)
{
        const char *vgpu = getenv("OPENVGPU_VGPU");

        copy(settings.driver, "OPENVGPU_DRIVER");
        copy(settings.log, "OPENVGPU_GATE_LOG");
        settings.is_native = is_set("OPENVGPU_NATIVE_IPC");
        settings.has_native_pools = is_set("OPENVGPU_NATIVE_POOLS");
        settings.sees_all = is_set("OPENVGPU_ALL_DEVICES");
        settings.is_in_vgpu = vgpu && *vgpu;
}
