// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"context"
	"io"
	"io/fs"
)

// FileInfo describes a file in a sandbox.
type FileInfo struct {
	// Path is the path inside the sandbox.
	Path string
	// Size is in bytes.
	Size  int64
	IsDir bool
	// Mode holds the permission bits.
	Mode fs.FileMode
}

// FileSystem reads and writes the files of one sandbox, never the host's. Paths
// are absolute. A missing file is an error of KindNotFound. It acts as the
// sandbox's own user.
type FileSystem interface {
	Read(ctx context.Context, path string) ([]byte, error)
	// Write replaces the file in one step: a reader sees the old or the new content.
	Write(ctx context.Context, path string, data []byte, mode fs.FileMode) error
	List(ctx context.Context, path string) ([]FileInfo, error)
	Stat(ctx context.Context, path string) (FileInfo, error)
	// Mkdir makes the folder and its parents; one that is there is no error.
	Mkdir(ctx context.Context, path string) error
	// Remove deletes a file, or a folder with all that is in it.
	Remove(ctx context.Context, path string) error
	// Upload and Download are Write and Read in constant memory.
	Upload(ctx context.Context, path string, content io.Reader, mode fs.FileMode) error
	Download(ctx context.Context, path string, content io.Writer) error
}
