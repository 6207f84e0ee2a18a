/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_BASE_H
#define OPENVGPU_BASE_H

/*
 * What all headers of libopenvgpu share.
 *
 * What stands between VGPU_BEGIN_DECLS and VGPU_END_DECLS has C linkage and is exported.
 *
 * Results (devices, vGPUs, reports) are structs that only the library makes. They are read-only, do
 * not change after they were made, own all that they point to, and outlive the client that asked for
 * them. No pointer in them is NULL; a text that is not known is "". New members come at the end:
 * never rely on their size. So a result has no struct in it and no array of structs, only pointers to
 * them. What a caller fills in has its size as the first member, but for the two texts of struct
 * vgpu_checkpoint_pair, which stays as it is.
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
 * vgpu_free() - free a result that is one piece
 *
 * That is everything that a function which takes a struct vgpu_host returns through a pointer to a
 * pointer: texts, lists, records. NULL is fine. Returns NULL.
 */
void *vgpu_free(void *result);

/** vgpu_get_version() - of the library, as "0.1.0". Never freed. */
const char *vgpu_get_version(void);

VGPU_END_DECLS

#endif
