/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/publisher.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "manager/guest.h"
#include "manager/instance.h"
#include "manager/manager.h"

#define BUSY_INTERVAL_US  100000
#define QUIET_INTERVAL_US 1000000

/* After a change: several that come together are written once. */
#define TOUCH_DELAY_US 2000

struct publisher {
        struct manager *manager;
        struct board *board;
        sd_event_source *timer;
        uint32_t n_instances, n_processes; /* records that were written last time */
};

static uint64_t now_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* PCI ids of the simulated device: an H200. */
#define SIMULATED_DEVICE_ID    0x233510deu
#define SIMULATED_SUBSYSTEM_ID 0x18be10deu

static uint32_t read_pci_id(const char *pci_bus_id, const char *device, const char *vendor)
{
        unsigned int domain, bus, slot, value[2] = { 0 };
        const char *const names[2] = { device, vendor };

        if (sscanf(pci_bus_id, "%x:%x:%x", &domain, &bus, &slot) != 3)
                return 0;
        for (int i = 0; i < 2; i++) {
                char path[128];
                FILE *file;

                snprintf(path, sizeof(path), "/sys/bus/pci/devices/%04x:%02x:%02x.0/%s", domain,
                         bus, slot, names[i]);
                file = fopen(path, "re");
                if (!file || fscanf(file, "%x", &value[i]) != 1)
                        value[i] = 0;
                if (file)
                        fclose(file);
        }
        return value[0] << 16 | value[1];
}

static void fill_device(const struct device *device, struct board_device *record)
{
        bool is_simulated = device->manager->simulation[0] != '\0';

        *record = (struct board_device){
                .index = device->index,
                .driver_version = device->driver_version,
                .memory_total = device->memory_total,
        };
        (void)sscanf(device->pci_bus_id, "%x:%x:%x", &record->pci_domain, &record->pci_bus,
                     &record->pci_device);
        record->pci_device_id = is_simulated ? SIMULATED_DEVICE_ID
                                             : read_pci_id(device->pci_bus_id, "device", "vendor");
        record->pci_subsystem_id =
                is_simulated
                        ? SIMULATED_SUBSYSTEM_ID
                        : read_pci_id(device->pci_bus_id, "subsystem_device", "subsystem_vendor");
        snprintf(record->uuid, sizeof(record->uuid), "%s", device->uuid);
        snprintf(record->name, sizeof(record->name), "%s", device->name);
}

static void write_device(struct publisher *publisher, const struct device *device)
{
        const struct instance *instance;
        struct board_device record;

        if (!board_read_device(publisher->board, device->index, &record))
                fill_device(device, &record);
        record.memory_used = device_get_used(device);
        record.n_instances = 0;
        list_for_each(instance, &publisher->manager->instances, link)
                record.n_instances += instance->device == device;
        board_write_device(publisher->board, device->index, &record);
}

static void write_instance(struct publisher *publisher, const struct instance *instance,
                           uint32_t slot)
{
        struct board_instance record = {
                .id = instance->id,
                .device = instance->device->index,
                .state = instance->state,
                .n_processes = (uint32_t)instance_count_guests(instance),
                .tenant_uid = instance->owner,
                .frame_buffer_quota = instance->frame_buffer,
                .frame_buffer_used = instance_get_used(instance),
                .created_ns = instance->created_ns,
        };

        snprintf(record.uuid, sizeof(record.uuid), "%s", instance->uuid);
        snprintf(record.name, sizeof(record.name), "%s", instance->name);
        board_write_instance(publisher->board, slot, &record);
}

static void write_guest(struct publisher *publisher, const struct guest *guest, uint32_t slot)
{
        const struct instance *instance = guest->instance;
        struct board_process record = {
                .pid = (uint32_t)guest->pid,
                .instance = instance->id,
                .device = instance->device->index,
                .start_ns = guest->joined_ns,
        };
        struct page_use use = { 0 };

        if (guest->slot != UINT32_MAX)
                page_read(&instance->page, guest->slot, instance->frame_buffer, &use);
        record.memory_used = use.movable + use.fixed;
        snprintf(record.name, sizeof(record.name), "%s", guest->name);
        board_write_process(publisher->board, slot, &record);
}

static uint32_t write_guests(struct publisher *publisher, struct instance *instance, uint32_t slot)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (!guest->is_dead && slot < BOARD_PROCESSES_MAX)
                        write_guest(publisher, guest, slot++);
        return slot;
}

static void publish(struct publisher *publisher)
{
        struct manager *manager = publisher->manager;
        uint32_t n_instances = 0, n_processes = 0;
        struct instance *instance;

        list_for_each(instance, &manager->instances, link) {
                page_write_quota(&instance->page, instance->frame_buffer);
                write_instance(publisher, instance, n_instances++);
                n_processes = write_guests(publisher, instance, n_processes);
        }
        for (uint32_t i = n_instances; i < publisher->n_instances; i++)
                board_write_instance(publisher->board, i, NULL);
        for (uint32_t i = n_processes; i < publisher->n_processes; i++)
                board_write_process(publisher->board, i, NULL);
        publisher->n_instances = n_instances;
        publisher->n_processes = n_processes;
        for (size_t i = 0; i < manager->n_devices; i++)
                write_device(publisher, &manager->device[i]);
        atomic_store(&publisher->board->heartbeat_ns, now_ns());
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct publisher *publisher = userdata;
        struct manager *manager = publisher->manager;

        (void)usec;
        publish(publisher);
        for (size_t i = 0; i < manager->n_devices; i++)
                device_settle(&manager->device[i]);
        (void)sd_event_source_set_time_relative(source, publisher->n_processes ? BUSY_INTERVAL_US
                                                                               : QUIET_INTERVAL_US);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

void publisher_touch(struct publisher *publisher)
{
        if (!publisher)
                return;
        (void)sd_event_source_set_time_relative(publisher->timer, TOUCH_DELAY_US);
        (void)sd_event_source_set_enabled(publisher->timer, SD_EVENT_ONESHOT);
}

static void fill_board(const struct manager *manager, struct board *board)
{
        board->simulated = manager->simulation[0] != '\0';
        snprintf(board->driver_name, sizeof(board->driver_name), "%s", manager->driver_version);
        if (strlen(manager->real_nvml) < sizeof(board->real_nvml))
                strcpy(board->real_nvml, manager->real_nvml);
        atomic_store(&board->n_devices, (uint32_t)manager->n_devices);
}

int publisher_new(struct publisher **ret_publisher, struct manager *manager)
{
        struct publisher *publisher = calloc(1, sizeof(*publisher));
        char path[PATHS_MAX];
        int r = paths_join(path, manager->options->run_directory, PATHS_BOARD);

        if (!publisher)
                return -ENOMEM;
        publisher->manager = manager;
        if (r == 0)
                r = board_create(&publisher->board, path);
        if (r == 0) {
                fill_board(manager, publisher->board);
                publish(publisher);
                r = sd_event_add_time_relative(manager->event, &publisher->timer, CLOCK_MONOTONIC,
                                               QUIET_INTERVAL_US, TOUCH_DELAY_US, on_timer,
                                               publisher);
        }
        if (r < 0) {
                publisher_free(publisher);
                return r;
        }
        *ret_publisher = publisher;
        return 0;
}

struct publisher *publisher_free(struct publisher *publisher)
{
        if (!publisher)
                return NULL;
        sd_event_source_disable_unref(publisher->timer);
        board_close(publisher->board);
        free(publisher);
        return NULL;
}
