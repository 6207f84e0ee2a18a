/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/simulation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "manager/model/manager.h"
#include "scenario/scenario.h"
#include "sim/host.h"

static int refuse(const char *specification, int error, struct failure *failure)
{
        switch (error) {
        case -EINVAL:
                return failure_set(failure, error, "InvalidParameter",
                                   "say it as 2xH200 or 2xH200:1G",
                                   "'%.64s' is no simulated machine (kinds of devices: %.120s)",
                                   specification, sim_host_kinds());
        case -EBUSY:
                return failure_set(failure, error, "Busy",
                                   "end those programs, or choose another --run-dir",
                                   "programs still use another simulated machine there");
        case -EOPNOTSUPP:
                return failure_set(failure, error, "Failed",
                                   "mount a tmpfs at /dev/shm for the devices' memory",
                                   "there is no file system in memory");
        case -ENOSPC:
        case -EDQUOT:
                return failure_set(failure, error, "Failed", "free some room there and start again",
                                   "no room is left in the run directory or in /dev/shm");
        default:
                return failure_from_errno(failure, error, "making the simulated machine");
        }
}

static int start(struct manager *manager, const char *devices, struct failure *failure)
{
        const struct options *options = manager->options;
        int r = paths_join(manager->simulation, options->run_directory, PATHS_SIMULATION);

        if (r == 0)
                r = paths_join(manager->driver_path, options->private_directory, PATHS_SIM_DRIVER);
        if (r < 0)
                return r;
        r = sim_host_create(manager->simulation, devices);
        if (r < 0)
                return refuse(devices, r, failure);
        if (setenv(SIM_HOST_VARIABLE, manager->simulation, 1) < 0 || /* for the movers */
            setenv(SIM_HOST_OWN_VARIABLE, "1", 1) < 0)
                return -errno;
        return 0;
}

int simulation_start(struct manager *manager, struct failure *failure)
{
        strcpy(manager->driver_version, SCENARIO_DRIVER_VERSION);
        return start(manager, manager->options->simulate, failure);
}

static int load_scenario(struct scenario **ret_scenario, const char *path, struct failure *failure)
{
        char problem[SCENARIO_PROBLEM_MAX] = "";
        int r = scenario_load(ret_scenario, path, problem);

        if (r < 0)
                return failure_set(failure, r, "InvalidParameter",
                                   "docs/scenarios.md says what can be in one", "%.200s: %.700s",
                                   path, problem);
        return 0;
}

static int check_scenario(const char *path, struct failure *failure)
{
        struct scenario *scenario = NULL;
        int r = load_scenario(&scenario, path, failure);

        if (r == 0)
                r = (int)scenario->n_devices;
        (void)scenario_free(scenario);
        return r;
}

int simulation_check(const struct options *options, struct failure *failure)
{
        int r = options->simulate ? sim_host_check(options->simulate) : 0;

        if (r < 0)
                return refuse(options->simulate, r, failure);
        return options->scenario_path[0] ? check_scenario(options->scenario_path, failure) : r;
}

int simulation_play(struct manager *manager, struct failure *failure)
{
        char devices[1024];
        int r = load_scenario(&manager->scenario, manager->options->scenario_path, failure);

        if (r < 0)
                return r;
        r = scenario_format_devices(manager->scenario, devices, sizeof(devices));
        if (r < 0)
                return r;
        strcpy(manager->driver_version, manager->scenario->driver_version);
        return start(manager, devices, failure);
}

void simulation_end(struct manager *manager)
{
        /* With what its devices' memory has left on the tmpfs; not while a process uses it. */
        if (manager->simulation[0] && (manager->scenario || manager->is_unused))
                (void)sim_host_remove(manager->simulation);
        else if (manager->simulation[0])
                sim_host_sweep(manager->simulation);
        manager->scenario = scenario_free(manager->scenario);
}
