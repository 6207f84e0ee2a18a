/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_USAGE_H
#define CLI_USAGE_H

/* Shared by accounting, usage and top. */

#include <jansson.h>

#include <openvgpu/usage.h>

#include "base/cleanup.h"

DEFINE_CLEANUP(struct vgpu_usage_list *, vgpu_usage_list_free);
DEFINE_CLEANUP(struct vgpu_usage_account_list *, vgpu_usage_account_list_free);
DEFINE_CLEANUP(struct vgpu_usage_snapshot *, vgpu_usage_snapshot_free);

/* usage_format_duration() - "45.2 s", "2:05", "1:02:05", "3d 01:02:05", "120d 07h" into @text; returns it. */
#define USAGE_DURATION_MAX 32
char *usage_format_duration(char *text, double seconds);

/* usage_format_time() - "2026-11-01 09:30" of the local time; "-" for 0. Returns @text. */
#define USAGE_TIME_MAX 32
char *usage_format_time(char *text, double seconds);

/* usage_format_user() - the name of a user, or the number. Returns @text. */
#define USAGE_USER_MAX 64
char *usage_format_user(char *text, uint32_t user);

/*
 * usage_parse_time() - "2026-11-01", "2026-11-01 09:30" (or with a T), of the local time; "today";
 * "7d", "12h", "30m", "10s" before @now. Errors: -EINVAL.
 */
int usage_parse_time(double *ret_seconds, const char *text, double now);

/* What --json prints; new references, NULL when out of memory. */
json_t *usage_document_snapshot(const struct vgpu_usage_snapshot *snapshot);
json_t *usage_document_accounts(const struct vgpu_usage_account_list *list);
json_t *usage_document_rows(const struct vgpu_usage_list *list, enum vgpu_usage_group group);

#endif
