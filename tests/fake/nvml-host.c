/* SPDX-License-Identifier: Apache-2.0 */
#include "fake/nvml-host.h"

#include <dlfcn.h>
#include <stdio.h>

#include "base/test.h"

void fixture_open(struct fixture *fixture, const char *age)
{
        char path[512];

        assert_non_null(getenv("TEST_FAKE_NVML"));
        snprintf(path, sizeof(path), "%s-%s.so", getenv("TEST_FAKE_NVML"), age);
        fixture->library = dlopen(path, RTLD_NOW);
        if (!fixture->library)
                fail_msg("%s", dlerror());
        fixture->fake = dlsym(fixture->library, FAKE_NVML_SYMBOL);
        assert_non_null(fixture->fake);
        *fixture->fake = (struct fake_nvml){ .driver = fixture->fake->driver };
        assert_int_equal(vgpu_host_new(&fixture->host, path), 0);
}

void fixture_close(struct fixture *fixture)
{
        vgpu_host_free(fixture->host);
        assert_int_equal(fixture->fake->n_init, fixture->fake->n_shutdown);
        dlclose(fixture->library);
}

void fixture_expect(const struct fixture *fixture, int r, enum vgpu_error_kind kind,
                    const char *message)
{
        const struct vgpu_error *error = vgpu_host_get_error(fixture->host);

        assert_true(r < 0);
        if (error->kind != kind || !strstr(error->message, message))
                fail_msg("is %s: %s, should be kind %d: %s", error->name, error->message, kind,
                         message);
        assert_int_equal(error->code, r);
}
