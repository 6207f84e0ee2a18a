/* SPDX-License-Identifier: Apache-2.0 */
#include "abi/old-library.h"

OLD_FUNCTION(pthread_create)
OLD_FUNCTION(pthread_detach)
OLD_FUNCTION(pthread_key_create)
OLD_FUNCTION(pthread_mutex_timedlock)
OLD_FUNCTION(pthread_mutex_trylock)
OLD_FUNCTION(pthread_once)
OLD_FUNCTION(pthread_setname_np)
OLD_FUNCTION(pthread_setspecific)
OLD_FUNCTION(pthread_sigmask)
