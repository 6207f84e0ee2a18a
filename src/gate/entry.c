/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/entry.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gate/log.h"
#include "gate/settings.h"

#define ENTRY_NAME_MAX 64

struct by_address {
        entry_function real;
        uint32_t entry;
};

static const char *const names[ENTRY_COUNT] = {
#define GATE_ENTRY(name, kind) #name,
#include "gate-entries.inc"
#undef GATE_ENTRY
};

#define OURS_forward(name) NULL
#define OURS_submit(name)  NULL
#define OURS_launch(name)  NULL
#define OURS_wait(name)    NULL
#define OURS_waited(name)  (entry_function)(our_##name)
#define OURS_own(name)     (entry_function)(our_##name)
static const entry_function ours[ENTRY_COUNT] = {
#define GATE_ENTRY(name, kind) OURS_##kind(name),
#include "gate-entries.inc"
#undef GATE_ENTRY
};

static const entry_function patient[ENTRY_COUNT] = {
#define GATE_PATIENCE(name, parameters, arguments, is_good) \
        [ENTRY_##name] = (entry_function)patient_##name,
#define GATE_RANGED GATE_PATIENCE
#include "gate-patience.inc"
#undef GATE_RANGED
#undef GATE_PATIENCE
};

static const uint8_t kinds[ENTRY_COUNT] = {
#define GATE_ENTRY(name, kind) ENTRY_IS_##kind,
#include "gate-entries.inc"
#undef GATE_ENTRY
};

entry_function entry_target[ENTRY_COUNT_ALL];
entry_function entry_real[ENTRY_COUNT];

static struct {
        pthread_once_t once;
        pthread_mutex_t lock; /* of the spares */
        size_t n_spares;
        char spare_name[ENTRY_SPARES][ENTRY_NAME_MAX];
        size_t n_by_address;
        struct by_address by_address[ENTRY_COUNT];
} entries = { .once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER };

static CUresult not_supported(void)
{
        return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult no_driver(void)
{
        return CUDA_ERROR_NO_DEVICE;
}

static entry_function get_wrapper(uint32_t entry)
{
        return ours[entry] ? ours[entry] : patient[entry];
}

/* Where one function has several names, the one that we wrap comes first. */
static int compare(const void *a, const void *b)
{
        const struct by_address *left = a, *right = b;

        if (left->real != right->real)
                return (uintptr_t)left->real < (uintptr_t)right->real ? -1 : 1;
        if (!get_wrapper(left->entry) != !get_wrapper(right->entry))
                return get_wrapper(left->entry) ? -1 : 1;
        return left->entry < right->entry ? -1 : left->entry > right->entry;
}

static void fill(void *library, entry_function missing)
{
        for (uint32_t i = 0; i < ENTRY_COUNT; i++) {
                entry_function wrapper = get_wrapper(i);
                void *symbol = library ? dlsym(library, names[i]) : NULL;

                memcpy(&entry_real[i], &symbol, sizeof(symbol));
                if (!symbol)
                        entry_real[i] = missing;
                else
                        entries.by_address[entries.n_by_address++] =
                                (struct by_address){ entry_real[i], i };
                entry_target[i] = library && wrapper ? wrapper : entry_real[i];
        }
        qsort(entries.by_address, entries.n_by_address, sizeof(entries.by_address[0]), compare);
}

static void open_once(void)
{
        bool is_told = settings.driver[0] != '\0';
        void *library = is_told ? dlopen(settings.driver, RTLD_NOW | RTLD_LOCAL) : NULL;

        if (!library)
                log_to_user("cannot open the CUDA driver: %s",
                            is_told ? dlerror()
                                    : "OPENVGPU_DRIVER does not say where it is; start the program "
                                      "with `vgpu run`, in a container with its variables");
        fill(library, (entry_function)(library ? not_supported : no_driver));
}

void entry_open(void)
{
        pthread_once(&entries.once, open_once);
}

enum entry_kind entry_get_kind(uint32_t entry)
{
        return entry < ENTRY_COUNT ? kinds[entry] : ENTRY_IS_forward;
}

const char *entry_name(uint32_t entry)
{
        if (entry < ENTRY_COUNT)
                return names[entry];
        return entry < ENTRY_COUNT_ALL ? entries.spare_name[entry - ENTRY_COUNT] : "?";
}

_Bool entry_is_real(enum entry_index entry)
{
        return entry_real[entry] != (entry_function)not_supported &&
               entry_real[entry] != (entry_function)no_driver;
}

static const struct by_address *find(entry_function real)
{
        size_t low = 0, high = entries.n_by_address;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if ((uintptr_t)entries.by_address[middle].real < (uintptr_t)real)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == entries.n_by_address || entries.by_address[low].real != real)
                return NULL;
        return &entries.by_address[low]; /* the first of equal ones */
}

static bool spare_find_or_take(uint32_t *ret_entry, entry_function real, const char *name)
{
        uint32_t i;

        for (i = 0; i < entries.n_spares; i++)
                if (entry_target[ENTRY_COUNT + i] == real)
                        break;
        if (i == ENTRY_SPARES)
                return false;
        if (i == entries.n_spares) {
                strncpy(entries.spare_name[i], name, ENTRY_NAME_MAX - 1);
                entry_target[ENTRY_COUNT + i] = real;
                entries.n_spares++;
        }
        *ret_entry = ENTRY_COUNT + i;
        return true;
}

/* Is @exported the name of a version of @base: followed by nothing, _v3, _ptsz or both? */
static bool is_version_of(const char *exported, const char *base)
{
        size_t length = strlen(base);

        if (strncmp(exported, base, length) != 0)
                return false;
        exported += length;
        return *exported == '\0' || strncmp(exported, "_v", 2) == 0 ||
               strncmp(exported, "_pt", 3) == 0;
}

/* What we do for the versions that we know would not be done for this one. */
static bool is_version_of_own(const char *name)
{
        for (uint32_t i = 0; i < ENTRY_COUNT; i++)
                if (kinds[i] == ENTRY_IS_own && is_version_of(names[i], name))
                        return true;
        return false;
}

void *entry_stub_for(void *address, const char *name)
{
        const struct by_address *known;
        entry_function real;
        uint32_t entry;
        bool found = true;

        memcpy(&real, &address, sizeof(real));
        known = find(real);
        if (known) {
                entry = known->entry;
        } else if (is_version_of_own(name)) {
                log_write("%s: a version of it that is younger than the gate is refused", name);
                return NULL;
        } else {
                pthread_mutex_lock(&entries.lock);
                found = spare_find_or_take(&entry, real, name);
                pthread_mutex_unlock(&entries.lock);
        }
        if (!found) {
                log_write("%s is not known and there is no spare stub: it bypasses the gate", name);
                return address;
        }
        memcpy(&address, &stub_address[entry], sizeof(address));
        return address;
}
