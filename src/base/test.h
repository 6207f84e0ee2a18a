/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_TEST_H
#define BASE_TEST_H

/* cmocka.h needs these before it, in a test's own order of headers: hence this file. */

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
/* clang-format on */

#endif
