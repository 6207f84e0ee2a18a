/* SPDX-License-Identifier: Apache-2.0 */
/* vgpud. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/privilege.h"
#include "daemon/log.h"
#include "daemon/reload.h"
#include "manager/guests/containers.h"
#include "manager/methods/container-vgpu.h"
#include "manager/model/manager.h"
#include "manager/simulation.h"
#include "manager/startup.h"

static void give_up_privilege(void)
{
        int r = privilege_keep(PRIVILEGE_MANAGER);

        if (r < 0)
                log_event(LOG_LEVEL_WARNING, "the kernel lets vgpud give up no capabilities",
                          "error=\"%s\"", strerror(-r));
}

static int run_manager(struct options *options, struct failure *failure)
{
        CLEANUP(manager_freep) struct manager *manager = NULL;
        struct reload reload = { .options = options };
        struct containers *containers = NULL;
        int r = manager_new(&manager, options, failure);

        if (r >= 0) {
                reload.is_ready = &manager->is_ready;
                r = reload_watch(manager->event, &reload);
        }
        if (r >= 0)
                container_vgpu_set_up(manager);
        if (r >= 0)
                r = containers_new(&containers, manager, failure);
        if (r < 0)
                return failure_from_errno(failure, r, "starting");
        manager_serve(manager);
        r = manager_run(manager);
        (void)containers_free(containers);
        return r;
}

/* How many GPUs the driver lists; 0: there is no driver, so nothing is known of them. */
static int count_gpus(void)
{
        DIR *folder = opendir("/proc/driver/nvidia/gpus");
        const struct dirent *entry;
        int n = 0;

        while (folder && (entry = readdir(folder)))
                n += entry->d_name[0] != '.';
        if (folder)
                (void)closedir(folder);
        return n;
}

/* Where there is no driver to ask, nobody may think that the GPU has been looked for. */
static void say_unknown(const char *key, uint64_t devices)
{
        printf("vgpud: %s names GPU %d, and no driver is here to ask whether there is one\n", key,
               63 - __builtin_clzll(devices));
}

/*
 * A running vgpud only warns of such a device, since a GPU may have fallen off the bus. "all" names none. @n_devices: 0 if
 * that is not known.
 */
static int check_devices(const struct options *options, int n_devices, struct failure *failure)
{
        const struct {
                const char *key;
                uint64_t devices;
        } lists[] = { { "overcommit", options->overcommit },
                      { "pin-ahead", options->pin_ahead },
                      { "leave-out", options->leave_out } };

        for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && n_devices < 64; i++) {
                uint64_t beyond = lists[i].devices >> n_devices;

                if (lists[i].devices == UINT64_MAX || !beyond)
                        continue;
                if (n_devices == 0)
                        say_unknown(lists[i].key, beyond);
                else
                        return failure_set(failure, -ENODEV, "NoSuchDevice",
                                           "GPUs are counted from 0; nvidia-smi lists them",
                                           "%s names GPU %d, and there %s %d", lists[i].key,
                                           n_devices + __builtin_ctzll(beyond),
                                           n_devices == 1 ? "is" : "are", n_devices);
        }
        return 0;
}

static int check(const struct options *options)
{
        struct failure failure = { 0 };
        size_t n = options->n_config_files;
        int r = simulation_check(options, &failure);

        if (r >= 0)
                r = check_devices(options, r > 0 ? r : count_gpus(), &failure);
        if (r < 0) {
                fprintf(stderr, "vgpud: %s: %s\n", options->config_path, failure.message);
                if (failure.hint[0])
                        fprintf(stderr, "vgpud: %s\n", failure.hint);
                return 2;
        }
        if (n == 0)
                printf("vgpud: there is no %s: all is as by default\n", options->config_path);
        else
                printf("vgpud: %s: %zu file%s, and all is right\n", options->config_path, n,
                       n == 1 ? "" : "s");
        return 0;
}

int main(int argc, char **argv)
{
        struct failure failure = { 0 };
        struct options options;

        switch (options_parse(&options, argc, argv)) {
        case OPTIONS_DONE:
                return 0;
        case OPTIONS_CHECK:
                return check(&options);
        case OPTIONS_BAD:
                return 2;
        case OPTIONS_RUN:
                break;
        }
        (void)unsetenv(
                "OPENVGPU_VGPU"); /* what vgpud starts is in no vGPU, from wherever vgpud was started */
        log_init(options.log_level, options.is_log_json);
        reload_block(&options);
        give_up_privilege();
        if (run_manager(&options, &failure) >= 0)
                return 0;
        fprintf(stderr, "vgpud: %s\n", failure.message);
        if (failure.hint[0])
                fprintf(stderr, "vgpud: %s\n", failure.hint);
        return 1;
}
