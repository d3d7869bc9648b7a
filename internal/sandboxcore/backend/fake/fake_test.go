// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package fake

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore/contract"
)

func TestContract(t *testing.T) {
	b := New(t.TempDir())
	contract.Run(t, contract.Harness{
		Open:         func(*testing.T) sandboxcore.Backend { return b },
		Spec:         sandboxcore.Spec{Template: sandboxcore.Template{Image: "any"}},
		MissingImage: MissingImage,
		Stop:         func(t *testing.T, id string) { noError(t, b.Stop(id)) },
		Pause:        func(t *testing.T, id string) { noError(t, b.Pause(id)) },
		Unreachable: func(t *testing.T) sandboxcore.Backend {
			b := New(t.TempDir())
			var faults []Injection
			for _, op := range []Op{OpResolve, OpCreate, OpGet, OpUpdate, OpKill, OpList} {
				faults = append(faults, Injection{Op: op, Fault: FaultUnavailable, Always: true})
			}
			noError(t, b.Inject(faults...))
			return b
		},
		OverLimit: sandboxcore.Some(65.0),
	})
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func spec() sandboxcore.Spec {
	return sandboxcore.Spec{Owner: "me", Template: sandboxcore.Template{Image: "any"}}
}

func create(t *testing.T, b *Backend) (sandboxcore.Sandbox, error) {
	return sandboxcore.Create(t.Context(), b, spec(), func(sandboxcore.Warning) {})
}

func TestOpensForTestsOnly(t *testing.T) {
	for field, settings := range map[string]sandboxcore.Settings{
		"fake.enabled_for_tests": {settingStateDir: "x"},
		"fake.state_dir":         {settingEnabled: true},
	} {
		_, err := Factory().Open(settings)
		if errs := sandboxcore.Errors(err); len(errs) != 1 || errs[0].Kind != sandboxcore.KindConfiguration || errs[0].Field != field {
			t.Errorf("%v: %v, want ConfigurationError at %s", settings, err, field)
		}
	}
	if _, err := Factory().Open(sandboxcore.Settings{settingEnabled: true, settingStateDir: t.TempDir()}); err != nil {
		t.Error(err)
	}
}

// Separate provider processes have nothing in common but the folder.
func TestFolderIsShared(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "on", "demand")
	one, other := New(dir), New(dir)
	sandbox, err := create(t, one)
	noError(t, err)
	noError(t, sandbox.Files().Write(t.Context(), "/f", []byte("x"), 0o600))
	same, err := other.Get(t.Context(), sandbox.ID())
	noError(t, err)
	if got, err := same.Files().Read(t.Context(), "/f"); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	noError(t, other.Inject(Injection{Op: OpGet, Fault: FaultRefuse, Times: 1}))
	if _, err := one.Get(t.Context(), sandbox.ID()); err == nil {
		t.Error("a fault that one process armed has to hit the other")
	}
}

// envRequests is how many requests this program makes to the fake in its working folder.
const envRequests = "FAKE_TEST_REQUESTS"

// TestMain makes this program the other process of TestProcessesShareFaults.
func TestMain(m *testing.M) {
	requests, err := strconv.Atoi(os.Getenv(envRequests))
	if err != nil {
		os.Exit(m.Run())
	}
	refused := 0
	for range requests {
		if _, err := New(".").Resolve(context.Background(), spec()); err != nil {
			refused++
		}
	}
	os.Stdout.WriteString(strconv.Itoa(refused))
}

// Every fault hits as often as it was armed, whichever processes ask at once.
func TestProcessesShareFaults(t *testing.T) {
	const processes, requests, armed = 4, 50, 100
	b := New(t.TempDir())
	noError(t, b.Inject(Injection{Op: OpResolve, Fault: FaultRefuse, Times: armed}))
	self, err := os.Executable()
	noError(t, err)
	var group sync.WaitGroup
	refused := make([]int, processes)
	for i := range processes {
		group.Go(func() {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Dir = b.dir
			cmd.Env = append(os.Environ(), envRequests+"="+strconv.Itoa(requests))
			out, err := cmd.Output()
			if err == nil {
				refused[i], err = strconv.Atoi(strings.TrimSpace(string(out)))
			}
			if err != nil {
				t.Errorf("%q: %v", out, err)
			}
		})
	}
	group.Wait()
	sum := 0
	for _, n := range refused {
		sum += n
	}
	if sum != armed {
		t.Errorf("%v: %d of %d requests were refused, want %d", refused, sum, processes*requests, armed)
	}
}

// A change is made to the newest state, and a sandbox that was killed meanwhile doesn't come back.
func TestChangesAtOnce(t *testing.T) {
	b := New(t.TempDir())
	for range 20 {
		sandbox, err := create(t, b)
		noError(t, err)
		var group sync.WaitGroup
		for _, do := range []func(string) error{b.Stop, b.Pause, b.Stop, func(id string) error { return b.Kill(t.Context(), id) }} {
			group.Go(func() {
				if err := do(sandbox.ID()); err != nil && !sandboxcore.Is(err, sandboxcore.KindNotFound) {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if _, err := b.Get(t.Context(), sandbox.ID()); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
			t.Errorf("killed: %v, want NotFound", err)
		}
	}
}

func TestLookingMakesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	b := New(dir)
	_, err := b.Resolve(t.Context(), spec())
	noError(t, err)
	if _, err := b.Get(t.Context(), "x"); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
		t.Errorf("%v, want NotFound", err)
	}
	noError(t, b.Kill(t.Context(), "x"))
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}

func TestMissingImage(t *testing.T) {
	b := New(t.TempDir())
	s := spec()
	s.Template.Image = MissingImage
	if _, err := sandboxcore.Create(t.Context(), b, s, func(sandboxcore.Warning) {}); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
		t.Errorf("%v, want NotFound", err)
	}
}

func TestCancelledCreateLeavesNothing(t *testing.T) {
	b := New(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Create(ctx, spec(), sandboxcore.Resolved{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
	if left, err := os.ReadDir(filepath.Join(b.dir, "sandboxes")); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestFilesStayInside(t *testing.T) {
	sandbox, err := create(t, New(t.TempDir()))
	noError(t, err)
	if _, err := sandbox.Files().Read(t.Context(), "/../sandbox.json"); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
		t.Errorf("%v, want NotFound", err)
	}
}

func TestFaults(t *testing.T) {
	t.Run("refuse twice", func(t *testing.T) {
		b := New(t.TempDir())
		noError(t, b.Inject(Injection{Op: OpCreate, Fault: FaultRefuse, Times: 2}))
		for range 2 {
			if _, err := create(t, b); !sandboxcore.Is(err, sandboxcore.KindBackend) {
				t.Errorf("%v, want a refusal", err)
			}
		}
		if _, err := create(t, b); err != nil {
			t.Errorf("third: %v", err)
		}
	})
	t.Run("always unavailable", func(t *testing.T) {
		b := New(t.TempDir())
		noError(t, b.Inject(Injection{Op: OpKill, Fault: FaultUnavailable, Always: true}))
		sandbox, err := create(t, b)
		noError(t, err)
		for range 3 {
			if err := sandbox.Kill(t.Context()); !sandboxcore.Is(err, sandboxcore.KindBackendUnavailable) {
				t.Errorf("%v, want BackendUnavailable", err)
			}
		}
	})
	t.Run("lost reply", func(t *testing.T) {
		b := New(t.TempDir())
		noError(t, b.Inject(Injection{Op: OpCreate, Fault: FaultLostReply, Times: 1}))
		if _, err := create(t, b); !sandboxcore.Is(err, sandboxcore.KindBackendUnavailable) {
			t.Errorf("%v, want BackendUnavailable", err)
		}
		found, err := b.ListManaged(t.Context(), sandboxcore.Filter{Owner: "me"})
		if err != nil || len(found) != 1 {
			t.Errorf("it was made, so it's found: %v, %v", found, err)
		}
	})
	t.Run("lost reply to a kill", func(t *testing.T) {
		b := New(t.TempDir())
		sandbox, err := create(t, b)
		noError(t, err)
		noError(t, b.Inject(Injection{Op: OpKill, Fault: FaultLostReply, Times: 1}))
		if err := sandbox.Kill(t.Context()); !sandboxcore.Is(err, sandboxcore.KindBackendUnavailable) {
			t.Errorf("%v, want BackendUnavailable", err)
		}
		if _, err := b.Get(t.Context(), sandbox.ID()); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
			t.Errorf("it was killed: %v, want NotFound", err)
		}
		noError(t, sandbox.Kill(t.Context()))
	})
	t.Run("by a file, of one sandbox", func(t *testing.T) {
		b := New(t.TempDir())
		hit, err := create(t, b)
		noError(t, err)
		spared, err := create(t, b)
		noError(t, err)
		noError(t, os.WriteFile(filepath.Join(b.dir, "faults.json"), []byte(`[{"Op": "get", "Fault": "expire", "ID": "`+hit.ID()+`", "Times": 1}]`), 0o600))
		_, err = b.Get(t.Context(), spared.ID())
		noError(t, err)
		for range 2 { // expired stays expired
			if _, err := b.Get(t.Context(), hit.ID()); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
				t.Errorf("%v, want NotFound", err)
			}
		}
	})
	t.Run("that can't be read", func(t *testing.T) {
		b := New(t.TempDir())
		noError(t, os.WriteFile(filepath.Join(b.dir, "faults.json"), []byte("x"), 0o600))
		if _, err := create(t, b); err == nil || !strings.Contains(err.Error(), "faults") {
			t.Errorf("%v, want an error that names the faults", err)
		}
	})
	t.Run("lag", func(t *testing.T) {
		b := New(t.TempDir())
		sandbox, err := create(t, b)
		noError(t, err)
		noError(t, b.Stop(sandbox.ID()))
		noError(t, b.Inject(Injection{Op: OpGet, Fault: FaultLag, Times: 1}))
		for i, want := range []sandboxcore.ManagedState{sandboxcore.ManagedRunning, sandboxcore.ManagedStopped} {
			got, err := b.Get(t.Context(), sandbox.ID())
			noError(t, err)
			if got.Info().State != want {
				t.Errorf("read %d: %s, want %s", i+1, got.Info().State, want)
			}
		}
	})
	t.Run("expire", func(t *testing.T) {
		b := New(t.TempDir())
		sandbox, err := create(t, b)
		noError(t, err)
		noError(t, b.Inject(Injection{Op: OpGet, Fault: FaultExpire, Times: 1}))
		if _, err := b.Get(t.Context(), sandbox.ID()); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
			t.Errorf("%v, want NotFound", err)
		}
	})
	t.Run("too many requests", func(t *testing.T) {
		b := New(t.TempDir())
		noError(t, b.Inject(Injection{Op: OpList, Fault: FaultTooMany, Times: 1, RetryAfter: 3 * time.Second}))
		_, err := b.ListManaged(t.Context(), sandboxcore.Filter{})
		var e *sandboxcore.Error
		if !errors.As(err, &e) || e.Kind != sandboxcore.KindTooManyRequests || e.RetryAfter != 3*time.Second {
			t.Errorf("%v, want TooManyRequests with a time to wait", err)
		}
	})
}

func TestTimeToLiveByTheClock(t *testing.T) {
	now := time.Now()
	b := New(t.TempDir(), WithClock(func() time.Time { return now }))
	s := spec()
	s.TTL = time.Hour
	sandbox, err := sandboxcore.Create(t.Context(), b, s, func(sandboxcore.Warning) {})
	noError(t, err)
	now = now.Add(time.Hour - 2*time.Second)
	_, err = b.Get(t.Context(), sandbox.ID())
	noError(t, err)
	now = now.Add(3 * time.Second)
	if _, err := b.Get(t.Context(), sandbox.ID()); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
		t.Errorf("%v, want NotFound", err)
	}
	if found, err := b.ListManaged(t.Context(), sandboxcore.Filter{}); err != nil || len(found) != 0 {
		t.Errorf("listed %v, %v", found, err)
	}
	noError(t, b.ReapHelpers(t.Context()))
	if left, err := os.ReadDir(filepath.Join(b.dir, "sandboxes")); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
