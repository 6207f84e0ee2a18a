/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SETTINGS_INTERNAL_H
#define MANAGER_SETTINGS_INTERNAL_H

/* What the kinds of settings have in common. For settings*.c only. */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/failure.h"

struct state_page;
struct state_instance;
struct state_scheduler;
struct manager;
struct settings_site;

#define SETTING_NAME_MAX  128
#define SETTING_VALUE_MAX 128

struct state_page *settings_get_state_page(const struct manager *manager);
/* settings_is_active() - has the site a vGPU that is not suspended? */
bool settings_is_active(const struct manager *manager, const struct settings_site *site);

/* settings_is_on_site() - is that vGPU on it, and not suspended? */
bool settings_is_on_site(const struct state_instance *record, const struct settings_site *site);

/* settings_check_mig() - Unsupported when the site is a device that is cut into GPU instances. */
int settings_check_mig(const struct manager *manager, const struct settings_site *site,
                       struct failure *failure);

/* settings_format_site() - as it is called in the store, into SETTING_NAME_MAX / 2 bytes. */
void settings_format_site(char *text, const struct settings_site *site);

/* settings_remember() - in the store; @instance: the id of a vGPU that it belongs to, or 0. */
int settings_remember(struct manager *manager, const char *name, uint32_t instance,
                      const char *value, struct failure *failure);

void settings_put_heterogeneous(struct manager *manager, const struct settings_site *site,
                                bool is_heterogeneous);
void settings_put_scheduler(struct manager *manager, const struct settings_site *site,
                            uint32_t engine, const struct state_scheduler *scheduler);

#endif
