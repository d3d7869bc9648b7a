// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package contract

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

func testFilesystem(t *testing.T, s *suite) {
	ctx := s.context(t)
	files := s.create(t, s.spec()).Files()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const folder = "/contract/a b"
	must(files.Mkdir(ctx, folder))
	must(files.Mkdir(ctx, folder)) // there already
	contents := map[string][]byte{
		"plain": []byte("x"), "empty": {}, "odd 'name'\n*": []byte("y"), "ü": {0, 255, 254, '\n'}, "-dash": []byte("z"),
	}
	for name, content := range contents {
		must(files.Write(ctx, folder+"/"+name, content, 0o640))
		got, err := files.Read(ctx, folder+"/"+name)
		must(err)
		if !bytes.Equal(got, content) {
			t.Errorf("%q: read %q, wrote %q", name, got, content)
		}
		info, err := files.Stat(ctx, folder+"/"+name)
		must(err)
		if want := (sandboxcore.FileInfo{Path: folder + "/" + name, Size: int64(len(content)), Mode: 0o640}); info != want {
			t.Errorf("stat %+v, want %+v", info, want)
		}
	}
	must(files.Write(ctx, folder+"/plain", []byte("longer than before"), fs.FileMode(0o600)))
	if got, err := files.Read(ctx, folder+"/plain"); err != nil || string(got) != "longer than before" {
		t.Errorf("replaced: %q, %v", got, err)
	}
	if info, err := files.Stat(ctx, folder+"/plain"); err != nil || info.Mode != 0o600 {
		t.Errorf("replaced: %+v, %v, want the new mode", info, err)
	}
	must(files.Mkdir(ctx, folder+"/sub/sub"))
	found, err := files.List(ctx, folder)
	must(err)
	if len(found) != len(contents)+1 {
		t.Errorf("listed %v", found)
	}
	if i := slices.IndexFunc(found, func(f sandboxcore.FileInfo) bool { return f.Path == folder+"/sub" }); i < 0 || !found[i].IsDir {
		t.Errorf("no folder in %v", found)
	}
	for name, content := range contents {
		want := sandboxcore.FileInfo{Path: folder + "/" + name, Size: int64(len(content)), Mode: 0o640}
		if name == "plain" {
			want.Size, want.Mode = int64(len("longer than before")), 0o600
		}
		if !slices.Contains(found, want) {
			t.Errorf("no %+v in %+v", want, found)
		}
	}
	if info, err := files.Stat(ctx, folder+"/sub"); err != nil || !info.IsDir {
		t.Errorf("stat of a folder: %+v, %v", info, err)
	}
	must(files.Write(ctx, folder+"/sub/sub/f", nil, 0o600))
	must(files.Remove(ctx, folder+"/plain"))
	must(files.Remove(ctx, folder+"/sub"))
	_, readErr := files.Read(ctx, folder+"/plain")
	_, statErr := files.Stat(ctx, folder+"/sub")
	_, listErr := files.List(ctx, folder+"/none")
	for what, err := range map[string]error{"read": readErr, "stat": statErr, "list": listErr, "remove": files.Remove(ctx, folder+"/none")} {
		if !sandboxcore.Is(err, sandboxcore.KindNotFound) {
			t.Errorf("%s of a missing file: %v, want NotFound", what, err)
		}
	}
	if _, err := files.Read(ctx, folder); err == nil {
		t.Error("a folder was read as a file")
	}
	if err := files.Write(ctx, folder, nil, 0o600); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if err := files.Write(ctx, "relative", nil, 0o600); !sandboxcore.Is(err, sandboxcore.KindConfiguration) {
		t.Errorf("relative path: %v, want ConfigurationError", err)
	}
	testAtomicWrite(t, s, files, folder+"/atomic")
}

// testAtomicWrite: who reads while a file is replaced sees the old or the new content.
func testAtomicWrite(t *testing.T, s *suite, files sandboxcore.FileSystem, name string) {
	ctx := s.context(t)
	a, b := bytes.Repeat([]byte("a"), 1<<20), bytes.Repeat([]byte("b"), 2<<20)
	if err := files.Write(ctx, name, a, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for start, i := time.Now(), 0; i < 100 && time.Since(start) < 2*time.Second; i++ {
			for _, content := range [][]byte{b, a} {
				if err := files.Write(ctx, name, content, 0o600); err != nil {
					t.Errorf("write: %v", err)
					return
				}
			}
		}
	}()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		got, err := files.Read(ctx, name)
		if err != nil || !bytes.Equal(got, a) && !bytes.Equal(got, b) {
			t.Errorf("neither the old nor the new content: %d bytes, %v", len(got), err)
			break
		}
	}
	<-done
}

func testUploadDownload(t *testing.T, s *suite) {
	ctx := s.context(t)
	files := s.create(t, s.spec()).Files()
	const size = 8 << 20
	random := rand.NewChaCha8([32]byte{1})
	sent := sha256.New()
	if err := files.Upload(ctx, "/upload", io.TeeReader(io.LimitReader(random, size), sent), 0o600); err != nil {
		t.Fatal(err)
	}
	got := sha256.New()
	if err := files.Download(ctx, "/upload", got); err != nil {
		t.Fatal(err)
	}
	if info, err := files.Stat(ctx, "/upload"); err != nil || info != (sandboxcore.FileInfo{Path: "/upload", Size: size, Mode: 0o600}) {
		t.Errorf("%+v, %v", info, err)
	}
	if err := files.Download(ctx, "/none", io.Discard); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
		t.Errorf("download of a missing file: %v, want NotFound", err)
	}
	if !bytes.Equal(got.Sum(nil), sent.Sum(nil)) {
		t.Error("what came back isn't what was sent")
	}
	// An upload that breaks off changes nothing.
	broken := errors.New("source broke off")
	err := files.Upload(ctx, "/upload", io.MultiReader(io.LimitReader(random, 200000), errorReader{broken}), 0o600)
	if !errors.Is(err, broken) {
		t.Errorf("%v, want the source's error", err)
	}
	again := sha256.New()
	if err := files.Download(ctx, "/upload", again); err != nil || !bytes.Equal(again.Sum(nil), sent.Sum(nil)) {
		t.Errorf("a broken upload changed the file: %v", err)
	}
	found, err := files.List(ctx, "/")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Path != "/upload" && f.Size >= 200000 && !f.IsDir {
			t.Errorf("a broken upload left %v", f)
		}
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }
