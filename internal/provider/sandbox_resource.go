// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

var (
	_ resource.ResourceWithConfigure      = (*sandboxResource)(nil)
	_ resource.ResourceWithValidateConfig = (*sandboxResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*sandboxResource)(nil)
	_ resource.ResourceWithImportState    = (*sandboxResource)(nil)
)

// sandboxResource is sandboxio_sandbox.
type sandboxResource struct {
	factories []sandboxcore.Factory
	run       *run
}

// The bounds of operations whose timeouts say nothing.
const (
	defaultCreateTimeout = 10 * time.Minute
	defaultReadTimeout   = 2 * time.Minute
	defaultUpdateTimeout = 10 * time.Minute
	defaultDeleteTimeout = 5 * time.Minute
)

func (r *sandboxResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = TypeName + "_sandbox"
}

func (r *sandboxResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.run = configured(req.ProviderData, &resp.Diagnostics)
}

func (r *sandboxResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	const summary = "Unable to create sandbox"
	var plan sandboxModel
	resp.Diagnostics.Append(plan.load(ctx, req.Plan, req.Plan.Schema, r.factories)...)
	timeout, diags := plan.Timeouts.Create(ctx, defaultCreateTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := bounded(ctx, "timeouts.create", timeout)
	defer cancel()
	backend, spec, err := r.asked(plan)
	if err != nil {
		report(ctx, &resp.Diagnostics, req.Plan.Schema, summary, err)
		return
	}
	sandbox, err := sandboxcore.Create(ctx, backend, spec, warn(&resp.Diagnostics))
	if err != nil {
		report(ctx, &resp.Diagnostics, req.Plan.Schema, summary, err)
	}
	if sandbox == nil {
		return
	}
	// Beside an error it's one that couldn't be removed: in the state it's tainted, and not lost.
	plan.observe(sandbox.Info(), sandbox.Capabilities(), r.run)
	resp.Diagnostics.Append(plan.store(ctx, &resp.State, resp.State.Schema)...)
}

// asked is what a fully known model asks of which backend.
func (r *sandboxResource) asked(m sandboxModel) (sandboxcore.Backend, sandboxcore.Spec, error) {
	name, backend, err := r.run.backendOf(m.Backend)
	if err != nil {
		return nil, sandboxcore.Spec{}, err
	}
	spec, err := m.spec(r.run, name, r.factories)
	return backend, spec, err
}

func (r *sandboxResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	const summary = "Unable to read sandbox"
	var state sandboxModel
	resp.Diagnostics.Append(state.load(ctx, req.State, req.State.Schema, r.factories)...)
	timeout, diags := state.Timeouts.Read(ctx, defaultReadTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := bounded(ctx, "timeouts.read", timeout)
	defer cancel()
	_, backend, err := r.run.backendOf(state.Backend)
	if errors.Is(err, errUnknownConfiguration) {
		warnNotRefreshed(&resp.Diagnostics, state.ID)
		return
	}
	var sandbox sandboxcore.Sandbox
	if err == nil {
		sandbox, err = backend.Get(ctx, state.SandboxID.ValueString())
	}
	switch {
	case sandboxcore.Is(err, sandboxcore.KindNotFound):
		if state.expired(time.Now()) {
			warnExpired(&resp.Diagnostics, state)
		}
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		report(ctx, &resp.Diagnostics, req.State.Schema, summary, err)
		return
	}
	state.observe(sandbox.Info(), sandbox.Capabilities(), r.run)
	resp.Diagnostics.Append(state.store(ctx, &resp.State, resp.State.Schema)...)
}

func (m *sandboxModel) expired(now time.Time) bool {
	expires, err := time.Parse(time.RFC3339, m.ExpiresAt.ValueString())
	return err == nil && !now.Before(expires)
}

func warnExpired(diags *diag.Diagnostics, state sandboxModel) {
	diags.AddWarning("Sandbox expired", fmt.Sprintf("The time to live of sandbox %s ended at %s, so it is planned anew. Raise ttl if it is to live longer.",
		state.ID.ValueString(), state.ExpiresAt.ValueString()))
}

func (r *sandboxResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	const summary = "Unable to update sandbox"
	var plan, prior sandboxModel
	resp.Diagnostics.Append(plan.load(ctx, req.Plan, req.Plan.Schema, r.factories)...)
	resp.Diagnostics.Append(prior.load(ctx, req.State, req.State.Schema, r.factories)...)
	timeout, diags := plan.Timeouts.Update(ctx, defaultUpdateTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := bounded(ctx, "timeouts.update", timeout)
	defer cancel()
	backend, spec, err := r.asked(plan)
	if err != nil {
		report(ctx, &resp.Diagnostics, req.Plan.Schema, summary, err)
		return
	}
	if len(plan.changes(&prior)) == 0 && plan.State.Equal(prior.State) && plan.Enforcement.Equal(prior.Enforcement) {
		resp.Diagnostics.Append(plan.store(ctx, &resp.State, resp.State.Schema)...)
		return
	}
	sandbox, err := sandboxcore.Update(ctx, backend, plan.SandboxID.ValueString(), spec)
	if err != nil {
		report(ctx, &resp.Diagnostics, req.Plan.Schema, summary, err)
		return
	}
	plan.observe(sandbox.Info(), sandbox.Capabilities(), r.run)
	resp.Diagnostics.Append(plan.store(ctx, &resp.State, resp.State.Schema)...)
}

func (r *sandboxResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	const summary = "Unable to destroy sandbox"
	var state sandboxModel
	resp.Diagnostics.Append(state.load(ctx, req.State, req.State.Schema, r.factories)...)
	timeout, diags := state.Timeouts.Delete(ctx, defaultDeleteTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := bounded(ctx, "timeouts.delete", timeout)
	defer cancel()
	_, backend, err := r.run.backendOf(state.Backend)
	if err == nil {
		err = backend.Kill(ctx, state.SandboxID.ValueString())
	}
	if err != nil {
		report(ctx, &resp.Diagnostics, req.State.Schema, summary, err)
	}
}

// ImportState takes "<backend>/<sandbox id or name>" and reads everything that the
// backend can tell, so that the next plan is empty.
func (r *sandboxResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	const summary = "Unable to import sandbox"
	ctx, cancel := bounded(ctx, "timeouts.read", defaultReadTimeout)
	defer cancel()
	var state sandboxModel
	// Null values of the right types to begin with.
	resp.Diagnostics.Append(state.load(ctx, resp.State, resp.State.Schema, r.factories)...)
	name, id, err := sandboxcore.ParseID(req.ID)
	if err == nil {
		err = r.importInto(ctx, &state, name, id)
	}
	if err != nil {
		for _, e := range sandboxcore.Errors(err) {
			resp.Diagnostics.AddError(summary+": "+string(e.Kind), explain(e))
		}
		return
	}
	resp.Diagnostics.Append(state.store(ctx, &resp.State, resp.State.Schema)...)
}

func (r *sandboxResource) importInto(ctx context.Context, state *sandboxModel, name, id string) error {
	backend, err := r.run.backend(name)
	if err != nil {
		return err
	}
	sandbox, err := backend.Get(ctx, id)
	if err != nil {
		return err
	}
	info := sandbox.Info()
	state.Backend = types.StringValue(name)
	state.imported(info, name, r.factories)
	state.observe(info, sandbox.Capabilities(), r.run)
	return nil
}

// observe writes into the model what the backend says.
func (m *sandboxModel) observe(info sandboxcore.Info, capabilities sandboxcore.Capability, r *run) {
	m.ID = types.StringValue(sandboxcore.FormatID(m.Backend.ValueString(), info.ID))
	m.SandboxID = types.StringValue(info.ID)
	m.State = types.StringValue(string(info.State))
	m.Isolation = types.StringValue(info.Isolation.String())
	m.ImageID = types.StringValue(info.TemplateID)
	m.CreatedAt, m.ExpiresAt = timeValue(info.CreatedAt), timeValue(info.ExpiresAt)
	m.Capabilities = listOf(capabilities.Names())
	m.Enforcement = enforcementValue(info.Enforcement)
	m.Resources = resourcesValue(info.Resources, types.ObjectNull(resourcesTypes))
	m.Network = networkValue(info.Network, types.ObjectNull(networkTypes))
	m.Name = textValue(info.Name)
	m.Image, m.TemplateID = textValue(info.Template.Image), textValue(info.Template.ID)
	m.WorkingDir, m.User = textValue(info.WorkingDir), textValue(info.User)
	// Null and empty are the same to a backend, so what was written stays.
	if len(info.Command) > 0 || len(m.Command.Elements()) > 0 {
		m.Command = listOf(info.Command)
	}
	if len(info.Env) > 0 || len(m.Env.Elements()) > 0 {
		m.Env = mapOf(info.Env)
	}
	own, _ := stringMap(m.Labels)
	defaults, _ := stringMap(r.defaultLabels)
	labels := map[string]string{}
	for key, value := range info.Labels {
		if _, mine := own[key]; mine || defaults[key] != value {
			labels[key] = value
		}
	}
	if len(labels) > 0 || len(own) > 0 {
		m.Labels = mapOf(labels)
	}
	m.EffectiveLabels = mapOf(info.Labels)
}

// imported writes what only the creator's record tells; later reads keep the configuration's.
func (m *sandboxModel) imported(info sandboxcore.Info, backend string, factories []sandboxcore.Factory) {
	if info.TTL > 0 {
		m.TTL = types.StringValue(shortDuration(info.TTL))
	}
	m.Readiness = readinessValue(info.Readiness)
	if f, ok := factory(factories, backend); ok && len(f.SandboxOptions) > 0 {
		m.Options[backend] = fromSettings(info.Options, f.SandboxOptions)
	}
}

// shortDuration writes 1h0m0s as 1h.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func textValue(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}
