/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/slots.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

enum how { ALWAYS, OWN, STAND_IN, PRIVATE, FORWARD, HOST, REFUSE };

struct entry {
        const char *name;
        nvml_function ours; /* NULL: we have none */
        enum how how;
        nvmlReturn_t refusal; /* REFUSE only */
};

static const struct entry entries[NVML_SLOT_COUNT] = {
#define NVML_ENTRY(name, how)   { #name, (nvml_function)our_##name, how, NVML_SUCCESS },
#define NVML_ALWAYS(name)       NVML_ENTRY(name, ALWAYS)
#define NVML_OWN(name)          NVML_ENTRY(name, OWN)
#define NVML_STAND_IN(name)     NVML_ENTRY(name, STAND_IN)
#define NVML_PRIVATE(name)      NVML_ENTRY(name, PRIVATE)
#define NVML_FORWARD(name)      { #name, NULL, FORWARD, NVML_SUCCESS },
#define NVML_HOST(name)         { #name, NULL, HOST, NVML_SUCCESS },
#define NVML_REFUSE(name, code) { #name, NULL, REFUSE, code },
#include "nvml-slots.inc"
};

static nvmlReturn_t answer_uninitialized(void)
{
        return NVML_ERROR_UNINITIALIZED;
}

static nvmlReturn_t answer_invalid_argument(void)
{
        return NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t answer_not_supported(void)
{
        return NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t answer_function_not_found(void)
{
        return NVML_ERROR_FUNCTION_NOT_FOUND;
}

static nvmlReturn_t answer_in_use(void)
{
        return NVML_ERROR_IN_USE;
}

static nvml_function refusal(nvmlReturn_t code)
{
        return code == NVML_ERROR_IN_USE ? (nvml_function)answer_in_use
                                         : (nvml_function)answer_not_supported;
}

/* A program that calls before nvmlInit() jumps through what stands here. */
nvml_function nvml_slot[NVML_SLOT_COUNT] = {
#undef NVML_ALWAYS
#undef NVML_OWN
#undef NVML_STAND_IN
#undef NVML_PRIVATE
#undef NVML_FORWARD
#undef NVML_HOST
#undef NVML_REFUSE
#define NVML_ALWAYS(name)       (nvml_function) our_##name,
#define NVML_OWN(name)          (nvml_function) answer_uninitialized,
#define NVML_STAND_IN(name)     (nvml_function) answer_uninitialized,
#define NVML_PRIVATE(name)      (nvml_function) answer_uninitialized,
#define NVML_FORWARD(name)      (nvml_function) answer_uninitialized,
#define NVML_HOST(name)         (nvml_function) answer_uninitialized,
#define NVML_REFUSE(name, code) (nvml_function) answer_uninitialized,
#include "nvml-slots.inc"
};

nvml_function nvml_real[NVML_SLOT_COUNT] = {
        [0 ... NVML_SLOT_COUNT - 1] = (nvml_function)answer_invalid_argument,
};

static bool real_has[NVML_SLOT_COUNT];

void slots_set_real(void *library)
{
        for (size_t i = 0; i < NVML_SLOT_COUNT; i++) {
                void *symbol = library ? dlsym(library, entries[i].name) : NULL;

                real_has[i] = symbol;
                nvml_real[i] =
                        symbol ? (nvml_function)symbol : (nvml_function)answer_invalid_argument;
        }
}

/* Where there is a state page: are we to answer it? */
static bool is_ours(enum how how, enum slots_mode mode)
{
        return how == OWN || (how == STAND_IN && mode == SLOTS_STATE_PAGE) ||
               (how == PRIVATE && mode != SLOTS_BOTH);
}

static nvml_function answerer(size_t i, enum slots_mode mode)
{
        const struct entry *entry = &entries[i];
        bool has_state_page = mode == SLOTS_STATE_PAGE || mode == SLOTS_BOTH || mode == SLOTS_GUEST;

        if (entry->how == ALWAYS)
                return entry->ours;
        if (mode == SLOTS_UNINITIALIZED)
                return (nvml_function)answer_uninitialized;
        if (has_state_page && is_ours(entry->how, mode))
                return entry->ours;
        if (entry->how == REFUSE && has_state_page)
                return refusal(entry->refusal);
        if (mode == SLOTS_STATE_PAGE || (mode == SLOTS_GUEST && entry->how == HOST))
                return (nvml_function)answer_not_supported;
        return real_has[i] ? nvml_real[i] : (nvml_function)answer_function_not_found;
}

void slots_set_mode(enum slots_mode mode)
{
        for (size_t i = 0; i < NVML_SLOT_COUNT; i++)
                __atomic_store_n(&nvml_slot[i], answerer(i, mode), __ATOMIC_RELAXED);
}
