/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_ABOUT_H
#define LIB_ABOUT_H

/* The subject of a call of NVML: messages name it. */

#include <stdint.h>

#include <openvgpu/host.h>

/* The kinds of subjects. A kind also decides what NOT_FOUND means. */
enum about_kind {
        ABOUT_THE_HOST,
        ABOUT_A_DEVICE,
        ABOUT_A_GPU_INSTANCE,
        ABOUT_AN_INSTANCE,
        ABOUT_A_TYPE,
        ABOUT_A_PROCESS,
};

struct about {
        enum about_kind kind;
        uint32_t id;
        uint32_t of; /* the device of a GPU instance, the vGPU of a process */
};

#define ABOUT_HOST                       ((struct about){ .kind = ABOUT_THE_HOST })
#define ABOUT_DEVICE(id_)                ((struct about){ .kind = ABOUT_A_DEVICE, .id = (id_) })
#define ABOUT_INSTANCE(id_)              ((struct about){ .kind = ABOUT_AN_INSTANCE, .id = (id_) })
#define ABOUT_TYPE(id_)                  ((struct about){ .kind = ABOUT_A_TYPE, .id = (id_) })
#define ABOUT_PROCESS(id_, instance_)    ((struct about){ ABOUT_A_PROCESS, (id_), (instance_) })
#define ABOUT_GPU_INSTANCE(id_, device_) ((struct about){ ABOUT_A_GPU_INSTANCE, (id_), (device_) })

/* The device, or the part of it that is named. */
#define ABOUT_PLACE(device_, gpu_instance_)                           \
        ((gpu_instance_) == VGPU_WHOLE_DEVICE ? ABOUT_DEVICE(device_) \
                                              : ABOUT_GPU_INSTANCE((gpu_instance_), (device_)))

#endif
