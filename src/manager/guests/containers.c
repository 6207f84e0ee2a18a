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
#include "manager/guests/toolkit.h"
#include "manager/model/account.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/socket/listener.h"
#include "wire/gate.h"

/* Beside the state page, until it takes the place of a former one. */
#define STATE_NEW PATHS_STATE_PAGE ".new"

/* Those that go within this time are taken out of the file together. */
#define REMOVED_US 100000

struct door {
        struct list link;
        struct guest_socket *socket;
        char uuid[STORE_UUID_MAX], name[STORE_NAME_MAX];
        uid_t payer; /* whatever number a process in the container has */
        char *text;  /* in the file; NULL: to be made */
        struct listener listener;
        struct account_charge charge; /* of the vGPU's owner */
};

struct containers {
        struct manager *manager;
        struct list doors;
        int folder;               /* of the doors */
        sd_event_source *rewrite; /* takes what has gone out of the file; NULL: nothing has */
        struct child *toolkit;    /* NULL: it is not being asked */
};

static struct door *door_free(struct door *door)
{
        list_remove(&door->link);
        listener_deinit(&door->listener);
        account_end(&door->charge);
        free(door->text);
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

/* Containers have it mounted, and find their vGPUs there again. */
static bool has_ordered(const struct manager *manager)
{
        const struct instance *instance;

        list_for_each(instance, &manager->instances, link)
                if (instance->space.inode != 0)
                        return true;
        return false;
}

static bool is_wanted(const struct manager *manager, const char *uuid)
{
        const struct instance *instance;

        if (strcmp(uuid, CDI_NEW) == 0)
                return manager->options->cdi_new > 0 || has_ordered(manager);

        list_for_each(instance, &manager->instances, link)
                if (strcmp(instance->uuid, uuid) == 0)
                        return true;
        return false;
}

/*
 * Of vGPUs that went while no manager had --cdi. Those of the others stay, also without --cdi: containers
 * have them mounted, and find their vGPUs again once a manager has it.
 */
static void remove_leftovers(const struct manager *manager, int doors)
{
        int fd = openat(doors, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *folder = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *entry;

        if (!folder) {
                (void)fd_close(fd);
                return;
        }
        while ((entry = readdir(folder)))
                if (entry->d_name[0] != '.' && !is_wanted(manager, entry->d_name))
                        remove_folder(doors, entry->d_name);
        (void)closedir(folder);
}

static void remove_leftovers_without_doors(const struct manager *manager)
{
        CLEANUP(fd_closep) int folder = -1;
        char path[PATHS_MAX];

        if (paths_join(path, manager->options->run_directory, CDI_DOORS) < 0)
                return;
        folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder < 0)
                return;
        remove_leftovers(manager, folder);
        (void)rmdir(path); /* if it is empty */
}

/* Doors. */

static int charge(struct door *door, const struct manager *manager, uid_t owner)
{
        const struct account_cost cost = { { [ACCOUNT_DESCRIPTORS] = 1 } };

        return account_force(manager->accounts, &door->charge, owner, &cost);
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

static int open_door(struct containers *containers, const char *uuid, const char *name, uid_t owner)
{
        CLEANUP(fd_closep) int folder = -1;
        struct door *door;
        int r;

        folder = open_folder(containers->folder, uuid, 0755);
        if (folder < 0)
                return folder;
        door = calloc(1, sizeof(*door));
        if (!door)
                return -ENOMEM;
        list_append(&containers->doors, &door->link);
        door->socket = containers->manager->guest_socket;
        door->listener.fd = -1;
        snprintf(door->uuid, sizeof(door->uuid), "%s", uuid);
        snprintf(door->name, sizeof(door->name), "%s", name);
        door->payer = account_is_operator(owner) ? ACCOUNT_CONTAINERS : owner;
        r = charge(door, containers->manager, owner);
        if (r == 0)
                r = link_state_page(containers->manager, folder);
        if (r == 0)
                r = listen_at(door, containers->manager, folder);
        if (r < 0)
                (void)door_free(door);
        return r;
}

/* The file. */

struct listing {
        struct cdi_vgpu *vgpus;
        const char **texts;
        size_t n;
};

static int list_vgpus(const struct containers *containers, const struct cdi_host *host,
                      struct listing *listing)
{
        struct door *door;

        list_for_each(door, &containers->doors, link) {
                const struct cdi_vgpu vgpu = { door->name, door->uuid };

                if (!door->text)
                        door->text = cdi_device_new(host, &vgpu);
                if (!door->text)
                        return -ENOMEM;
                listing->vgpus[listing->n] = vgpu;
                listing->texts[listing->n++] = door->text;
        }
        return 0;
}

static int write_file(const struct containers *containers)
{
        const struct manager *manager = containers->manager;
        const struct cdi_host host = { .run_directory = manager->options->run_directory,
                                       .gate_path = manager->gate_path,
                                       .nvml_path = manager->nvml_path,
                                       .driver_path = manager->driver_path,
                                       .is_simulated = manager->simulation[0] != '\0' };
        size_t room = list_count(&containers->doors) + 1;
        CLEANUP(freep) struct cdi_vgpu *vgpus = calloc(room, sizeof(*vgpus));
        CLEANUP(freep) const char **texts = calloc(room, sizeof(*texts));
        struct listing listing = { .vgpus = vgpus, .texts = texts };
        int r;

        if (!vgpus || !texts)
                return -ENOMEM;
        r = list_vgpus(containers, &host, &listing);
        if (r < 0)
                return r;
        return cdi_file_write(manager->options->cdi_path, &host, vgpus, texts, listing.n);
}

static void write_again(struct containers *containers)
{
        int r = write_file(containers);

        containers->rewrite = sd_event_source_disable_unref(containers->rewrite);
        if (r < 0)
                log_event(LOG_LEVEL_WARNING, "cannot write the CDI file", "file=%s error=\"%s\"",
                          containers->manager->options->cdi_path, strerror(-r));
}

static int on_rewrite(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void)source, (void)usec;
        write_again(userdata);
        return 0;
}

static void add(struct containers *containers, const struct instance *instance)
{
        int r = open_door(containers, instance->uuid, instance->name, instance->owner);

        if (r < 0)
                log_event_of(instance->owner, LOG_LEVEL_WARNING, "a vGPU is not for containers",
                             "vgpu=%s error=\"%s\"", instance->name, strerror(-r));
}

static void rename_door(struct door *door, const char *name)
{
        strcpy(door->name, name);
        free(TAKE(door->text));
}

static void remove_door(struct containers *containers, struct door *door, const char *uuid)
{
        if (door)
                (void)door_free(door);
        remove_folder(containers->folder, uuid);
        if (!containers->rewrite)
                (void)sd_event_add_time_relative(containers->manager->event, &containers->rewrite,
                                                 CLOCK_MONOTONIC, REMOVED_US, REMOVED_US,
                                                 on_rewrite, containers);
}

/*
 * Who made a vGPU finds it in the file when he is told so. Without a door it is in vain in there, so those
 * that go together are taken out together. At INSTANCE_REMOVED it is still among the instances.
 */
static void on_instance(struct instance *instance, enum instance_event event, void *userdata)
{
        struct containers *containers = userdata;
        struct door *door = find(containers, instance->uuid);

        if (event == INSTANCE_ADDED)
                add(containers, instance);
        else if (event == INSTANCE_RENAMED && door)
                rename_door(door, instance->name);
        else if (event == INSTANCE_REMOVED)
                remove_door(containers, door, instance->uuid);
        if (event == INSTANCE_ADDED || event == INSTANCE_RENAMED)
                write_again(containers);
}

static void on_toolkit(void *userdata)
{
        struct containers *containers = userdata;

        containers->toolkit = NULL;
        write_again(containers);
}

static struct observer observer = { .of_instance = on_instance };

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
        if (is_wanted(manager, CDI_NEW))
                r = open_door(containers, CDI_NEW, CDI_NEW, geteuid());
        if (r < 0)
                return r;
        list_for_each(instance, &manager->instances, link)
                add(containers, instance);
        remove_leftovers(manager, containers->folder);
        return write_file(containers);
}

int containers_new(struct containers **ret_containers, struct manager *manager,
                   struct failure *failure)
{
        struct containers *containers;
        int r;

        *ret_containers = NULL;
        if (!manager->options->cdi_path[0]) {
                remove_leftovers_without_doors(manager);
                return 0;
        }
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
        r = toolkit_ask(&containers->toolkit, manager, on_toolkit, containers);
        if (r < 0 && r != -ENOENT)
                log_event(LOG_LEVEL_WARNING, "cannot ask NVIDIA's container toolkit",
                          "error=\"%s\"", strerror(-r));
        *ret_containers = containers;
        return 0;
}

struct containers *containers_free(struct containers *containers)
{
        struct door *door, *after;

        if (!containers)
                return NULL;
        observer_remove(&containers->manager->observers, &observer);
        sd_event_source_disable_unref(containers->rewrite);
        child_forget(containers->toolkit);
        list_for_each_safe(door, after, &containers->doors, link)
                (void)door_free(door);
        (void)unlink(containers->manager->options->cdi_path);
        fd_close(containers->folder);
        free(containers);
        return NULL;
}
