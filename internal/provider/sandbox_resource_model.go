// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"reflect"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// sandboxModel mirrors the schema, but for the backends' options, whose names only
// their factories know: those are in Options by backend.
type sandboxModel struct {
	Backend          types.String   `tfsdk:"backend"`
	Name             types.String   `tfsdk:"name"`
	Image            types.String   `tfsdk:"image"`
	TemplateID       types.String   `tfsdk:"template_id"`
	Resources        types.Object   `tfsdk:"resources"`
	Network          types.Object   `tfsdk:"network"`
	RequireIsolation types.String   `tfsdk:"require_isolation"`
	Command          types.List     `tfsdk:"command"`
	WorkingDir       types.String   `tfsdk:"working_dir"`
	User             types.String   `tfsdk:"user"`
	Env              types.Map      `tfsdk:"env"`
	Labels           types.Map      `tfsdk:"labels"`
	EffectiveLabels  types.Map      `tfsdk:"effective_labels"`
	TTL              types.String   `tfsdk:"ttl"`
	Readiness        types.Object   `tfsdk:"readiness"`
	Timeouts         timeouts.Value `tfsdk:"timeouts"`
	ID               types.String   `tfsdk:"id"`
	SandboxID        types.String   `tfsdk:"sandbox_id"`
	State            types.String   `tfsdk:"state"`
	Isolation        types.String   `tfsdk:"isolation"`
	ImageID          types.String   `tfsdk:"image_id"`
	CreatedAt        types.String   `tfsdk:"created_at"`
	ExpiresAt        types.String   `tfsdk:"expires_at"`
	Capabilities     types.List     `tfsdk:"capabilities"`
	Enforcement      types.Object   `tfsdk:"enforcement"`

	Options map[string]types.Object
}

var (
	resourcesTypes = map[string]attr.Type{"cpu": types.Float64Type, "memory_mb": types.Int64Type, "disk_mb": types.Int64Type, "gpu": types.StringType}
	networkTypes   = map[string]attr.Type{
		"egress": types.StringType, "allow": types.ListType{ElemType: types.StringType}, "ingress_ports": types.ListType{ElemType: types.Int64Type},
	}
	readinessTypes = map[string]attr.Type{
		"exec": types.ListType{ElemType: types.StringType}, "tcp_port": types.Int64Type, "interval": types.StringType, "timeout": types.StringType,
	}
	enforcementTypes = map[string]attr.Type{
		"cpu": types.StringType, "memory": types.StringType, "disk": types.StringType, "pids": types.StringType, "egress": types.StringType,
	}
)

// values is a configuration, plan or state to read from.
type values interface {
	Get(ctx context.Context, target any) diag.Diagnostics
}

// target is a plan or state to write to.
type target interface {
	Set(ctx context.Context, value any) diag.Diagnostics
}

// typed is a schema: it knows its attributes' types.
type typed interface{ Type() attr.Type }

// load reads the model from the whole object at once, since a struct can't have the
// attributes that backends add, and one attribute at a time is slow.
func (m *sandboxModel) load(ctx context.Context, from values, schema typed, factories []sandboxcore.Factory) (diags diag.Diagnostics) {
	var whole types.Object
	diags.Append(from.Get(ctx, &whole)...)
	all := whole.Attributes()
	if whole.IsNull() { // an import begins with nothing
		all = map[string]attr.Value{}
		for name, typ := range attributeTypes(schema) {
			null, err := typ.ValueFromTerraform(ctx, tftypes.NewValue(typ.TerraformType(ctx), nil))
			if err != nil {
				diags.AddError("Unexpected schema", err.Error())
			}
			all[name] = null
		}
	}
	if diags.HasError() {
		return diags
	}
	m.eachAttribute(func(name string, field reflect.Value) { field.Set(reflect.ValueOf(all[name])) })
	m.Options = map[string]types.Object{}
	for _, f := range factories {
		if options, ok := all[f.Name].(types.Object); ok {
			m.Options[f.Name] = options
		}
	}
	return diags
}

func (m *sandboxModel) store(ctx context.Context, to target, schema typed) (diags diag.Diagnostics) {
	all := map[string]attr.Value{}
	m.eachAttribute(func(name string, field reflect.Value) {
		if v, ok := reflect.TypeAssert[attr.Value](field); ok {
			all[name] = v
		}
	})
	for name, options := range m.Options {
		all[name] = options
	}
	whole, diags := types.ObjectValue(attributeTypes(schema), all)
	if diags.HasError() {
		return diags
	}
	diags.Append(to.Set(ctx, whole)...)
	return diags
}

func attributeTypes(schema typed) map[string]attr.Type {
	if t, ok := schema.Type().(attr.TypeWithAttributeTypes); ok {
		return t.AttributeTypes()
	}
	return nil
}

func (m *sandboxModel) eachAttribute(do func(name string, field reflect.Value)) {
	model := reflect.ValueOf(m).Elem()
	for i := range model.NumField() {
		if name := model.Type().Field(i).Tag.Get("tfsdk"); name != "" {
			do(name, model.Field(i))
		}
	}
}

// spec is what the known part of the model asks for. What is unknown counts as left
// out; errors are of values that can't be read as what they should be.
func (m *sandboxModel) spec(r *run, backend string, factories []sandboxcore.Factory) (sandboxcore.Spec, error) {
	var errs errorList
	s := sandboxcore.Spec{
		Name:       m.Name.ValueString(),
		Template:   sandboxcore.Template{Image: m.Image.ValueString(), ID: m.TemplateID.ValueString()},
		Resources:  resourcesFrom(m.Resources),
		Network:    networkFrom(m.Network),
		WorkingDir: m.WorkingDir.ValueString(),
		User:       m.User.ValueString(),
		TTL:        errs.positiveDuration("ttl", m.TTL),
	}
	s.Command, _ = stringList(m.Command)
	s.Env, _ = stringMap(m.Env)
	s.Readiness = errs.readiness(m.Readiness)
	if !m.RequireIsolation.IsNull() && !m.RequireIsolation.IsUnknown() {
		tier, err := sandboxcore.ParseIsolationTier(m.RequireIsolation.ValueString())
		errs.add(err)
		if err == nil {
			s.RequireIsolation = sandboxcore.Some(tier)
		}
	}
	if r != nil {
		s.Owner = r.ownerName()
		s.Labels, _ = r.withDefaults(m.Labels)
	} else {
		s.Labels, _ = stringMap(m.Labels)
	}
	if f, ok := factory(factories, backend); ok {
		s.Options, _ = toSettings(m.Options[backend], f.SandboxOptions)
	}
	return s, errs.err()
}

func resourcesFrom(o types.Object) (r sandboxcore.Resources) {
	a := o.Attributes()
	if v, ok := a["cpu"].(types.Float64); ok && known(v) {
		r.CPU = sandboxcore.Some(v.ValueFloat64())
	}
	if v, ok := a["memory_mb"].(types.Int64); ok && known(v) {
		r.MemoryMB = sandboxcore.Some(v.ValueInt64())
	}
	if v, ok := a["disk_mb"].(types.Int64); ok && known(v) {
		r.DiskMB = sandboxcore.Some(v.ValueInt64())
	}
	if v, ok := a["gpu"].(types.String); ok && known(v) {
		r.GPU = sandboxcore.Some(v.ValueString())
	}
	return r
}

func networkFrom(o types.Object) (p sandboxcore.NetworkPolicy) {
	a := o.Attributes()
	if v, ok := a["egress"].(types.String); ok {
		p.Egress = sandboxcore.Egress(v.ValueString())
	}
	// A list beside an egress that isn't known yet can't contradict it yet.
	if v, ok := a["allow"].(types.List); ok && !a["egress"].IsUnknown() {
		items, _ := stringList(v)
		p.Allow = sandboxcore.TupleOf(items...)
	}
	if v, ok := a["ingress_ports"].(types.List); ok {
		var ports []int
		for _, e := range v.Elements() {
			if port, ok := e.(types.Int64); ok && known(port) {
				ports = append(ports, int(port.ValueInt64()))
			}
		}
		p.IngressPorts = sandboxcore.TupleOf(ports...)
	}
	return p
}

func (errs *errorList) readiness(o types.Object) (r sandboxcore.Readiness) {
	a := o.Attributes()
	if v, ok := a["exec"].(types.List); ok {
		argv, _ := stringList(v)
		r.Exec = sandboxcore.TupleOf(argv...)
	}
	if v, ok := a["tcp_port"].(types.Int64); ok && known(v) {
		r.TCPPort = sandboxcore.Some(int(v.ValueInt64()))
	}
	if v, ok := a["interval"].(types.String); ok {
		r.Interval = errs.positiveDuration("readiness.interval", v)
	}
	if v, ok := a["timeout"].(types.String); ok {
		r.Timeout = errs.positiveDuration("readiness.timeout", v)
	}
	return r
}

func known(v attr.Value) bool { return !v.IsNull() && !v.IsUnknown() }

// resourcesValue is the attribute of effective resources; what config says stays as it
// says it, unknown included.
func resourcesValue(r sandboxcore.Resources, config types.Object) types.Object {
	all := map[string]attr.Value{"cpu": types.Float64Null(), "memory_mb": types.Int64Null(), "disk_mb": types.Int64Null(), "gpu": types.StringNull()}
	if v, ok := r.CPU.Get(); ok {
		all["cpu"] = types.Float64Value(v)
	}
	if v, ok := r.MemoryMB.Get(); ok {
		all["memory_mb"] = types.Int64Value(v)
	}
	if v, ok := r.DiskMB.Get(); ok {
		all["disk_mb"] = types.Int64Value(v)
	}
	if v, ok := r.GPU.Get(); ok {
		all["gpu"] = types.StringValue(v)
	}
	return overlay(all, resourcesTypes, config)
}

func networkValue(p sandboxcore.NetworkPolicy, config types.Object) types.Object {
	ports := []attr.Value{}
	for _, port := range p.IngressPorts.Slice() {
		ports = append(ports, types.Int64Value(int64(port)))
	}
	return overlay(map[string]attr.Value{
		"egress": types.StringValue(string(p.Egress)), "allow": listOf(p.Allow.Slice()), "ingress_ports": types.ListValueMust(types.Int64Type, ports),
	}, networkTypes, config)
}

// overlay puts what config says over all.
func overlay(all map[string]attr.Value, typesOf map[string]attr.Type, config types.Object) types.Object {
	if config.IsUnknown() {
		return types.ObjectUnknown(typesOf)
	}
	for name, v := range config.Attributes() {
		if !v.IsNull() {
			all[name] = v
		}
	}
	return types.ObjectValueMust(typesOf, all)
}

// unknownBut is what config says, and the rest unknown.
func unknownBut(config types.Object, typesOf map[string]attr.Type) types.Object {
	if config.IsNull() {
		return types.ObjectUnknown(typesOf)
	}
	all := map[string]attr.Value{}
	for name, typ := range typesOf {
		switch typ := typ.(type) {
		case types.ListType:
			all[name] = types.ListUnknown(typ.ElemType)
		case basetypes.Float64Type:
			all[name] = types.Float64Unknown()
		case basetypes.Int64Type:
			all[name] = types.Int64Unknown()
		default:
			all[name] = types.StringUnknown()
		}
	}
	return overlay(all, typesOf, config)
}

// allKnown says whether v and all that is in it is known. Null is known.
func allKnown(v attr.Value) bool {
	if v.IsUnknown() {
		return false
	}
	var inner []attr.Value
	switch v := v.(type) {
	case types.Object:
		for _, e := range v.Attributes() {
			inner = append(inner, e)
		}
	case types.List:
		inner = v.Elements()
	case types.Map:
		for _, e := range v.Elements() {
			inner = append(inner, e)
		}
	}
	for _, e := range inner {
		if !allKnown(e) {
			return false
		}
	}
	return true
}

func enforcementValue(e sandboxcore.Enforcement) types.Object {
	return types.ObjectValueMust(enforcementTypes, map[string]attr.Value{
		"cpu": types.StringValue(e.CPU), "memory": types.StringValue(e.Memory), "disk": types.StringValue(e.Disk),
		"pids": types.StringValue(e.Pids), "egress": types.StringValue(e.Egress),
	})
}

func timeValue(t time.Time) types.String {
	if t.IsZero() {
		return types.StringNull()
	}
	return types.StringValue(t.UTC().Format(time.RFC3339))
}

func readinessValue(r sandboxcore.Readiness) types.Object {
	if r.IsZero() {
		return types.ObjectNull(readinessTypes)
	}
	all := map[string]attr.Value{
		"exec": types.ListNull(types.StringType), "tcp_port": types.Int64Null(),
		"interval": types.StringNull(), "timeout": types.StringNull(),
	}
	if r.Exec.Len() > 0 {
		all["exec"] = listOf(r.Exec.Slice())
	}
	if port, ok := r.TCPPort.Get(); ok {
		all["tcp_port"] = types.Int64Value(int64(port))
	}
	if r.Interval > 0 {
		all["interval"] = types.StringValue(shortDuration(r.Interval))
	}
	if r.Timeout > 0 {
		all["timeout"] = types.StringValue(shortDuration(r.Timeout))
	}
	return types.ObjectValueMust(readinessTypes, all)
}
