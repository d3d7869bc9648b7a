// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package contract

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// states are what a sandbox can be brought to from outside.
func (s *suite) states() map[sandboxcore.ManagedState]func(*testing.T, string) {
	states := map[sandboxcore.ManagedState]func(*testing.T, string){}
	if s.Stop != nil {
		states[sandboxcore.ManagedStopped] = s.Stop
	}
	if s.Pause != nil {
		states[sandboxcore.ManagedPaused] = s.Pause
	}
	return states
}

func (s *suite) isGone(t *testing.T, id string) {
	t.Helper()
	if _, err := s.backend.Get(s.context(t), id); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
		t.Errorf("get: %v, want NotFound", err)
	}
}

// eventually asks until it's so, for as long as a loaded machine may need.
func eventually(so func() bool) bool {
	for deadline := time.Now().Add(30 * time.Second); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

func testKill(t *testing.T, s *suite) {
	states := s.states()
	states[sandboxcore.ManagedRunning] = func(*testing.T, string) {}
	for state, bring := range states {
		t.Run(string(state), func(t *testing.T) {
			sandbox := s.create(t, s.spec())
			bring(t, sandbox.ID())
			for i := range 2 { // gone already is no error
				if err := s.backend.Kill(s.context(t), sandbox.ID()); err != nil {
					t.Fatalf("kill %d: %v", i+1, err)
				}
			}
			s.isGone(t, sandbox.ID())
			if err := sandbox.Kill(s.context(t)); err != nil {
				t.Errorf("kill by the handle: %v", err)
			}
			if sandbox.State() != sandboxcore.StateKilled {
				t.Errorf("state %s, want killed", sandbox.State())
			}
			if _, err := s.backend.Update(s.context(t), sandbox.ID(), s.spec(), sandboxcore.Resolved{}); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
				t.Errorf("update after kill: %v, want NotFound", err)
			}
		})
	}
	t.Run("by the handle", func(t *testing.T) {
		sandbox, bystander := s.create(t, s.spec()), s.create(t, s.spec())
		if err := sandbox.Kill(s.context(t)); err != nil {
			t.Fatal(err)
		}
		s.isGone(t, sandbox.ID())
		if _, err := s.backend.Get(s.context(t), bystander.ID()); err != nil {
			t.Errorf("another sandbox: %v", err)
		}
	})
	t.Run("never made", func(t *testing.T) {
		const id = "0123456789abcdef"
		if err := s.backend.Kill(s.context(t), id); err != nil {
			t.Errorf("kill: %v", err)
		}
		s.isGone(t, id)
	})
}

func testScope(t *testing.T, s *suite) {
	ownError := errors.New("own error")
	ends := map[string]func(cancel context.CancelFunc, gone func() bool) error{
		"return": func(context.CancelFunc, func() bool) error { return nil },
		"error":  func(context.CancelFunc, func() bool) error { return ownError },
		"panic":  func(context.CancelFunc, func() bool) error { panic("own panic") },
		"cancel": func(cancel context.CancelFunc, gone func() bool) error {
			cancel()
			if !eventually(gone) {
				return errors.New("the teardown waits for who uses the sandbox")
			}
			return nil
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(s.context(t))
			defer cancel()
			id := ""
			func() {
				defer func() {
					if p := recover(); (p != nil) != (name == "panic") {
						t.Errorf("panic %v", p)
					}
				}()
				err := sandboxcore.With(ctx, s.backend, s.spec(), ignore, func(_ context.Context, sandbox sandboxcore.Sandbox) error {
					id = sandbox.ID()
					return end(cancel, func() bool {
						_, err := s.backend.Get(s.context(t), id)
						return sandboxcore.Is(err, sandboxcore.KindNotFound)
					})
				})
				if errors.Is(err, ownError) != (name == "error") || err != nil && name != "error" {
					t.Errorf("error %v", err)
				}
			}()
			s.isGone(t, id)
		})
	}
}

func testCancelledCreate(t *testing.T, s *suite) {
	spec := s.spec()
	spec.Owner = s.owner + "-cancelled"
	for _, after := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 80 * time.Millisecond, 150 * time.Millisecond, 300 * time.Millisecond} {
		ctx, cancel := context.WithCancel(s.context(t))
		timer := time.AfterFunc(after, cancel)
		sandbox, err := sandboxcore.Create(ctx, s.backend, spec, ignore)
		timer.Stop()
		switch {
		case err == nil: // it was quicker
			if err := sandbox.Kill(s.context(t)); err != nil {
				t.Fatal(err)
			}
		case ctx.Err() == nil:
			t.Errorf("not cancelled, and yet: %v", err)
		}
		cancel()
		if n := s.count(t, spec.Owner); n != 0 {
			t.Errorf("cancelled after %s (%v): %d sandboxes are left", after, err, n)
		}
	}
	resolved, err := s.backend.Resolve(s.context(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.context(t))
	cancel()
	if _, err := s.backend.Create(ctx, spec, resolved); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v, want the context's error", err)
	}
	if n := s.count(t, spec.Owner); n != 0 {
		t.Errorf("cancelled before: %d sandboxes are left", n)
	}
}

func testTimeToLive(t *testing.T, s *suite) {
	spec := s.spec()
	spec.TTL = 2 * time.Second
	before := time.Now()
	sandbox := s.create(t, spec)
	info := sandbox.Info()
	// Stamps may be rounded down to seconds.
	if info.TTL != spec.TTL || info.ExpiresAt.Before(before.Add(spec.TTL-time.Second)) || info.ExpiresAt.After(time.Now().Add(spec.TTL)) {
		t.Fatalf("ttl %s, asked for at %s, expires at %s", info.TTL, before, info.ExpiresAt)
	}
	ended := eventually(func() bool {
		again, err := s.backend.Get(s.context(t), sandbox.ID())
		if sandboxcore.Is(err, sandboxcore.KindNotFound) {
			return true
		}
		if err != nil {
			t.Fatal(err)
		}
		if again.Info().State == sandboxcore.ManagedRunning {
			return false
		}
		if !again.Info().Expired(time.Now()) {
			t.Errorf("it ended before its time: %+v", again.Info())
		}
		return true
	})
	if !ended {
		t.Error("the time to live is long over, and it still runs")
	}
}

// inPlaceStep is a change, and what has to be seen after it.
type inPlaceStep struct {
	change func(*sandboxcore.Spec)
	holds  func(sandboxcore.Info) bool
}

func cpuStep(cores float64) inPlaceStep {
	return inPlaceStep{
		func(p *sandboxcore.Spec) { p.Resources.CPU = sandboxcore.Some(cores) },
		func(i sandboxcore.Info) bool { return i.Resources.CPU == sandboxcore.Some(cores) },
	}
}

func memoryStep(mb int64) inPlaceStep {
	return inPlaceStep{
		func(p *sandboxcore.Spec) { p.Resources.MemoryMB = sandboxcore.Some(mb) },
		func(i sandboxcore.Info) bool { return i.Resources.MemoryMB == sandboxcore.Some(mb) },
	}
}

func labelsStep(labels map[string]string) inPlaceStep {
	return inPlaceStep{
		func(p *sandboxcore.Spec) { p.Labels = labels },
		func(i sandboxcore.Info) bool { return maps.Equal(i.Labels, labels) },
	}
}

func ttlStep(ttl time.Duration) inPlaceStep {
	return inPlaceStep{
		func(p *sandboxcore.Spec) { p.TTL = ttl },
		func(i sandboxcore.Info) bool {
			return i.TTL == ttl && (ttl == 0) == i.ExpiresAt.IsZero() && !i.ExpiresAt.After(time.Now().Add(ttl))
		},
	}
}

// inPlaceTests has an entry for every field that a backend may change in place.
var inPlaceTests = map[string][]inPlaceStep{
	"resources.cpu":       {cpuStep(0.5), cpuStep(1)},
	"resources.memory_mb": {memoryStep(2048), memoryStep(256), memoryStep(1024)}, // also below where it began
	"labels":              {labelsStep(map[string]string{"new": "1"}), labelsStep(nil)},
	"ttl":                 {ttlStep(time.Hour), ttlStep(0)},
}

func testUpdateInPlace(t *testing.T, s *suite) {
	resolved, err := s.backend.Resolve(s.context(t), s.spec())
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range resolved.InPlace {
		t.Run(field, func(t *testing.T) {
			steps, ok := inPlaceTests[field]
			if !ok {
				t.Fatal("offered in place, and the contract suite has no test of it: write one first")
			}
			sandbox := s.create(t, s.spec())
			for i, step := range steps {
				spec := s.spec()
				step.change(&spec)
				updated, err := sandboxcore.Update(s.context(t), s.backend, sandbox.ID(), spec)
				if err != nil {
					t.Fatal(err)
				}
				seen, err := s.backend.Get(s.context(t), sandbox.ID())
				if err != nil {
					t.Fatal(err)
				}
				for what, got := range map[string]sandboxcore.Sandbox{"updated": updated, "seen after": seen} {
					if got.ID() != sandbox.ID() || !step.holds(got.Info()) || got.Info().State != sandboxcore.ManagedRunning {
						t.Errorf("step %d, %s: %+v", i+1, what, got.Info())
					}
				}
			}
		})
	}
}

func testWake(t *testing.T, s *suite) {
	for state, bring := range s.states() {
		t.Run(string(state), func(t *testing.T) {
			sandbox := s.create(t, s.spec())
			bring(t, sandbox.ID())
			seen, err := s.backend.Get(s.context(t), sandbox.ID())
			if err != nil || seen.Info().State != state {
				t.Fatalf("%v: state %v, want %s", err, seen, state)
			}
			if seen.Capabilities().Has(sandboxcore.RunCommand) {
				if _, err := seen.Exec(s.context(t), sandboxcore.Command{Argv: []string{"true"}}); !sandboxcore.Is(err, sandboxcore.KindNotRunning) {
					t.Errorf("exec: %v, want NotRunning", err)
				}
			}
			if seen.Capabilities().Has(sandboxcore.Filesystem) {
				if _, err := seen.Files().Stat(s.context(t), "/"); !sandboxcore.Is(err, sandboxcore.KindNotRunning) {
					t.Errorf("stat: %v, want NotRunning", err)
				}
			}
			awake, err := sandboxcore.Update(s.context(t), s.backend, sandbox.ID(), s.spec())
			if err != nil {
				t.Fatal(err)
			}
			if awake.ID() != sandbox.ID() || awake.Info().State != sandboxcore.ManagedRunning || awake.State() != sandboxcore.StateRunning {
				t.Errorf("id %s, state %s", awake.ID(), awake.Info().State)
			}
			if !awake.Capabilities().Has(sandboxcore.RunCommand) {
				return
			}
			if result, err := awake.Exec(s.context(t), s.sh("echo awake")); err != nil || result.Stdout != "awake\n" {
				t.Errorf("exec: %+v, %v", result, err)
			}
		})
	}
}
