/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/compute.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "state/compute.h"

#define COMPUTE(member) .offset = offsetof(struct scenario_compute_instance, member)

static int parse_uuid(struct reader *reader, const json_t *value, void *to)
{
        char uuid[STATE_UUID_MAX];
        int r = reader_uuid(reader, value, uuid, sizeof(uuid) - sizeof("MIG-"));

        if (r == 0)
                snprintf(to, STATE_UUID_MAX, "MIG-%.43s", uuid);
        return r;
}

int compute_parse(struct reader *reader, const json_t *value, void *to)
{
        static const struct field fields[] = {
                { .name = "profile",
                  .kind = FIELD_TEXT,
                  .is_required = true,
                  .size = STATE_LABEL_MAX,
                  COMPUTE(profile_name) },
                { .name = "id", .kind = FIELD_NUMBER, .max = 6, COMPUTE(id) },
                { .name = "placement", .kind = FIELD_NUMBER, .max = 6, COMPUTE(placement) },
                { .name = "uuid", .kind = FIELD_OTHER, .read = parse_uuid, COMPUTE(uuid) },
                { 0 },
        };
        struct scenario_gpu_instance *gpu_instance = to;
        struct scenario_compute_instance *compute;

        compute = reader_grow((void **)&gpu_instance->compute_instances,
                              &gpu_instance->n_compute_instances, sizeof(*compute));
        if (!compute)
                return reader_fail(reader, "out of memory");
        compute->id = compute->placement = SCENARIO_NOTHING;
        return reader_fields(reader, value, fields, compute);
}

/* "1c.3g.71gb"; one that is as large as the GPU instance has the name of that. */
static void format_name(char *name, size_t size, uint32_t number, const struct state_profile *whole)
{
        uint32_t slices = state_compute_slices(number);

        if (slices == whole->slices)
                snprintf(name, size, "%s", whole->name);
        else
                snprintf(name, size, "%uc.%s", slices, whole->name);
}

static int find_number(const char *wanted, const struct state_profile *whole, uint32_t *ret_number,
                       struct reader *reader)
{
        char name[STATE_LABEL_MAX + 16], words[256] = "";

        for (uint32_t i = 0; i < STATE_COMPUTE_PROFILES; i++) {
                if (!state_compute_starts(i, whole->slices))
                        continue;
                format_name(name, sizeof(name), i, whole);
                *ret_number = i;
                if (strcmp(wanted, name) == 0)
                        return 0;
                snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%s",
                         *words ? ", " : "", name);
        }
        return reader_fail(reader, "there is no profile '%.32s'; allowed: %s", wanted, words);
}

static bool has_id(const struct scenario_gpu_instance *gpu_instance, size_t n, uint32_t id)
{
        for (size_t i = 0; i < n; i++)
                if (gpu_instance->compute_instances[i].record.id == id)
                        return true;
        return false;
}

static uint32_t get_taken(const struct scenario_gpu_instance *gpu_instance, size_t n)
{
        uint32_t taken = 0;

        for (size_t i = 0; i < n; i++) {
                const struct state_compute_instance *other =
                        &gpu_instance->compute_instances[i].record;

                taken |= ((1u << other->placement_size) - 1) << other->placement_start;
        }
        return taken;
}

static int check_one(struct scenario_gpu_instance *gpu_instance, size_t index,
                     const struct state_profile *whole, struct reader *reader)
{
        struct scenario_compute_instance *compute = &gpu_instance->compute_instances[index];
        uint32_t number = 0, starts, start = compute->placement, id = compute->id;
        int r = find_number(compute->profile_name, whole, &number, reader);

        if (r < 0)
                return r;
        starts = state_compute_free_starts(number, whole->slices, get_taken(gpu_instance, index));
        if (!starts)
                return reader_fail(reader, "there is no room left for a %s", compute->profile_name);
        if (start != SCENARIO_NOTHING && !(starts >> start & 1))
                return reader_fail(reader,
                                   "a %s cannot begin at slice %u, or others are in its way",
                                   compute->profile_name, start);
        for (id = id == SCENARIO_NOTHING ? 0 : id; has_id(gpu_instance, index, id); id++)
                if (compute->id != SCENARIO_NOTHING)
                        return reader_fail(reader, "the id %u is used twice", id);
        compute->record = (struct state_compute_instance){
                .device = gpu_instance->record.device,
                .gpu_instance = gpu_instance->id,
                .id = id,
                .profile = number,
                .placement_start =
                        start == SCENARIO_NOTHING ? (uint32_t)__builtin_ctz(starts) : start,
                .placement_size = state_compute_slices(number),
        };
        memcpy(compute->record.uuid, compute->uuid, sizeof(compute->record.uuid));
        return 0;
}

int compute_check(struct scenario_gpu_instance *gpu_instance, const struct state_profile *profile,
                  struct reader *reader, const char *place)
{
        for (size_t i = 0; i < gpu_instance->n_compute_instances; i++) {
                reader_set_place(reader, "%s.compute_instances[%zu]", place, i);
                if (check_one(gpu_instance, i, profile, reader) < 0)
                        return -EINVAL;
        }
        return 0;
}
