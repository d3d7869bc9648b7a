// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	providerschema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	resourceschema "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// This file turns the settings that a backend describes into schema and values, so
// that nothing else here knows a backend.

func settingType(kind sandboxcore.SettingKind) attr.Type {
	switch kind {
	case sandboxcore.BoolSetting:
		return types.BoolType
	case sandboxcore.IntSetting:
		return types.Int64Type
	case sandboxcore.StringListSetting:
		return types.ListType{ElemType: types.StringType}
	case sandboxcore.StringMapSetting:
		return types.MapType{ElemType: types.StringType}
	}
	return types.StringType
}

func settingTypes(settings []sandboxcore.Setting) map[string]attr.Type {
	all := make(map[string]attr.Type, len(settings))
	for _, s := range settings {
		all[s.Name] = settingType(s.Kind)
	}
	return all
}

// providerSettings is the provider's nested attribute of a backend.
func providerSettings(f sandboxcore.Factory) providerschema.Attribute {
	attributes := map[string]providerschema.Attribute{}
	for _, s := range f.Settings {
		switch s.Kind {
		case sandboxcore.BoolSetting:
			attributes[s.Name] = providerschema.BoolAttribute{MarkdownDescription: s.Description, Optional: true, Sensitive: s.Sensitive}
		case sandboxcore.IntSetting:
			attributes[s.Name] = providerschema.Int64Attribute{MarkdownDescription: s.Description, Optional: true, Sensitive: s.Sensitive}
		case sandboxcore.StringListSetting:
			attributes[s.Name] = providerschema.ListAttribute{MarkdownDescription: s.Description, Optional: true, Sensitive: s.Sensitive, ElementType: types.StringType}
		case sandboxcore.StringMapSetting:
			attributes[s.Name] = providerschema.MapAttribute{MarkdownDescription: s.Description, Optional: true, Sensitive: s.Sensitive, ElementType: types.StringType}
		default:
			attributes[s.Name] = providerschema.StringAttribute{MarkdownDescription: s.Description, Optional: true, Sensitive: s.Sensitive}
		}
	}
	return providerschema.SingleNestedAttribute{
		MarkdownDescription: "Configuration of the `" + f.Name + "` backend. " + f.Description, Optional: true, Attributes: attributes,
	}
}

// sandboxOptions is a sandbox's nested attribute of a backend.
func sandboxOptions(f sandboxcore.Factory) resourceschema.Attribute {
	attributes := map[string]resourceschema.Attribute{}
	for _, s := range f.SandboxOptions {
		switch s.Kind {
		case sandboxcore.BoolSetting:
			attributes[s.Name] = resourceschema.BoolAttribute{MarkdownDescription: s.Description, Optional: true, Sensitive: s.Sensitive}
		case sandboxcore.IntSetting:
			attributes[s.Name] = resourceschema.Int64Attribute{MarkdownDescription: s.Description, Optional: true, Sensitive: s.Sensitive}
		case sandboxcore.StringListSetting:
			attributes[s.Name] = resourceschema.ListAttribute{MarkdownDescription: s.Description, Optional: true, Sensitive: s.Sensitive, ElementType: types.StringType}
		case sandboxcore.StringMapSetting:
			attributes[s.Name] = resourceschema.MapAttribute{MarkdownDescription: s.Description, Optional: true, Sensitive: s.Sensitive, ElementType: types.StringType}
		default:
			attributes[s.Name] = resourceschema.StringAttribute{MarkdownDescription: s.Description, Optional: true, Sensitive: s.Sensitive}
		}
	}
	return resourceschema.SingleNestedAttribute{
		MarkdownDescription: "Options of a sandbox on the `" + f.Name + "` backend.", Optional: true, Attributes: attributes,
	}
}

// toSettings returns the known settings of object, and whether all are known.
func toSettings(object types.Object, settings []sandboxcore.Setting) (sandboxcore.Settings, bool) {
	known := !object.IsUnknown()
	values := sandboxcore.Settings{}
	for _, s := range settings {
		value, ok := object.Attributes()[s.Name]
		switch {
		case !ok || value.IsNull():
			continue
		case value.IsUnknown():
			known = false
			continue
		}
		switch v := value.(type) {
		case types.String:
			values[s.Name] = v.ValueString()
		case types.Bool:
			values[s.Name] = v.ValueBool()
		case types.Int64:
			values[s.Name] = v.ValueInt64()
		case types.List:
			items, all := stringList(v)
			values[s.Name], known = items, known && all
		case types.Map:
			items, all := stringMap(v)
			values[s.Name], known = items, known && all
		}
	}
	return values, known
}

// fromSettings is the object that has these settings, null if there is none. Values
// may have gone through JSON.
func fromSettings(values sandboxcore.Settings, settings []sandboxcore.Setting) types.Object {
	all := settingTypes(settings)
	if len(values) == 0 {
		return types.ObjectNull(all)
	}
	attributes := map[string]attr.Value{}
	for _, s := range settings {
		attributes[s.Name] = fromSetting(values[s.Name], s.Kind)
	}
	return types.ObjectValueMust(all, attributes)
}

func fromSetting(value any, kind sandboxcore.SettingKind) attr.Value {
	switch kind {
	case sandboxcore.BoolSetting:
		if v, ok := value.(bool); ok {
			return types.BoolValue(v)
		}
		return types.BoolNull()
	case sandboxcore.IntSetting:
		switch v := value.(type) {
		case int64:
			return types.Int64Value(v)
		case float64:
			return types.Int64Value(int64(v))
		}
		return types.Int64Null()
	case sandboxcore.StringListSetting:
		if v, ok := value.([]any); ok {
			items := make([]attr.Value, len(v))
			for i := range v {
				s, _ := v[i].(string)
				items[i] = types.StringValue(s)
			}
			return types.ListValueMust(types.StringType, items)
		}
		if v, ok := value.([]string); ok {
			return listOf(v)
		}
		return types.ListNull(types.StringType)
	case sandboxcore.StringMapSetting:
		items := map[string]attr.Value{}
		switch v := value.(type) {
		case map[string]any:
			for key := range v {
				s, _ := v[key].(string)
				items[key] = types.StringValue(s)
			}
		case map[string]string:
			for key, s := range v {
				items[key] = types.StringValue(s)
			}
		default:
			return types.MapNull(types.StringType)
		}
		return types.MapValueMust(types.StringType, items)
	}
	if v, ok := value.(string); ok {
		return types.StringValue(v)
	}
	return types.StringNull()
}

// stringList returns the known items of l, and whether all are known.
func stringList(l types.List) ([]string, bool) {
	known := !l.IsUnknown()
	var items []string
	for _, value := range l.Elements() {
		s, ok := value.(types.String)
		if !ok || s.IsUnknown() || s.IsNull() {
			known = false
			continue
		}
		items = append(items, s.ValueString())
	}
	return items, known
}

func listOf(items []string) basetypes.ListValue {
	values := make([]attr.Value, len(items))
	for i, s := range items {
		values[i] = types.StringValue(s)
	}
	return types.ListValueMust(types.StringType, values)
}

func mapOf(m map[string]string) basetypes.MapValue {
	values := make(map[string]attr.Value, len(m))
	for key, s := range m {
		values[key] = types.StringValue(s)
	}
	return types.MapValueMust(types.StringType, values)
}
