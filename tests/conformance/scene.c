/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/scene.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/test.h"
#include "catalog/catalog.h"

#define SLOT_TRAIN   5
#define SLOT_INFER   6
#define SLOT_STOPPED 8
#define SLOT_PLAIN   9
#define SLOT_MIGGED  10

#define PROFILE_ID 19u

/* A device like the fixture's first, but with another index. */
static struct state_device like_first(const struct state_page *state_page, uint32_t index)
{
        struct state_device device;

        assert_true(state_read_device(state_page, 0, &device));
        device.index = index;
        device.pci_bus = 0x17 + 0x10 * index;
        device.memory_used = 0;
        snprintf(device.uuid, sizeof(device.uuid), "GPU-11111111-2222-3333-4444-55555555555%u",
                 index);
        return device;
}

static void add_device(struct state_page *state_page, const struct state_device *device)
{
        struct state_device_detail detail;

        assert_true(state_read_device_detail(state_page, 0, &detail));
        detail.capability[STATE_CAN_MIG_TIME_SLICING] = 1;
        state_write_device(state_page, device->index, device);
        state_write_device_detail(state_page, device->index, &detail);
        assert_int_equal(catalog_publish(state_page, device), 0);
}

static void add_gpu_instance(struct state_page *state_page, uint32_t slot, uint32_t device,
                             uint32_t id, state_switch is_heterogeneous)
{
        const struct state_gpu_instance record = { .device = device,
                                                   .id = id,
                                                   .profile_id = PROFILE_ID,
                                                   .placement_start = id,
                                                   .placement_size = 1,
                                                   .is_heterogeneous = is_heterogeneous,
                                                   .memory_total = 16 * GIB };

        state_write_gpu_instance(state_page, slot, &record);
}

/* A type for GPU instances: two fit in each. */
static void add_mig_type(struct state_page *state_page)
{
        const struct state_type type = { .id = SCENE_MIG_TYPE,
                                         .pci_device_id = 0x233510de,
                                         .profile_id = PROFILE_ID,
                                         .n_heads = 1,
                                         .frame_rate_limit = 60,
                                         .max_instances = 14,
                                         .max_instances_vm = 1,
                                         .max_instances_gpu_instance = 2,
                                         .placement_size = 8,
                                         .frame_buffer = 8 * GIB };
        const struct state_placements placements = { .n_mixed = 2, .mixed = { 0, 8 } };
        const struct state_type_text text = { .name = "NVIDIA H200-1-8C",
                                              .class = "Compute",
                                              .licence = "OpenVGPU,1" };
        int slot = state_add_type(state_page, &type);
        const struct state_offers offers = {
                .n = 1,
                .offer = { { .type = (uint16_t)slot, .max_instances = 2, .n_creatable = 2 } },
        };

        assert_true(slot >= 0);
        state_write_type_text(state_page, (uint32_t)slot, &text);
        state_write_placements(state_page, (uint32_t)slot, &placements);
        for (uint32_t i = 0; i < 2; i++)
                state_write_offers(state_page, state_site_of_gpu_instance(i), &offers);
}

static void add_devices(struct state_page *state_page)
{
        struct state_device device = like_first(state_page, 2);

        device.mig = device.mig_pending = 1;
        add_device(state_page, &device);
        device = like_first(state_page, 3);
        device.mig = device.mig_pending = 1;
        device.virtualization = STATE_VIRTUALIZATION_NONE;
        add_device(state_page, &device);
        device = like_first(state_page, 4);
        add_device(state_page, &device);
        state_page->n_devices = 5;
        add_gpu_instance(state_page, 0, 2, 1, 1);
        add_gpu_instance(state_page, 1, 2, 2, 0);
        add_gpu_instance(state_page, 2, 3, 1, 1);
        add_mig_type(state_page);
}

/* A vGPU like the fixture's first. */
static void add_vgpu(struct state_page *state_page, uint32_t slot, struct state_instance *instance)
{
        struct state_vm vm;

        assert_true(state_read_vm(state_page, SLOT_TRAIN, &vm));
        snprintf(instance->uuid, sizeof(instance->uuid), "e5c1b1a0-0000-4000-8000-0000000000%02u",
                 slot);
        snprintf(instance->name, sizeof(instance->name), "vgpu-%u", slot);
        state_write_instance(state_page, slot, instance);
        state_write_vm(state_page, slot, &vm);
}

static void complete_train(struct state_page *state_page)
{
        struct state_instance instance;
        struct state_vm vm;

        assert_true(state_read_instance(state_page, SLOT_TRAIN, &instance));
        assert_true(state_read_vm(state_page, SLOT_TRAIN, &vm));
        instance.ecc = 1;
        instance.frame_rate_limit = 60;
        instance.runtime_state_size = MIB;
        snprintf(vm.mdev_uuid, sizeof(vm.mdev_uuid), "a5c1b1a0-0000-4000-8000-000000000000");
        state_write_instance(state_page, SLOT_TRAIN, &instance);
        state_write_vm(state_page, SLOT_TRAIN, &vm);
        for (uint32_t i = 0; i < 2; i++) {
                const struct state_encoder_session encoder = { .instance = FIXTURE_TRAIN,
                                                               .id = i + 1 };
                const struct state_capture_session capture = { .instance = FIXTURE_TRAIN,
                                                               .id = i + 1 };

                state_write_encoder_session(state_page, i, &encoder);
                state_write_capture_session(state_page, i, &capture);
        }
}

static void add_vgpus(struct state_page *state_page)
{
        struct state_instance like, instance;

        complete_train(state_page);
        assert_true(state_read_instance(state_page, SLOT_INFER, &instance));
        instance.guest_driver = STATE_GUEST_DRIVER_NONE;
        instance.licence = STATE_LICENCE_UNLICENSED;
        state_write_instance(state_page, SLOT_INFER, &instance);

        assert_true(state_read_instance(state_page, SLOT_TRAIN, &like));
        like.frame_buffer_quota = GIB;
        instance = like;
        instance.id = SCENE_STOPPED;
        instance.guest_driver = STATE_GUEST_DRIVER_STOPPED;
        instance.ecc = STATE_NONE;
        instance.accounting = STATE_NONE;
        instance.frame_rate_limit = 0;
        add_vgpu(state_page, SLOT_STOPPED, &instance);
        instance = like;
        instance.id = SCENE_PLAIN;
        instance.accounting = 0;
        add_vgpu(state_page, SLOT_PLAIN, &instance);
        instance = like;
        instance.id = SCENE_MIGGED;
        instance.device = 2;
        instance.gpu_instance = 1;
        instance.type_id = SCENE_MIG_TYPE;
        instance.placement = 0;
        instance.placement_size = 8;
        instance.frame_buffer_quota = 8 * GIB;
        add_vgpu(state_page, SLOT_MIGGED, &instance);
}

static void lose_device(struct state_page *state_page)
{
        struct state_device device;

        assert_true(state_read_device(state_page, 4, &device));
        device.is_lost = 1;
        state_write_device(state_page, 4, &device);
}

static nvmlGpuInstance_t get_gpu_instance(nvmlDevice_t device, uint32_t id)
{
        nvmlGpuInstance_t handle;

        assert_int_equal(nvmlDeviceGetGpuInstanceById(device, id, &handle), NVML_SUCCESS);
        return handle;
}

static void find_handles(struct scene *scene)
{
        nvmlDevice_t *const handles[] = { &scene->device, &scene->empty, &scene->mig, &scene->bare,
                                          &scene->lost };
        unsigned int n = scene->situation == GUEST ? 1 : 5;

        for (unsigned int i = 0; i < n; i++)
                assert_int_equal(nvmlDeviceGetHandleByIndex_v2(i, handles[i]), NVML_SUCCESS);
        assert_int_equal(nvmlVgpuInstanceGetType(FIXTURE_TRAIN, &scene->type), NVML_SUCCESS);
        if (scene->situation == GUEST)
                return;
        scene->gi = get_gpu_instance(scene->mig, 1);
        scene->gi_empty = get_gpu_instance(scene->mig, 2);
        scene->gi_bare = get_gpu_instance(scene->bare, 1);
        lose_device(scene->fixture->state_page);
}

static void get_blobs(struct scene *scene)
{
        unsigned int size = sizeof(scene->blobs[0]);

        scene->vgpu_blob = (nvmlVgpuMetadata_t *)(void *)scene->blobs[0];
        scene->pgpu_blob = (nvmlVgpuPgpuMetadata_t *)(void *)scene->blobs[1];
        assert_int_equal(nvmlVgpuInstanceGetMetadata(FIXTURE_TRAIN, scene->vgpu_blob, &size), 0);
        size = sizeof(scene->blobs[1]);
        assert_int_equal(nvmlDeviceGetVgpuMetadata(scene->empty, scene->pgpu_blob, &size), 0);
}

static const struct fake_step steps[N_SITUATIONS] = {
        [ACCEPTS] = { .answers = { "{'parameters':{}}" } },
        [DENIES] = { .answers = { "{'error':'org.openvgpu.PermissionDenied'}" } },
        [BUSY] = { .answers = { "{'error':'org.openvgpu.InUse'}" } },
        [REFUSES] = { .answers = { "{'error':'org.openvgpu.Unsupported'}" } },
        [BROKEN] = { .answers = { "what?" } },
};

struct scene *scene_new(enum situation situation)
{
        struct scene *scene = calloc(1, sizeof(*scene));

        assert_non_null(scene);
        scene->situation = situation;
        scene->fixture = fixture_new();
        add_devices(scene->fixture->state_page);
        add_vgpus(scene->fixture->state_page);
        fixture_update_offers(scene->fixture, 0);
        for (uint32_t i = 0; i < 2; i++)
                catalog_update_offers(scene->fixture->state_page, state_site_of_gpu_instance(i),
                                      i == 0 ? 8 * GIB : 16 * GIB, i == 0);
        if (situation == GUEST)
                setenv("OPENVGPU_VGPU", FIXTURE_TRAIN_UUID, 1);
        else
                unsetenv("OPENVGPU_VGPU");
        assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
        find_handles(scene);
        if (situation != GUEST)
                get_blobs(scene);
        if (situation >= ACCEPTS) {
                scene->manager = fake_manager_new(&steps[situation], 1);
                setenv("OPENVGPU_RUN", fake_manager_get_directory(scene->manager), 1);
        }
        return scene;
}

struct scene *scene_free(struct scene *scene)
{
        if (!scene)
                return NULL;
        nvmlShutdown();
        scene->manager = fake_manager_free(scene->manager);
        scene->fixture = fixture_free(scene->fixture);
        free(scene);
        return NULL;
}
