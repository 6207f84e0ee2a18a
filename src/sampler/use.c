/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/use.h"

#include "sampler/library.h"
#include "sampler/tell.h"

/* A library that was silent for long does not tell what was in between. */
#define PERIOD_MAX_US 5000000u

/* A process that was not seen for so long holds nobody up. */
#define FORGET_US 2000000u

static nvmlProcessUtilizationInfo_v1_t processes[USE_PROCESSES_MAX];
static nvmlProcessUtilizationSample_t old_processes[USE_PROCESSES_MAX];

int use_tell_error(struct use *use, uint32_t device, nvmlReturn_t error)
{
        struct sampler_packet packet = { .error = (int32_t)error };

        if (use->error == error)
                return 0;
        use->error = error;
        return tell(&packet, error == NVML_ERROR_GPU_IS_LOST ? SAMPLER_LOST : SAMPLER_ERROR,
                    device);
}

static int tell_process(const nvmlProcessUtilizationInfo_v1_t *process, uint32_t device,
                        unsigned long long period_us)
{
        struct sampler_packet packet = {
                .pid = process->pid,
                .use = { .percent = { process->smUtil, process->memUtil, process->encUtil,
                                      process->decUtil, process->jpgUtil, process->ofaUtil },
                         .period_us = period_us < PERIOD_MAX_US ? period_us : PERIOD_MAX_US },
        };

        return tell(&packet, SAMPLER_USE, device);
}

/* The old call, in the shape of the new one. */
static nvmlReturn_t sample_as_before_550(nvmlDevice_t handle,
                                         nvmlProcessesUtilizationInfo_v1_t *info)
{
        unsigned int n = USE_PROCESSES_MAX;
        nvmlReturn_t r =
                library.sample_before_550(handle, old_processes, &n, info->lastSeenTimeStamp);

        if (r != NVML_SUCCESS)
                return r;
        for (unsigned int i = 0; i < n; i++)
                info->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
                        .timeStamp = old_processes[i].timeStamp,
                        .pid = old_processes[i].pid,
                        .smUtil = old_processes[i].smUtil,
                        .memUtil = old_processes[i].memUtil,
                        .encUtil = old_processes[i].encUtil,
                        .decUtil = old_processes[i].decUtil,
                };
        info->processSamplesCount = n;
        return NVML_SUCCESS;
}

static nvmlReturn_t ask(nvmlDevice_t handle, nvmlProcessesUtilizationInfo_v1_t *info)
{
        nvmlReturn_t r = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;

        if (library.sample)
                r = library.sample(handle, info);
        if (r == NVML_ERROR_ARGUMENT_VERSION_MISMATCH && library.sample_before_550)
                r = sample_as_before_550(handle, info);
        return r;
}

/* The oldest of what is still expected to go on. */
static unsigned long long get_since(struct use *use)
{
        unsigned long long since_us = use->seen_us;
        size_t n = 0;

        for (size_t i = 0; i < use->n_seen; i++) {
                if (use->seen[i].us + FORGET_US < use->seen_us)
                        continue;
                use->seen[n] = use->seen[i];
                if (use->seen[n++].us < since_us)
                        since_us = use->seen[n - 1].us;
        }
        use->n_seen = n;
        return since_us;
}

/* A process that is new is seen since the time that was asked for. NULL: there are too many. */
static unsigned long long *find_seen(struct use *use, unsigned int pid, unsigned long long since_us)
{
        for (size_t i = 0; i < use->n_seen; i++)
                if (use->seen[i].pid == pid)
                        return &use->seen[i].us;
        if (use->n_seen == USE_PROCESSES_MAX)
                return NULL;
        use->seen[use->n_seen].pid = pid;
        use->seen[use->n_seen].us = since_us;
        return &use->seen[use->n_seen++].us;
}

static int take(struct use *use, uint32_t device, unsigned long long since_us,
                const nvmlProcessUtilizationInfo_v1_t *process)
{
        unsigned long long *seen_us = process->pid ? find_seen(use, process->pid, since_us) : NULL;
        unsigned long long before_us;

        if (!seen_us || process->timeStamp <= *seen_us)
                return 0;
        before_us = *seen_us;
        *seen_us = process->timeStamp;
        if (*seen_us > use->seen_us)
                use->seen_us = *seen_us;
        return tell_process(process, device, *seen_us - before_us);
}

int use_tell(struct use *use, nvmlDevice_t handle, uint32_t device)
{
        unsigned long long since_us = get_since(use);
        nvmlProcessesUtilizationInfo_v1_t info = {
                .version = NVML_VERSION(nvmlProcessesUtilizationInfo_v1_t, 1),
                .processSamplesCount = USE_PROCESSES_MAX,
                .lastSeenTimeStamp = since_us,
                .procUtilArray = processes,
        };
        nvmlReturn_t error = ask(handle, &info);
        int r = 0;

        if (error == NVML_ERROR_NOT_FOUND) /* nothing is new, or nobody was busy */
                return 0;
        if (error != NVML_SUCCESS)
                return use_tell_error(use, device, error);
        use->error = NVML_SUCCESS;
        for (unsigned int i = 0; r == 0 && i < info.processSamplesCount; i++)
                r = take(use, device, since_us, &processes[i]);
        return r;
}
