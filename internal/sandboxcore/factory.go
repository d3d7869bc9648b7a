// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

// SettingKind is the type of a setting's value.
type SettingKind uint8

// The kinds, with the Go type that their values have in [Settings].
const (
	StringSetting     SettingKind = iota // string
	BoolSetting                          // bool
	IntSetting                           // int64
	StringListSetting                    // []string
	StringMapSetting                     // map[string]string
)

// Setting describes one setting of a backend, or one of its options for a sandbox,
// so that a front end can offer it without knowing the backend.
type Setting struct {
	// Name is lower_snake_case.
	Name string
	Kind SettingKind
	// Description gives meaning, unit and default, in Markdown.
	Description string
	Sensitive   bool
}

// Settings are values by name. A setting that was left out is absent.
type Settings map[string]any

// String returns a StringSetting, or "".
func (s Settings) String(name string) string { v, _ := s[name].(string); return v }

// Bool returns a BoolSetting, or false.
func (s Settings) Bool(name string) bool { v, _ := s[name].(bool); return v }

// Int returns an IntSetting, or 0.
func (s Settings) Int(name string) int64 { v, _ := s[name].(int64); return v }

// Strings returns a StringListSetting, or nil.
func (s Settings) Strings(name string) []string { v, _ := s[name].([]string); return v }

// Factory opens one kind of backend.
type Factory struct {
	// Name is the backend's name in configurations and ids.
	Name        string
	Description string
	// Settings configure the backend; SandboxOptions one of its sandboxes ([Spec.Options]).
	Settings, SandboxOptions []Setting
	// Open returns the backend and contacts nothing. Refusals name the setting as Field.
	Open func(Settings) (Backend, error)
}
