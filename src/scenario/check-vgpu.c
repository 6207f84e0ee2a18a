/* SPDX-License-Identifier: Apache-2.0 */
/* What the vGPUs of a scenario mean together with its devices, and what follows from that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scenario/check.h"

#define SLOTS_MAX 1024

/* Types. */

uint32_t scenario_list_types(const struct scenario_device *device, struct catalog_type *types)
{
        uint32_t series = device->series ? device->series : (uint32_t)CATALOG_COMPUTE;
        uint32_t n = 0;

        for (size_t i = 0; i < device->n_types; i++)
                types[n++] = device->types[i];
        return n + catalog_list_types(types + n, &device->record,
                                      series | (device->mig == 1 ? CATALOG_MIG : 0));
}

static bool is_called(const struct catalog_type *type, const struct scenario_vgpu *vgpu)
{
        static const char prefix[] = "NVIDIA ";
        const char *name = type->text.name;

        if (!vgpu->type_name[0])
                return type->type.id == vgpu->type.id;
        if (strcmp(name, vgpu->type_name) == 0)
                return true;
        return strncmp(name, prefix, strlen(prefix)) == 0 &&
               strcmp(name + strlen(prefix), vgpu->type_name) == 0;
}

static int fail_type(const struct scenario_vgpu *vgpu, const struct catalog_type *types, uint32_t n,
                     struct reader *reader)
{
        char words[800] = "";

        for (uint32_t i = 0; i < n; i++)
                snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%s",
                         i ? ", " : "", types[i].text.name);
        if (vgpu->type_name[0])
                return reader_fail(reader, "device %u has no type '%.64s'; allowed: %s",
                                   vgpu->device, vgpu->type_name, words);
        return reader_fail(reader, "device %u has no type %u; allowed: %s", vgpu->device,
                           vgpu->type.id, words);
}

static int find_type(const struct scenario *scenario, struct scenario_vgpu *vgpu,
                     struct catalog_type *ret_type, struct reader *reader)
{
        CLEANUP(freep) struct catalog_type *types = calloc(STATE_OFFERS_MAX, sizeof(*types));
        uint32_t n;

        if (!types)
                return reader_fail(reader, "out of memory");
        n = scenario_list_types(&scenario->devices[vgpu->device], types);
        for (uint32_t i = 0; i < n; i++)
                if (is_called(&types[i], vgpu)) {
                        *ret_type = types[i];
                        vgpu->type = types[i].type;
                        return 0;
                }
        return fail_type(vgpu, types, n, reader);
}

/* GPU instances. */

static const struct scenario_gpu_instance *find_gpu_instance(const struct scenario_device *device,
                                                             uint32_t id)
{
        for (size_t i = 0; i < device->n_gpu_instances; i++)
                if (device->gpu_instances[i].id == id)
                        return &device->gpu_instances[i];
        return NULL;
}

static int check_gpu_instance(const struct scenario *scenario, size_t index, struct reader *reader)
{
        const struct scenario_vgpu *vgpu = &scenario->vgpus[index];
        const struct scenario_device *device = &scenario->devices[vgpu->device];
        const struct scenario_gpu_instance *gpu_instance;

        reader_set_place(reader, "vgpus[%zu].gpu_instance", index);
        if (vgpu->type.profile_id == STATE_NONE && device->mig != 1)
                return vgpu->gpu_instance == STATE_NONE
                               ? 0
                               : reader_fail(reader, "device %u is not in MIG mode", vgpu->device);
        if (vgpu->type.profile_id == STATE_NONE)
                return reader_fail(reader, "device %u is in MIG mode, which its type is not for",
                                   vgpu->device);
        if (vgpu->gpu_instance == STATE_NONE)
                return reader_fail(reader, "is missing: the type is that of a GPU instance");
        gpu_instance = find_gpu_instance(device, vgpu->gpu_instance);
        if (!gpu_instance || gpu_instance->record.profile_id != vgpu->type.profile_id)
                return reader_fail(reader, "device %u has no GPU instance %u of the type's profile",
                                   vgpu->device, vgpu->gpu_instance);
        for (size_t i = 0; i < index; i++)
                if (scenario->vgpus[i].device == vgpu->device &&
                    scenario->vgpus[i].gpu_instance == vgpu->gpu_instance)
                        return reader_fail(reader, "vgpus[%zu] is in it already", i);
        return 0;
}

/* Room. */

static bool is_on(const struct scenario_vgpu *vgpu, const struct scenario_device *device)
{
        return vgpu->device == device->record.index && vgpu->gpu_instance == STATE_NONE &&
               vgpu->state != STATE_SUSPENDED;
}

static int check_room(const struct scenario *scenario, size_t index, struct reader *reader)
{
        const struct scenario_vgpu *vgpu = &scenario->vgpus[index];
        const struct scenario_device *device = &scenario->devices[vgpu->device];
        uint64_t sum = 0;
        uint32_t n = 0;

        reader_set_place(reader, "vgpus[%zu].type", index);
        for (size_t i = 0; i <= index; i++) {
                const struct scenario_vgpu *other = &scenario->vgpus[i];

                if (!is_on(other, device))
                        continue;
                sum += other->type.frame_buffer;
                n += other->type.id == vgpu->type.id;
                if (device->is_heterogeneous != 1 &&
                    other->type.frame_buffer != vgpu->type.frame_buffer && is_on(vgpu, device))
                        return reader_fail(reader,
                                           "vgpus[%zu] on the same device has another size; set "
                                           "heterogeneous of device %u to true",
                                           i, vgpu->device);
        }
        if (sum > device->memory)
                return reader_fail(reader, "the vGPUs of device %u need more memory than it has",
                                   vgpu->device);
        if (n > vgpu->type.max_instances)
                return reader_fail(reader, "device %u hosts at most %u of this type", vgpu->device,
                                   vgpu->type.max_instances);
        return 0;
}

/* Placements: those that are given first. */

static bool take(uint8_t *slots, uint32_t first, uint32_t size)
{
        if (first + size > SLOTS_MAX)
                return false;
        for (uint32_t i = first; i < first + size; i++)
                if (slots[i])
                        return false;
        memset(slots + first, 1, size);
        return true;
}

static bool is_allowed(const struct state_placements *placements, uint32_t first)
{
        for (uint32_t i = 0; i < placements->n_mixed; i++)
                if (placements->mixed[i] == first)
                        return true;
        return false;
}

static int fail_placement(const struct state_placements *placements, struct reader *reader)
{
        char words[400] = "";

        for (uint32_t i = 0; i < placements->n_mixed; i++)
                snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%u",
                         i ? ", " : "", placements->mixed[i]);
        return reader_fail(reader,
                           "the type cannot begin there, or others are in the way; "
                           "allowed: %s",
                           words);
}

static int place(struct scenario *scenario, size_t index, uint8_t *slots, struct reader *reader)
{
        struct scenario_vgpu *vgpu = &scenario->vgpus[index];
        struct catalog_type type;

        reader_set_place(reader, "vgpus[%zu].placement", index);
        if (find_type(scenario, vgpu, &type, reader) < 0)
                return -EINVAL;
        if (vgpu->placement != SCENARIO_NOTHING) {
                if (is_allowed(&type.placements, vgpu->placement) &&
                    take(slots, vgpu->placement, type.type.placement_size))
                        return 0;
                return fail_placement(&type.placements, reader);
        }
        for (uint32_t i = 0; i < type.placements.n_mixed; i++)
                if (take(slots, type.placements.mixed[i], type.type.placement_size)) {
                        vgpu->placement = type.placements.mixed[i];
                        return 0;
                }
        return reader_fail(reader, "there is no place left for one more of this type");
}

static int place_on(struct scenario *scenario, const struct scenario_device *device,
                    struct reader *reader)
{
        uint8_t slots[SLOTS_MAX] = { 0 };

        for (int given = 1; given >= 0; given--)
                for (size_t i = 0; i < scenario->n_vgpus; i++) {
                        struct scenario_vgpu *vgpu = &scenario->vgpus[i];

                        if (is_on(vgpu, device) && (vgpu->placement != SCENARIO_NOTHING) == given &&
                            place(scenario, i, slots, reader) < 0)
                                return -EINVAL;
                }
        return 0;
}

static int check_placements(struct scenario *scenario, struct reader *reader)
{
        for (size_t i = 0; i < scenario->n_devices; i++)
                if (scenario->devices[i].is_heterogeneous == 1 &&
                    place_on(scenario, &scenario->devices[i], reader) < 0)
                        return -EINVAL;
        for (size_t i = 0; i < scenario->n_vgpus; i++) {
                struct scenario_vgpu *vgpu = &scenario->vgpus[i];
                bool is_heterogeneous = scenario->devices[vgpu->device].is_heterogeneous == 1;

                reader_set_place(reader, "vgpus[%zu].placement", i);
                if (!is_heterogeneous && vgpu->placement != SCENARIO_NOTHING)
                        return reader_fail(reader,
                                           "only vGPUs of different sizes have placements; "
                                           "set heterogeneous of device %u to true",
                                           vgpu->device);
                if (vgpu->placement == SCENARIO_NOTHING)
                        vgpu->placement = STATE_PLACEMENT_NONE;
        }
        return 0;
}

/* Names. */

static int check_names(struct scenario *scenario, size_t index, struct reader *reader)
{
        struct scenario_vgpu *vgpu = &scenario->vgpus[index];

        if (!vgpu->id)
                vgpu->id = SCENARIO_FIRST_ID + (uint32_t)index;
        if (!vgpu->uuid[0])
                snprintf(vgpu->uuid, sizeof(vgpu->uuid), "5ce0a810-0000-4000-8000-%012zx", index);
        reader_set_place(reader, "vgpus[%zu]", index);
        if (!vgpu->name[0])
                return reader_fail(reader, "the name is empty");
        for (size_t i = 0; i < index; i++) {
                const struct scenario_vgpu *other = &scenario->vgpus[i];

                if (strcmp(other->name, vgpu->name) == 0 || other->id == vgpu->id ||
                    strcmp(other->uuid, vgpu->uuid) == 0)
                        return reader_fail(reader, "has the name, id or UUID of vgpus[%zu]", i);
        }
        return 0;
}

/* Users. */

static int check_users(const struct scenario_vgpu *vgpu, size_t index, struct reader *reader)
{
        reader_set_place(reader, "vgpus[%zu].vm.driver", index);
        if (vgpu->guest_driver != STATE_GUEST_DRIVER_RUNNING &&
            (vgpu->n_processes || vgpu->n_encoder_sessions || vgpu->n_capture_sessions))
                return reader_fail(reader,
                                   "without a running driver there are no processes and sessions");
        for (size_t i = 0; i < vgpu->n_processes; i++) {
                reader_set_place(reader, "vgpus[%zu].processes[%zu]", index, i);
                if (curve_max(&vgpu->processes[i].memory) > (double)vgpu->type.frame_buffer)
                        return reader_fail(reader, "holds more memory than the vGPU has");
                for (size_t j = 0; j < i; j++)
                        if (vgpu->processes[i].pid == vgpu->processes[j].pid)
                                return reader_fail(reader, "the pid %u is used twice",
                                                   vgpu->processes[i].pid);
        }
        return 0;
}

/* What was not said. */

static bool has_limiter(const struct scenario_device *device)
{
        for (size_t i = 0; i < device->n_schedulers; i++)
                if (device->schedulers[i].policy != STATE_POLICY_BEST_EFFORT)
                        return false;
        return true;
}

static void fill_vm(struct scenario_vgpu *vgpu, size_t index, const char *driver_version)
{
        struct state_vm *vm = &vgpu->vm;

        if (!vm->id[0])
                snprintf(vm->id, sizeof(vm->id), "%zu", index + 1);
        if (!vm->name[0])
                snprintf(vm->name, sizeof(vm->name), "%s", vgpu->name);
        if (!vm->driver_version[0] && vgpu->guest_driver != STATE_GUEST_DRIVER_NONE)
                snprintf(vm->driver_version, sizeof(vm->driver_version), "%s", driver_version);
        if (!vm->pci_bus_id[0] && vgpu->guest_driver == STATE_GUEST_DRIVER_RUNNING)
                strcpy(vm->pci_bus_id, "00000000:02:00.0");
}

static void fill(struct scenario *scenario, size_t index)
{
        struct scenario_vgpu *vgpu = &scenario->vgpus[index];
        const struct scenario_device *device = &scenario->devices[vgpu->device];

        fill_vm(vgpu, index, scenario->driver_version);
        if (vgpu->ecc == SCENARIO_NOTHING)
                vgpu->ecc = device->ecc;
        if (!has_limiter(device))
                vgpu->frame_rate_limit = 0;
        else if (vgpu->frame_rate_limit == SCENARIO_NOTHING)
                vgpu->frame_rate_limit = vgpu->type.frame_rate_limit;
        if (vgpu->guest_driver != STATE_GUEST_DRIVER_RUNNING) {
                vgpu->licence = STATE_LICENCE_UNINITIALIZED;
                vgpu->vm.licence_expiry = (struct state_expiry){ 0 };
        }
}

int check_vgpus(struct scenario *scenario, struct reader *reader)
{
        struct catalog_type type;
        size_t n_processes = 0;

        for (size_t i = 0; i < scenario->n_vgpus; i++) {
                struct scenario_vgpu *vgpu = &scenario->vgpus[i];

                reader_set_place(reader, "vgpus[%zu].device", i);
                if (vgpu->device >= scenario->n_devices)
                        return reader_fail(reader, "there is no device %u; allowed: 0 to %zu",
                                           vgpu->device, scenario->n_devices - 1);
                reader_set_place(reader, "vgpus[%zu].type", i);
                if (find_type(scenario, vgpu, &type, reader) < 0 ||
                    check_gpu_instance(scenario, i, reader) < 0 ||
                    check_room(scenario, i, reader) < 0 || check_names(scenario, i, reader) < 0 ||
                    check_users(vgpu, i, reader) < 0)
                        return -EINVAL;
                n_processes += vgpu->n_processes;
                fill(scenario, i);
        }
        reader_set_place(reader, "vgpus");
        if (n_processes > SCENARIO_PROCESSES_MAX)
                return reader_fail(reader, "there are too many processes; allowed: %d",
                                   SCENARIO_PROCESSES_MAX);
        return check_placements(scenario, reader);
}
