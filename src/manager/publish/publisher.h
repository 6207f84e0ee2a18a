/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_PUBLISHER_H
#define MANAGER_PUBLISHER_H

/*
 * Writes the state page (state/state-page.h): soon after something has changed, ten times a
 * second while processes are in vGPUs, and else once a second, so that readers see
 * that we live. The same round repairs the quotas in the instance pages and sizes
 * the movers' part of the pool.
 */

struct manager;
struct publisher;

/* publisher_new() - the state page is @manager's from then on: settings and turns are kept there. */
int publisher_new(struct publisher **ret_publisher, struct manager *manager);

/* publisher_free() - the state page stays, marked closed. Returns NULL. */
struct publisher *publisher_free(struct publisher *publisher);

#endif
