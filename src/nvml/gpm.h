/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_GPM_H
#define NVML_GPM_H

/* gpm_forget() - with the last nvmlShutdown(), free the samples that nobody freed. */
void gpm_forget(void);

#endif
