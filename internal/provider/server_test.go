// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore/backend/fake"
)

// The tests in this file's company speak to the provider in process, as Terraform
// does, in milliseconds. What the CLI makes of it is for the acceptance tests.

// stub is a fake with an offer that a test may change.
type stub struct {
	*fake.Backend
	offer func(*sandboxcore.Offer)
	// look changes what the backend says of what exists.
	look func(*sandboxcore.Info)
	exec func(sandboxcore.Command) (sandboxcore.ExecResult, error)
	// fail is what it answers to Resolve and LookupTemplate.
	fail error
	// caps are those of every template, and onlyID the one template id that there is beside
	// those of images; "": any.
	caps   sandboxcore.Resources
	onlyID string

	mu      sync.Mutex
	made    map[string]made
	updates int
}

// made is what a sandbox was made from, beside what the fake keeps.
type made struct {
	spec     sandboxcore.Spec
	resolved sandboxcore.Resolved
}

// stubSandbox is as it was asked for.
type stubSandbox struct {
	sandboxcore.Sandbox
	made made
	look func(*sandboxcore.Info)
	exec func(sandboxcore.Command) (sandboxcore.ExecResult, error)
}

func (s stubSandbox) Capabilities() sandboxcore.Capability { return s.made.resolved.Capabilities }

func (s stubSandbox) Info() sandboxcore.Info {
	info := s.Sandbox.Info()
	info.Enforcement = s.made.resolved.Enforcement
	info.Readiness, info.Options = s.made.spec.Readiness, s.made.spec.Options
	if s.look != nil {
		s.look(&info)
	}
	return info
}

func (s stubSandbox) Exec(_ context.Context, cmd sandboxcore.Command) (sandboxcore.ExecResult, error) {
	return s.exec(cmd)
}

// ProbeTCP finds every port open, so that a test with a command doesn't wait.
func (s stubSandbox) ProbeTCP(context.Context, int) error { return nil }

func (s *stub) Create(ctx context.Context, spec sandboxcore.Spec, resolved sandboxcore.Resolved) (sandboxcore.Sandbox, error) {
	sandbox, err := s.Backend.Create(ctx, spec, resolved)
	return s.as(sandbox, err, &made{spec, resolved})
}

func (s *stub) Update(ctx context.Context, id string, spec sandboxcore.Spec, resolved sandboxcore.Resolved) (sandboxcore.Sandbox, error) {
	sandbox, err := s.Backend.Update(ctx, id, spec, resolved)
	s.mu.Lock()
	s.updates++
	s.mu.Unlock()
	return s.as(sandbox, err, &made{spec, resolved})
}

func (s *stub) Get(ctx context.Context, id string) (sandboxcore.Sandbox, error) {
	sandbox, err := s.Backend.Get(ctx, id)
	return s.as(sandbox, err, nil)
}

func (s *stub) as(sandbox sandboxcore.Sandbox, err error, now *made) (sandboxcore.Sandbox, error) {
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now != nil {
		s.made[sandbox.ID()] = *now
	}
	return stubSandbox{sandbox, s.made[sandbox.ID()], s.look, s.exec}, nil
}

func (s *stub) LookupTemplate(ctx context.Context, t sandboxcore.Template) (sandboxcore.TemplateInfo, error) {
	if s.fail != nil {
		return sandboxcore.TemplateInfo{}, s.fail
	}
	if s.onlyID != "" && t.ID != "" && t.ID != s.onlyID && !strings.HasPrefix(t.ID, fake.Name+":") {
		return sandboxcore.TemplateInfo{}, sandboxcore.Errorf(sandboxcore.KindNotFound, "no template %q", t.ID)
	}
	info, err := s.Backend.LookupTemplate(ctx, t)
	info.Resources = s.caps
	return info, err
}

func (s *stub) Resolve(_ context.Context, spec sandboxcore.Spec) (sandboxcore.Resolved, error) {
	if s.fail != nil {
		return sandboxcore.Resolved{}, s.fail
	}
	offer := sandboxcore.Offer{
		Backend: "stub", Capabilities: sandboxcore.RunCommand | sandboxcore.NetworkPolicies,
		Tiers:       []sandboxcore.TierOffer{{Tier: sandboxcore.TierContainer, Runtime: "runc"}},
		MaxCPU:      2,
		MinMemoryMB: 6, MaxMemoryMB: 4096,
		DiskRefusal: "no quota", AllowListRefusal: "no filter", IngressRefusal: "no relay",
		EgressEnforcement: map[sandboxcore.Egress]string{sandboxcore.EgressDeny: "no network", sandboxcore.EgressAllow: "bridge"},
		Enforcement:       sandboxcore.Enforcement{CPU: "cgroup", Memory: "cgroup", Disk: "quota", Pids: "cgroup"},
		InPlace:           []string{"resources.cpu", "resources.memory_mb"},
	}
	if spec.Template.Image != "" {
		offer.Template.ID = "sha256:" + spec.Template.Image
	}
	if s.offer != nil {
		s.offer(&offer)
	}
	return sandboxcore.Admit(spec, offer)
}

// harness is one provider process.
type harness struct {
	t       *testing.T
	server  tfprotov6.ProviderServer
	schema  *tfprotov6.GetProviderSchemaResponse
	backend *stub
	opened  int
}

// object is a configuration in Go's terms: nil is null, and unknown is unknown.
type object = map[string]any

type unknownValue struct{}

var unknown = unknownValue{}

func newHarness(t *testing.T, providerConfig object) *harness {
	t.Helper()
	h := &harness{t: t, backend: &stub{Backend: fake.New(t.TempDir()), made: map[string]made{}}}
	factories := []sandboxcore.Factory{{
		Name:           "stub",
		Settings:       []sandboxcore.Setting{{Name: "host", Kind: sandboxcore.StringSetting}, {Name: "refuse", Kind: sandboxcore.BoolSetting}},
		SandboxOptions: []sandboxcore.Setting{{Name: "read_only", Kind: sandboxcore.BoolSetting}, {Name: "caps", Kind: sandboxcore.StringListSetting}},
		Open: func(s sandboxcore.Settings) (sandboxcore.Backend, error) {
			h.opened++
			if s.Bool("refuse") {
				return nil, sandboxcore.Configuration("stub.refuse", "it was told to refuse", "Don't.")
			}
			return h.backend, nil
		},
	}, fake.Factory()}
	server, err := providerserver.NewProtocol6WithError(New(factories)())()
	h.must(err)
	h.server = server
	h.schema, err = server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	h.must(err)
	if providerConfig == nil {
		providerConfig = object{"default_backend": "stub"}
	}
	configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: h.encode(h.schema.Provider, h.value(h.schema.Provider, providerConfig))})
	h.must(err)
	h.noErrors(configured.Diagnostics)
	return h
}

func (h *harness) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) noErrors(diags []*tfprotov6.Diagnostic) {
	h.t.Helper()
	if found := problems(diags); len(found) > 0 {
		h.t.Fatalf("diagnostics: %v", found)
	}
}

// problems are the errors among diags, each as "path: summary: detail".
func problems(diags []*tfprotov6.Diagnostic) (found []string) {
	for _, d := range diags {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			p := ""
			if d.Attribute != nil {
				for _, step := range d.Attribute.Steps() {
					switch step := step.(type) {
					case tftypes.AttributeName:
						p += "." + string(step)
					case tftypes.ElementKeyInt:
						p += fmt.Sprintf("[%d]", int64(step))
					case tftypes.ElementKeyString:
						p += fmt.Sprintf("[%q]", string(step))
					}
				}
			}
			found = append(found, strings.TrimPrefix(p, ".")+": "+d.Summary+": "+d.Detail)
		}
	}
	slices.Sort(found)
	return found
}

// warnings are the summaries of the warnings among diags.
func warnings(diags []*tfprotov6.Diagnostic) (found []string) {
	for _, d := range diags {
		if d.Severity == tfprotov6.DiagnosticSeverityWarning {
			found = append(found, d.Summary)
		}
	}
	return found
}

func (h *harness) value(schema *tfprotov6.Schema, o object) tftypes.Value {
	return toValue(h.t, schema.ValueType(), o)
}

func toValue(t *testing.T, typ tftypes.Type, v any) tftypes.Value {
	t.Helper()
	switch v.(type) {
	case nil:
		return tftypes.NewValue(typ, nil)
	case unknownValue:
		return tftypes.NewValue(typ, tftypes.UnknownValue)
	}
	switch typ := typ.(type) {
	case tftypes.Object:
		given := as[object](t, v)
		for name := range given {
			if _, ok := typ.AttributeTypes[name]; !ok {
				t.Fatalf("there is no attribute %q", name)
			}
		}
		values := map[string]tftypes.Value{}
		for name, inner := range typ.AttributeTypes {
			values[name] = toValue(t, inner, given[name])
		}
		return tftypes.NewValue(typ, values)
	case tftypes.Map:
		values := map[string]tftypes.Value{}
		for name, inner := range as[object](t, v) {
			values[name] = toValue(t, typ.ElementType, inner)
		}
		return tftypes.NewValue(typ, values)
	case tftypes.List:
		values := []tftypes.Value{}
		for _, inner := range as[[]any](t, v) {
			values = append(values, toValue(t, typ.ElementType, inner))
		}
		return tftypes.NewValue(typ, values)
	}
	return tftypes.NewValue(typ, v)
}

// toGo is the inverse of toValue.
func toGo(t *testing.T, v tftypes.Value) any {
	t.Helper()
	if !v.IsKnown() {
		return unknown
	}
	if v.IsNull() {
		return nil
	}
	switch typ := v.Type(); {
	case typ.Is(tftypes.String):
		return get[string](t, v)
	case typ.Is(tftypes.Bool):
		return get[bool](t, v)
	case typ.Is(tftypes.Number):
		f := get[big.Float](t, v)
		n, _ := f.Float64()
		return n
	case typ.Is(tftypes.List{}):
		list := []any{}
		for _, e := range get[[]tftypes.Value](t, v) {
			list = append(list, toGo(t, e))
		}
		return list
	default:
		o := object{}
		for name, e := range get[map[string]tftypes.Value](t, v) {
			o[name] = toGo(t, e)
		}
		return o
	}
}

func get[T any](t *testing.T, v tftypes.Value) T {
	t.Helper()
	var got T
	if err := v.As(&got); err != nil {
		t.Fatal(err)
	}
	return got
}

func as[T any](t *testing.T, v any) T {
	t.Helper()
	got, ok := v.(T)
	if !ok {
		t.Fatalf("%v is a %T", v, v)
	}
	return got
}

func (h *harness) encode(schema *tfprotov6.Schema, v tftypes.Value) *tfprotov6.DynamicValue {
	h.t.Helper()
	encoded, err := tfprotov6.NewDynamicValue(schema.ValueType(), v)
	h.must(err)
	return &encoded
}

func (h *harness) decode(schema *tfprotov6.Schema, v *tfprotov6.DynamicValue) tftypes.Value {
	h.t.Helper()
	decoded, err := v.Unmarshal(schema.ValueType())
	h.must(err)
	return decoded
}

// resourceUnderTest is one resource in the hands of a harness, as Terraform keeps it.
type resourceUnderTest struct {
	*harness
	typeName string
	schema   *tfprotov6.Schema
	state    tftypes.Value
	private  []byte
	// warnings are those of the last read.
	warnings []string
}

func (h *harness) resource(typeName string) *resourceUnderTest {
	schema := h.schema.ResourceSchemas[typeName]
	return &resourceUnderTest{harness: h, typeName: typeName, schema: schema, state: tftypes.NewValue(schema.ValueType(), nil)}
}

func (r *resourceUnderTest) validate(config object) []string {
	r.t.Helper()
	resp, err := r.server.ValidateResourceConfig(r.t.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: r.typeName, Config: r.encode(r.schema, r.value(r.schema, config)),
	})
	r.must(err)
	return problems(resp.Diagnostics)
}

// planned is the answer to a plan.
type planned struct {
	after    object
	value    tftypes.Value
	replaces []string
	problems []string
	warnings []string
	private  []byte
}

func (r *resourceUnderTest) plan(config object) planned {
	r.t.Helper()
	given := r.value(r.schema, config)
	resp, err := r.server.PlanResourceChange(r.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: r.typeName, Config: r.encode(r.schema, given), PriorState: r.encode(r.schema, r.state),
		ProposedNewState: r.encode(r.schema, r.proposed(given)), PriorPrivate: r.private,
	})
	r.must(err)
	p := planned{problems: problems(resp.Diagnostics), private: resp.PlannedPrivate}
	p.warnings = warnings(resp.Diagnostics)
	for _, path := range resp.RequiresReplace {
		var names []string
		for _, step := range path.Steps() {
			names = append(names, string(as[tftypes.AttributeName](r.t, step)))
		}
		p.replaces = append(p.replaces, strings.Join(names, "."))
	}
	slices.Sort(p.replaces)
	p.replaces = slices.Compact(p.replaces)
	if len(p.problems) == 0 {
		p.value = r.decode(r.schema, resp.PlannedState)
		p.after, _ = toGo(r.t, p.value).(object)
	}
	return p
}

// proposed is what Terraform proposes: the configuration, with the prior value where
// it says nothing about a computed attribute.
func (r *resourceUnderTest) proposed(config tftypes.Value) tftypes.Value {
	return propose(r.t, r.schema.Block.Attributes, config, r.state)
}

func propose(t *testing.T, attributes []*tfprotov6.SchemaAttribute, config, prior tftypes.Value) tftypes.Value {
	t.Helper()
	var given, before map[string]tftypes.Value
	if err := config.As(&given); err != nil {
		t.Fatal(err)
	}
	if !prior.IsNull() {
		if err := prior.As(&before); err != nil {
			t.Fatal(err)
		}
	}
	proposed := map[string]tftypes.Value{}
	for _, a := range attributes {
		v := given[a.Name]
		was, ok := before[a.Name]
		if !ok {
			was = tftypes.NewValue(v.Type(), nil)
		}
		switch {
		case v.IsNull() && a.Computed:
			v = was
		case a.NestedType != nil && a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeSingle && v.IsKnown() && !v.IsNull():
			v = propose(t, a.NestedType.Attributes, v, was)
		}
		proposed[a.Name] = v
	}
	return tftypes.NewValue(config.Type(), proposed)
}

// apply plans and applies, and checks what Terraform checks: nothing of a known plan
// may come out otherwise.
func (r *resourceUnderTest) apply(config object) (object, []string) {
	r.t.Helper()
	p := r.plan(config)
	if len(p.problems) > 0 {
		r.t.Fatalf("plan: %v", p.problems)
	}
	if len(p.replaces) > 0 {
		r.t.Fatalf("plan: replaced by %v", p.replaces)
	}
	resp, err := r.server.ApplyResourceChange(r.t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: r.typeName, Config: r.encode(r.schema, r.value(r.schema, config)), PriorState: r.encode(r.schema, r.state),
		PlannedState: r.encode(r.schema, p.value), PlannedPrivate: p.private,
	})
	r.must(err)
	r.state, r.private = r.decode(r.schema, resp.NewState), resp.Private
	after, _ := toGo(r.t, r.state).(object)
	if found := problems(resp.Diagnostics); len(found) > 0 {
		return after, found
	}
	for name, want := range p.after {
		if !sameWherePlanned(want, after[name]) {
			r.t.Errorf("%s: planned %v, made %v", name, want, after[name])
		}
	}
	return after, nil
}

func sameWherePlanned(plan, made any) bool {
	switch plan := plan.(type) {
	case unknownValue:
		return made != unknown
	case object:
		inner, ok := made.(object)
		if !ok || len(inner) != len(plan) {
			return false
		}
		for name := range plan {
			if !sameWherePlanned(plan[name], inner[name]) {
				return false
			}
		}
		return true
	}
	return fmt.Sprint(plan) == fmt.Sprint(made)
}

// read refreshes the state, which is nil where the sandbox is gone.
func (r *resourceUnderTest) read() (object, []string) {
	r.t.Helper()
	resp, err := r.server.ReadResource(r.t.Context(), &tfprotov6.ReadResourceRequest{TypeName: r.typeName, CurrentState: r.encode(r.schema, r.state), Private: r.private})
	r.must(err)
	r.warnings = warnings(resp.Diagnostics)
	if found := problems(resp.Diagnostics); len(found) > 0 {
		return nil, found
	}
	r.state = r.decode(r.schema, resp.NewState)
	after, _ := toGo(r.t, r.state).(object)
	return after, nil
}

func (r *resourceUnderTest) destroy() []string {
	r.t.Helper()
	null := tftypes.NewValue(r.schema.ValueType(), nil)
	resp, err := r.server.ApplyResourceChange(r.t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: r.typeName, Config: r.encode(r.schema, null), PriorState: r.encode(r.schema, r.state), PlannedState: r.encode(r.schema, null),
	})
	r.must(err)
	r.state = r.decode(r.schema, resp.NewState)
	return problems(resp.Diagnostics)
}

func (r *resourceUnderTest) importID(id string) []string {
	r.t.Helper()
	resp, err := r.server.ImportResourceState(r.t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: r.typeName, ID: id})
	r.must(err)
	if found := problems(resp.Diagnostics); len(found) > 0 {
		return found
	}
	r.state = r.decode(r.schema, resp.ImportedResources[0].State)
	return nil
}

func configureRequest(h *harness, config object) *tfprotov6.ConfigureProviderRequest {
	return &tfprotov6.ConfigureProviderRequest{Config: h.encode(h.schema.Provider, h.value(h.schema.Provider, config))}
}

const execType = "sandboxio_exec"

func (h *harness) validateExec(config object) []string {
	h.t.Helper()
	schema := h.schema.DataSourceSchemas[execType]
	resp, err := h.server.ValidateDataResourceConfig(h.t.Context(), &tfprotov6.ValidateDataResourceConfigRequest{
		TypeName: execType, Config: h.encode(schema, h.value(schema, config)),
	})
	h.must(err)
	return problems(resp.Diagnostics)
}

func (h *harness) readExec(config object) (object, []string) {
	h.t.Helper()
	schema := h.schema.DataSourceSchemas[execType]
	resp, err := h.server.ReadDataSource(h.t.Context(), &tfprotov6.ReadDataSourceRequest{
		TypeName: execType, Config: h.encode(schema, h.value(schema, config)),
	})
	h.must(err)
	if found := problems(resp.Diagnostics); len(found) > 0 {
		return nil, found
	}
	return as[object](h.t, toGo(h.t, h.decode(schema, resp.State))), nil
}
