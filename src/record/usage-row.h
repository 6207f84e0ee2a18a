/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECORD_USAGE_ROW_H
#define RECORD_USAGE_ROW_H

/* A row of usage has other members according to what it is summed up by. */

#include <openvgpu/usage.h>

#include "record/record.h"

/* usage_row_make() - record_make() for @row, which is summed up by @group. */
json_t *usage_row_make(const struct vgpu_usage_row *row, enum vgpu_usage_group group);

#endif
