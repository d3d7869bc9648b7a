// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

func TestFailedStartLeavesNothing(t *testing.T) {
	realEngine(t)
	b := newBackend(t)
	spec := busyboxSpec(t)
	spec.Network.Egress = sandboxcore.EgressAllow
	spec.WorkingDir = "/etc/passwd/x" // the engine can't make it a folder
	_, err := sandboxcore.Create(t.Context(), b, spec, func(sandboxcore.Warning) {})
	errs := sandboxcore.Errors(err)
	if len(errs) != 1 || errs[0].Kind == sandboxcore.KindNotFound || !strings.Contains(err.Error(), "/etc/passwd") {
		t.Errorf("%v, want one typed error with the engine's reason", err)
	}
	nothingLeft(t, b, spec.Owner)
}

func TestCancelledCreateLeavesNothing(t *testing.T) {
	realEngine(t)
	b := newBackend(t)
	spec := busyboxSpec(t)
	spec.Network.Egress = sandboxcore.EgressAllow
	cancelled := 0
	for after := time.Millisecond; after < 500*time.Millisecond; after *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		sandbox, err := sandboxcore.Create(ctx, b, spec, func(sandboxcore.Warning) {})
		cancel()
		if err == nil {
			noError(t, sandbox.Kill(t.Context()))
		} else if cancelled++; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %s: %v, want the context's error", after, err)
		}
		nothingLeft(t, b, spec.Owner)
	}
	if cancelled == 0 {
		t.Error("no create was cancelled, so nothing was tested")
	}
}

// A client that is killed between create and start leaves a container that never ran.
func TestHalfMadeSandboxIsReaped(t *testing.T) {
	realEngine(t)
	b := newBackend(t)
	conn, err := b.connect(t.Context())
	noError(t, err)
	spec := busyboxSpec(t)
	resolved, err := b.Resolve(t.Context(), spec)
	noError(t, err)
	config, host, err := conn.containerConfig(t.Context(), spec, resolved)
	noError(t, err)
	made, err := conn.createContainer(t.Context(), config, host, containerName(""))
	noError(t, err)
	found, err := b.ListManaged(t.Context(), sandboxcore.Filter{Owner: spec.Owner})
	if err != nil || len(found) != 1 || found[0].SandboxID != made.ID || found[0].State != sandboxcore.ManagedStopped {
		t.Errorf("%+v, %v", found, err)
	}
	noError(t, b.Reap(t.Context(), spec.Owner, made.ID))
	nothingLeft(t, b, spec.Owner)
}

func TestOneIsKilledByMany(t *testing.T) {
	realEngine(t)
	b := newBackend(t)
	spec := busyboxSpec(t)
	sandbox := create(t, b, spec)
	errs := make(chan error)
	for range 10 {
		go func() { errs <- b.Kill(t.Context(), sandbox.ID()) }()
	}
	for range 10 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	nothingLeft(t, b, spec.Owner)
}

// A reader that gives up leaves neither a process inside nor a goroutine here.
func TestGivenUpDownloadLeavesNothing(t *testing.T) {
	realEngine(t)
	sandbox := create(t, newBackend(t), busyboxSpec(t))
	run(t, sandbox, "sh", "-c", "head -c 30000000 /dev/zero >/big")
	full := errors.New("disk full")
	before := runtime.NumGoroutine()
	const downloads = 12
	for range downloads {
		if err := sandbox.Files().Download(t.Context(), "/big", failingWriter{full}); !errors.Is(err, full) {
			t.Fatalf("%v, want the writer's error", err)
		}
	}
	// Idle connections keep a few of their own.
	await(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() < before+downloads/2 })
	await(t, "the guests to end", func() bool { return run(t, sandbox, "sh", "-c", "ps | grep -c '[g]uest read' || true") == "0" })
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// The CLI's own connection through ssh, with a stub in place of the remote host.
func TestEngineBehindSSH(t *testing.T) {
	api := realEngine(t)
	dir := t.TempDir()
	stub := "#!/bin/sh\nexec docker -H " + api.DaemonHost() + " system dial-stdio\n"
	noError(t, os.WriteFile(filepath.Join(dir, "ssh"), []byte(stub), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	b := New("ssh://somebody@host.example.org")
	t.Cleanup(func() { _ = b.Close() })
	sandbox := create(t, b, busyboxSpec(t))
	if got := run(t, sandbox, "echo", "hi"); got != "hi" {
		t.Errorf("%q", got)
	}
}
