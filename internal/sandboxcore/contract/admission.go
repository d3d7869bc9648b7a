// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package contract

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

func ignore(sandboxcore.Warning) {}

func testIdentity(t *testing.T, s *suite) {
	const several = 3
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		ids   = map[string]bool{}
	)
	for range several { // at once, from one spec
		group.Go(func() {
			sandbox, err := sandboxcore.Create(s.context(t), s.backend, s.spec(), ignore)
			if err != nil {
				t.Errorf("create: %v", err)
				return
			}
			defer func() {
				if err := sandbox.Kill(s.context(t)); err != nil {
					t.Errorf("kill: %v", err)
				}
			}()
			again, err := s.backend.Get(s.context(t), sandbox.ID())
			if err != nil {
				t.Errorf("get: %v", err)
				return
			}
			if again.ID() != sandbox.ID() || again.Info().ID != sandbox.ID() || sandbox.ID() == "" {
				t.Errorf("id %q, then %q, described as %q", sandbox.ID(), again.ID(), again.Info().ID)
			}
			if again.Capabilities() != sandbox.Capabilities() || again.Isolation() != sandbox.Isolation() {
				t.Error("capabilities or isolation changed between two looks")
			}
			mu.Lock()
			defer mu.Unlock()
			ids[sandbox.ID()] = true
		})
	}
	group.Wait()
	if len(ids) != several {
		t.Errorf("%d sandboxes have the ids %v", several, slices.Collect(maps.Keys(ids)))
	}
}

// testRoundTrip: all that was asked for can be read back, and nothing else.
func testRoundTrip(t *testing.T, s *suite) {
	spec := s.spec()
	spec.Name = s.owner + "-named"
	spec.Labels = map[string]string{"team": "a", "empty": ""}
	spec.Env = map[string]string{"GREETING": "hello world=1", "EMPTY": ""}
	spec.WorkingDir, spec.User = "/etc", "0"
	spec.Command = []string{"never", "run"}
	resolved, err := s.backend.Resolve(s.context(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	runs := resolved.Capabilities.Has(sandboxcore.RunCommand)
	if runs {
		spec.Command = s.sh("sleep 1000").Argv
		spec.Readiness = sandboxcore.Readiness{Exec: sandboxcore.TupleOf("true"), Interval: 300 * time.Millisecond, Timeout: 50 * time.Second}
	}
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
	if named, err := s.backend.Get(s.context(t), spec.Name); err != nil || named.ID() != sandbox.ID() {
		t.Errorf("get by name: %v, %v", named, err)
	}
	info := again.Info()
	if info.Name != spec.Name || info.Owner != spec.Owner || info.Template != spec.Template || info.TemplateID == "" {
		t.Errorf("name %q, owner %q, template %v %q", info.Name, info.Owner, info.Template, info.TemplateID)
	}
	if !maps.Equal(info.Labels, spec.Labels) || !maps.Equal(info.Env, spec.Env) {
		t.Errorf("labels %v, env %v", info.Labels, info.Env)
	}
	if !slices.Equal(info.Command, spec.Command) || info.WorkingDir != spec.WorkingDir || info.User != spec.User || info.Readiness != spec.Readiness {
		t.Errorf("command %q, working_dir %q, user %q, readiness %+v", info.Command, info.WorkingDir, info.User, info.Readiness)
	}
	if info.State != sandboxcore.ManagedRunning || info.TTL != 0 || !info.ExpiresAt.IsZero() {
		t.Errorf("state %s, ttl %s, expires %v", info.State, info.TTL, info.ExpiresAt)
	}
	if age := time.Since(info.CreatedAt); age < -time.Minute || age > 10*time.Minute {
		t.Errorf("created %s ago", age)
	}
	if info.Isolation != again.Isolation() || info.Isolation != resolved.Tier.Tier {
		t.Errorf("isolation %s, resolved %s", info.Isolation, resolved.Tier.Tier)
	}
	if info.Resources != resolved.Resources || info.Network != resolved.Network || info.Enforcement != resolved.Enforcement {
		t.Errorf("made %+v %+v %+v, resolved %+v %+v %+v", info.Resources, info.Network, info.Enforcement, resolved.Resources, resolved.Network, resolved.Enforcement)
	}
	if !runs {
		return
	}
	result, err := sandbox.Exec(s.context(t), s.sh(`echo "$GREETING|$EMPTY|$PWD|$(id -u)"`))
	if err != nil || result.Stdout != "hello world=1||/etc|0\n" {
		t.Errorf("a command doesn't see the sandbox's own environment, folder and user: %+v, %v", result, err)
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
	for what, by := range map[string]string{"cpu": resolved.Enforcement.CPU, "memory": resolved.Enforcement.Memory, "egress": resolved.Enforcement.Egress} {
		if by == "" {
			t.Errorf("nothing is said of what enforces %s", what)
		}
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
	type refusal struct {
		change func(*sandboxcore.Spec)
		kind   sandboxcore.ErrorKind
		field  string
	}
	tests := map[string]refusal{
		"learn":            {func(p *sandboxcore.Spec) { p.Network.Egress = sandboxcore.EgressLearn }, sandboxcore.KindCapabilityNotSupported, "network.egress"},
		"reserved label":   {func(p *sandboxcore.Spec) { p.Labels = map[string]string{"sandboxio.owner": "x"} }, sandboxcore.KindConfiguration, `labels["sandboxio.owner"]`},
		"unknown required": {func(p *sandboxcore.Spec) { p.RequireIsolation = sandboxcore.Some(sandboxcore.TierUnknown) }, sandboxcore.KindConfiguration, "require_isolation"},
		"memory of zero":   {func(p *sandboxcore.Spec) { p.Resources.MemoryMB = sandboxcore.Some(int64(0)) }, sandboxcore.KindConfiguration, "resources.memory_mb"},
		"negative cpu":     {func(p *sandboxcore.Spec) { p.Resources.CPU = sandboxcore.Some(-1.0) }, sandboxcore.KindConfiguration, "resources.cpu"},
		"negative ttl":     {func(p *sandboxcore.Spec) { p.TTL = -time.Second }, sandboxcore.KindConfiguration, "ttl"},
		"image and id":     {func(p *sandboxcore.Spec) { p.Template = sandboxcore.Template{Image: "a", ID: "b"} }, sandboxcore.KindConfiguration, "template_id"},
	}
	if cpu, ok := s.OverLimit.Get(); ok {
		tests["cpu above"] = refusal{func(p *sandboxcore.Spec) { p.Resources.CPU = sandboxcore.Some(cpu) }, sandboxcore.KindConfiguration, "resources.cpu"}
	}
	for _, tier := range sandboxcore.IsolationTiers() {
		if tier == sandboxcore.TierUnknown {
			continue
		}
		spec := s.spec()
		spec.RequireIsolation = sandboxcore.Some(tier)
		if resolved, err := s.backend.Resolve(s.context(t), spec); err == nil {
			if !resolved.Tier.Tier.Satisfies(tier) {
				t.Errorf("%s is required, and %s was resolved", tier, resolved.Tier.Tier)
			}
			continue
		}
		tests["tier "+tier.String()] = refusal{func(p *sandboxcore.Spec) { p.RequireIsolation = sandboxcore.Some(tier) }, sandboxcore.KindConfiguration, "require_isolation"}
	}
	before := s.count(t, s.owner)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := s.spec()
			test.change(&spec)
			_, resolveErr := s.backend.Resolve(s.context(t), spec)
			sandbox, createErr := sandboxcore.Create(s.context(t), s.backend, spec, ignore)
			if createErr == nil {
				t.Errorf("made %s, %v", sandbox.ID(), sandbox.Kill(s.context(t)))
			}
			for _, err := range []error{resolveErr, createErr} {
				errs := sandboxcore.Errors(err)
				if len(errs) != 1 || errs[0].Kind != test.kind || errs[0].Field != test.field || errs[0].Reason == "" || errs[0].Remedy == "" {
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
	if got := s.create(t, s.spec()).Isolation(); got != resolved.Tier.Tier {
		t.Errorf("isolation %s, resolved %s", got, resolved.Tier.Tier)
	}
	for _, tier := range sandboxcore.IsolationTiers() {
		spec := s.spec()
		spec.RequireIsolation = sandboxcore.Some(tier)
		required, err := s.backend.Resolve(s.context(t), spec)
		if err != nil {
			if tier == resolved.Tier.Tier && tier != sandboxcore.TierUnknown {
				t.Errorf("%s is what a sandbox gets, and requiring it is refused: %v", tier, err)
			}
			continue // what the refusal says is for testRefusals
		}
		if got := required.Tier; got.Tier.More(sandboxcore.TierContainer) {
			if _, err := time.Parse(time.DateOnly, got.Evidence.Date); err != nil || got.Evidence.Document == "" {
				t.Errorf("%s is claimed with evidence %+v", got.Tier, got.Evidence)
			}
		}
		if sandbox := s.create(t, spec); sandbox.Isolation() != required.Tier.Tier || !sandbox.Isolation().Satisfies(tier) {
			t.Errorf("isolation %s, resolved %s, required %s", sandbox.Isolation(), required.Tier.Tier, tier)
		}
	}
}

// testUnreachable: of a backend that doesn't answer nothing is known, least of all
// that a sandbox is gone.
func testUnreachable(t *testing.T, s *suite) {
	const id = "0123456789abcdef"
	b := s.Unreachable(t)
	ctx := s.context(t)
	_, resolve := b.Resolve(ctx, s.spec())
	_, create := b.Create(ctx, s.spec(), sandboxcore.Resolved{})
	_, get := b.Get(ctx, id)
	_, update := b.Update(ctx, id, s.spec(), sandboxcore.Resolved{})
	errs := map[string]error{"resolve": resolve, "create": create, "get": get, "update": update, "kill": b.Kill(ctx, id)}
	if reapable, ok := b.(sandboxcore.ReapableBackend); ok {
		_, errs["list"] = reapable.ListManaged(ctx, sandboxcore.Filter{Owner: s.owner})
		errs["reap"] = reapable.Reap(ctx, s.owner, id)
	}
	for what, err := range errs {
		if !sandboxcore.Is(err, sandboxcore.KindBackendUnavailable) {
			t.Errorf("%s: %v, want BackendUnavailable", what, err)
		}
	}
	if err := errors.Join(b.Close(), b.Close()); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}
