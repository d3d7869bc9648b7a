// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

var everyKind = []sandboxcore.Setting{
	{Name: "text", Kind: sandboxcore.StringSetting, Description: "Text.", Sensitive: true},
	{Name: "flag", Kind: sandboxcore.BoolSetting, Description: "Flag."},
	{Name: "number", Kind: sandboxcore.IntSetting, Description: "Number."},
	{Name: "list", Kind: sandboxcore.StringListSetting, Description: "List."},
	{Name: "map", Kind: sandboxcore.StringMapSetting, Description: "Map."},
}

// A backend keeps its options as it likes, often as JSON: they come back the same.
func TestSettingsThereAndBack(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]sandboxcore.Settings{
		"all":  {"text": "a", "flag": true, "number": int64(7), "list": []string{"x", "y"}, "map": map[string]string{"k": "v"}},
		"some": {"number": int64(1)},
		"none": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value := fromSettings(settings, everyKind)
			if value.IsNull() != (len(settings) == 0) {
				t.Errorf("is null: %v", value.IsNull())
			}
			got, known := toSettings(value, everyKind)
			if diff := cmp.Diff(settings, got); diff != "" || !known {
				t.Errorf("known %v, %s", known, diff)
			}
			encoded, err := json.Marshal(settings)
			if err != nil {
				t.Fatal(err)
			}
			var decoded sandboxcore.Settings
			if err := json.Unmarshal(encoded, &decoded); err != nil {
				t.Fatal(err)
			}
			if again := fromSettings(decoded, everyKind); !again.Equal(value) {
				t.Errorf("through JSON: %s, want %s", again, value)
			}
		})
	}
}

func TestUnknownSettingsAreTold(t *testing.T) {
	t.Parallel()
	all := settingTypes(everyKind)
	with := func(name string, v attr.Value) types.Object {
		attributes := map[string]attr.Value{}
		for _, s := range everyKind {
			attributes[s.Name] = fromSetting(nil, s.Kind)
		}
		attributes[name] = v
		return types.ObjectValueMust(all, attributes)
	}
	for name, object := range map[string]types.Object{
		"object":       types.ObjectUnknown(all),
		"setting":      with("text", types.StringUnknown()),
		"list":         with("list", types.ListUnknown(types.StringType)),
		"item":         with("list", types.ListValueMust(types.StringType, []attr.Value{types.StringUnknown()})),
		"value in map": with("map", types.MapValueMust(types.StringType, map[string]attr.Value{"k": types.StringUnknown()})),
	} {
		if _, known := toSettings(object, everyKind); known {
			t.Errorf("an unknown %s counts as known", name)
		}
	}
	if got, known := toSettings(types.ObjectNull(all), everyKind); !known || len(got) > 0 {
		t.Errorf("null is %v, known %v", got, known)
	}
}

// The schema offers each setting with its type, for the provider and for a sandbox.
func TestSettingsInSchema(t *testing.T) {
	t.Parallel()
	f := sandboxcore.Factory{Name: "some", Settings: everyKind, SandboxOptions: everyKind}
	want := types.ObjectType{AttrTypes: settingTypes(everyKind)}
	provider, sandbox := providerSettings(f), sandboxOptions(f)
	if !provider.GetType().Equal(want) || !sandbox.GetType().Equal(want) {
		t.Errorf("types %s, %s, want %s", provider.GetType(), sandbox.GetType(), want)
	}
	if !provider.IsOptional() || !sandbox.IsOptional() || provider.IsRequired() || sandbox.IsComputed() {
		t.Error("settings of a backend are optional, no more")
	}
}
