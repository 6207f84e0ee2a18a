/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_DESCRIBE_H
#define MANAGER_DESCRIBE_H

/*
 * Our objects as clients see them (docs/control-protocol.md): what each member of their records
 * (record/records.h) is. New references; NULL: no memory.
 */

#include <jansson.h>

#include <openvgpu/instance.h>

struct device;
struct instance;
struct manager;
struct tally;
struct writer;

json_t *describe_manager(const struct manager *manager);
json_t *describe_device(const struct device *device);
json_t *describe_instance(const struct instance *instance);

/* describe_get_state() - RUNNING, also of one whose program has not come to CUDA yet. */
enum vgpu_instance_state describe_get_state(const struct instance *instance);

/* describe_count_processes() - how many describe_instance() has. */
int describe_count_processes(const struct instance *instance);

/* describe_get_host_memory() - bytes of the pool that its evicted memory takes. */
uint64_t describe_get_host_memory(const struct instance *instance);

/* describe_write_instance() - the same as a text, for all of them. @tells_names: of containers, too */
void describe_write_instance(struct writer *writer, const struct instance *instance,
                             bool tells_names);

/* describe_write_tally() - as the members "buckets" and "operations"; what never was comes as 0. */
void describe_write_tally(struct writer *writer, const struct tally *tally);

/* describe_get_host_memory() - bytes of the pool that its evicted memory takes. */
uint64_t describe_get_host_memory(const struct instance *instance);

#endif
