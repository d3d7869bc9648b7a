// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package contract

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

func testIdentity(t *testing.T, s *suite) {
	spec := s.spec()
	spec.Name = "contract"
	spec.Labels = map[string]string{"team": "a", "empty": ""}
	spec.Env = map[string]string{"GREETING": "hello"}
	sandbox := s.create(t, spec)
	if sandbox.State() != sandboxcore.StateRunning {
		t.Errorf("state %s, want running", sandbox.State())
	}
	if sandbox.Files() == nil || sandbox.Native() == nil {
		t.Error("files and native have to be there")
	}
	again, err := s.backend.Get(s.context(t), sandbox.ID())
	if err != nil {
		t.Fatal(err)
	}
	if again.ID() != sandbox.ID() || sandbox.ID() == "" {
		t.Errorf("id %q, then %q", sandbox.ID(), again.ID())
	}
	if again.Capabilities() != sandbox.Capabilities() || again.Isolation() != sandbox.Isolation() {
		t.Error("capabilities or isolation changed between two looks")
	}
	info := again.Info()
	if info.Name != spec.Name || info.Owner != spec.Owner || info.Template != spec.Template {
		t.Errorf("name %q, owner %q, template %v", info.Name, info.Owner, info.Template)
	}
	if !maps.Equal(info.Labels, spec.Labels) || !maps.Equal(info.Env, spec.Env) || !slices.Equal(info.Command, spec.Command) {
		t.Errorf("labels %v, env %v, command %v", info.Labels, info.Env, info.Command)
	}
	if info.State != sandboxcore.ManagedRunning || !info.ExpiresAt.IsZero() {
		t.Errorf("state %s, expires %v", info.State, info.ExpiresAt)
	}
	if age := time.Since(info.CreatedAt); age < -time.Minute || age > 10*time.Minute {
		t.Errorf("created %s ago", age)
	}
	resolved, err := s.backend.Resolve(s.context(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	if info.Resources != resolved.Resources || info.Network != resolved.Network || info.Enforcement != resolved.Enforcement {
		t.Errorf("made %+v %+v %+v, resolved %+v %+v %+v", info.Resources, info.Network, info.Enforcement, resolved.Resources, resolved.Network, resolved.Enforcement)
	}
}

func testResolve(t *testing.T, s *suite) {
	before := s.count(t, s.owner)
	resolved, err := s.backend.Resolve(s.context(t), s.spec())
	if err != nil {
		t.Fatal(err)
	}
	if n := s.count(t, s.owner); n != before {
		t.Errorf("resolving made %d sandboxes", n-before)
	}
	if !resolved.Resources.CPU.IsSet() || !resolved.Resources.MemoryMB.IsSet() {
		t.Errorf("defaults have to be concrete caps: %+v", resolved.Resources)
	}
	if resolved.Network.Egress != sandboxcore.EgressDeny {
		t.Errorf("egress %q by default, want deny", resolved.Network.Egress)
	}
	if (resolved.Enforcement.Disk == sandboxcore.EnforcementNone) == resolved.Resources.DiskMB.IsSet() {
		t.Errorf("disk %+v is enforced by %q", resolved.Resources.DiskMB, resolved.Enforcement.Disk)
	}
	spec := s.spec()
	spec.Template = sandboxcore.Template{}
	if _, err := s.backend.Resolve(s.context(t), spec); err != nil {
		t.Errorf("a template that isn't known yet is no error: %v", err)
	}
	again, err := s.backend.Resolve(s.context(t), s.spec())
	if err != nil || !reflect.DeepEqual(again, resolved) {
		t.Errorf("resolved twice: %+v, then %+v, %v", resolved, again, err)
	}
}

func testRefusals(t *testing.T, s *suite) {
	tests := map[string]struct {
		change func(*sandboxcore.Spec)
		kind   sandboxcore.ErrorKind
		field  string
	}{
		"learn":            {func(p *sandboxcore.Spec) { p.Network.Egress = sandboxcore.EgressLearn }, sandboxcore.KindCapabilityNotSupported, "network.egress"},
		"reserved label":   {func(p *sandboxcore.Spec) { p.Labels = map[string]string{"sandboxio.owner": "x"} }, sandboxcore.KindConfiguration, `labels["sandboxio.owner"]`},
		"unknown required": {func(p *sandboxcore.Spec) { p.RequireIsolation = sandboxcore.Some(sandboxcore.TierUnknown) }, sandboxcore.KindConfiguration, "require_isolation"},
		"memory of zero":   {func(p *sandboxcore.Spec) { p.Resources.MemoryMB = sandboxcore.Some(int64(0)) }, sandboxcore.KindConfiguration, "resources.memory_mb"},
		"negative cpu":     {func(p *sandboxcore.Spec) { p.Resources.CPU = sandboxcore.Some(-1.0) }, sandboxcore.KindConfiguration, "resources.cpu"},
		"negative ttl":     {func(p *sandboxcore.Spec) { p.TTL = -time.Second }, sandboxcore.KindConfiguration, "ttl"},
		"image and id":     {func(p *sandboxcore.Spec) { p.Template = sandboxcore.Template{Image: "a", ID: "b"} }, sandboxcore.KindConfiguration, "template_id"},
	}
	resolved, err := s.backend.Resolve(s.context(t), s.spec())
	if err != nil {
		t.Fatal(err)
	}
	for _, tier := range sandboxcore.IsolationTiers() {
		if tier.More(resolved.Tier.Tier) && tier == sandboxcore.TierMicroVM {
			tests["tier above"] = struct {
				change func(*sandboxcore.Spec)
				kind   sandboxcore.ErrorKind
				field  string
			}{func(p *sandboxcore.Spec) { p.RequireIsolation = sandboxcore.Some(tier) }, sandboxcore.KindConfiguration, "require_isolation"}
		}
	}
	if cpu, ok := s.OverLimit.Get(); ok {
		tests["cpu above"] = struct {
			change func(*sandboxcore.Spec)
			kind   sandboxcore.ErrorKind
			field  string
		}{func(p *sandboxcore.Spec) { p.Resources.CPU = sandboxcore.Some(cpu) }, sandboxcore.KindConfiguration, "resources.cpu"}
	}
	before := s.count(t, s.owner)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := s.spec()
			test.change(&spec)
			_, resolveErr := s.backend.Resolve(s.context(t), spec)
			_, createErr := sandboxcore.Create(s.context(t), s.backend, spec, func(sandboxcore.Warning) {})
			for _, err := range []error{resolveErr, createErr} {
				errs := sandboxcore.Errors(err)
				if len(errs) != 1 || errs[0].Kind != test.kind || errs[0].Field != test.field || errs[0].Remedy == "" {
					t.Errorf("got %v, want %s at %s with a remedy", err, test.kind, test.field)
				}
			}
		})
	}
	if n := s.count(t, s.owner); n != before {
		t.Errorf("refusals made %d sandboxes", n-before)
	}
}

func testTier(t *testing.T, s *suite) {
	resolved, err := s.backend.Resolve(s.context(t), s.spec())
	if err != nil {
		t.Fatal(err)
	}
	tier := resolved.Tier
	if tier.Tier.More(sandboxcore.TierContainer) {
		if _, err := time.Parse(time.DateOnly, tier.Evidence.Date); err != nil || tier.Evidence.Document == "" {
			t.Errorf("%s is claimed with evidence %+v", tier.Tier, tier.Evidence)
		}
	}
	sandbox := s.create(t, s.spec())
	if sandbox.Isolation() != tier.Tier {
		t.Errorf("isolation %s, resolved %s", sandbox.Isolation(), tier.Tier)
	}
	if tier.Tier != sandboxcore.TierUnknown {
		spec := s.spec()
		spec.RequireIsolation = sandboxcore.Some(tier.Tier)
		s.create(t, spec)
	}
}

func testKill(t *testing.T, s *suite) {
	bring := map[string]func(*testing.T, string){"running": func(*testing.T, string) {}, "stopped": s.Stop, "paused": s.Pause}
	for state, bring := range bring {
		t.Run(state, func(t *testing.T) {
			sandbox := s.create(t, s.spec())
			bring(t, sandbox.ID())
			for i := range 2 { // gone already is no error
				if err := s.backend.Kill(s.context(t), sandbox.ID()); err != nil {
					t.Fatalf("kill %d: %v", i+1, err)
				}
			}
			if err := sandbox.Kill(s.context(t)); err != nil {
				t.Errorf("kill by the handle: %v", err)
			}
			if sandbox.State() != sandboxcore.StateKilled {
				t.Errorf("state %s, want killed", sandbox.State())
			}
			if _, err := s.backend.Get(s.context(t), sandbox.ID()); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
				t.Errorf("get after kill: %v, want NotFound", err)
			}
		})
	}
}

func testScope(t *testing.T, s *suite) {
	ownError := errors.New("own error")
	ends := map[string]func(cancel context.CancelFunc) error{
		"return": func(context.CancelFunc) error { return nil },
		"error":  func(context.CancelFunc) error { return ownError },
		"panic":  func(context.CancelFunc) error { panic("own panic") },
		"cancel": func(cancel context.CancelFunc) error { cancel(); return nil },
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
				err := sandboxcore.With(ctx, s.backend, s.spec(), func(sandboxcore.Warning) {}, func(_ context.Context, sandbox sandboxcore.Sandbox) error {
					id = sandbox.ID()
					return end(cancel)
				})
				if errors.Is(err, ownError) != (name == "error") {
					t.Errorf("error %v", err)
				}
			}()
			if _, err := s.backend.Get(s.context(t), id); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
				t.Errorf("after the scope: %v, want NotFound", err)
			}
		})
	}
}

func testCancelledCreate(t *testing.T, s *suite) {
	owner := s.owner + "-cancelled"
	spec := s.spec()
	spec.Owner = owner
	for _, after := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond, 80 * time.Millisecond, 150 * time.Millisecond, 300 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(s.context(t), after)
		sandbox, err := sandboxcore.Create(ctx, s.backend, spec, func(sandboxcore.Warning) {})
		cancel()
		if err == nil {
			if err := sandbox.Kill(s.context(t)); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.count(t, owner); n != 0 {
			t.Errorf("cancelled after %s (%v): %d sandboxes are left", after, err, n)
		}
	}
}

func testTimeToLive(t *testing.T, s *suite) {
	spec := s.spec()
	spec.TTL = 2 * time.Second
	sandbox := s.create(t, spec)
	expires := sandbox.Info().ExpiresAt
	if left := time.Until(expires); left <= 0 || left > spec.TTL {
		t.Fatalf("expires in %s", left)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		again, err := s.backend.Get(s.context(t), sandbox.ID())
		if sandboxcore.Is(err, sandboxcore.KindNotFound) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if info := again.Info(); info.State != sandboxcore.ManagedRunning {
			if !info.Expired(time.Now()) {
				t.Errorf("it ended before its time: %v", info)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the time to live is long over, and it still runs")
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func testUpdateInPlace(t *testing.T, s *suite) {
	sandbox := s.create(t, s.spec())
	resolved, err := s.backend.Resolve(s.context(t), s.spec())
	if err != nil {
		t.Fatal(err)
	}
	for _, memory := range []int64{2048, 256, 1024} {
		spec := s.spec()
		spec.Resources.CPU = sandboxcore.Some(0.5)
		spec.Resources.MemoryMB = sandboxcore.Some(memory)
		if !slices.Contains(resolved.InPlace, "resources.cpu") || !slices.Contains(resolved.InPlace, "resources.memory_mb") {
			t.Skip("this backend replaces for new caps")
		}
		updated, err := sandboxcore.Update(s.context(t), s.backend, sandbox.ID(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if updated.ID() != sandbox.ID() {
			t.Errorf("id %s became %s", sandbox.ID(), updated.ID())
		}
		if got := updated.Info().Resources; got.CPU.Or(0) != 0.5 || got.MemoryMB.Or(0) != memory {
			t.Errorf("resources %+v after asking for %d MiB", got, memory)
		}
	}
}

func testWake(t *testing.T, s *suite) {
	for state, bring := range map[sandboxcore.ManagedState]func(*testing.T, string){
		sandboxcore.ManagedStopped: s.Stop, sandboxcore.ManagedPaused: s.Pause,
	} {
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
			awake, err := sandboxcore.Update(s.context(t), s.backend, sandbox.ID(), s.spec())
			if err != nil {
				t.Fatal(err)
			}
			if awake.ID() != sandbox.ID() || awake.Info().State != sandboxcore.ManagedRunning || awake.State() != sandboxcore.StateRunning {
				t.Errorf("id %s, state %s", awake.ID(), awake.Info().State)
			}
		})
	}
}

func testListAndReap(t *testing.T, s *suite) {
	reapable, ok := s.backend.(sandboxcore.ReapableBackend)
	if !ok {
		t.Fatal("not reapable")
	}
	ctx := s.context(t)
	mine, theirs := s.spec(), s.spec()
	mine.Owner, theirs.Owner = s.owner+"-mine", s.owner+"-theirs"
	mine.Labels = map[string]string{"kind": "a"}
	mine.TTL = time.Hour
	first, second := s.create(t, mine), s.create(t, theirs)
	s.Stop(t, second.ID())

	found, err := reapable.ListManaged(ctx, sandboxcore.Filter{Owner: mine.Owner})
	if err != nil || len(found) != 1 {
		t.Fatalf("found %v, %v", found, err)
	}
	got := found[0]
	if got.SandboxID != first.ID() || got.Backend != s.backend.Name() || got.State != sandboxcore.ManagedRunning || got.Owner != mine.Owner {
		t.Errorf("listed %+v", got)
	}
	if got.Labels != sandboxcore.LabelsOf(mine.Labels) {
		t.Errorf("labels %v", got.Labels.Map())
	}
	if got.ExpiresAt != sandboxcore.Timestamp(first.Info().ExpiresAt) || !got.CreatedAt.IsSet() {
		t.Errorf("created %v, expires %v", got.CreatedAt, got.ExpiresAt)
	}
	if found, err := reapable.ListManaged(ctx, sandboxcore.Filter{Owner: mine.Owner, Labels: sandboxcore.LabelsOf(map[string]string{"kind": "b"})}); err != nil || len(found) != 0 {
		t.Errorf("another label: %v, %v", found, err)
	}
	if found, err := reapable.ListManaged(ctx, sandboxcore.Filter{Owner: theirs.Owner}); err != nil || len(found) != 1 || found[0].State != sandboxcore.ManagedStopped {
		t.Errorf("stopped: %v, %v", found, err)
	}
	for _, owner := range []string{mine.Owner, ""} {
		if err := reapable.Reap(ctx, owner, second.ID()); !sandboxcore.Is(err, sandboxcore.KindConfiguration) {
			t.Errorf("reaping as %q: %v, want ConfigurationError", owner, err)
		}
	}
	if _, err := s.backend.Get(ctx, second.ID()); err != nil {
		t.Errorf("another owner's sandbox: %v", err)
	}
	for range 2 {
		if err := reapable.Reap(ctx, mine.Owner, first.ID()); err != nil {
			t.Error(err)
		}
	}
	if err := reapable.ReapHelpers(ctx); err != nil {
		t.Error(err)
	}
	if _, err := s.backend.Get(ctx, first.ID()); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
		t.Errorf("reaped: %v, want NotFound", err)
	}
}

func testUnmanaged(t *testing.T, s *suite) {
	if s.Unmanaged == nil {
		t.Skip("this backend holds nothing but sandboxes")
	}
	id, there := s.Unmanaged(t)
	ctx := s.context(t)
	_, getErr := s.backend.Get(ctx, id)
	reapable, _ := s.backend.(sandboxcore.ReapableBackend)
	for what, err := range map[string]error{
		"get": getErr, "kill": s.backend.Kill(ctx, id), "reap": reapable.Reap(ctx, s.owner, id), "reap without owner": reapable.Reap(ctx, "", id),
	} {
		if !sandboxcore.Is(err, sandboxcore.KindConfiguration) {
			t.Errorf("%s: %v, want ConfigurationError", what, err)
		}
	}
	if !there() {
		t.Error("what isn't sandboxio's was removed")
	}
}

func testTemplates(t *testing.T, s *suite) {
	ctx := s.context(t)
	missing := sandboxcore.Template{Image: s.MissingImage}
	if _, err := s.backend.LookupTemplate(ctx, missing); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
		t.Errorf("lookup: %v, want NotFound", err)
	}
	if _, err := s.backend.EnsureTemplate(ctx, missing, sandboxcore.PullNever); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
		t.Errorf("ensure without a pull: %v, want NotFound", err)
	}
	info, err := s.backend.EnsureTemplate(ctx, s.Spec.Template, sandboxcore.PullMissing)
	if err != nil || info.ID == "" {
		t.Fatalf("ensure: %+v, %v", info, err)
	}
	spec := s.spec()
	spec.Template = sandboxcore.Template{ID: info.ID}
	if got := s.create(t, spec).Info(); got.TemplateID != info.ID || got.Template != spec.Template {
		t.Errorf("made from %v, %s", got.Template, got.TemplateID)
	}
}
