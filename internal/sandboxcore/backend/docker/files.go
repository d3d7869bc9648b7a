// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"

	"github.com/docker/docker/api/types/container"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/protocol"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// files works on files through the guest, which sees what the sandbox sees: mounts,
// tmpfs and a read-only root as they are.
type files struct{ s *sandbox }

// operate runs one operation of the guest: it sends stdin and hands output to take.
// A failed one is an error of the domain.
func (s *sandbox) operate(ctx context.Context, args []string, stdin io.Reader, take func([]byte) error) error {
	if stdin == nil {
		stdin = bytes.NewReader(nil)
	}
	source := &watchedReader{Reader: stdin}
	p, err := s.dial(ctx, container.ExecOptions{Cmd: args}, source, 0)
	if err != nil {
		return err
	}
	defer p.leave()
	for chunk, err := range p.Chunks() {
		if err != nil {
			return errors.Join(source.err, err)
		}
		if err := take(chunk.Data); err != nil {
			return err
		}
	}
	_, err = p.Wait(ctx)
	return err
}

// watchedReader remembers why reading failed.
type watchedReader struct {
	io.Reader
	err error
}

func (r *watchedReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

func (f files) Read(ctx context.Context, name string) ([]byte, error) {
	var content bytes.Buffer
	err := f.Download(ctx, name, &content)
	return content.Bytes(), err
}

func (f files) Write(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	return f.Upload(ctx, name, bytes.NewReader(data), mode)
}

func (f files) Upload(ctx context.Context, name string, content io.Reader, mode fs.FileMode) error {
	if err := absolute(name); err != nil {
		return err
	}
	return f.s.operate(ctx, protocol.WriteArgs(name, mode), content, nil)
}

func (f files) Download(ctx context.Context, name string, content io.Writer) error {
	if err := absolute(name); err != nil {
		return err
	}
	return f.s.operate(ctx, protocol.ReadArgs(name), nil, func(data []byte) error {
		_, err := content.Write(data)
		return err
	})
}

func (f files) List(ctx context.Context, name string) ([]sandboxcore.FileInfo, error) {
	return f.entries(ctx, name, protocol.ListArgs(name))
}

func (f files) Stat(ctx context.Context, name string) (sandboxcore.FileInfo, error) {
	found, err := f.entries(ctx, name, protocol.StatArgs(name))
	if err != nil {
		return sandboxcore.FileInfo{}, err
	}
	if len(found) != 1 {
		return sandboxcore.FileInfo{}, sandboxcore.Errorf(sandboxcore.KindBackend, "the guest described %d files for one path", len(found))
	}
	return found[0], nil
}

func (f files) entries(ctx context.Context, name string, args []string) ([]sandboxcore.FileInfo, error) {
	if err := absolute(name); err != nil {
		return nil, err
	}
	found := []sandboxcore.FileInfo{}
	err := f.s.operate(ctx, args, nil, func(data []byte) error {
		entries, err := protocol.DecodeEntries(data)
		for _, e := range entries {
			found = append(found, sandboxcore.FileInfo{Path: path.Clean(e.Path), Size: e.Size, IsDir: e.IsDir, Mode: fs.FileMode(e.Mode)})
		}
		return err
	})
	return found, err
}

func (f files) Mkdir(ctx context.Context, name string) error {
	if err := absolute(name); err != nil {
		return err
	}
	return f.s.operate(ctx, protocol.MkdirArgs(name), nil, nil)
}

func (f files) Remove(ctx context.Context, name string) error {
	if err := absolute(name); err != nil {
		return err
	}
	return f.s.operate(ctx, protocol.RemoveArgs(name), nil, nil)
}

func absolute(name string) error {
	if path.IsAbs(name) {
		return nil
	}
	return sandboxcore.Configurationf("path", "Write it from the root, such as \"/workspace/a.txt\".", "%q is not an absolute path", name)
}

// operationFailed turns the guest's reason into an error of the domain.
func operationFailed(t protocol.Terminal) error {
	kind := sandboxcore.KindBackend
	if t.Reason == protocol.NotFound {
		kind = sandboxcore.KindNotFound
	}
	return sandboxcore.Errorf(kind, "%s", t.Message)
}
