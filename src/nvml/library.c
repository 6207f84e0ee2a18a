/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Initialisation decides who answers from now on.
 *
 *     state page   NVIDIA's library   who answers
 *     yes          yes                both: vGPUs from the state page, the rest from NVIDIA's
 *     yes          no                 the state page, e.g. on the simulator
 *     no           yes                NVIDIA's library, as if ours were not there
 *     no           no                 nobody: NVML_ERROR_DRIVER_NOT_LOADED
 *
 * The first nvmlInit() makes this choice: a program that runs while the first manager of the host
 * starts sees vGPUs after its next initialisation. The view notices a manager that comes back
 * (view.h). Shutting down forgets only the choice, since calls in other threads may still be under
 * way; mappings end when the library is unloaded.
 */
#include "nvml/library.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/paths.h"
#include "nvml/event.h"
#include "nvml/gpm.h"
#include "nvml/real.h"
#include "nvml/slots.h"
#include "nvml/view.h"

static struct {
        pthread_mutex_t lock;
        unsigned int references;
        _Atomic enum slots_mode mode;
        void *real; /* of dlopen(); stays */
} library = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool library_is_ours(void)
{
        enum slots_mode mode = atomic_load(&library.mode);

        return mode == SLOTS_STATE_PAGE || mode == SLOTS_BOTH || mode == SLOTS_GUEST;
}

bool library_has_real(void)
{
        enum slots_mode mode = atomic_load(&library.mode);

        return mode == SLOTS_NVIDIA || mode == SLOTS_BOTH || mode == SLOTS_GUEST;
}

/* NVIDIA's library, initialised; or the code to answer when there is nothing else. */
static nvmlReturn_t init_real(const char *path, unsigned int flags)
{
        nvmlReturn_t r;

        if (!library.real)
                library.real = real_load(path);
        if (!library.real)
                return NVML_ERROR_DRIVER_NOT_LOADED;

        slots_set_real(library.real);
        r = NVML_REAL(nvmlInitWithFlags)(flags);
        if (r != NVML_SUCCESS)
                slots_set_real(NULL);
        return r;
}

static nvmlReturn_t init(unsigned int flags)
{
        char path[PATHS_MAX] = "";
        bool is_simulated = false;
        bool has_state_page = view_find_real(path, sizeof(path), &is_simulated);
        nvmlReturn_t r = is_simulated ? NVML_ERROR_DRIVER_NOT_LOADED : init_real(path, flags);
        bool has_real = r == NVML_SUCCESS;

        if (!has_state_page && !has_real)
                return r;
        if (has_state_page)
                has_state_page = view_open(has_real);

        atomic_store(&library.mode, !has_state_page   ? SLOTS_NVIDIA
                                    : !has_real       ? SLOTS_STATE_PAGE
                                    : view_is_guest() ? SLOTS_GUEST
                                                      : SLOTS_BOTH);
        slots_set_mode(library.mode);
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlInitWithFlags(unsigned int flags)
{
        nvmlReturn_t r = NVML_SUCCESS;
        int saved_errno = errno;

        pthread_mutex_lock(&library.lock);
        if (library.references == 0)
                r = init(flags);
        if (r == NVML_SUCCESS)
                library.references++;
        pthread_mutex_unlock(&library.lock);
        errno = saved_errno;
        return r;
}

nvmlReturn_t our_nvmlInit_v2(void)
{
        return our_nvmlInitWithFlags(0);
}

/* The old form fails if one device is bad; we have no device that could be bad by itself. */
nvmlReturn_t our_nvmlInit(void)
{
        return our_nvmlInitWithFlags(0);
}

static void shut_down(void)
{
        bool has_real = library_has_real();

        slots_set_mode(SLOTS_UNINITIALIZED);
        atomic_store(&library.mode, SLOTS_UNINITIALIZED);
        event_forget();
        gpm_forget();
        if (has_real)
                NVML_REAL(nvmlShutdown)();
}

nvmlReturn_t our_nvmlShutdown(void)
{
        nvmlReturn_t r = NVML_SUCCESS;

        pthread_mutex_lock(&library.lock);
        if (library.references == 0)
                r = NVML_ERROR_UNINITIALIZED;
        else if (--library.references == 0)
                shut_down();
        pthread_mutex_unlock(&library.lock);
        return r;
}

/*
 * Unloaded, or at the end of the process, where other threads may still ask: who did not shut down
 * keeps what is mapped.
 */
__attribute__((destructor)) static void unload(void)
{
        if (library.references == 0)
                view_forget();
}
