// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

// Command nullprovider serves a provider whose one resource does nothing: what
// Terraform and the plugin protocol cost by themselves.
package main

import (
	"context"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func main() {
	err := providerserver.Serve(context.Background(), func() provider.Provider { return nullProvider{} },
		providerserver.ServeOpts{Address: "registry.terraform.io/sandboxio/null", ProtocolVersion: 6})
	if err != nil {
		log.Fatal(err)
	}
}

type nullProvider struct{}

func (nullProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "null"
}
func (nullProvider) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse) {}
func (nullProvider) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {
}
func (nullProvider) DataSources(context.Context) []func() datasource.DataSource { return nil }
func (nullProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return nothing{} }}
}

type nothing struct{}

type model struct {
	ID    types.String `tfsdk:"id"`
	Image types.String `tfsdk:"image"`
}

func (nothing) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "null_thing"
}

func (nothing) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"id":    schema.StringAttribute{Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}},
		"image": schema.StringAttribute{Required: true},
	}}
}

func (nothing) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	m.ID = types.StringValue("nothing")
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
func (nothing) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}
func (nothing) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
func (nothing) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}
