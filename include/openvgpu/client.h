/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_CLIENT_H
#define OPENVGPU_CLIENT_H

/*
 * Client: the connection to the manager, vgpud, and the reason why the last call failed.
 *
 * vgpu_client_new() opens nothing. The first call that needs the manager connects; a call after a
 * broken connection connects again. No call is ever sent twice.
 *
 * Threads:  a client belongs to one thread at a time; make one for each thread. Nothing is shared
 *           between clients.
 * Time:     a call waits 10 seconds for its answer (vgpu_client_set_timeout_ms()); suspend, resume
 *           and migrate wait as long as the manager holds the connection. Signals interrupt no
 *           call.
 * Errors:   0 or a negative errno. After a failure vgpu_client_get_error() has a more precise kind,
 *           a message and a hint for people, and details.
 * Source:   docs/control-protocol.md.
 */

#include <openvgpu/base.h>
#include <openvgpu/error.h>

VGPU_BEGIN_DECLS

struct vgpu_client;

/**
 * vgpu_client_new() - make a client; does not connect
 * @ret_client:     the caller owns it and frees it with vgpu_client_free()
 * @run_directory:  the folder of the manager's socket; copied. NULL: $OPENVGPU_RUN, otherwise
 *                  /run/openvgpu if a manager is there or the caller is root, otherwise
 *                  $XDG_RUNTIME_DIR/openvgpu, otherwise /tmp/openvgpu-UID. With NULL, a manager
 *                  that belongs neither to root nor to the caller is refused: PERMISSION_DENIED
 *
 * Errors: -ENAMETOOLONG, the path is too long for a socket. -ENOMEM.
 */
int vgpu_client_new(struct vgpu_client **ret_client, const char *run_directory);

/** vgpu_client_free() - disconnect; NULL is fine. Returns NULL. */
struct vgpu_client *vgpu_client_free(struct vgpu_client *client);

/** vgpu_client_set_timeout_ms() - set how long a call waits for its answer; 0: 10 seconds. */
void vgpu_client_set_timeout_ms(struct vgpu_client *client, unsigned int timeout_ms);

/** vgpu_client_get_run_directory() - borrowed; valid as long as @client. */
const char *vgpu_client_get_run_directory(const struct vgpu_client *client);

/**
 * vgpu_client_get_error() - get the reason why the last call with @client failed
 *
 * Never NULL; the kind is VGPU_ERROR_NONE after a success. Borrowed: valid until the next call
 * with @client.
 */
const struct vgpu_error *vgpu_client_get_error(const struct vgpu_client *client);

VGPU_END_DECLS

#endif
