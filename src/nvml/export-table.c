/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers with the table of unnamed functions that nvidia-smi asks for.
 *
 * No document describes the table. Its contents were found by watching nvidia-smi 390, 418, 450,
 * 470, 535 and 550 call a table of our own, and holds for 580: word 0 is the size in bytes, the
 * others are functions or NULL, and a number below means the same in all that ask for it. Without
 * the table nvidia-smi gives up at once, and without slot 72 it lists no vGPU.
 *
 * With NVIDIA's library, its own table is copied, and only functions that we know
 * better are replaced. A slot that we don't know must stay empty: nvidia-smi believes
 * a success.
 */
#include <stdio.h>
#include <string.h>

#include "nvml/bus-id.h"
#include "nvml/library.h"
#include "nvml/link.h"
#include "nvml/process.h"
#include "nvml/slots.h"
#include "nvml/view.h"

enum {
        SLOT_PARSE_BUS_ID = 12,
        SLOT_TOPOLOGY = 23,
        SLOT_LOG = 26,
        SLOT_ARCHITECTURE = 65, /* "topo -m" of 390 and 418: 5 is Volta, as in the public enum */
        SLOT_HOSTS_VGPUS = 72,
        SLOT_ADDRESS = 75,
        SLOT_HANDLE = 81,
        SLOT_HOSTS_VGPUS_390 = 139,
        SLOT_OTHER_PROCESSES = 157, /* 390: beside those of the public lists */
        SLOT_VM_NAME = 188,
        SLOT_LICENCE = 190, /* 450 and 470 */
        SLOT_COMPUTE_PROCESSES = 213,
        SLOT_MPS_PROCESSES = 214,
        SLOT_GRAPHICS_PROCESSES = 215,
        SLOT_PCIE_GENERATION = 230, /* that the slot of the host allows */
        N_SLOTS = 245,              /* of a table of our own: as many as driver 535 has */
        N_SLOTS_MAX = 1024,
};

/* 6c3efec4-8fc9-4e6c-a327-ee696e12f7c4, as a GUID lies in memory: its first three parts turned. */
static const unsigned char table_id[16] = { 0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                            0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4 };

/* What `nvidia-smi -q` asks, and prints "N/A" for if it is told that there is no answer. */
static const unsigned short unanswered[] = {
        165, 207, 209, 211, 226, 231, 232, 237, 240, 242, 243
};

#define TOPOLOGY_SYSTEM 4 /* not the public enum; above it: that many links more */
#define VM_NAME_MAX     64
#define PROCESSES_MAX   500 /* room of nvidia-smi's list */

struct listed_process {
        unsigned int pid;
        unsigned long long used;
        unsigned int gpu_instance;
        unsigned int compute_instance;
        unsigned long long protected_used;
        char name[4096];
};

_Static_assert(sizeof(struct listed_process) == 4128, "stride of nvidia-smi's list");

static nvmlReturn_t parse_bus_id(const char *bus_id, unsigned int *domain, unsigned int *bus,
                                 unsigned int *device, unsigned int *function)
{
        struct bus_id id;

        if (!bus_id || !domain || !bus || !device || !function)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (!bus_id_parse(&id, bus_id))
                return NVML_ERROR_INVALID_ARGUMENT;
        *domain = id.domain;
        *bus = id.bus;
        *device = id.device;
        *function = id.function;
        return NVML_SUCCESS;
}

static bool find_at(uint32_t *ret_index, const nvmlPciInfo_t *pci)
{
        struct state_device device;

        for (uint32_t i = 0; library_is_ours() && i < view_count_devices(); i++) {
                if (!view_device_at(&device, i) || device.pci_domain != pci->domain ||
                    device.pci_bus != pci->bus || device.pci_device != pci->device)
                        continue;
                *ret_index = device.index;
                return true;
        }
        return false;
}

static nvmlReturn_t get_topology(const nvmlPciInfo_t *a, const nvmlPciInfo_t *b,
                                 unsigned int *level)
{
        uint32_t of_a, of_b;

        if (!a || !b || !level)
                return NVML_ERROR_INVALID_ARGUMENT;
        *level = TOPOLOGY_SYSTEM;
        if (find_at(&of_a, a) && find_at(&of_b, b))
                *level += link_count_between(of_a, of_b);
        return NVML_SUCCESS;
}

static nvmlReturn_t (*real_hosts_vgpus)(nvmlDevice_t handle, unsigned int *flag);

static nvmlReturn_t hosts_vgpus(nvmlDevice_t handle, unsigned int *flag)
{
        if (!library_is_ours() || !view_knows(handle))
                return real_hosts_vgpus ? real_hosts_vgpus(handle, flag)
                                        : NVML_ERROR_INVALID_ARGUMENT;
        if (!flag)
                return NVML_ERROR_INVALID_ARGUMENT;
        *flag = 1;
        return NVML_SUCCESS;
}

static nvmlReturn_t get_address(unsigned int index, unsigned int *domain, unsigned int *bus,
                                unsigned int *device)
{
        struct state_device found;

        if (!domain || !bus || !device || !library_is_ours() || !view_device_at(&found, index))
                return NVML_ERROR_INVALID_ARGUMENT;
        *domain = found.pci_domain;
        *bus = found.pci_bus;
        *device = found.pci_device;
        return NVML_SUCCESS;
}

/* The caller tells no size; a short name has always fitted. */
static nvmlReturn_t get_vm_name(nvmlVgpuInstance_t id, char *name)
{
        struct view_instance instance;
        struct state_vm vm;
        nvmlReturn_t r =
                library_is_ours() ? view_instance(&instance, id, name) : NVML_ERROR_UNINITIALIZED;

        if (r != NVML_SUCCESS)
                return r;
        if (!state_read_vm(instance.state_page, instance.slot, &vm))
                return NVML_ERROR_NOT_FOUND;
        snprintf(name, VM_NAME_MAX, "%.63s", vm.name);
        return NVML_SUCCESS;
}

static nvmlReturn_t list_processes(nvmlDevice_t handle, uint32_t kinds, unsigned int *count,
                                   struct listed_process *list)
{
        struct state_process process;
        struct state_device device;
        unsigned int n = 0;

        if (!library_is_ours() || view_device(&device, handle, count && list) != NVML_SUCCESS)
                return NVML_ERROR_INVALID_ARGUMENT;
        for (uint32_t cursor = 0; n < PROCESSES_MAX && n < *count &&
                                  process_next(&process, &cursor, device.index, kinds);
             n++) {
                list[n] = (struct listed_process){
                        .pid = process.pid,
                        .used = process.memory_used,
                        .gpu_instance = process_get_gpu_instance(&process),
                        .compute_instance = NVML_INVALID_MIG_ID,
                };
                snprintf(list[n].name, sizeof(list[n].name), "%s", process.name);
        }
        *count = n;
        return NVML_SUCCESS;
}

static nvmlReturn_t list_compute(nvmlDevice_t handle, unsigned int *count,
                                 struct listed_process *list)
{
        return list_processes(handle, STATE_COMPUTE, count, list);
}

static nvmlReturn_t list_mps(nvmlDevice_t handle, unsigned int *count, struct listed_process *list)
{
        return list_processes(handle, 0, count, list);
}

static nvmlReturn_t list_graphics(nvmlDevice_t handle, unsigned int *count,
                                  struct listed_process *list)
{
        return list_processes(handle, STATE_GRAPHICS, count, list);
}

/* Each line that it prints: nobody reads it here. */
static nvmlReturn_t take_line(const char *program, const char *where, const char *line)
{
        (void)program;
        (void)where;
        (void)line;
        return NVML_SUCCESS;
}

/* The last argument was 0x22 whenever it was seen. */
static nvmlReturn_t get_handle(unsigned int index, nvmlDevice_t *device, unsigned int flags)
{
        (void)flags;
        return library_is_ours() ? our_nvmlDeviceGetHandleByIndex_v2(index, device)
                                 : NVML_ERROR_UNINITIALIZED;
}

static nvmlReturn_t get_architecture(nvmlDevice_t handle, unsigned int *architecture)
{
        return library_is_ours() ? our_nvmlDeviceGetArchitecture(handle, architecture)
                                 : NVML_ERROR_UNINITIALIZED;
}

static nvmlReturn_t list_others(nvmlDevice_t handle, unsigned int *count, void *list)
{
        if (!library_is_ours() || !view_knows(handle) || !count || !list)
                return NVML_ERROR_INVALID_ARGUMENT;
        *count = 0;
        return NVML_SUCCESS;
}

/* The numbers of the public struct, but that it takes "unknown", which is 0, for licensed. */
static nvmlReturn_t get_licence(nvmlVgpuInstance_t id, unsigned int *state)
{
        struct view_instance instance;
        nvmlReturn_t r =
                library_is_ours() ? view_instance(&instance, id, state) : NVML_ERROR_UNINITIALIZED;

        if (r != NVML_SUCCESS)
                return r;
        if (instance.value.guest_driver != STATE_GUEST_DRIVER_RUNNING ||
            instance.value.licence == STATE_LICENCE_UNKNOWN)
                return NVML_ERROR_NOT_SUPPORTED;
        *state = instance.value.licence;
        return NVML_SUCCESS;
}

static nvmlReturn_t get_pcie_generation(nvmlDevice_t handle, unsigned int *generation)
{
        return library_is_ours() ? our_nvmlDeviceGetMaxPcieLinkGeneration(handle, generation)
                                 : NVML_ERROR_UNINITIALIZED;
}

static nvmlReturn_t answer_not_supported(void)
{
        return NVML_ERROR_NOT_SUPPORTED;
}

struct table {
        size_t size;
        nvml_function slot[N_SLOTS_MAX]; /* slot[n - 1] is slot n */
};

static struct table table;

static void set(unsigned int slot, nvml_function function)
{
        table.slot[slot - 1] = function;
}

static void set_own_processes(void)
{
        set(SLOT_COMPUTE_PROCESSES, (nvml_function)list_compute);
        set(SLOT_MPS_PROCESSES, (nvml_function)list_mps);
        set(SLOT_GRAPHICS_PROCESSES, (nvml_function)list_graphics);
}

static const struct table *make_own(void)
{
        table = (struct table){ .size = N_SLOTS * sizeof(nvml_function) };
        set(SLOT_PARSE_BUS_ID, (nvml_function)parse_bus_id);
        set(SLOT_TOPOLOGY, (nvml_function)get_topology);
        set(SLOT_LOG, (nvml_function)take_line);
        set(SLOT_ARCHITECTURE, (nvml_function)get_architecture);
        set(SLOT_HOSTS_VGPUS, (nvml_function)hosts_vgpus);
        set(SLOT_HOSTS_VGPUS_390, (nvml_function)hosts_vgpus);
        set(SLOT_ADDRESS, (nvml_function)get_address);
        set(SLOT_HANDLE, (nvml_function)get_handle);
        set(SLOT_OTHER_PROCESSES, (nvml_function)list_others);
        set(SLOT_VM_NAME, (nvml_function)get_vm_name);
        set(SLOT_LICENCE, (nvml_function)get_licence);
        set(SLOT_PCIE_GENERATION, (nvml_function)get_pcie_generation);
        set_own_processes();
        for (size_t i = 0; i < sizeof(unanswered) / sizeof(unanswered[0]); i++)
                set(unanswered[i], (nvml_function)answer_not_supported);
        return &table;
}

static const struct table *make_mixed(const struct table *real)
{
        if (real->size < (SLOT_GRAPHICS_PROCESSES + 1) * sizeof(nvml_function))
                return real;
        table.size = real->size < sizeof(table) ? real->size : sizeof(table);
        memcpy(table.slot, real->slot, table.size - sizeof(table.size));
        real_hosts_vgpus =
                (nvmlReturn_t(*)(nvmlDevice_t, unsigned int *))table.slot[SLOT_HOSTS_VGPUS - 1];
        set(SLOT_HOSTS_VGPUS, (nvml_function)hosts_vgpus);
        set(SLOT_VM_NAME, (nvml_function)get_vm_name);
        if (view_is_guest())
                set_own_processes();
        return &table;
}

nvmlReturn_t our_nvmlInternalGetExportTable(const void **ret_table, const void *id)
{
        const void *real = NULL;

        if (library_has_real()) {
                nvmlReturn_t r = NVML_REAL(nvmlInternalGetExportTable)(&real, id);

                if (r != NVML_SUCCESS || !ret_table || !library_is_ours()) {
                        if (ret_table)
                                *ret_table = real;
                        return ret_table ? r : NVML_ERROR_INVALID_ARGUMENT;
                }
        }
        if (!ret_table || !id)
                return NVML_ERROR_INVALID_ARGUMENT;
        *ret_table = NULL;
        if (memcmp(id, table_id, sizeof(table_id)) != 0) {
                *ret_table = real;
                return real ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
        }
        *ret_table = real ? make_mixed(real) : make_own();
        return NVML_SUCCESS;
}
