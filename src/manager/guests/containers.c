/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/guests/containers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cdi/specification.h"
#include "daemon/log.h"
#include "manager/guests/guest-socket.h"
#include "manager/model/account.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/socket/listener.h"

/* Beside the state page, until it takes the place of a former one. */
#define STATE_NEW PATHS_STATE_PAGE ".new"

struct door {
        struct list link;
        struct guest_socket *socket;
        char uuid[STORE_UUID_MAX];
        uid_t payer; /* whatever number a process in the container has */
        struct listener listener;
        struct account_charge charge; /* of the vGPU's owner */
};

struct containers {
        struct manager *manager;
        struct list doors;
        int folder; /* of the doors */
};

static struct door *door_free(struct door *door)
{
        list_remove(&door->link);
        listener_deinit(&door->listener);
        account_end(&door->charge);
        free(door);
        return NULL;
}

static struct door *find(const struct containers *containers, const char *uuid)
{
        struct door *door;

        list_for_each(door, &containers->doors, link)
                if (strcmp(door->uuid, uuid) == 0)
                        return door;
        return NULL;
}

static int on_connection(int fd, const struct ucred *peer, void *userdata)
{
        const struct door *door = userdata;

        return guest_socket_accept(door->socket, fd, peer, door->payer, door->uuid);
}

/* Folders. */

static int link_state_page(const struct manager *manager, int folder)
{
        char state_page[PATHS_MAX];
        int r = paths_join(state_page, manager->options->run_directory, PATHS_STATE_PAGE);

        if (r < 0)
                return r;
        (void)unlinkat(folder, STATE_NEW, 0);
        if (linkat(AT_FDCWD, state_page, folder, STATE_NEW, 0) < 0)
                return -errno;
        return renameat(folder, STATE_NEW, folder, PATHS_STATE_PAGE) < 0 ? -errno : 0;
}

static int open_folder(int parent, const char *name, mode_t mode)
{
        int fd;

        if (mkdirat(parent, name, mode) < 0 && errno != EEXIST)
                return -errno;
        fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (fchmod(fd, mode) < 0) { /* whatever the umask is */
                int error = errno;

                (void)fd_close(fd);
                return -error;
        }
        return fd;
}

static void remove_folder(int parent, const char *name)
{
        CLEANUP(fd_closep)
        int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return;
        (void)unlinkat(fd, PATHS_GATE_SOCKET, 0);
        (void)unlinkat(fd, PATHS_STATE_PAGE, 0);
        (void)unlinkat(fd, STATE_NEW, 0);
        (void)unlinkat(parent, name, AT_REMOVEDIR);
}

/* Of vGPUs that went while no manager had --cdi. */
static void remove_leftovers(const struct containers *containers)
{
        int fd = openat(containers->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *folder = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *entry;

        if (!folder) {
                (void)fd_close(fd);
                return;
        }
        while ((entry = readdir(folder)))
                if (entry->d_name[0] != '.' && !find(containers, entry->d_name))
                        remove_folder(containers->folder, entry->d_name);
        (void)closedir(folder);
}

/* Doors. */

static int charge(struct door *door, const struct instance *instance)
{
        const struct account_cost cost = { { [ACCOUNT_DESCRIPTORS] = 1 } };

        return account_force(instance->manager->accounts, &door->charge, instance->owner, &cost);
}

static int listen_at(struct door *door, struct manager *manager, int folder)
{
        char path[64]; /* however long that of the folder is */
        int r;

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d/" PATHS_GATE_SOCKET, folder);
        r = listener_init_for_all(&door->listener, manager, path, SOCK_SEQPACKET, on_connection,
                                  door);
        if (r == 0)
                listener_set_enabled(&door->listener, true);
        return r;
}

static int open_door(struct containers *containers, const struct instance *instance)
{
        CLEANUP(fd_closep) int folder = -1;
        struct door *door;
        int r;

        folder = open_folder(containers->folder, instance->uuid, 0755);
        if (folder < 0)
                return folder;
        door = calloc(1, sizeof(*door));
        if (!door)
                return -ENOMEM;
        list_append(&containers->doors, &door->link);
        door->socket = containers->manager->guest_socket;
        door->listener.fd = -1;
        strcpy(door->uuid, instance->uuid);
        door->payer = account_is_operator(instance->owner) ? ACCOUNT_CONTAINERS : instance->owner;
        r = charge(door, instance);
        if (r == 0)
                r = link_state_page(containers->manager, folder);
        if (r == 0)
                r = listen_at(door, containers->manager, folder);
        if (r < 0)
                (void)door_free(door);
        return r;
}

/* The file. */

static size_t list_vgpus(const struct containers *containers, struct cdi_vgpu *vgpus)
{
        const struct instance *instance;
        size_t n = 0;

        list_for_each(instance, &containers->manager->instances, link)
                if (find(containers, instance->uuid))
                        vgpus[n++] = (struct cdi_vgpu){ instance->name, instance->uuid };
        return n;
}

static int write_file(const struct containers *containers)
{
        const struct manager *manager = containers->manager;
        const struct cdi_host host = { .run_directory = manager->options->run_directory,
                                       .gate_path = manager->gate_path,
                                       .nvml_path = manager->nvml_path,
                                       .driver_path = manager->driver_path,
                                       .is_simulated = manager->simulation[0] != '\0' };
        CLEANUP(freep)
        struct cdi_vgpu *vgpus = calloc(list_count(&manager->instances) + 1, sizeof(*vgpus));
        json_t *specification;
        int r;

        if (!vgpus)
                return -ENOMEM;
        r = cdi_specification_new(&specification, &host, vgpus, list_vgpus(containers, vgpus));
        if (r < 0)
                return r;
        r = cdi_specification_write(specification, manager->options->cdi_path);
        json_decref(specification);
        return r;
}

static void write_again(const struct containers *containers)
{
        int r = write_file(containers);

        if (r < 0)
                log_event(LOG_LEVEL_WARNING, "cannot write the CDI file", "file=%s error=\"%s\"",
                          containers->manager->options->cdi_path, strerror(-r));
}

static void add(struct containers *containers, const struct instance *instance)
{
        int r = open_door(containers, instance);

        if (r < 0)
                log_event(LOG_LEVEL_WARNING, "a vGPU is not for containers", "vgpu=%s error=\"%s\"",
                          instance->name, strerror(-r));
}

/* At INSTANCE_REMOVED it is still among the instances, and has no door any more. */
static void on_instance(struct instance *instance, enum instance_event event, void *userdata)
{
        struct containers *containers = userdata;
        struct door *door;

        if (event == INSTANCE_ADDED) {
                add(containers, instance);
                write_again(containers);
        } else if (event == INSTANCE_RENAMED) {
                write_again(containers);
        } else if (event == INSTANCE_REMOVED) {
                door = find(containers, instance->uuid);
                if (door)
                        (void)door_free(door);
                remove_folder(containers->folder, instance->uuid);
                write_again(containers);
        }
}

static const struct observer observer = { .of_instance = on_instance };

static int open_all(struct containers *containers)
{
        const struct manager *manager = containers->manager;
        const struct instance *instance;
        char path[PATHS_MAX];
        int r = paths_join(path, manager->options->run_directory, CDI_DOORS);

        if (r < 0)
                return r;
        containers->folder = open_folder(AT_FDCWD, path, 0700);
        if (containers->folder < 0)
                return containers->folder;
        list_for_each(instance, &manager->instances, link)
                add(containers, instance);
        remove_leftovers(containers);
        return write_file(containers);
}

int containers_new(struct containers **ret_containers, struct manager *manager,
                   struct failure *failure)
{
        struct containers *containers;
        int r;

        *ret_containers = NULL;
        if (!manager->options->cdi_path[0])
                return 0;
        containers = calloc(1, sizeof(*containers));
        if (!containers)
                return -ENOMEM;
        containers->manager = manager;
        containers->folder = -1;
        list_init(&containers->doors);
        r = open_all(containers);
        if (r < 0) {
                (void)containers_free(containers);
                return failure_set(failure, r, "Failed", "choose another file for --cdi",
                                   "cannot keep %.200s: %s", manager->options->cdi_path,
                                   strerror(-r));
        }
        observer_add(&manager->observers, &observer, containers);
        *ret_containers = containers;
        return 0;
}

struct containers *containers_free(struct containers *containers)
{
        struct door *door, *after;

        if (!containers)
                return NULL;
        observer_remove(&containers->manager->observers, &observer);
        list_for_each_safe(door, after, &containers->doors, link)
                (void)door_free(door);
        (void)unlink(containers->manager->options->cdi_path);
        fd_close(containers->folder);
        free(containers);
        return NULL;
}
