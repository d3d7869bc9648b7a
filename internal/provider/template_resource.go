// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

var (
	_ resource.ResourceWithConfigure      = (*templateResource)(nil)
	_ resource.ResourceWithValidateConfig = (*templateResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*templateResource)(nil)
	_ resource.ResourceWithImportState    = (*templateResource)(nil)
)

// defaultPullTimeout bounds a creation whose timeouts say nothing.
const defaultPullTimeout = 30 * time.Minute

// templateResource is sandboxio_template.
type templateResource struct {
	factories []sandboxcore.Factory
	run       *run
}

type templateModel struct {
	Backend    types.String   `tfsdk:"backend"`
	Image      types.String   `tfsdk:"image"`
	TemplateID types.String   `tfsdk:"template_id"`
	PullPolicy types.String   `tfsdk:"pull_policy"`
	ID         types.String   `tfsdk:"id"`
	Digest     types.String   `tfsdk:"digest"`
	Resources  types.Object   `tfsdk:"resources"`
	Timeouts   timeouts.Value `tfsdk:"timeouts"`
}

func (r *templateResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = TypeName + "_template"
}

func (r *templateResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.run = configured(req.ProviderData, &resp.Diagnostics)
}

func (r *templateResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	names := backendNames(r.factories)
	capOf := func(description string) string {
		return description + " Null where the cap belongs to the sandbox, as on Docker."
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A base environment, made available on its backend before sandboxes need it. Destroying it removes nothing: an image may be in use by others.",
		Attributes: map[string]schema.Attribute{
			"backend": schema.StringAttribute{
				MarkdownDescription: "Backend that holds the template: " + oneOf(names) + ". Default: the provider's `default_backend`. A change replaces.",
				Optional:            true, Computed: true,
				Validators: []validator.String{stringvalidator.OneOf(names...)},
			},
			"image": schema.StringAttribute{
				MarkdownDescription: "Container image reference. Exactly one of `image` and `template_id` is set. A change replaces.",
				Optional:            true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)}, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"template_id": schema.StringAttribute{
				MarkdownDescription: "The backend's own id, which a sandbox's `template_id` takes. On Docker the image id (`sha256:…`); for an `image` it is known at plan if the engine has it. A change replaces.",
				Optional:            true, Computed: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)}, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplaceIfConfigured()},
			},
			"pull_policy": schema.StringAttribute{
				MarkdownDescription: "When the image is fetched at creation: " + oneOf(sandboxcore.PullPolicies) + ". Default: `missing`. A change is in place.",
				Optional:            true, Computed: true, Default: stringdefault.StaticString(string(sandboxcore.PullMissing)),
				Validators: []validator.String{stringvalidator.OneOf(plain(sandboxcore.PullPolicies)...)},
			},
			"id": schema.StringAttribute{MarkdownDescription: "`<backend>/<template id>`.", Computed: true},
			"digest": schema.StringAttribute{
				MarkdownDescription: "Reference by digest that pins the content, or null for an image that never was in a registry.", Computed: true,
			},
			"resources": schema.SingleNestedAttribute{
				MarkdownDescription: "Caps that belong to the template.", Computed: true,
				Attributes: map[string]schema.Attribute{
					"cpu":       schema.Float64Attribute{MarkdownDescription: capOf("Cores."), Computed: true},
					"memory_mb": schema.Int64Attribute{MarkdownDescription: capOf("MiB."), Computed: true},
					"disk_mb":   schema.Int64Attribute{MarkdownDescription: capOf("MiB."), Computed: true},
					"gpu":       schema.StringAttribute{MarkdownDescription: capOf("Type."), Computed: true},
				},
			},
			"timeouts": timeoutsAttribute(ctx, timeouts.Opts{
				Create: true, Read: true,
				CreateDescription: "Bound on creation, the pull included. Default: `30m`.",
				ReadDescription:   "Bound on a refresh. Default: `2m`.",
			}),
		},
	}
}

// plain turns named strings into strings.
func plain[S ~string](names []S) []string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = string(n)
	}
	return all
}

func (r *templateResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config templateModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	err := sandboxcore.Spec{Template: config.template()}.Validate()
	if config.Image.IsNull() && config.TemplateID.IsNull() {
		err = errors.Join(err, sandboxcore.NoTemplate())
	}
	report(ctx, &resp.Diagnostics, req.Config.Schema, "Invalid template", err)
}

// template is what the configuration names.
func (m templateModel) template() sandboxcore.Template {
	return sandboxcore.Template{Image: m.Image.ValueString(), ID: m.TemplateID.ValueString()}
}

// source is what to look up of an existing template: the image by its reference, and
// not by the id that it was resolved to.
func (m templateModel) source() sandboxcore.Template {
	if known(m.Image) {
		return sandboxcore.Template{Image: m.Image.ValueString()}
	}
	return sandboxcore.Template{ID: m.TemplateID.ValueString()}
}

func (r *templateResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || r.run == nil {
		return
	}
	var config, plan templateModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	timeout, diags := plan.Timeouts.Read(ctx, defaultReadTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := bounded(ctx, "timeouts.read", timeout)
	defer cancel()
	name, backend, err := r.run.backendOf(config.Backend)
	if errors.Is(err, errUnknownConfiguration) {
		return // the framework has left unknown what isn't known
	}
	if err != nil {
		report(ctx, &resp.Diagnostics, req.Plan.Schema, "Unable to plan template", err)
		return
	}
	plan.Backend = types.StringValue(name)
	if !req.State.Raw.IsNull() {
		var prior templateModel
		resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
		plan.ID, plan.Digest, plan.Resources = prior.ID, prior.Digest, prior.Resources
		if config.TemplateID.IsNull() {
			plan.TemplateID = prior.TemplateID
		}
		if !plan.Backend.Equal(prior.Backend) {
			resp.RequiresReplace = append(resp.RequiresReplace, path.Root("backend"))
		}
	} else if !config.Image.IsUnknown() && !config.TemplateID.IsUnknown() && known(plan.PullPolicy) && plan.PullPolicy.ValueString() != string(sandboxcore.PullAlways) {
		info, err := backend.LookupTemplate(ctx, config.template())
		missing := sandboxcore.Is(err, sandboxcore.KindNotFound)
		pullable := known(config.Image) && plan.PullPolicy.ValueString() != string(sandboxcore.PullNever)
		switch {
		case err == nil:
			plan.observe(info)
		case !missing || !pullable:
			report(ctx, &resp.Diagnostics, req.Plan.Schema, "Unable to plan template", err)
			return
		}
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}

func (m *templateModel) observe(info sandboxcore.TemplateInfo) {
	m.TemplateID = types.StringValue(info.ID)
	m.ID = types.StringValue(sandboxcore.FormatID(m.Backend.ValueString(), info.ID))
	m.Digest = textValue(info.Digest)
	m.Resources = types.ObjectNull(resourcesTypes)
	if !info.Resources.IsDefault() {
		m.Resources = resourcesValue(info.Resources, m.Resources)
	}
}

func (r *templateResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan templateModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	timeout, diags := plan.Timeouts.Create(ctx, defaultPullTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := bounded(ctx, "timeouts.create", timeout)
	defer cancel()
	_, backend, err := r.run.backendOf(plan.Backend)
	var info sandboxcore.TemplateInfo
	if err == nil {
		info, err = backend.EnsureTemplate(ctx, plan.source(), sandboxcore.PullPolicy(plan.PullPolicy.ValueString()))
	}
	if err != nil {
		report(ctx, &resp.Diagnostics, req.Plan.Schema, "Unable to create template", err)
		return
	}
	plan.observe(info)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

func (r *templateResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state templateModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
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
	var info sandboxcore.TemplateInfo
	if err == nil {
		// By its id: a tag that moved to other content doesn't change what this template is.
		info, err = backend.LookupTemplate(ctx, sandboxcore.Template{ID: state.TemplateID.ValueString()})
	}
	switch {
	case sandboxcore.Is(err, sandboxcore.KindNotFound):
		resp.State.RemoveResource(ctx)
	case err != nil:
		report(ctx, &resp.Diagnostics, req.State.Schema, "Unable to read template", err)
	default:
		state.observe(info)
		resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
	}
}

// Update has nothing to do: only pull_policy and timeouts change in place.
func (r *templateResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan templateModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// Delete removes nothing: an image may be in use by others.
func (r *templateResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {
}

// ImportState takes "<backend>/<template id>" or "<backend>/<image>".
func (r *templateResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	ctx, cancel := bounded(ctx, "timeouts.read", defaultReadTimeout)
	defer cancel()
	state := templateModel{Timeouts: timeouts.Value{Object: types.ObjectNull(map[string]attr.Type{"create": types.StringType, "read": types.StringType})}}
	name, what, err := sandboxcore.ParseID(req.ID)
	var info sandboxcore.TemplateInfo
	if err == nil {
		info, err = r.lookupEither(ctx, &state, name, what)
	}
	if err != nil {
		for _, e := range sandboxcore.Errors(err) {
			resp.Diagnostics.AddError("Unable to import template: "+string(e.Kind), explain(e))
		}
		return
	}
	state.Backend = types.StringValue(name)
	state.PullPolicy = types.StringValue(string(sandboxcore.PullMissing))
	state.observe(info)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

func (r *templateResource) lookupEither(ctx context.Context, state *templateModel, name, what string) (sandboxcore.TemplateInfo, error) {
	backend, err := r.run.backend(name)
	if err != nil {
		return sandboxcore.TemplateInfo{}, err
	}
	if info, err := backend.LookupTemplate(ctx, sandboxcore.Template{ID: what}); err == nil {
		return info, nil
	}
	state.Image = types.StringValue(what)
	return backend.LookupTemplate(ctx, sandboxcore.Template{Image: what})
}
