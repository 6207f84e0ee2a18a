/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_EVENT_H
#define NVML_EVENT_H

/* event_forget() - all sets of events, at the last nvmlShutdown(). */
void event_forget(void);

#endif
