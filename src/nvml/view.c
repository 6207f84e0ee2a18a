/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/view.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/paths.h"
#include "base/trust.h"
#include "nvml/slots.h"
#include "wire/door.h"

/* No address: bits 48 to 63 of a pointer are equal. */
#define HANDLE_BASE     ((uintptr_t)0x4f56470000000001)
#define MIG_HANDLE_BASE ((uintptr_t)0x4f56470000040001)

#define RETRY_NS 1000000000

/* How long a vGPU that was just made is looked for on the state page. */
#define SHOWN_PAUSE_NS 10000000
#define SHOWN_TRIES    2000

static struct {
        pthread_mutex_t lock; /* of a re-opening; readers don't take it */
        _Atomic(const struct state_page *) state_page;
        struct left {
                struct left *next;
                const struct state_page *state_page;
        } * left; /* boards of former managers, still mapped */
        _Atomic uint64_t next_try_ns;
        char path[PATHS_MAX];
        dev_t file_device;
        ino_t file_inode;
        uid_t file_owner;           /* who runs the manager */
        int64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
        bool has_real;
        bool is_guest;
        char guest[STATE_NAME_MAX]; /* UUID or name */
        _Atomic(nvmlDevice_t) handle[STATE_DEVICES_MAX];
        _Atomic uint32_t guest_slot;
        uint32_t n_parts; /* devices of the guest's vGPU */
        nvmlVgpuInstance_t part_id[STATE_DEVICES_MAX];
        _Atomic uint16_t slot_hint[STATE_INSTANCES_MAX]; /* by instance id */
} view = { .lock = PTHREAD_MUTEX_INITIALIZER };

_Static_assert(STATE_INSTANCES_MAX <= UINT16_MAX + 1, "slot_hint holds slots");

/* The handles of the devices on @state page; those of NVIDIA's library are found by UUID. */
static void match_handles(const struct state_page *state_page)
{
        for (uint32_t slot = 0; slot < STATE_DEVICES_MAX; slot++) {
                nvmlDevice_t handle = NULL;
                struct state_device device;

                if (state_read_device(state_page, slot, &device) && view.has_real) {
                        if (NVML_REAL(nvmlDeviceGetHandleByUUID)(device.uuid, &handle) !=
                            NVML_SUCCESS)
                                handle = NULL;
                } else if (state_read_device(state_page, slot, &device)) {
                        handle = (nvmlDevice_t)(HANDLE_BASE + slot);
                }
                atomic_store(&view.handle[slot], handle);
        }
}

/* A manager that starts makes the state page first, fills it, and then shows the first sign of life. */
static bool is_published(const struct state_page *state_page)
{
        return !atomic_load(&state_page->closed) &&
               atomic_load_explicit(&state_page->heartbeat_ns, memory_order_acquire) != 0;
}

/* One that can't be remembered stays mapped for ever. */
static void leave(const struct state_page *state_page)
{
        struct left *left = state_page ? malloc(sizeof(*left)) : NULL;

        if (!left)
                return;
        *left = (struct left){ .next = view.left, .state_page = state_page };
        view.left = left;
}

void view_forget(void)
{
        while (view.left) {
                struct left *left = view.left;

                view.left = left->next;
                state_unmap(left->state_page);
                free(left);
        }
        state_unmap(atomic_exchange(&view.state_page, NULL));
        view.file_device = 0;
        view.file_inode = 0;
}

/*
 * Makes a new state page the current one. The old one stays mapped until the library is unloaded: a
 * reader in another thread may be inside, and some address space for each start of the manager (the
 * file is large, but most of it is holes) is cheaper than a lock in each query.
 */
static void reopen(const struct state_page *current)
{
        CLEANUP(fd_closep) int fd = trust_open(view.path, paths_run_is_given());
        const struct state_page *state_page;
        struct stat status;

        /* Of the file that is open: whose the path is may change at any time. */
        if (fd < 0 || fstat(fd, &status) < 0 ||
            (current && status.st_dev == view.file_device && status.st_ino == view.file_inode) ||
            state_map_fd(&state_page, fd) < 0)
                return;
        if (!is_published(state_page)) {
                state_unmap(state_page);
                return;
        }
        view.file_device = status.st_dev;
        view.file_inode = status.st_ino;
        view.file_owner = status.st_uid;
        match_handles(state_page);
        leave(current);
        atomic_store_explicit(&view.state_page, state_page, memory_order_release);
}

static void try_reopen(const struct state_page *current)
{
        int saved_errno = errno;

        if (pthread_mutex_trylock(&view.lock) != 0)
                return;
        if (current == atomic_load(&view.state_page))
                reopen(current);
        pthread_mutex_unlock(&view.lock);
        errno = saved_errno;
}

/* The current state page. One that its manager has left is looked up anew, once a second. */
const struct state_page *view_state_page(void)
{
        const struct state_page *state_page =
                atomic_load_explicit(&view.state_page, memory_order_acquire);
        uint64_t now = clock_now(CLOCK_MONOTONIC_COARSE);
        uint64_t heartbeat = atomic_load_explicit(&state_page->heartbeat_ns, memory_order_relaxed);
        uint64_t next = atomic_load_explicit(&view.next_try_ns, memory_order_relaxed);
        bool is_left = atomic_load_explicit(&state_page->closed, memory_order_relaxed) ||
                       heartbeat + STATE_STALE_NS < now;

        if (!is_left || now < next)
                return state_page;
        if (atomic_compare_exchange_strong(&view.next_try_ns, &next, now + RETRY_NS))
                try_reopen(state_page);
        return atomic_load_explicit(&view.state_page, memory_order_acquire);
}

/* Beyond this slot there never was an instance. */
static uint32_t get_end(const struct state_page *state_page)
{
        return state_end_instance(state_page);
}

static bool is_guest_of(const struct state_instance *instance)
{
        return strcmp(instance->uuid, view.guest) == 0 || strcmp(instance->name, view.guest) == 0;
}

static bool read_guest(const struct state_page *state_page, uint32_t slot,
                       struct view_instance *ret_instance)
{
        ret_instance->state_page = state_page;
        ret_instance->slot = slot;
        return state_read_instance(state_page, slot, &ret_instance->value) &&
               is_guest_of(&ret_instance->value);
}

static bool find_guest(const struct state_page *state_page, struct view_instance *ret_instance)
{
        uint32_t slot = atomic_load_explicit(&view.guest_slot, memory_order_relaxed);

        if (read_guest(state_page, slot, ret_instance))
                return true;
        for (slot = 0; slot < get_end(state_page); slot++) {
                if (!read_guest(state_page, slot, ret_instance))
                        continue;
                atomic_store_explicit(&view.guest_slot, slot, memory_order_relaxed);
                return true;
        }
        return false;
}

static bool open_path(void)
{
        char run[PATHS_MAX];

        if (paths_run_client(run) < 0 || paths_join(view.path, run, PATHS_STATE_PAGE) < 0)
                return false;
        try_reopen(atomic_load(&view.state_page));
        return atomic_load(&view.state_page) &&
               !atomic_load(&atomic_load(&view.state_page)->closed);
}

/* The manager has made it, and is about to show it. */
static bool find_guest_soon(void)
{
        const struct timespec pause = { .tv_nsec = SHOWN_PAUSE_NS };
        struct view_instance instance;

        for (int i = 0; i < SHOWN_TRIES; i++) {
                if (find_guest(atomic_load(&view.state_page), &instance))
                        return true;
                (void)nanosleep(&pause, NULL);
        }
        return false;
}

static int compare_ids(const void *a, const void *b)
{
        const nvmlVgpuInstance_t *left = a, *right = b;

        return (*left > *right) - (*left < *right);
}

/* A vGPU of several devices has a record for each, in the order of their ids. Their number never changes. */
static void find_parts(const struct state_page *state_page)
{
        struct view_instance part;

        view.n_parts = 0;
        for (uint32_t slot = 0; slot < get_end(state_page); slot++)
                if (view.n_parts < STATE_DEVICES_MAX && read_guest(state_page, slot, &part))
                        view.part_id[view.n_parts++] = part.value.id;
        qsort(view.part_id, view.n_parts, sizeof(view.part_id[0]), compare_ids);
}

/* In a container that has no vGPU before somebody asks for it, whoever asks first is told of it. */
static bool is_of_new_guest(const char *vgpu)
{
        char made[GATE_VGPU_NAME_MAX], text[GATE_TEXT_MAX];

        if (strcmp(vgpu, GATE_VGPU_NEW) != 0 || door_order(NULL, made, text) < 0)
                return false;
        snprintf(view.guest, sizeof(view.guest), "%s", made);
        return find_guest_soon();
}

bool view_open(bool has_real)
{
        const char *vgpu = getenv("OPENVGPU_VGPU");
        struct view_instance instance;

        view.has_real = has_real;
        view.realtime_offset_ns = (int64_t)(clock_now(CLOCK_REALTIME) - clock_now(CLOCK_MONOTONIC));
        if (!open_path())
                return false;

        match_handles(atomic_load(&view.state_page));
        snprintf(view.guest, sizeof(view.guest), "%s", vgpu ? vgpu : "");
        view.is_guest = *view.guest && (is_of_new_guest(view.guest) ||
                                        find_guest(atomic_load(&view.state_page), &instance));
        if (view.is_guest)
                find_parts(atomic_load(&view.state_page));
        return true;
}

bool view_is_guest(void)
{
        return view.is_guest;
}

bool view_is_substitute(void)
{
        return view.is_guest || !view.has_real;
}

/* Whoever makes a state page where we look for one could else have us load his code. */
static bool may_name_code(void)
{
        return trust_user(view.file_owner);
}

bool view_find_real(char *path, size_t size, bool *ret_simulated)
{
        const struct state_page *state_page;

        if (!open_path())
                return false;
        state_page = atomic_load(&view.state_page);
        snprintf(path, size, "%.*s", (int)sizeof(state_page->real_nvml),
                 may_name_code() ? state_page->real_nvml : "");
        *ret_simulated = state_page->simulated;
        return true;
}

const char *view_driver_name(void)
{
        return view_state_page()->driver_name;
}

uint32_t view_count_devices(void)
{
        uint32_t n = atomic_load(&view_state_page()->n_devices);

        if (view.is_guest)
                return view.n_parts > 1 ? view.n_parts : 1;
        return n < STATE_DEVICES_MAX ? n : STATE_DEVICES_MAX;
}

nvmlDevice_t view_get_handle(uint32_t device)
{
        return device < STATE_DEVICES_MAX ? atomic_load(&view.handle[device]) : NULL;
}

/* A guest's device is as large as its quota and as busy as the guest. */
static void shrink(struct state_device *device, const struct state_instance *instance)
{
        device->n_instances = 0;
        device->virtualization = STATE_VIRTUALIZATION_VGPU;
        if (device->mig != STATE_NONE)
                device->mig = device->mig_pending = 0;
        device->memory_total = instance->frame_buffer_quota;
        device->memory_used = instance->frame_buffer_used;
        device->memory_reserved = 0;
        device->utilization_gpu = instance->utilization_gpu;
        device->utilization_memory = instance->utilization_memory;
        device->utilization_encoder = instance->utilization_encoder;
        device->utilization_decoder = instance->utilization_decoder;
        device->utilization_jpeg = instance->utilization_jpeg;
        device->utilization_ofa = instance->utilization_ofa;
}

static bool find_instance(struct view_instance *ret_instance, nvmlVgpuInstance_t id);

bool view_find_part(struct view_instance *ret_part, uint32_t position)
{
        ret_part->state_page = view_state_page();
        if (view.n_parts <= 1)
                return position == 0 && find_guest(ret_part->state_page, ret_part);
        return position < view.n_parts && find_instance(ret_part, view.part_id[position]) &&
               is_guest_of(&ret_part->value);
}

static bool read_guest_device(struct state_device *ret_device, uint32_t position)
{
        struct view_instance part;

        if (!view_find_part(&part, position) ||
            !state_read_device(part.state_page, part.value.device, ret_device))
                return false;
        shrink(ret_device, &part.value);
        ret_device->index = position;
        return true;
}

/* A guest of one device has that, whatever handle it got before a migration. */
static uint32_t find_position(uint32_t device)
{
        struct view_instance part;
        uint32_t i = 0;

        if (view.n_parts <= 1)
                return 0;
        while (i < view.n_parts && (!view_find_part(&part, i) || part.value.device != device))
                i++;
        return i;
}

static bool find_handle(nvmlDevice_t handle, uint32_t *ret_device)
{
        for (uint32_t i = 0; handle && i < STATE_DEVICES_MAX; i++) {
                if (atomic_load_explicit(&view.handle[i], memory_order_relaxed) != handle)
                        continue;
                *ret_device = i;
                return true;
        }
        return false;
}

bool view_knows(nvmlDevice_t handle)
{
        uint32_t i;

        return find_handle(handle, &i);
}

nvmlDevice_t view_get_mig_handle(uint32_t slot)
{
        return (nvmlDevice_t)(MIG_HANDLE_BASE + slot);
}

bool view_find_mig(uint32_t *ret_slot, struct state_compute_instance *ret_record,
                   nvmlDevice_t handle)
{
        uintptr_t slot = (uintptr_t)handle - MIG_HANDLE_BASE;

        if (view.is_guest || slot >= STATE_COMPUTE_INSTANCES_MAX)
                return false;
        *ret_slot = (uint32_t)slot;
        return state_read_compute_instance(view_state_page(), *ret_slot, ret_record);
}

nvmlReturn_t view_device(struct state_device *ret_device, nvmlDevice_t handle, bool has_pointers)
{
        const struct state_page *state_page = view_state_page();
        struct state_compute_instance mig;
        bool found;
        uint32_t i;

        if (has_pointers && view_find_mig(&i, &mig, handle))
                return NVML_ERROR_NOT_SUPPORTED;
        if (!has_pointers || !find_handle(handle, &i))
                return NVML_ERROR_INVALID_ARGUMENT;
        found = view.is_guest ? read_guest_device(ret_device, find_position(i))
                              : state_read_device(state_page, i, ret_device);
        if (!found)
                return NVML_ERROR_INVALID_ARGUMENT;
        return ret_device->is_lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlReturn_t view_whole_device(struct state_device *ret_device, nvmlDevice_t handle,
                               bool has_pointers)
{
        nvmlReturn_t r = view_device(ret_device, handle, has_pointers);

        return r == NVML_SUCCESS && ret_device->mig == 1 ? NVML_ERROR_NOT_SUPPORTED : r;
}

bool view_device_at(struct state_device *ret_device, uint32_t position)
{
        const struct state_page *state_page = view_state_page();

        if (view.is_guest)
                return read_guest_device(ret_device, position);
        return state_read_device(state_page, position, ret_device);
}

static bool is_visible(const struct state_instance *instance)
{
        return instance->state != STATE_SUSPENDED && (!view.is_guest || is_guest_of(instance));
}

static bool read_instance(struct view_instance *ret_instance, uint32_t slot, nvmlVgpuInstance_t id)
{
        ret_instance->slot = slot;
        return state_read_instance(ret_instance->state_page, slot, &ret_instance->value) &&
               ret_instance->value.id == id;
}

/*
 * Notes the slot of every vGPU, so that a client that asks about each of them looks through the page once.
 * Returns that of @id, or STATE_INSTANCES_MAX.
 */
static uint32_t learn_slots(const struct state_page *state_page, nvmlVgpuInstance_t id)
{
        uint32_t end = get_end(state_page), found = STATE_INSTANCES_MAX;

        for (uint32_t slot = 0; slot < end; slot++) {
                const struct state_instance_record *record = &state_page->instance[slot];
                nvmlVgpuInstance_t one;

                if (!atomic_load_explicit(&record->head.in_use, memory_order_acquire))
                        continue;
                one = __atomic_load_n(&record->value[0].id, __ATOMIC_RELAXED);
                atomic_store_explicit(&view.slot_hint[one % STATE_INSTANCES_MAX], (uint16_t)slot,
                                      memory_order_relaxed);
                found = one == id ? slot : found;
        }
        if (found < STATE_INSTANCES_MAX)
                atomic_store_explicit(&view.slot_hint[id % STATE_INSTANCES_MAX], (uint16_t)found,
                                      memory_order_relaxed);
        return found;
}

static bool find_instance(struct view_instance *ret_instance, nvmlVgpuInstance_t id)
{
        _Atomic uint16_t *hint = &view.slot_hint[id % STATE_INSTANCES_MAX];
        uint32_t found;

        if (read_instance(ret_instance, atomic_load_explicit(hint, memory_order_relaxed), id))
                return true;
        found = learn_slots(ret_instance->state_page, id);
        return found < STATE_INSTANCES_MAX && read_instance(ret_instance, found, id);
}

nvmlReturn_t view_instance(struct view_instance *ret_instance, nvmlVgpuInstance_t id,
                           bool has_pointers)
{
        if (!has_pointers || id == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        ret_instance->state_page = view_state_page();
        return find_instance(ret_instance, id) && is_visible(&ret_instance->value)
                       ? NVML_SUCCESS
                       : NVML_ERROR_NOT_FOUND;
}

bool view_own_instance(struct view_instance *ret_instance)
{
        return view.is_guest && find_guest(view_state_page(), ret_instance);
}

bool view_next_instance(struct view_instance *ret_instance, uint32_t *cursor, uint32_t device)
{
        const struct state_page *state_page = view_state_page();

        ret_instance->state_page = state_page;
        while (*cursor < get_end(state_page)) {
                uint32_t slot = (*cursor)++;

                ret_instance->slot = slot;
                if (atomic_load_explicit(&state_page->instance[slot].head.in_use,
                                         memory_order_relaxed) &&
                    state_read_instance(state_page, slot, &ret_instance->value) &&
                    ret_instance->value.device == device && is_visible(&ret_instance->value))
                        return true;
        }
        return false;
}

bool view_next_process(struct state_process *ret_process, uint32_t *cursor, uint32_t device)
{
        const struct state_page *state_page = view_state_page();
        uint32_t end = state_end_process(state_page);
        struct view_instance own;
        bool is_guest = view.is_guest && view_find_part(&own, view.n_parts > 1 ? device : 0);

        while (*cursor < end) {
                uint32_t slot = (*cursor)++;

                if (!atomic_load_explicit(&state_page->process[slot].head.in_use,
                                          memory_order_relaxed) ||
                    !state_read_process(state_page, slot, ret_process))
                        continue;
                if (is_guest ? ret_process->instance == own.value.id
                             : ret_process->device == device)
                        return true;
        }
        return false;
}

uint64_t view_sample_us(void)
{
        uint64_t heartbeat = atomic_load(&view_state_page()->heartbeat_ns);

        return (uint64_t)((int64_t)heartbeat + view.realtime_offset_ns) / 1000;
}
