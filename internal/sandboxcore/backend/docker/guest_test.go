// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// The guest volume is filled once, however many try, and again after it was removed.
func TestGuestIsInstalledByMany(t *testing.T) {
	api := realEngine(t)
	conn, err := newBackend(t).connect(t.Context())
	noError(t, err)
	name, err := conn.ensureGuest(t.Context())
	noError(t, err)
	tag := strings.Replace(name, "sandboxio-guest-", "sandboxio-guest:", 1)
	_, _ = exec.Command("docker", "image", "rm", tag).CombinedOutput()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			b := New("") // nothing shared but the engine
			defer b.Close()
			sandbox, err := sandboxcore.Create(t.Context(), b, busyboxSpec(t), func(sandboxcore.Warning) {})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := sandbox.Exec(t.Context(), sandboxcore.Command{Argv: []string{"true"}}); err != nil {
				t.Error(err)
			}
			if err := sandbox.Kill(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if _, err := api.ImageInspect(t.Context(), tag); err != nil {
		t.Errorf("the tag that says filled: %v", err)
	}
}

// The client is a process of its own here, and is killed with no time to say so.
func TestKilledClientLeavesNoProcess(t *testing.T) {
	if id := os.Getenv("SANDBOXIO_TEST_EXEC_IN"); id != "" {
		b := newBackend(t)
		sandbox, err := b.Get(t.Context(), id)
		noError(t, err)
		_, _ = sandbox.Exec(t.Context(), sandboxcore.Command{Argv: []string{"sh", "-c", "setsid sleep 400000 & sleep 400000"}})
		return
	}
	realEngine(t)
	sandbox := create(t, newBackend(t), busyboxSpec(t))
	count := func() string {
		result, err := sandbox.Exec(t.Context(), sandboxcore.Command{Argv: []string{"sh", "-c", "ps | grep -c '[s]leep 400000'"}})
		noError(t, err)
		return strings.TrimSpace(result.Stdout)
	}
	client := exec.Command(os.Args[0], "-test.run", "^TestKilledClientLeavesNoProcess$")
	client.Env = append(os.Environ(), "SANDBOXIO_TEST_EXEC_IN="+sandbox.ID())
	noError(t, client.Start())
	await(t, "the command to run", func() bool { return count() != "0" })
	noError(t, client.Process.Signal(syscall.SIGKILL))
	_ = client.Wait()
	await(t, "its processes to be gone", func() bool { return count() == "0" })
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !is() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited for %s in vain", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func TestPidOneReapsOrphans(t *testing.T) {
	realEngine(t)
	sandbox := create(t, newBackend(t), busyboxSpec(t))
	run(t, sandbox, "sh", "-c", "for i in 1 2 3; do (sleep 0.1 &) ; done")
	await(t, "no process but the guest", func() bool {
		return run(t, sandbox, "sh", "-c", "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l") == "0"
	})
}
