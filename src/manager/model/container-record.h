/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_CONTAINER_RECORD_H
#define MANAGER_CONTAINER_RECORD_H

/* For which container a vGPU was made, in the store: the next manager lets that join, and no other. */

struct container_space;
struct instance;

int container_record_set(struct instance *instance, const struct container_space *space);

/* container_record_restore() - what the store has by that name; others are passed over. */
void container_record_restore(struct instance *instance, const char *name, const char *value);

#endif
