// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package fake

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile waits until no other descriptor, of this process or another, holds the lock.
func lockFile(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}
