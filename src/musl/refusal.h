/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MUSL_REFUSAL_H
#define MUSL_REFUSAL_H

/*
 * Libraries for programs of musl in containers, which can load neither the gate nor the driver: they have the names that
 * such a program asks for, say why nothing comes of it, and answer every call as where there is no GPU.
 *
 * They need no other library, and of libc only what musl has.
 */

#include <stdbool.h>
#include <unistd.h>

static void refusal_say(void)
{
        static const char text[] =
                "OpenVGPU: this program is linked with musl, and vGPUs need a glibc (2.17 or newer): "
                "take an image of Debian, Ubuntu or Red Hat's kind instead of Alpine\n";
        static bool is_said;

        if (!__atomic_exchange_n(&is_said, true, __ATOMIC_RELAXED))
                (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
}

#define REFUSAL_EXPORT __attribute__((visibility("default")))

#endif
