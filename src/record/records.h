/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECORD_RECORDS_H
#define RECORD_RECORDS_H

/*
 * The records of the control protocol (docs/control-protocol.md). tools/gen-records.py makes them
 * from the structs of the public headers, as abi/records.abi says.
 */

#include "record/record.h"

extern const struct record record_instance; /* struct vgpu_instance */
extern const struct record record_instance_part;
extern const struct record record_process;
extern const struct record record_instance_list;
extern const struct record record_device;
extern const struct record record_device_list;
extern const struct record record_manager;
extern const struct record record_pool;
extern const struct record record_report; /* struct vgpu_operation_report */
extern const struct record record_progress;
extern const struct record record_turns; /* struct vgpu_time_sharing */
extern const struct record record_turns_vgpu;
extern const struct record record_turns_log;
extern const struct record record_turns_entry;
extern const struct record record_percents; /* struct vgpu_usage_percents and so on */
extern const struct record record_seconds;
extern const struct record record_usage_process;
extern const struct record record_usage_instance;
extern const struct record record_usage_device;
extern const struct record record_snapshot;
extern const struct record record_account;
extern const struct record record_account_list;
extern const struct record record_usage_row;
extern const struct record record_usage_list;
extern const struct record record_event;
extern const struct record record_event_list;

/* What JSON calls the values of an enum. */
extern const struct record_words record_words_instance_state;

#endif
