/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_BASE_H
#define OPENVGPU_BASE_H

/*
 * Base: declarations that all headers of libopenvgpu share.
 *
 * Everything between VGPU_BEGIN_DECLS and VGPU_END_DECLS has C linkage and is exported.
 *
 * Results (devices, vGPUs, reports) are structs that only the library makes. A result is read-only,
 * never changes, owns everything that it points to, and outlives the client that asked for it. No
 * pointer in a result is NULL; an unknown text is "". New members come at the end: never rely on
 * the size of a result. Results therefore contain pointers to structs, and no structs or arrays of
 * structs. A struct that the caller fills in has its size as the first member. The exception is
 * struct vgpu_checkpoint_pair, whose two texts never change.
 */

/* clang-format off */
#ifdef __cplusplus
#define VGPU_BEGIN_DECLS _Pragma("GCC visibility push(default)") extern "C" {
#define VGPU_END_DECLS   } _Pragma("GCC visibility pop")
#else
#define VGPU_BEGIN_DECLS _Pragma("GCC visibility push(default)")
#define VGPU_END_DECLS   _Pragma("GCC visibility pop")
#endif
/* clang-format on */

VGPU_BEGIN_DECLS

/**
 * vgpu_free() - free a result that is one piece of memory
 *
 * Functions that take a struct vgpu_host return such results through a pointer to a pointer: texts,
 * lists, records. NULL is fine. Returns NULL.
 */
void *vgpu_free(void *result);

/** vgpu_get_version() - get the version of the library, as "0.1.0". Never freed. */
const char *vgpu_get_version(void);

VGPU_END_DECLS

#endif
