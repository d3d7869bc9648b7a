// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package fake

import (
	"errors"
	"path/filepath"
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
		OverLimit:    sandboxcore.Some(65.0),
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
		noError(t, b.Inject(Injection{Op: OpList, Fault: FaultTooMany, Times: 1}))
		_, err := b.ListManaged(t.Context(), sandboxcore.Filter{})
		var e *sandboxcore.Error
		if !errors.As(err, &e) || e.Kind != sandboxcore.KindTooManyRequests || e.RetryAfter <= 0 {
			t.Errorf("%v, want TooManyRequests with a time to wait", err)
		}
	})
}

func TestTimeToLiveByTheClock(t *testing.T) {
	b := New(t.TempDir())
	now := time.Now()
	b.now = func() time.Time { return now }
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
}
