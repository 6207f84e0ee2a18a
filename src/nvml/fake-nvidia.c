/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This library takes the place of NVIDIA's, for test-forward.c. It has two GPUs behind real pointers. The
 * manager does not have the second one.
 *
 * Nothing is declared as in NVML: a call through a jump stub must not depend on declarations.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#define SUCCESS          0
#define UNINITIALIZED    1
#define INVALID_ARGUMENT 2

struct gpu {
        const char *uuid;
};

static struct gpu gpus[] = { { "GPU-11111111-2222-3333-4444-555555555550" }, { "GPU-unmanaged" } };
static int references;

struct by_value {
        double a, b;
        long c;
};

EXPORT int nvmlInitWithFlags(unsigned int flags);
EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlDeviceGetCount_v2(unsigned int *count);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct gpu **gpu);
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, struct gpu **gpu);
EXPORT int nvmlDeviceGetName(const struct gpu *gpu, char *text, unsigned int size);
EXPORT int nvmlDeviceGetMemoryInfo(const struct gpu *gpu, unsigned long long *memory);
EXPORT int nvmlDeviceGetVirtualizationMode(const struct gpu *gpu, unsigned int *mode);
EXPORT int nvmlDeviceGetTemperature(const struct gpu *gpu, int sensor, unsigned int *celsius);
EXPORT int nvmlDeviceGetMigMode(const struct gpu *gpu, unsigned int *current,
                                unsigned int *pending);
EXPORT int nvmlDeviceGetThermalSettings(struct by_value v, int i, double d, int *ret_sum, int e,
                                        int f, int g, int h, int on_the_stack);
EXPORT int nvmlInternalGetExportTable(const void **table, const void *id);
EXPORT int nvmlDeviceGetEncoderStats(void);
EXPORT int nvmlDeviceGetAccountingPids(void);
EXPORT int nvmlDeviceGetSamples(void);
EXPORT int nvmlDeviceSetPowerManagementLimit(void);

/* By name, as NVIDIA's does: what it reaches must be its own function and not ours. */
int nvmlInitWithFlags(unsigned int flags)
{
        (void)flags;
        return nvmlInit_v2();
}

int nvmlInit_v2(void)
{
        references++;
        return SUCCESS;
}

int nvmlShutdown(void)
{
        return references-- > 0 ? SUCCESS : UNINITIALIZED;
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
        *count = 2;
        return references > 0 ? SUCCESS : UNINITIALIZED;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct gpu **gpu)
{
        *gpu = &gpus[index];
        return index < 2 ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct gpu **gpu)
{
        for (size_t i = 0; i < 2; i++) {
                if (strcmp(uuid, gpus[i].uuid) != 0)
                        continue;
                *gpu = &gpus[i];
                return SUCCESS;
        }
        return INVALID_ARGUMENT;
}

int nvmlDeviceGetName(const struct gpu *gpu, char *text, unsigned int size)
{
        snprintf(text, size, "real %s", gpu->uuid);
        return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(const struct gpu *gpu, unsigned long long *memory)
{
        (void)gpu;
        memory[0] = 1000;
        memory[1] = 600;
        memory[2] = 400;
        return SUCCESS;
}

int nvmlDeviceGetVirtualizationMode(const struct gpu *gpu, unsigned int *mode)
{
        (void)gpu;
        *mode = 0;
        return SUCCESS;
}

int nvmlDeviceGetTemperature(const struct gpu *gpu, int sensor, unsigned int *celsius)
{
        (void)gpu;
        *celsius = 40 + (unsigned int)sensor;
        return SUCCESS;
}

int nvmlDeviceGetMigMode(const struct gpu *gpu, unsigned int *current, unsigned int *pending)
{
        (void)gpu;
        *current = *pending = 0;
        return SUCCESS;
}

int nvmlDeviceGetThermalSettings(struct by_value v, int i, double d, int *ret_sum, int e, int f,
                                 int g, int h, int on_the_stack)
{
        *ret_sum = (int)(v.a + v.b + (double)v.c + d) + i + e + f + g + h + on_the_stack;
        return 4711;
}

/* As large as driver 535's, with a function in slot 72 that says no and one that only it knows. */
static int says_no(const struct gpu *gpu, unsigned int *flag)
{
        (void)gpu;
        *flag = 0;
        return SUCCESS;
}

int nvmlInternalGetExportTable(const void **table, const void *id)
{
        static void *slots[245] = { (void *)sizeof(slots) };

        (void)id;
        slots[72] = (void *)says_no;
        slots[200] = (void *)says_no;
        *table = slots;
        return SUCCESS;
}

int nvmlDeviceGetEncoderStats(void)
{
        return 4711;
}

int nvmlDeviceGetAccountingPids(void)
{
        return 4711;
}

int nvmlDeviceGetSamples(void)
{
        return 4711;
}

int nvmlDeviceSetPowerManagementLimit(void)
{
        return 4711;
}
