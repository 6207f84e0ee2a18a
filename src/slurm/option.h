/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SLURM_OPTION_H
#define SLURM_OPTION_H

/* What users ask of the plugin: --vgpu=SIZE[:share=PERCENT][:class=CLASS] and --vgpu-per-task. */

#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>

struct wanted {
        bool is_given; /* --vgpu */
        bool is_own;   /* at the terminal: by the command itself, not by the script that it is in */
        bool is_per_task; /* --vgpu-per-task */
        uint64_t frame_buffer;
        uint32_t share;
        const char *swap_class; /* NULL: that of vgpud */
};

/* option_register_all() - in slurm_spank_init(), the only place; false: Slurm refused. */
bool option_register_all(spank_t spank);

/* option_get() - what this step asked for */
const struct wanted *option_get(void);

#endif
