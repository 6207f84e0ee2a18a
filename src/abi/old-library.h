/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_OLD_LIBRARY_H
#define ABI_OLD_LIBRARY_H

/*
 * Libraries of glibc before 2.34, with nothing but names, to link with. The loader of glibc before 2.30 looks for a
 * function in the library where the linker has found it and, when it comes to that, nowhere else: linked with a newer
 * libc.so.6, which has all of them, ours would not load in a program that does not itself need libpthread.so.0.
 */

#define OLD_FUNCTION(name)                                      \
        __attribute__((visibility("default"))) void name(void); \
        void name(void)                                         \
        {                                                       \
        }

#endif
