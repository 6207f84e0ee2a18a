/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_BASE_H
#define OPENVGPU_BASE_H

/* What stands between VGPU_BEGIN_DECLS and VGPU_END_DECLS has C linkage and is exported. */

/* clang-format off */
#ifdef __cplusplus
#define VGPU_BEGIN_DECLS _Pragma("GCC visibility push(default)") extern "C" {
#define VGPU_END_DECLS   } _Pragma("GCC visibility pop")
#else
#define VGPU_BEGIN_DECLS _Pragma("GCC visibility push(default)")
#define VGPU_END_DECLS   _Pragma("GCC visibility pop")
#endif
/* clang-format on */

#endif
