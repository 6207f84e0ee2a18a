/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SHARE_BOX_H
#define MANAGER_SHARE_BOX_H

/*
 * Boxes between two gates (wire/gate.h): after its first piece of a process' memory, a process takes the next ones
 * out of a box that the other fills, and asks nobody. The manager makes the box, so only those have one who may
 * share memory and are known to do so; it keeps nothing of it.
 */

struct guest;

/* share_box_begin() - @user has been given memory of @maker: unless there is a box, or no room for one. */
void share_box_begin(struct guest *user, struct guest *maker);

/* share_box_fill() - @maker has just been asked for a piece for @user, which was not in their box. */
void share_box_fill(const struct guest *user, const struct guest *maker);

/* share_box_settle() - end those with processes whose memory @user has no more. share_box_end(): all of @guest. */
void share_box_settle(struct guest *user);
void share_box_end(struct guest *guest);

#endif
