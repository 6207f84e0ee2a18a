/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_GUEST_H
#define OPENVGPU_GUEST_H

/*
 * Guest: a program that runs in a vGPU.
 *
 * Only its environment makes a program a guest. A launcher therefore asks for this environment and
 * executes the program with it, as `vgpu run` does:
 *
 *     r = vgpu_guest_become(client, "train", 0, environ, &environment);
 *     if (r == 0)
 *             execvpe(argv[0], argv, environment);
 *
 * The process that created a transient vGPU must itself execute the program: the vGPU is removed
 * when this process and all guests have ended.
 *
 * Threads:  see client.h.
 * Errors:   those of client.h.
 * Source:   docs/control-protocol.md, PrepareRun.
 */

#include <openvgpu/base.h>
#include <openvgpu/client.h>

VGPU_BEGIN_DECLS

/**
 * vgpu_guest_prepare() - make the environment for a program in the vGPU @name
 * @environment:      the environment without the vGPU, "NAME=value" texts and a NULL; copied. The
 *                    values of LD_PRELOAD and LD_LIBRARY_PATH stay, behind what the vGPU needs
 * @ret_environment:  the environment with the vGPU; the caller frees it with
 *                    vgpu_guest_environment_free()
 *
 * In a suspended vGPU the program waits in its first CUDA call until the vGPU is resumed.
 *
 * Errors: VGPU_ERROR_NO_SUCH_VGPU. VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_guest_prepare(struct vgpu_client *client, const char *name, char *const *environment,
                       char ***ret_environment);

/** Refuse a suspended vGPU: VGPU_ERROR_WRONG_STATE. */
#define VGPU_GUEST_NO_WAIT 1u

/**
 * vgpu_guest_become() - make the environment for the calling process, which executes the program
 * next
 * @flags:  0 or VGPU_GUEST_NO_WAIT
 *
 * From now on the process counts as a guest of the vGPU, even before it uses CUDA. Others cannot
 * remove the vGPU while the process lives; the process itself can.
 */
int vgpu_guest_become(struct vgpu_client *client, const char *name, unsigned int flags,
                      char *const *environment, char ***ret_environment);

/** vgpu_guest_environment_free() - NULL is fine. Returns NULL. */
char **vgpu_guest_environment_free(char **environment);

VGPU_END_DECLS

#endif
