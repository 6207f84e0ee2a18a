/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/wall.h"

int64_t wall_read(struct wall *wall, uint64_t steady_ms, uint64_t wall_ms)
{
        int64_t step = 0;

        if (wall->steady_ms)
                step = (int64_t)(wall_ms - wall->wall_ms) - (int64_t)(steady_ms - wall->steady_ms);
        *wall = (struct wall){ steady_ms, wall_ms };
        return step > -WALL_STEP_MS && step < WALL_STEP_MS ? 0 : step;
}

uint64_t wall_at(const struct wall *wall, uint64_t steady_ms)
{
        uint64_t ago = wall->steady_ms > steady_ms ? wall->steady_ms - steady_ms : 0;

        return wall->wall_ms > ago ? wall->wall_ms - ago : 0;
}

uint64_t wall_stamp(struct wall_stamps *stamps, const struct wall *wall)
{
        uint64_t passed =
                wall->steady_ms > stamps->steady_ms ? wall->steady_ms - stamps->steady_ms : 0;
        uint64_t least = stamps->stamp_ms ? stamps->stamp_ms + passed / 2 : 0;

        *stamps = (struct wall_stamps){ wall->steady_ms,
                                        wall->wall_ms > least ? wall->wall_ms : least };
        return stamps->stamp_ms;
}
