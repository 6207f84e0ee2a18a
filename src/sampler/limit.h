/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLER_LIMIT_H
#define SAMPLER_LIMIT_H

#include "wire/limiter.h"

/* limit_main() - what wire/limiter.h says; the exit status. */
int limit_main(int argc, char **argv);

#endif
