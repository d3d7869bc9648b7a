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
	if resp.Diagnostics.HasError() {
		return
	}
	name, backend, err := r.run.backendOf(config.Backend)
	if errors.Is(err, errUnknownConfiguration) {
		plan.forgetResolved(config)
		resp.Diagnostics.Append(plan.store(ctx, &resp.Plan, resp.Plan.Schema)...)
		return
	}
	spec, specErr := config.spec(r.run, name, r.factories)
	if err := errors.Join(err, specErr); err != nil {
		report(ctx, &resp.Diagnostics, req.Plan.Schema, cannotPlan, err)
		return
	}
	resolved, err := backend.Resolve(withLog(ctx), spec)
	if err != nil {
		report(ctx, &resp.Diagnostics, req.Plan.Schema, cannotPlan, err)
		return
	}
	plan.Backend = types.StringValue(name)
	plan.resolve(config, resolved)
	plan.EffectiveLabels = types.MapUnknown(types.StringType)
	if labels, known := r.run.withDefaults(config.Labels); known {
		plan.EffectiveLabels = mapOf(labels)
	}
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
	if sameDuration(m.TTL, prior.TTL) {
		m.TTL = prior.TTL
	}
}

func sameDuration(a, b types.String) bool {
	x, errX := time.ParseDuration(a.ValueString())
	y, errY := time.ParseDuration(b.ValueString())
	return errX == nil && errY == nil && x == y
}

// forgetResolved leaves unknown whatever only a backend could say.
func (m *sandboxModel) forgetResolved(config sandboxModel) {
	if config.Backend.IsNull() {
		m.Backend = types.StringUnknown()
	}
	if config.Resources.IsNull() {
		m.Resources = types.ObjectUnknown(resourcesTypes)
	}
	if config.Network.IsNull() {
		m.Network = types.ObjectUnknown(networkTypes)
	}
	for _, s := range []*types.String{&m.ID, &m.SandboxID, &m.State, &m.Isolation, &m.ImageID, &m.CreatedAt, &m.ExpiresAt} {
		*s = types.StringUnknown()
	}
	m.EffectiveLabels = types.MapUnknown(types.StringType)
	m.Capabilities = types.ListUnknown(types.StringType)
	m.Enforcement = types.ObjectUnknown(enforcementTypes)
}

// replacedBy returns the attributes whose change the backend can't make in place.
func (m *sandboxModel) replacedBy(prior *sandboxModel, resolved sandboxcore.Resolved) (paths path.Paths) {
	check := func(field string, now, before attr.Value) {
		if now.Equal(before) || slices.Contains(resolved.InPlace, field) {
			return
		}
		p, _ := fieldPath(field)
		paths = append(paths, p)
	}
	check("backend", m.Backend, prior.Backend)
	check("name", m.Name, prior.Name)
	check("image", m.Image, prior.Image)
	check("template_id", m.TemplateID, prior.TemplateID)
	for name, now := range m.Resources.Attributes() {
		check("resources."+name, now, prior.Resources.Attributes()[name])
	}
	for name, now := range m.Network.Attributes() {
		check("network."+name, now, prior.Network.Attributes()[name])
	}
	check("isolation", m.Isolation, prior.Isolation)
	check("command", m.Command, prior.Command)
	check("working_dir", m.WorkingDir, prior.WorkingDir)
	check("user", m.User, prior.User)
	check("env", m.Env, prior.Env)
	check("ttl", m.TTL, prior.TTL)
	for name, now := range m.Options {
		check(name, now, prior.Options[name])
	}
	if !m.EffectiveLabels.Equal(prior.EffectiveLabels) && !slices.Contains(resolved.InPlace, "labels") {
		if m.Labels.Equal(prior.Labels) {
			paths = append(paths, path.Root("effective_labels"))
		} else {
			paths = append(paths, path.Root("labels"))
		}
	}
	return paths
}
