// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

// The form is that of `terraform providers schema -json`, under the short name.
func TestSchema(t *testing.T) {
	t.Parallel()
	type attribute struct {
		Type        any    `json:"type"`
		Description string `json:"description"`
		Kind        string `json:"description_kind"`
		Required    bool   `json:"required"`
		Optional    bool   `json:"optional"`
		Computed    bool   `json:"computed"`
		Sensitive   bool   `json:"sensitive"`
		Nested      *struct {
			Mode       string               `json:"nesting_mode"`
			Attributes map[string]attribute `json:"attributes"`
		} `json:"nested_type"`
	}
	type schema struct {
		Block struct {
			Attributes map[string]attribute `json:"attributes"`
		} `json:"block"`
	}
	var got struct {
		FormatVersion string `json:"format_version"`
		Schemas       map[string]struct {
			Provider    schema            `json:"provider"`
			Resources   map[string]schema `json:"resource_schemas"`
			DataSources map[string]schema `json:"data_source_schemas"`
		} `json:"provider_schemas"`
	}
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	all, ok := got.Schemas["sandboxio"]
	if !ok || got.FormatVersion != "1.0" || len(got.Schemas) != 1 {
		t.Fatalf("format %q, %d providers", got.FormatVersion, len(got.Schemas))
	}
	sandbox, exec := all.Resources["sandboxio_sandbox"].Block.Attributes, all.DataSources["sandboxio_exec"].Block.Attributes
	if len(all.Resources) != 2 || len(all.DataSources) != 1 || all.Provider.Block.Attributes["docker"].Nested == nil {
		t.Errorf("%d resources, %d data sources", len(all.Resources), len(all.DataSources))
	}
	if env := sandbox["env"]; fmt.Sprint(env.Type) != "[map string]" || !env.Sensitive || !env.Optional || env.Computed || env.Kind != "markdown" {
		t.Errorf("env is %+v", env)
	}
	if caps := sandbox["resources"]; caps.Nested == nil || caps.Nested.Mode != "single" || caps.Nested.Attributes["cpu"].Type != "number" {
		t.Errorf("resources is %+v", caps)
	}
	if id := exec["sandbox_id"]; !id.Required || id.Optional || id.Description == "" {
		t.Errorf("sandbox_id is %+v", id)
	}
}
