/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/vgpu-type.h"

#include "nvml/view.h"

uint32_t vgpu_type_list(struct vgpu_type *types, const struct board_device *device)
{
        const struct board *board = view_board();
        struct board_offers offers;
        struct board_type type;
        uint32_t n = 0;

        if (!board_read_offers(board, board_site_of_device(device->index), &offers))
                return 0;
        for (uint32_t i = 0; i < offers.n && i < VGPU_TYPES_MAX; i++)
                if (board_read_type(board, offers.offer[i].type, &type))
                        types[n++] =
                                (struct vgpu_type){ .id = type.id,
                                                    .max_instances = offers.offer[i].max_instances,
                                                    .frame_buffer = type.frame_buffer };
        return n;
}

bool vgpu_type_find(struct vgpu_type *ret_type, const struct board_device *device,
                    nvmlVgpuTypeId_t id)
{
        struct vgpu_type types[VGPU_TYPES_MAX];
        uint32_t n = vgpu_type_list(types, device);

        for (uint32_t i = 0; i < n; i++) {
                if (types[i].id != id)
                        continue;
                *ret_type = types[i];
                return true;
        }
        return false;
}
