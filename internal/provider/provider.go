// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

// Package provider is the Terraform side of sandboxio: schema, model, plan and
// diagnostics. It has no rule of its own about sandboxes (those are sandboxcore's)
// and knows no backend by name: it gets their factories.
package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// TypeName is the provider's name and the prefix of its types.
const TypeName = "sandboxio"

// Address is the provider's source address.
const Address = "registry.terraform.io/sandboxio/sandboxio"

const defaultOwner = "default"

var _ provider.Provider = (*sandboxProvider)(nil)

type sandboxProvider struct{ factories []sandboxcore.Factory }

// New returns a constructor of the provider over these backends.
func New(factories []sandboxcore.Factory) func() provider.Provider {
	return func() provider.Provider { return &sandboxProvider{factories} }
}

func (p *sandboxProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = TypeName
	resp.Version = sandboxcore.Version
}

func (p *sandboxProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Isolated sandboxes as code: one schema over several backends, a plan in which every security-relevant value is concrete, and nothing left behind.",
		Attributes: map[string]schema.Attribute{
			"default_backend": schema.StringAttribute{
				MarkdownDescription: "Backend of sandboxes and templates that name none. One of " + oneOf(backendNames(p.factories)) + ".",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.OneOf(backendNames(p.factories)...)},
			},
			"owner": schema.StringAttribute{
				MarkdownDescription: "Whom the sandboxes belong to: a name, usually with the workspace in it, such as `team-a/ci`. Reaping acts on one owner. Default: `" + defaultOwner + "`.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"default_labels": schema.MapAttribute{
				MarkdownDescription: "Labels of every sandbox; its own `labels` win. The prefix `" + sandboxcore.ReservedLabelPrefix + "` is reserved.",
				ElementType:         types.StringType,
				Optional:            true,
			},
		},
	}
	for _, f := range p.factories {
		resp.Schema.Attributes[f.Name] = providerSettings(f)
	}
}

func (p *sandboxProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	r := &run{factories: p.factories, settings: map[string]types.Object{}, opened: map[string]sandboxcore.Backend{}}
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("default_backend"), &r.defaultBackend)...)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("owner"), &r.owner)...)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("default_labels"), &r.defaultLabels)...)
	for _, f := range p.factories {
		var settings types.Object
		resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root(f.Name), &settings)...)
		r.settings[f.Name] = settings
	}
	labels, _ := stringMap(r.defaultLabels)
	if err := (sandboxcore.Spec{Labels: labels}).Validate(); err != nil {
		for _, e := range sandboxcore.Errors(err) {
			resp.Diagnostics.AddAttributeError(path.Root("default_labels"), "Invalid default_labels", explain(e))
		}
	}
	resp.ResourceData, resp.DataSourceData = r, r
}

func (p *sandboxProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		func() resource.Resource { return &sandboxResource{factories: p.factories} },
		func() resource.Resource { return &templateResource{factories: p.factories} },
	}
}

func (p *sandboxProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		func() datasource.DataSource { return &execDataSource{} },
	}
}
