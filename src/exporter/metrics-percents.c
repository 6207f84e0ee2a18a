/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/metrics-internal.h"

static void write_engine(struct text *text, const struct labels *labels, const char *engine,
                         uint32_t percent)
{
        struct labels with_engine;

        labels_copy(&with_engine, labels);
        labels_add(&with_engine, "engine", engine);
        text_sample(text, &with_engine, percent / 100.0);
}

void metrics_write_percents(struct text *text, const struct labels *labels,
                            const struct vgpu_usage_percents *percents)
{
        write_engine(text, labels, "gpu", percents->gpu);
        write_engine(text, labels, "memory", percents->memory);
        write_engine(text, labels, "encoder", percents->encoder);
        write_engine(text, labels, "decoder", percents->decoder);
}
