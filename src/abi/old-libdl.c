/* SPDX-License-Identifier: Apache-2.0 */
#include "abi/old-library.h"

OLD_FUNCTION(dladdr)
OLD_FUNCTION(dlerror)
OLD_FUNCTION(dlopen)
OLD_FUNCTION(dlsym)
