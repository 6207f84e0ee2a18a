/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

/*
 * SIGHUP: the configuration is read again. What only limits future requests, and the log's level, is taken
 * over at once; of the rest the log says that it waits for the next start. A configuration that is wrong
 * changes nothing.
 *
 * A vgpud without a configuration ends at SIGHUP, as programs do when their terminal goes.
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
