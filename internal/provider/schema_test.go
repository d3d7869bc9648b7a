// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// Every attribute says what it means.
func TestEveryAttributeIsDescribed(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	seen := 0
	var check func(path string, attributes []*tfprotov6.SchemaAttribute)
	check = func(path string, attributes []*tfprotov6.SchemaAttribute) {
		for _, a := range attributes {
			seen++
			at := path + "." + a.Name
			// The stub's settings have none.
			if a.Description == "" && path != "provider.stub" && path != sandboxType+".stub" {
				t.Errorf("%s isn't described", at)
			}
			if a.NestedType != nil {
				check(at, a.NestedType.Attributes)
			}
		}
	}
	check("provider", h.schema.Provider.Block.Attributes)
	for name, s := range h.schema.ResourceSchemas {
		if s.Block.Description == "" {
			t.Errorf("%s isn't described", name)
		}
		check(name, s.Block.Attributes)
	}
	for name, s := range h.schema.DataSourceSchemas {
		if s.Block.Description == "" {
			t.Errorf("%s isn't described", name)
		}
		check(name, s.Block.Attributes)
	}
	if seen < 80 {
		t.Errorf("only %d attributes were seen", seen)
	}
}

// Secrets are marked, so that the CLI doesn't print them.
func TestSecretsAreSensitive(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	for _, secret := range []struct {
		schema    *tfprotov6.Schema
		attribute string
	}{
		{h.schema.ResourceSchemas[sandboxType], "env"},
		{h.schema.DataSourceSchemas[execType], "env"},
		{h.schema.DataSourceSchemas[execType], "stdin"},
	} {
		found := false
		for _, a := range secret.schema.Block.Attributes {
			found = found || a.Name == secret.attribute && a.Sensitive
		}
		if !found {
			t.Errorf("%s isn't sensitive", secret.attribute)
		}
	}
}
