/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/utilization.h"

#include <stdio.h>

#include "nvml/view.h"

/* What has no sample yet is as busy as its record says. */
bool utilization_next_instance(struct utilization *ret_one, uint32_t *cursor, uint32_t device)
{
        const struct board_instance *value;
        struct view_instance instance;
        uint64_t end;

        if (!view_next_instance(&instance, cursor, device))
                return false;
        value = &instance.value;
        *ret_one->name = '\0';
        end = board_count_sample(instance.board, instance.slot);
        if (end > 0 &&
            board_read_sample(instance.board, instance.slot, end - 1, &ret_one->sample) &&
            ret_one->sample.instance == value->id)
                return true;
        ret_one->sample = (struct board_sample){ .timestamp_us = view_sample_us(),
                                                 .instance = value->id,
                                                 .gpu = value->utilization_gpu,
                                                 .memory = value->utilization_memory,
                                                 .encoder = value->utilization_encoder,
                                                 .decoder = value->utilization_decoder,
                                                 .jpeg = value->utilization_jpeg,
                                                 .ofa = value->utilization_ofa };
        return true;
}

static void read_process(struct utilization *ret_one, const struct board_process *process,
                         uint32_t slot)
{
        const struct board *board = view_board();
        uint64_t end = board_count_process_sample(board, slot);

        snprintf(ret_one->name, sizeof(ret_one->name), "%s", process->name);
        if (end > 0 && board_read_process_sample(board, slot, end - 1, &ret_one->sample) &&
            ret_one->sample.pid == process->pid && ret_one->sample.instance == process->instance)
                return;
        ret_one->sample = (struct board_sample){ .timestamp_us = view_sample_us(),
                                                 .instance = process->instance,
                                                 .pid = process->pid,
                                                 .gpu = process->utilization_gpu,
                                                 .memory = process->utilization_memory,
                                                 .encoder = process->utilization_encoder,
                                                 .decoder = process->utilization_decoder,
                                                 .jpeg = process->utilization_jpeg,
                                                 .ofa = process->utilization_ofa };
}

bool utilization_next_process(struct utilization *ret_one, uint32_t *cursor, uint32_t device)
{
        const struct board_sample *sample = &ret_one->sample;
        struct board_process process;

        while (view_next_process(&process, cursor, device)) {
                read_process(ret_one, &process, *cursor - 1);
                if (sample->gpu || sample->memory || sample->encoder || sample->decoder ||
                    sample->jpeg || sample->ofa)
                        return true;
        }
        return false;
}

bool utilization_next_new(struct utilization *ret_one, uint32_t *cursor, uint32_t device,
                          utilization_next next, unsigned long long last_seen_us)
{
        while (next(ret_one, cursor, device))
                if (ret_one->sample.timestamp_us > last_seen_us)
                        return true;
        return false;
}

nvmlReturn_t utilization_room(const void *samples, unsigned int *count, uint32_t device,
                              utilization_next next, unsigned long long last_seen_us)
{
        unsigned int n = 0, n_new = 0;
        struct utilization one;

        for (uint32_t cursor = 0; next(&one, &cursor, device); n++)
                n_new += one.sample.timestamp_us > last_seen_us;
        if (!samples) {
                *count = n;
                return n == 0 ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
        }
        if (*count == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (n > 0 && n_new == 0)
                return NVML_ERROR_NOT_FOUND;
        return *count < n ? answer_room(count, n) : NVML_SUCCESS;
}
