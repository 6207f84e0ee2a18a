/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/utilization.h"

#include <stdio.h>

#include "nvml/view.h"

/* What has no sample yet is as busy as its record says. */
bool utilization_next_instance(struct utilization *ret_one, uint32_t *cursor, uint32_t device)
{
        const struct state_instance *value;
        struct view_instance instance;
        uint64_t end;

        if (!view_next_instance(&instance, cursor, device))
                return false;
        value = &instance.value;
        *ret_one->name = '\0';
        ret_one->is_told = true;
        end = state_count_sample(instance.state_page, instance.slot);
        if (end > 0 &&
            state_read_sample(instance.state_page, instance.slot, end - 1, &ret_one->sample) &&
            ret_one->sample.instance == value->id)
                return true;
        ret_one->sample = (struct state_sample){ .timestamp_us = view_sample_us(),
                                                 .instance = value->id,
                                                 .gpu = value->utilization_gpu,
                                                 .memory = value->utilization_memory,
                                                 .encoder = value->utilization_encoder,
                                                 .decoder = value->utilization_decoder,
                                                 .jpeg = value->utilization_jpeg,
                                                 .ofa = value->utilization_ofa };
        return true;
}

static void read_process(struct utilization *ret_one, const struct state_process *process,
                         uint32_t slot)
{
        const struct state_page *state_page = view_state_page();
        uint64_t end = state_count_process_sample(state_page, slot);

        snprintf(ret_one->name, sizeof(ret_one->name), "%s", process->name);
        if (end > 0 && state_read_process_sample(state_page, slot, end - 1, &ret_one->sample) &&
            ret_one->sample.pid == process->pid && ret_one->sample.instance == process->instance)
                return;
        ret_one->sample = (struct state_sample){ .timestamp_us = view_sample_us(),
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
        const struct state_sample *sample = &ret_one->sample;
        struct state_process process;

        if (!view_next_process(&process, cursor, device))
                return false;
        read_process(ret_one, &process, *cursor - 1);
        ret_one->is_told = sample->gpu || sample->memory || sample->encoder || sample->decoder ||
                           sample->jpeg || sample->ofa;
        return true;
}

static bool is_new(const struct utilization *one, unsigned long long last_seen_us)
{
        return one->is_told && one->sample.timestamp_us > last_seen_us;
}

/* Is there room for the new ones? SUCCESS with an array: write at most *@count of them. */
static nvmlReturn_t check_room(const struct utilization_list *list, uint32_t device,
                               unsigned long long last_seen_us, const void *elements,
                               unsigned int *count)
{
        unsigned int n = 0, n_new = 0;
        struct utilization one;

        for (uint32_t cursor = 0; list->next(&one, &cursor, device); n++)
                n_new += is_new(&one, last_seen_us);
        if (!elements) {
                *count = n;
                return n == 0 ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
        }
        if (*count == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (n_new == 0)
                return NVML_ERROR_NOT_FOUND;
        return *count < n ? answer_room(count, n) : NVML_SUCCESS;
}

nvmlReturn_t utilization_answer(const struct utilization_list *list, uint32_t device,
                                unsigned long long last_seen_us, void *elements,
                                unsigned int *count)
{
        nvmlReturn_t r = check_room(list, device, last_seen_us, elements, count);
        struct utilization one;
        unsigned int n = 0;

        if (r != NVML_SUCCESS || !elements)
                return r;
        for (uint32_t cursor = 0; n < *count && list->next(&one, &cursor, device);)
                if (is_new(&one, last_seen_us))
                        list->fill((char *)elements + list->size * n++, &one);
        *count = n;
        return NVML_SUCCESS;
}
