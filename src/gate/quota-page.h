/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_QUOTA_PAGE_H
#define GATE_QUOTA_PAGE_H

/* The pages of the vGPU's parts, mapped. */

#include <stdint.h>

#include "state/instance-page.h"

/* quota_map_pages() - all or none of @n. Errors: -EPROTO, they are not such pages. */
int quota_map_pages(struct instance_page **pages, const int *fds, uint32_t n, uint32_t slot);

/*
 * quota_replace_page() - @new in the place of @old, which may be NULL. Threads may be adding launches to the old page at
 * this moment, so its address stays valid. Returns where it is.
 */
struct instance_page *quota_replace_page(struct instance_page *old, struct instance_page *new);

#endif
