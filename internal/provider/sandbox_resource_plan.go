// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

const cannotPlan = "Unable to plan sandbox"

// ValidateConfig checks what needs no backend. What isn't known yet is left to the plan.
func (r *sandboxResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config sandboxModel
	resp.Diagnostics.Append(config.load(ctx, req.Config, req.Config.Schema, r.factories)...)
	if resp.Diagnostics.HasError() {
		return
	}
	spec, err := config.spec(nil, config.Backend.ValueString(), r.factories)
	err = errors.Join(err, spec.Validate())
	if config.Image.IsNull() && config.TemplateID.IsNull() {
		err = errors.Join(err, sandboxcore.NoTemplate())
	}
	if !config.Readiness.IsNull() && allKnown(config.Readiness) && spec.Readiness.IsZero() {
		err = errors.Join(err, sandboxcore.Configuration("readiness", "there is nothing to probe", "Set exec or tcp_port."))
	}
	report(ctx, &resp.Diagnostics, req.Config.Schema, "Invalid sandbox", err)
}

// ModifyPlan writes into the plan what would be made, and decides between in place and
// replace.
func (r *sandboxResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || r.run == nil {
		return // destroy; or not configured
	}
	var config, plan sandboxModel
	var prior *sandboxModel
	resp.Diagnostics.Append(config.load(ctx, req.Config, req.Config.Schema, r.factories)...)
	resp.Diagnostics.Append(plan.load(ctx, req.Plan, req.Plan.Schema, r.factories)...)
	if !req.State.Raw.IsNull() {
		prior = &sandboxModel{}
		resp.Diagnostics.Append(prior.load(ctx, req.State, req.State.Schema, r.factories)...)
	}
	timeout, diags := plan.Timeouts.Read(ctx, defaultReadTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := bounded(ctx, "timeouts.read", timeout)
	defer cancel()
	name, backend, err := r.run.backendOf(config.Backend)
	if errors.Is(err, errUnknownConfiguration) {
		plan.backendUnknown(name, config, prior)
		plan.label(r.run, config)
		resp.Diagnostics.Append(plan.store(ctx, &resp.Plan, resp.Plan.Schema)...)
		return
	}
	spec, specErr := config.spec(r.run, name, r.factories)
	if err := errors.Join(err, specErr); err != nil {
		report(ctx, &resp.Diagnostics, req.Plan.Schema, cannotPlan, err)
		return
	}
	resolved, err := backend.Resolve(ctx, spec)
	if err != nil {
		report(ctx, &resp.Diagnostics, req.Plan.Schema, cannotPlan, err)
		return
	}
	plan.Backend = types.StringValue(name)
	plan.resolve(config, resolved)
	plan.label(r.run, config)
	if prior == nil {
		plan.fresh(resolved)
	} else {
		plan.keep(prior)
		resp.RequiresReplace = append(resp.RequiresReplace, plan.replacedBy(prior, resolved)...)
		if !plan.State.Equal(prior.State) && prior.expired(time.Now()) {
			// It would end at once if it were started again.
			warnExpired(&resp.Diagnostics, *prior)
			resp.RequiresReplace = append(resp.RequiresReplace, path.Root("state"))
		}
	}
	resp.Diagnostics.Append(plan.store(ctx, &resp.Plan, resp.Plan.Schema)...)
}

// resolve writes what is in effect; what depends on something unknown stays unknown.
func (m *sandboxModel) resolve(config sandboxModel, resolved sandboxcore.Resolved) {
	m.Resources = resourcesValue(resolved.Resources, config.Resources)
	m.Network = networkValue(resolved.Network, config.Network)
	m.Capabilities = listOf(resolved.Capabilities.Names())
	m.Isolation = types.StringValue(resolved.Tier.Tier.String())
	if config.RequireIsolation.IsUnknown() {
		m.Isolation = types.StringUnknown()
	}
	m.Enforcement = enforcementValue(resolved.Enforcement)
	if !allKnown(config.Resources) || !allKnown(config.Network) {
		m.Enforcement = types.ObjectUnknown(enforcementTypes)
	}
}

// fresh plans what a sandbox that doesn't exist yet will have.
func (m *sandboxModel) fresh(resolved sandboxcore.Resolved) {
	m.ID, m.SandboxID, m.CreatedAt, m.ImageID = types.StringUnknown(), types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
	if resolved.Template.ID != "" && !m.Image.IsUnknown() && !m.TemplateID.IsUnknown() {
		m.ImageID = types.StringValue(resolved.Template.ID)
	}
	m.State = types.StringValue(string(sandboxcore.ManagedRunning))
	m.ExpiresAt = types.StringUnknown()
	if m.TTL.IsNull() {
		m.ExpiresAt = types.StringNull()
	}
}

// keep plans an existing sandbox: it stays what it is, and runs.
func (m *sandboxModel) keep(prior *sandboxModel) {
	m.ID, m.SandboxID, m.CreatedAt, m.ImageID, m.ExpiresAt = prior.ID, prior.SandboxID, prior.CreatedAt, prior.ImageID, prior.ExpiresAt
	m.State = types.StringValue(string(sandboxcore.ManagedRunning))
	switch {
	case sameDuration(m.TTL, prior.TTL):
		m.TTL = prior.TTL
	case m.TTL.IsNull():
		m.ExpiresAt = types.StringNull()
	default:
		m.ExpiresAt = types.StringUnknown()
	}
}

func sameDuration(a, b types.String) bool {
	x, errX := time.ParseDuration(a.ValueString())
	y, errY := time.ParseDuration(b.ValueString())
	return a.Equal(b) || errX == nil && errY == nil && x == y
}

// label plans the labels that come of the provider's and the sandbox's own.
func (m *sandboxModel) label(r *run, config sandboxModel) {
	m.EffectiveLabels = types.MapUnknown(types.StringType)
	if labels, known := r.withDefaults(config.Labels); known {
		m.EffectiveLabels = mapOf(labels)
	}
}

// backendUnknown plans while nothing may be asked of the backend: what only it could
// say stays unknown. A sandbox that exists stays the same one, and is planned as an
// update, so that what hangs on it waits for the apply, which plans again.
func (m *sandboxModel) backendUnknown(name string, config sandboxModel, prior *sandboxModel) {
	if prior == nil {
		m.fresh(sandboxcore.Resolved{})
	} else {
		m.keep(prior)
	}
	m.Backend = config.Backend
	if m.Backend.IsNull() {
		m.Backend = types.StringUnknown()
		if name != "" {
			m.Backend = types.StringValue(name)
		}
	}
	m.State, m.Isolation = types.StringUnknown(), types.StringUnknown()
	m.Resources = unknownBut(config.Resources, resourcesTypes)
	m.Network = unknownBut(config.Network, networkTypes)
	m.Capabilities = types.ListUnknown(types.StringType)
	m.Enforcement = types.ObjectUnknown(enforcementTypes)
}

// change is a field of the sandbox that isn't what it was.
type change struct {
	// field is the core's name of it, and at the attribute that shows it.
	field, at string
}

// replacedBy returns the attributes whose change the backend can't make in place.
func (m *sandboxModel) replacedBy(prior *sandboxModel, resolved sandboxcore.Resolved) (paths path.Paths) {
	for _, c := range m.changes(prior) {
		if p, ok := fieldPath(c.at); ok && !slices.Contains(resolved.InPlace, c.field) {
			paths = append(paths, p)
		}
	}
	return paths
}

// changes are those that concern the backend: timeouts, readiness and
// require_isolation are Terraform's alone, but for a tier that they change.
func (m *sandboxModel) changes(prior *sandboxModel) (all []change) {
	check := func(field, at string, now, before attr.Value) {
		if !same(now, before) {
			all = append(all, change{field, at})
		}
	}
	for field, v := range map[string][2]attr.Value{
		"backend": {m.Backend, prior.Backend}, "name": {m.Name, prior.Name},
		"image": {m.Image, prior.Image}, "template_id": {m.TemplateID, prior.TemplateID},
		"command": {m.Command, prior.Command}, "working_dir": {m.WorkingDir, prior.WorkingDir}, "user": {m.User, prior.User},
		"env": {m.Env, prior.Env}, "ttl": {m.TTL, prior.TTL},
	} {
		check(field, field, v[0], v[1])
	}
	nested := map[string][2]types.Object{"resources": {m.Resources, prior.Resources}, "network": {m.Network, prior.Network}}
	for backend, now := range m.Options {
		nested[backend] = [2]types.Object{now, prior.Options[backend]}
	}
	for field, v := range nested {
		now, before := v[0], v[1]
		if now.IsUnknown() {
			all = append(all, change{field, field})
			continue
		}
		for name := range now.AttributeTypes(context.Background()) {
			check(field+"."+name, field+"."+name, now.Attributes()[name], before.Attributes()[name])
		}
	}
	isolation := "isolation"
	if !m.RequireIsolation.Equal(prior.RequireIsolation) {
		isolation = "require_isolation"
	}
	check("isolation", isolation, m.Isolation, prior.Isolation)
	labels := "labels"
	if m.Labels.Equal(prior.Labels) {
		labels = "effective_labels" // the provider's defaults have changed
	}
	check("labels", labels, m.EffectiveLabels, prior.EffectiveLabels)
	return all
}

// same says whether both ask for the same. A backend can't tell null from empty or zero.
func same(now, before attr.Value) bool {
	if leftOut(now) || leftOut(before) {
		return leftOut(now) && leftOut(before)
	}
	return now.Equal(before)
}

func leftOut(v attr.Value) bool {
	switch v := v.(type) {
	case nil:
		return true
	case types.List:
		return !v.IsUnknown() && len(v.Elements()) == 0
	case types.Map:
		return !v.IsUnknown() && len(v.Elements()) == 0
	case types.Bool:
		return !v.IsUnknown() && !v.ValueBool()
	case types.Int64:
		return !v.IsUnknown() && v.ValueInt64() == 0
	case types.String:
		return !v.IsUnknown() && v.ValueString() == ""
	}
	return v.IsNull()
}
