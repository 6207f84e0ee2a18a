/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a simulated host: its engine looks at a word of their slot. */
#include <errno.h>

#include "base/fault.h"
#include "channels/channels-internal.h"

int simulated_open(struct channels_host *host, const char *directory)
{
        int r = host_view_open_path(&host->simulated, directory);

        host->is_simulated = r == 0;
        return r;
}

void simulated_close(struct channels_host *host)
{
        host_view_close(&host->simulated);
        host->is_simulated = false;
}

int simulated_set(struct channels *channels, bool is_off)
{
        const struct host_view *view = &channels->host->simulated;
        int number = host_view_find(view, channels->pid);
        uint32_t word = is_off;

        if (number < 0)
                return number;
        channels->plan->offset = HOST_SLOTS_AT(slot[number].is_off);
        if (is_off)
                atomic_store(&channels->plan->is_off, 1); /* first, should we die here */
        else if (fault_point("channels.on"))
                return -EIO;
        host_view_write(view, &word, sizeof(word), channels->plan->offset);
        atomic_store(&channels->plan->is_off, is_off);
        return 0;
}
