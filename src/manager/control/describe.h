/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_DESCRIBE_H
#define MANAGER_DESCRIBE_H

/* Our objects as clients see them (docs/control-protocol.md). New references; NULL: no memory. */

#include <jansson.h>

struct device;
struct instance;
struct manager;
struct writer;

json_t *describe_manager(const struct manager *manager);
json_t *describe_device(const struct device *device);
json_t *describe_instance(const struct instance *instance);

/* describe_write_instance() - the same as a text: for all of them. */
void describe_write_instance(struct writer *writer, const struct instance *instance);

#endif
