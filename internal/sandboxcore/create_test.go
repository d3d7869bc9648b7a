// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var anySpec = Spec{Template: Template{Image: "img"}}

func ignore(Warning) {}

func TestWhatFallsShortIsTornDown(t *testing.T) {
	t.Parallel()
	for name, setUp := range map[string]func(*double, *Spec){
		"required tier": func(d *double, s *Spec) { s.RequireIsolation = Some(TierGVisor); d.tier = TierContainer },
		"resolved tier": func(d *double, _ *Spec) { d.tier = TierMicroVM },
		"unknown tier":  func(d *double, _ *Spec) { d.offer.Tiers[0].Tier, d.tier = TierContainer, IsolationTier{"made up"} },
		"caps":          func(d *double, _ *Spec) { d.short = &Resources{CPU: Some(1.0)} },
		"network":       func(d *double, _ *Spec) { d.open = true },
	} {
		d, spec := newDouble(), anySpec
		setUp(d, &spec)
		sandbox, err := Create(t.Context(), d, spec, ignore)
		if !Is(err, KindIsolationShortfall) || sandbox != nil || d.killed() != 1 {
			t.Errorf("%s: %v, %v, killed %d times", name, sandbox, err, d.killed())
		}
	}
}

func TestFailedTeardownIsRemembered(t *testing.T) {
	t.Parallel()
	d := newDouble()
	d.short, d.killErr = &Resources{}, errors.New("stuck")
	sandbox, err := Create(t.Context(), d, anySpec, ignore)
	if sandbox == nil || !strings.Contains(err.Error(), "stuck") || !Is(err, KindIsolationShortfall) {
		t.Errorf("%v, %v", sandbox, err)
	}
	own := errors.New("own")
	for name, use := range map[string]error{"return": nil, "error": own} {
		d := newDouble()
		d.killErr = errors.New("stuck")
		err := With(t.Context(), d, anySpec, ignore, func(context.Context, Sandbox) error { return use })
		if !errors.Is(err, d.killErr) || use != nil && !errors.Is(err, use) {
			t.Errorf("%s: %v, want the failure of the teardown too", name, err)
		}
	}
}

func TestRefusalMakesNothing(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]Spec{
		"no template": {},
		"learn":       {Template: anySpec.Template, Network: NetworkPolicy{Egress: EgressLearn}},
		"tier":        {Template: anySpec.Template, RequireIsolation: Some(TierUnknown)},
	} {
		d := newDouble()
		if sandbox, err := Create(t.Context(), d, spec, ignore); err == nil || sandbox != nil || d.made != 0 {
			t.Errorf("%s: %v, %v, made %d", name, sandbox, err, d.made)
		}
		used := false
		if err := With(t.Context(), d, spec, ignore, func(context.Context, Sandbox) error { used = true; return nil }); err == nil || used || d.made != 0 {
			t.Errorf("%s: scope: %v, used %v, made %d", name, err, used, d.made)
		}
	}
}

// An update that goes wrong takes nothing away: the sandbox is somebody's.
func TestUpdateIsVerifiedAndTakesNothingAway(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		setUp func(*double, *Spec)
		kind  ErrorKind
	}{
		"as resolved": {func(*double, *Spec) {}, ""},
		"caps":        {func(d *double, _ *Spec) { d.short = &Resources{} }, KindIsolationShortfall},
		"tier":        {func(d *double, s *Spec) { s.RequireIsolation, d.tier = Some(TierGVisor), TierContainer }, KindIsolationShortfall},
		"not ready":   {func(d *double, s *Spec) { s.Command = []string{"x"}; d.ended <- Exit{Code: 4} }, KindExecution},
	} {
		d, spec := newDouble(), anySpec
		test.setUp(d, &spec)
		sandbox, err := Update(t.Context(), d, "1", spec)
		if (err == nil) != (test.kind == "") || err != nil && !Is(err, test.kind) || sandbox == nil || d.killed() != 0 {
			t.Errorf("%s: %v, %v, killed %d times", name, sandbox, err, d.killed())
		}
	}
	d := newDouble()
	if _, err := Update(t.Context(), d, "1", Spec{RequireIsolation: Some(TierUnknown)}); !Is(err, KindConfiguration) || d.State() != StateCreating {
		t.Errorf("refused: %v, %s", err, d.State())
	}
}

func TestCreateNeedsATemplate(t *testing.T) {
	t.Parallel()
	if _, err := Create(t.Context(), newDouble(), Spec{}, ignore); !Is(err, KindConfiguration) {
		t.Errorf("%v", err)
	}
}

func TestScopeTearsDown(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	for name, use := range map[string]func(context.CancelFunc) error{
		"return": func(context.CancelFunc) error { return nil },
		"error":  func(context.CancelFunc) error { return own },
		"panic":  func(context.CancelFunc) error { panic(own) },
		"cancel": func(cancel context.CancelFunc) error { cancel(); return nil },
	} {
		d := newDouble()
		ctx, cancel := context.WithCancel(t.Context())
		func() {
			defer func() {
				if p := recover(); (p != nil) != (name == "panic") {
					t.Errorf("%s: panic %v", name, p)
				}
			}()
			err := With(ctx, d, anySpec, ignore, func(context.Context, Sandbox) error { return use(cancel) })
			if errors.Is(err, own) != (name == "error") || err != nil && name != "error" {
				t.Errorf("%s: %v", name, err)
			}
		}()
		cancel()
		if d.killed() == 0 {
			t.Errorf("%s: it lives on", name)
		}
	}
}

// Cancellation doesn't wait for who uses the sandbox.
func TestScopeTearsDownUnderItsUser(t *testing.T) {
	t.Parallel()
	d := newDouble()
	ctx, cancel := context.WithCancel(t.Context())
	err := With(ctx, d, anySpec, ignore, func(context.Context, Sandbox) error {
		cancel()
		for deadline := time.Now().Add(10 * time.Second); d.killed() == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				return errors.New("it waits for its user")
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestProcessScopeEndsTheProcess(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	for name, use := range map[string]func(context.CancelFunc) error{
		"return": func(context.CancelFunc) error { return nil },
		"error":  func(context.CancelFunc) error { return own },
		"panic":  func(context.CancelFunc) error { panic(own) },
		"cancel": func(cancel context.CancelFunc) error { cancel(); return nil },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var process *doubleProcess
		func() {
			defer func() {
				if p := recover(); (p != nil) != (name == "panic") {
					t.Errorf("%s: panic %v", name, p)
				}
			}()
			err := WithProcess(ctx, doubleSandbox{newDouble()}, Command{}, func(_ context.Context, p Process) error {
				process, _ = p.(*doubleProcess)
				return use(cancel)
			})
			if errors.Is(err, own) != (name == "error") || err != nil && name != "error" {
				t.Errorf("%s: %v", name, err)
			}
		}()
		select {
		case <-process.closed:
		default:
			t.Errorf("%s: the process lives on", name)
		}
	}
}

// Cancellation doesn't wait for who reads the process.
func TestProcessScopeEndsUnderItsUser(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	err := WithProcess(ctx, doubleSandbox{newDouble()}, Command{}, func(_ context.Context, p Process) error {
		cancel()
		process, _ := p.(*doubleProcess)
		select {
		case <-process.closed:
			return nil
		case <-time.After(10 * time.Second):
			return errors.New("it waits for its user")
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestProcessScopeNeedsStreaming(t *testing.T) {
	t.Parallel()
	err := WithProcess(t.Context(), streamless{doubleSandbox{newDouble()}}, Command{}, func(context.Context, Process) error {
		t.Error("used")
		return nil
	})
	if !Is(err, KindCapabilityNotSupported) {
		t.Errorf("%v, want CapabilityNotSupported", err)
	}
}

// streamless can't stream.
type streamless struct{ doubleSandbox }

func (s streamless) Stream(ctx context.Context, cmd Command) (Process, error) {
	return s.Unsupported.Stream(ctx, cmd)
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	never := func(context.Context, Command) (ExecResult, error) {
		return ExecResult{ExitCode: 9, Stderr: "not yet"}, nil
	}
	exec := Readiness{Exec: TupleOf("probe"), Interval: time.Millisecond, Timeout: 50 * time.Millisecond}
	for name, test := range map[string]struct {
		setUp func(*double, *Spec)
		kind  ErrorKind // "": ready
		says  string
	}{
		"exec passes": {func(d *double, s *Spec) {
			s.Readiness = exec
			s.Readiness.Timeout = time.Minute
			tries := 0
			d.exec = func(context.Context, Command) (ExecResult, error) {
				tries++
				return ExecResult{ExitCode: 3 - tries}, nil
			}
		}, "", ""},
		"exec never passes": {func(d *double, s *Spec) { s.Readiness, d.exec = exec, never }, KindTimeout, "exit code 9 not yet"},
		"tcp never passes": {func(d *double, s *Spec) {
			s.Readiness = Readiness{TCPPort: Some(1), Interval: time.Millisecond, Timeout: 50 * time.Millisecond}
			d.probeTCP = errors.New("refused")
		}, KindTimeout, "refused"},
		"tcp passes": {func(_ *double, s *Spec) { s.Readiness = Readiness{TCPPort: Some(1)} }, "", ""},
		"probe can't start": {func(d *double, s *Spec) {
			s.Readiness = Readiness{Exec: TupleOf("x"), Timeout: time.Hour}
			d.exec = func(context.Context, Command) (ExecResult, error) {
				return ExecResult{}, Errorf(KindCannotStart, "no x")
			}
		}, KindCannotStart, "no x"},
		"main dies while probed": {func(d *double, s *Spec) {
			s.Readiness, d.exec = Readiness{Exec: TupleOf("x"), Timeout: time.Hour}, never
			d.ended <- Exit{Code: 7, Log: "boom", OutOfMemory: true}
		}, KindExecution, "exit code 7, killed for its memory cap; its last output:\nboom"},
		"main dies":  {func(d *double, s *Spec) { s.Command = []string{"x"}; d.ended <- Exit{Code: 4} }, KindExecution, "exit code 4"},
		"main lives": {func(_ *double, s *Spec) { s.Command = []string{"x"} }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, spec := newDouble(), anySpec
			test.setUp(d, &spec)
			_, err := Create(t.Context(), d, spec, ignore)
			if test.kind == "" && err != nil || test.kind != "" && (!Is(err, test.kind) || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("%v", err)
			}
			if (d.killed() == 0) != (test.kind == "") {
				t.Errorf("killed %d times", d.killed())
			}
		})
	}
}

func TestCancelledWhileNotReady(t *testing.T) {
	t.Parallel()
	d, spec := newDouble(), anySpec
	spec.Command = []string{"x"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Create(ctx, d, spec, ignore); !errors.Is(err, context.Canceled) || d.killed() != 1 {
		t.Errorf("%v, killed %d times", err, d.killed())
	}
}

// In a bubble whose clock needs no time.
func TestReadinessDefaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, spec := newDouble(), anySpec
		spec.Readiness.Exec = TupleOf("probe")
		probes := 0
		d.exec = func(context.Context, Command) (ExecResult, error) { probes++; return ExecResult{ExitCode: 1}, nil }
		start := time.Now()
		_, err := Create(t.Context(), d, spec, ignore)
		if took := time.Since(start); !Is(err, KindTimeout) || took != DefaultReadinessTimeout || probes < 200 || probes > 241 {
			t.Errorf("%v after %s and %d probes, want one each %s for %s", err, took, probes, DefaultReadinessInterval, DefaultReadinessTimeout)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		d, spec := newDouble(), anySpec
		spec.Command = []string{"x"}
		time.AfterFunc(settleTime-1, func() { d.ended <- Exit{Code: 4} })
		if _, err := Create(t.Context(), d, spec, ignore); !Is(err, KindExecution) || d.killed() != 1 {
			t.Errorf("died while it settled: %v, killed %d times", err, d.killed())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if _, err := Create(t.Context(), newDouble(), anySpec, ignore); err != nil || time.Since(start) != 0 {
			t.Errorf("nothing to wait for, and it took %s: %v", time.Since(start), err)
		}
	})
}

func TestCancelledWhileProbed(t *testing.T) {
	t.Parallel()
	d, spec := newDouble(), anySpec
	ctx, cancel := context.WithCancel(t.Context())
	spec.Readiness = Readiness{Exec: TupleOf("probe"), Timeout: time.Hour}
	d.exec = func(ctx context.Context, _ Command) (ExecResult, error) {
		cancel()
		<-ctx.Done()
		return ExecResult{}, ctx.Err()
	}
	if _, err := Create(ctx, d, spec, ignore); !errors.Is(err, context.Canceled) || d.killed() != 1 {
		t.Errorf("%v, killed %d times", err, d.killed())
	}
}

// Names of its own, since the process may run the test again.
func TestUnverifiedIsolationWarnsOncePerBackendPerProcess(t *testing.T) {
	t.Parallel()
	unique := fmt.Sprintf("backend %d", time.Now().UnixNano())
	var names []string
	warn := func(w Warning) { names = append(names, w.Name) }
	for range 3 {
		d := newDouble()
		d.name, d.offer.Tiers = unique, nil
		if _, err := Create(t.Context(), d, anySpec, warn); err != nil {
			t.Fatal(err)
		}
	}
	WarnUnverified(unique+" another", TierUnknown, warn)
	WarnUnverified(unique+" a third", TierContainer, warn)
	if !slices.Equal(names, []string{UnverifiedIsolationWarning, UnverifiedIsolationWarning}) {
		t.Errorf("warned %v", names)
	}
}

func TestUnsupportedRefusesEverything(t *testing.T) {
	t.Parallel()
	u := Unsupported{Backend: "x"}
	ctx := t.Context()
	_, exec := u.Exec(ctx, Command{})
	_, stream := u.Stream(ctx, Command{})
	_, code := u.RunCode(ctx, Code{})
	_, stateful := u.RunCode(ctx, Code{ContextID: "c"})
	_, terminal := u.Terminal(ctx, Command{}, 1, 1)
	_, snapshot := u.Snapshot(ctx)
	_, lsp := u.LanguageServer(ctx, "go")
	_, cost := u.Cost(ctx, "a")
	_, read := u.Files().Read(ctx, "/x")
	_, list := u.Files().List(ctx, "/x")
	_, stat := u.Files().Stat(ctx, "/x")
	for name, err := range map[string]error{
		"RUN_COMMAND": exec, "STREAMING": stream, "RUN_CODE": code, "STATEFUL_CODE": stateful, "PTY": terminal, "SNAPSHOT_FORK": snapshot, "LSP": lsp,
		"COST_REPORTING": cost, "PAUSE_RESUME": u.Pause(ctx), "GIT": u.GitClone(ctx, "", ""), "UPLOAD_DOWNLOAD": u.Files().Download(ctx, "", nil),
		"FILESYSTEM": read,
	} {
		if !Is(err, KindCapabilityNotSupported) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, err := range []error{list, stat, u.ProbeTCP(ctx, 1), u.Files().Write(ctx, "", nil, 0), u.Files().Mkdir(ctx, ""), u.Files().Remove(ctx, ""), u.Files().Upload(ctx, "", nil, 0)} {
		if !Is(err, KindCapabilityNotSupported) {
			t.Errorf("%v", err)
		}
	}
}
