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

#include <systemd/sd-event.h>

#include "daemon/options.h"

/* reload_block() - SIGHUP waits for reload_watch(): before there are other threads. */
void reload_block(const struct options *options);

/* reload_watch() - from now on; @options is changed then, and must outlive @event. */
int reload_watch(sd_event *event, struct options *options);

/* reload_options() - what SIGHUP does. Returns whether the configuration was right. */
bool reload_options(struct options *options);

#endif
