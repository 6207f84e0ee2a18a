/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_FILE_H
#define IMAGE_FILE_H

/* The small files of an image, and what all of its files need. */

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

/*
 * image_file_write() - make the new file @name, to which only its owner has access, of @n parts
 *
 * It is on the disk when this returns 0. Errors: a negative errno; the file may be there, cut off.
 */
int image_file_write(int directory, const char *name, const struct iovec *parts, size_t n);

/* image_file_read() - read up to @size bytes. Returns how many: fewer only at the end of the file. */
ssize_t image_file_read(int fd, void *bytes, size_t size);

/*
 * Beyond the limit on file sizes the kernel sends a signal that ends the process; blocked, it is an
 * error like others. image_file_restore_signal() takes what has come, and goes back to @before.
 */
void image_file_block_signal(sigset_t *ret_before);
void image_file_restore_signal(const sigset_t *before);

#endif
