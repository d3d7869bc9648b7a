// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package fake

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// files are kept in the sandbox's folder, through os.Root, so that no path and no
// link leads out of it.
type files struct{ s *sandbox }

func (f files) in(name string, do func(root *os.Root, name string) error) error {
	if !path.IsAbs(name) {
		return sandboxcore.Configurationf("path", "Write it from the root, such as \"/workspace/a.txt\".", "%q is not an absolute path", name)
	}
	if r, err := f.s.backend.read(f.s.info.ID); err != nil {
		return err
	} else if r.State != sandboxcore.ManagedRunning {
		return sandboxcore.Errorf(sandboxcore.KindNotRunning, "sandbox %s is %s", f.s.info.ID, r.State)
	}
	root, err := os.OpenRoot(filepath.Join(f.s.backend.folder(f.s.info.ID), "files"))
	if err != nil {
		return broken(err, "opening the files of sandbox "+f.s.info.ID)
	}
	defer root.Close()
	relative := path.Clean(name)[1:]
	if relative == "" {
		relative = "."
	}
	if err := do(root, relative); err != nil {
		return broken(err, "working on "+name)
	}
	return nil
}

func (f files) Read(ctx context.Context, name string) ([]byte, error) {
	var content bytes.Buffer
	err := f.Download(ctx, name, &content)
	return content.Bytes(), err
}

func (f files) Write(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	return f.Upload(ctx, name, bytes.NewReader(data), mode)
}

func (f files) Upload(_ context.Context, name string, content io.Reader, mode fs.FileMode) error {
	return f.in(name, func(root *os.Root, name string) error {
		if info, err := root.Stat(name); err == nil && info.IsDir() {
			return errors.New("is a directory")
		}
		temp := name + "." + newID()
		file, err := root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, content)
		err = errors.Join(err, file.Chmod(mode.Perm()), file.Close())
		if err == nil {
			err = root.Rename(temp, name)
		}
		if err != nil {
			_ = root.Remove(temp)
		}
		return err
	})
}

func (f files) Download(_ context.Context, name string, content io.Writer) error {
	return f.in(name, func(root *os.Root, name string) error {
		file, err := root.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = io.Copy(content, file)
		return err
	})
}

func (f files) List(_ context.Context, name string) ([]sandboxcore.FileInfo, error) {
	found := []sandboxcore.FileInfo{}
	err := f.in(name, func(root *os.Root, relative string) error {
		entries, err := fs.ReadDir(root.FS(), relative)
		if err != nil {
			return err
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				return err
			}
			found = append(found, fileInfo(path.Join(name, e.Name()), info))
		}
		return nil
	})
	return found, err
}

func (f files) Stat(_ context.Context, name string) (found sandboxcore.FileInfo, err error) {
	err = f.in(name, func(root *os.Root, relative string) error {
		info, err := root.Stat(relative)
		if err == nil {
			found = fileInfo(path.Clean(name), info)
		}
		return err
	})
	return found, err
}

func fileInfo(name string, info fs.FileInfo) sandboxcore.FileInfo {
	return sandboxcore.FileInfo{Path: name, Size: info.Size(), IsDir: info.IsDir(), Mode: info.Mode().Perm()}
}

func (f files) Mkdir(_ context.Context, name string) error {
	return f.in(name, func(root *os.Root, name string) error { return root.MkdirAll(name, 0o755) })
}

func (f files) Remove(_ context.Context, name string) error {
	return f.in(name, func(root *os.Root, name string) error {
		if _, err := root.Lstat(name); err != nil {
			return err
		}
		return root.RemoveAll(name)
	})
}
