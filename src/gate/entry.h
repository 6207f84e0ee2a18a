/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_ENTRY_H
#define GATE_ENTRY_H

/*
 * The entry points of the driver: their names, where the real ones are, and
 * what our jump stubs call.
 *
 * The driver's library is opened at the first CUDA call of the process, by its
 * path (our own SONAME is libcuda.so.1, so a search by name would find us).
 */

#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "gate/caller-layout.h"

enum entry_index {
#define GATE_ENTRY(name, kind) ENTRY_##name,
#include "gate-entries.inc"
#undef GATE_ENTRY
        ENTRY_COUNT,                                 /* those in the table */
        ENTRY_COUNT_ALL = ENTRY_COUNT + ENTRY_SPARES /* and the stubs kept for younger ones */
};

/* What abi/cuda.abi says of an entry point in the column "gate". */
enum entry_kind {
        ENTRY_IS_forward,
        ENTRY_IS_submit,
        ENTRY_IS_launch,
        ENTRY_IS_wait,
        ENTRY_IS_waited,
        ENTRY_IS_own
};

typedef void (*entry_function)(void); /* the one type that all others may be cast to */

/* What each stub calls: our wrapper, or the driver's function, or one that refuses. */
extern entry_function entry_target[ENTRY_COUNT_ALL];

/* The driver's functions; one that answers CUDA_ERROR_NOT_SUPPORTED where it has none. */
extern entry_function entry_real[ENTRY_COUNT];

/* Our stubs, which is what the application calls. */
extern const entry_function stub_address[ENTRY_COUNT_ALL];

/* The same behind the place where a submission is watched for (turns.h). */
extern const entry_function stub_past_watch[ENTRY_COUNT_ALL];

/* What is left of a stub's way for a thread that has its mark: the frame says which entry. */
void stub_marked(void);

/* DRIVER(cuInit)(0): the driver's own function, typed by its declaration. */
#define DRIVER(name) ((__typeof__(&name))entry_real[ENTRY_##name])

/* Our wrappers, which the table calls "own" or "waited". */
#define ENTRY_DECLARE_forward(name)
#define ENTRY_DECLARE_submit(name)
#define ENTRY_DECLARE_launch(name)
#define ENTRY_DECLARE_wait(name)
#define ENTRY_DECLARE_waited(name) extern __typeof__(name) our_##name;
#define ENTRY_DECLARE_own(name)    extern __typeof__(name) our_##name;
#define GATE_ENTRY(name, kind)     ENTRY_DECLARE_##kind(name)
#include "gate-entries.inc"
#undef GATE_ENTRY

/* Hooks that the build makes: for calls that are made again, and for calls with ranges that are checked (patience.c). */
#define GATE_PATIENCE(name, parameters, arguments, is_good) \
        extern CUresult patient_##name parameters;
#define GATE_RANGED GATE_PATIENCE
#include "gate-patience.inc"
#undef GATE_RANGED
#undef GATE_PATIENCE

/* entry_open() - open the driver; later calls do nothing. Without a driver all entries refuse. */
void entry_open(void);

/* entry_get_kind() - of a spare: ENTRY_IS_forward. */
enum entry_kind entry_get_kind(uint32_t entry);

/* entry_name() - for messages. */
const char *entry_name(uint32_t entry);

/*
 * entry_stub_for() - our stub for the driver's function at @real, or @real itself when there is
 * none. A function that our table does not know gets one of the spare stubs; @name is remembered
 * for messages. NULL: it is a younger version of one that we wrap, which must not be called past us.
 */
void *entry_stub_for(void *real, const char *name);

/* entry_has() - does the driver have this function? */
#define entry_has(name) entry_is_real(ENTRY_##name)
_Bool entry_is_real(enum entry_index entry);

#endif
