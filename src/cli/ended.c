/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ended.h"

#include <stdio.h>
#include <unistd.h>

#include "base/paths.h"
#include "state/state-page.h"

static bool has_instances(const struct state_page *page)
{
        struct state_instance instance;

        for (uint32_t slot = 0; slot < state_end_instance(page); slot++)
                if (state_read_instance(page, slot, &instance))
                        return true;
        return false;
}

bool ended_has_vgpus(const char *directory)
{
        const struct state_page *page;
        char path[PATHS_MAX];
        bool has;

        if (paths_join(path, directory, PATHS_STATE_PAGE) < 0 || state_map(&page, path) < 0)
                return true;
        has = has_instances(page);
        state_unmap(page);
        return has;
}

void ended_say_own(void)
{
        char own[PATHS_MAX];

        if (paths_run_is_given() || geteuid() == 0 || paths_run(own) < 0 ||
            !paths_is_passed_by(own, PATHS_RUN_MACHINE) || !ended_has_vgpus(own))
                return;
        fprintf(stderr,
                "vgpu: your own vgpud in %s has ended; its vGPUs are kept and their programs run on. "
                "Root's answers instead\n"
                "hint: start yours again, with the options that it had\n",
                own);
}
