/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_SLOTS_H
#define NVML_SLOTS_H

/*
 * Each line of abi/nvml.abi has a slot. The library exports a generated stub under
 * each name, which jumps through the name's slot. So "not initialised", "ours" and
 * "NVIDIA's" are values of a pointer, and no function has to ask. A stub knows no
 * arguments: a forwarded function needs no prototype here.
 *
 * Our function behind nvmlX is our_nvmlX(), declared here from the prototype in
 * src/abi/, hence checked against it.
 */

#include "abi/nvml-accounting.h"
#include "abi/nvml-device.h"
#include "abi/nvml-event.h"
#include "abi/nvml-fabric.h"
#include "abi/nvml-gpm.h"
#include "abi/nvml-limit.h"
#include "abi/nvml-link.h"
#include "abi/nvml-mig.h"
#include "abi/nvml-sensors.h"
#include "abi/nvml-vgpu-calls.h"

#define NVML_ALWAYS(name)       NVML_SLOT_##name,
#define NVML_OWN(name)          NVML_SLOT_##name,
#define NVML_STAND_IN(name)     NVML_SLOT_##name,
#define NVML_PRIVATE(name)      NVML_SLOT_##name,
#define NVML_FORWARD(name)      NVML_SLOT_##name,
#define NVML_HOST(name)         NVML_SLOT_##name,
#define NVML_REFUSE(name, code) NVML_SLOT_##name,
enum nvml_slot_index {
#include "nvml-slots.inc"
        NVML_SLOT_COUNT
};
#undef NVML_ALWAYS
#undef NVML_OWN
#undef NVML_STAND_IN
#undef NVML_PRIVATE
#undef NVML_FORWARD
#undef NVML_HOST
#undef NVML_REFUSE

/* clang-format off */
#define NVML_ALWAYS(name)       extern __typeof__(name) our_##name;
#define NVML_OWN(name)          extern __typeof__(name) our_##name;
#define NVML_STAND_IN(name)     extern __typeof__(name) our_##name;
#define NVML_PRIVATE(name)      extern __typeof__(name) our_##name;
#define NVML_FORWARD(name)
#define NVML_HOST(name)
#define NVML_REFUSE(name, code)
#include "nvml-slots.inc"
#undef NVML_ALWAYS
#undef NVML_OWN
#undef NVML_STAND_IN
#undef NVML_PRIVATE
#undef NVML_FORWARD
#undef NVML_HOST
#undef NVML_REFUSE
/* clang-format on */

typedef void (*nvml_function)(void);

/* Where the stubs jump to. */
extern nvml_function nvml_slot[NVML_SLOT_COUNT];

/*
 * NVIDIA's function, typed. If its library is not in use, or lacks the name, this answers
 * NVML_ERROR_INVALID_ARGUMENT, as for a handle that is not ours.
 */
extern nvml_function nvml_real[NVML_SLOT_COUNT];
#define NVML_REAL(name) ((__typeof__(&name))nvml_real[NVML_SLOT_##name])

/* Who answers: nobody yet, the state page alone, NVIDIA's library alone, or both; or both, to a guest. */
enum slots_mode { SLOTS_UNINITIALIZED, SLOTS_STATE_PAGE, SLOTS_NVIDIA, SLOTS_BOTH, SLOTS_GUEST };

/* slots_set_real() - take NVIDIA's functions from @library, a handle of dlopen(); NULL forgets. */
void slots_set_real(void *library);

/* slots_set_mode() - point every slot to who answers in @mode. */
void slots_set_mode(enum slots_mode mode);

#endif
