// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

// Command schemajson prints the provider's schema as `terraform providers schema
// -json` does, without a CLI, so that documentation needs none.
package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"os"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore/backend"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, to io.Writer) error {
	server, err := providerserver.NewProtocol6WithError(provider.New(backend.All())())()
	if err != nil {
		return err
	}
	schema, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return err
	}
	out := json.NewEncoder(to)
	out.SetIndent("", "  ")
	return out.Encode(map[string]any{
		"format_version": "1.0",
		"provider_schemas": map[string]any{
			// The documentation tool looks for the short name.
			provider.TypeName: map[string]any{
				"provider":            encode(schema.Provider),
				"resource_schemas":    encodeAll(schema.ResourceSchemas),
				"data_source_schemas": encodeAll(schema.DataSourceSchemas),
			},
		},
	})
}

func encodeAll(schemas map[string]*tfprotov6.Schema) map[string]any {
	all := map[string]any{}
	for name, s := range schemas {
		all[name] = encode(s)
	}
	return all
}

func encode(s *tfprotov6.Schema) map[string]any {
	block := map[string]any{"attributes": attributes(s.Block.Attributes)}
	describe(block, s.Block.Description, s.Block.DescriptionKind)
	return map[string]any{"version": s.Version, "block": block}
}

func attributes(all []*tfprotov6.SchemaAttribute) map[string]any {
	encoded := map[string]any{}
	for _, a := range all {
		e := map[string]any{}
		if a.NestedType != nil {
			e["nested_type"] = map[string]any{"attributes": attributes(a.NestedType.Attributes), "nesting_mode": strings.ToLower(a.NestedType.Nesting.String())}
		} else {
			e["type"] = a.Type
		}
		describe(e, a.Description, a.DescriptionKind)
		for flag, set := range map[string]bool{
			"required": a.Required, "optional": a.Optional, "computed": a.Computed, "sensitive": a.Sensitive, "deprecated": a.Deprecated, "write_only": a.WriteOnly,
		} {
			if set {
				e[flag] = true
			}
		}
		encoded[a.Name] = e
	}
	return encoded
}

func describe(into map[string]any, text string, kind tfprotov6.StringKind) {
	if text == "" {
		return
	}
	into["description"] = text
	into["description_kind"] = "plain"
	if kind == tfprotov6.StringKindMarkdown {
		into["description_kind"] = "markdown"
	}
}
