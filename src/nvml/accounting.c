/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounting tells the lives of the processes in a vGPU. The records of ended processes come first, in
 * the order of their ends, then those of running ones. A process number that was used twice is listed
 * once and means the process that ended last. It hides a running process with the same number until this
 * one ends too, as in NVIDIA's driver.
 */

#include <string.h>

#include "abi/nvml-accounting.h"
#include "nvml/answer.h"
#include "nvml/slots.h"
#include "nvml/view.h"

nvmlReturn_t our_nvmlVgpuInstanceGetAccountingMode(nvmlVgpuInstance_t id, nvmlEnableState_t *mode)
{
        struct view_instance instance;
        nvmlReturn_t r = view_instance(&instance, id, mode);

        if (r != NVML_SUCCESS)
                return r;
        if (instance.value.accounting == STATE_NONE)
                return NVML_ERROR_NOT_SUPPORTED;
        if (instance.value.guest_driver != STATE_GUEST_DRIVER_RUNNING)
                return NVML_ERROR_DRIVER_NOT_LOADED;
        *mode = (nvmlEnableState_t)instance.value.accounting;
        return NVML_SUCCESS;
}

/* A vGPU that keeps accounts. */
static nvmlReturn_t find(struct view_instance *ret_instance, nvmlVgpuInstance_t id,
                         bool has_pointers)
{
        nvmlReturn_t r = view_instance(ret_instance, id, has_pointers);

        if (r != NVML_SUCCESS)
                return r;
        return ret_instance->value.accounting == 1 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

/* From the record with @number on, the next of the vGPU's that runs, or that does not. */
static bool next_account(struct state_account *ret_account, uint64_t *number,
                         const struct view_instance *instance, bool runs)
{
        uint64_t end = state_count_account(instance->state_page, instance->slot);

        while (*number < end)
                if (state_read_account(instance->state_page, instance->slot, (*number)++,
                                       ret_account) &&
                    ret_account->instance == instance->value.id &&
                    (ret_account->is_running != 0) == runs)
                        return true;
        return false;
}

static uint64_t get_first(const struct view_instance *instance)
{
        return state_first_account(instance->state_page, instance->slot);
}

#define HASH_SIZE 8192u /* a power of 2, well above STATE_ACCOUNTS_MAX */

_Static_assert(HASH_SIZE >= 2 * STATE_ACCOUNTS_MAX && STATE_ACCOUNTS_MAX <= UINT16_MAX,
               "the table has gaps, and its entries hold places");

/* The first of a number goes, the last stays: it is the one that the number means. */
static unsigned int drop_repeated(unsigned int *pids, unsigned int n)
{
        uint16_t place[HASH_SIZE] = { 0 }; /* of a number in the list, plus one; 0: none */
        unsigned int begin = n;

        for (unsigned int i = n; i-- > 0;) {
                uint32_t at = pids[i] * 2654435761u >> 19;

                while (place[at] && pids[place[at] - 1] != pids[i])
                        at = (at + 1) % HASH_SIZE;
                if (place[at])
                        continue;
                pids[--begin] = pids[i];
                place[at] = (uint16_t)(begin + 1);
        }
        memmove(pids, pids + begin, (n - begin) * sizeof(*pids));
        return n - begin;
}

static bool has_number(const unsigned int *pids, unsigned int n, uint32_t pid)
{
        for (unsigned int i = 0; i < n; i++)
                if (pids[i] == pid)
                        return true;
        return false;
}

static unsigned int list_pids(const struct view_instance *instance, unsigned int *pids)
{
        struct state_account account;
        unsigned int n = 0;

        for (uint64_t number = get_first(instance);
             n < STATE_ACCOUNTS_MAX && next_account(&account, &number, instance, false);)
                pids[n++] = account.pid;
        n = drop_repeated(pids, n);
        for (uint64_t number = get_first(instance);
             n < STATE_ACCOUNTS_MAX && next_account(&account, &number, instance, true);)
                if (!has_number(pids, n, account.pid))
                        pids[n++] = account.pid;
        return n;
}

/* Without room the answer is how many there can be, unless there is none. */
static nvmlReturn_t answer_pids(unsigned int *count, unsigned int *pids,
                                const struct view_instance *instance)
{
        unsigned int found[STATE_ACCOUNTS_MAX];
        unsigned int n = list_pids(instance, found);

        if (*count > 0 || n == 0)
                return answer_numbers(count, pids, found, n);
        *count = STATE_ACCOUNTS_MAX;
        return NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t our_nvmlVgpuInstanceGetAccountingPids(nvmlVgpuInstance_t id, unsigned int *count,
                                                   unsigned int *pids)
{
        struct view_instance instance;
        nvmlReturn_t r = find(&instance, id, count && (pids || *count == 0));

        return r == NVML_SUCCESS ? answer_pids(count, pids, &instance) : r;
}

static bool find_account(struct state_account *ret_account, const struct view_instance *instance,
                         uint32_t pid)
{
        struct state_account account;
        bool found = false;

        for (int runs = 0; runs <= 1 && !found; runs++)
                for (uint64_t number = get_first(instance);
                     next_account(&account, &number, instance, runs);) {
                        if (account.pid != pid)
                                continue;
                        *ret_account = account;
                        found = true;
                }
        return found;
}

static nvmlReturn_t answer_stats(nvmlAccountingStats_t *stats, const struct view_instance *instance,
                                 uint32_t pid)
{
        struct state_account account;

        if (!find_account(&account, instance, pid))
                return NVML_ERROR_NOT_FOUND;
        *stats = (nvmlAccountingStats_t){ .gpuUtilization = account.utilization_gpu,
                                          .memoryUtilization = account.utilization_memory,
                                          .maxMemoryUsage = account.max_memory,
                                          .time = account.is_running ? 0 : account.time_ms,
                                          .startTime = account.start_us,
                                          .isRunning = account.is_running != 0 };
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlVgpuInstanceGetAccountingStats(nvmlVgpuInstance_t id, unsigned int pid,
                                                    nvmlAccountingStats_t *stats)
{
        struct view_instance instance;
        nvmlReturn_t r = find(&instance, id, stats);

        return r == NVML_SUCCESS ? answer_stats(stats, &instance, pid) : r;
}

/*
 * A device that hosts vGPUs keeps its accounts by vGPU: its mode is on, but the accounts are asked
 * for by vGPU alone, as NVML's header has it. Under MIG the mode is off. A guest's device has the
 * accounts of its vGPU.
 */

nvmlReturn_t our_nvmlDeviceGetAccountingMode(nvmlDevice_t handle, nvmlEnableState_t *mode)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, mode);

        if (r != NVML_SUCCESS)
                return r;
        if (device.accounting == STATE_NONE)
                return NVML_ERROR_NOT_SUPPORTED;
        *mode = device.mig == 1 ? NVML_FEATURE_DISABLED : (nvmlEnableState_t)device.accounting;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetAccountingBufferSize(nvmlDevice_t handle, unsigned int *entries)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, entries);

        if (r == NVML_SUCCESS)
                *entries = STATE_ACCOUNTS_MAX;
        return r;
}

/* The vGPU whose accounts are the device's. */
static nvmlReturn_t find_own(struct view_instance *ret_instance, nvmlDevice_t handle,
                             bool has_pointers)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, has_pointers);

        if (r != NVML_SUCCESS)
                return r;
        return view_own_instance(ret_instance) && ret_instance->value.accounting == 1
                       ? NVML_SUCCESS
                       : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t our_nvmlDeviceGetAccountingStats(nvmlDevice_t handle, unsigned int pid,
                                              nvmlAccountingStats_t *stats)
{
        struct view_instance own;
        nvmlReturn_t r = find_own(&own, handle, stats);

        return r == NVML_SUCCESS ? answer_stats(stats, &own, pid) : r;
}

nvmlReturn_t our_nvmlDeviceGetAccountingPids(nvmlDevice_t handle, unsigned int *count,
                                             unsigned int *pids)
{
        unsigned int found[STATE_ACCOUNTS_MAX];
        struct view_instance own;
        nvmlReturn_t r = find_own(&own, handle, count);

        return r == NVML_SUCCESS ? answer_numbers(count, pids, found, list_pids(&own, found)) : r;
}

static nvmlReturn_t refuse(nvmlDevice_t handle, bool has_pointers)
{
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, has_pointers);

        return r == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : r;
}

/*
 * Samples that were counted, or else one for each second of its life: an account that was measured in
 * busy time has an average and no samples.
 */
static void sum_up(nvmlAccountingStats_v2_t *stats, const struct state_account *account)
{
        uint64_t life_us = account->is_running ? view_sample_us() - account->start_us
                                               : account->time_ms * 1000;
        uint64_t seconds = life_us / 1000000 + 1;

        if (account->utilization_gpu == STATE_NONE || account->utilization_memory == STATE_NONE)
                return;
        stats->sampleCount = account->n_samples;
        stats->sumGpuUtil = account->sum_gpu;
        stats->sumFbUtil = account->sum_memory;
        if (account->n_samples > 0)
                return;
        stats->sampleCount = seconds < UINT32_MAX ? (unsigned int)seconds : UINT32_MAX;
        stats->sumGpuUtil = (uint64_t)stats->sampleCount * account->utilization_gpu;
        stats->sumFbUtil = (uint64_t)stats->sampleCount * account->utilization_memory;
}

nvmlReturn_t our_nvmlDeviceGetAccountingStats_v2(nvmlDevice_t handle,
                                                 nvmlAccountingStats_v2_t *stats)
{
        struct state_account account;
        struct view_instance own;
        nvmlReturn_t r = find_own(&own, handle, stats);

        if (r != NVML_SUCCESS)
                return r;
        if (!find_account(&account, &own, stats->pid))
                return NVML_ERROR_NOT_FOUND;
        *stats = (nvmlAccountingStats_v2_t){ .pid = account.pid,
                                             .isRunning = account.is_running != 0,
                                             .gpuUtilization = account.utilization_gpu,
                                             .memoryUtilization = account.utilization_memory,
                                             .maxMemoryUsage = account.max_memory,
                                             .time = account.is_running ? 0 : account.time_ms,
                                             .startTime = account.start_us };
        sum_up(stats, &account);
        return NVML_SUCCESS;
}

/* A guest changes nothing, and a host clears the accounts of a vGPU. */
nvmlReturn_t our_nvmlDeviceClearAccountingPids(nvmlDevice_t handle)
{
        return refuse(handle, true);
}
