/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

/*
 * SIGHUP makes vgpud read its configuration again. Limits of future requests, and the level of the
 * log, change at once; the log says that other changes wait for the next start. A wrong
 * configuration changes nothing.
 *
 * A vgpud without a configuration ends at SIGHUP, as programs do when their terminal goes away.
 */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "daemon/options.h"

/* reload_block() - hold SIGHUP back until reload_watch(). Call it before other threads start. */
void reload_block(const struct options *options);

struct reload {
        struct options *options; /* that are changed */
        const bool *is_ready;    /* has the service manager been told that the start is over? */
};

/* reload_watch() - from now on; @reload must outlive @event. */
int reload_watch(sd_event *event, struct reload *reload);

/* reload_options() - do what SIGHUP does. Returns whether the configuration was right. */
bool reload_options(struct options *options);

#endif
