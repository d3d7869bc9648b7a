// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore/backend/fake"
)

func TestFieldPath(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]path.Path{
		"image":                    path.Root("image"),
		"resources.cpu":            path.Root("resources").AtName("cpu"),
		"network.allow[2]":         path.Root("network").AtName("allow").AtListIndex(2),
		`labels["a.b/c"]`:          path.Root("labels").AtMapKey("a.b/c"),
		"command[0]":               path.Root("command").AtListIndex(0),
		"docker.s3_bucket":         path.Root("docker").AtName("s3_bucket"),
		"readiness.exec[0]":        path.Root("readiness").AtName("exec").AtListIndex(0),
		"network.ingress_ports[1]": path.Root("network").AtName("ingress_ports").AtListIndex(1),
	} {
		if got, ok := fieldPath(field); !ok || !got.Equal(want) {
			t.Errorf("%s: %s, %v", field, got, ok)
		}
	}
	for _, field := range []string{"", "a b", "[", "image[x]", "Image", "image[99999999999999999999]"} {
		if got, ok := fieldPath(field); ok {
			t.Errorf("%q is taken for %s", field, got)
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	var schema resource.SchemaResponse
	(&sandboxResource{factories: []sandboxcore.Factory{fake.Factory()}}).Schema(t.Context(), resource.SchemaRequest{}, &schema)
	overdue, cancel := bounded(t.Context(), "timeouts.create", time.Nanosecond)
	defer cancel()
	<-overdue.Done()
	for name, test := range map[string]struct {
		ctx              context.Context
		err              error
		at               path.Path
		headline, detail string
	}{
		"attribute": {t.Context(), sandboxcore.Configuration("image", "it is bad", "Write another."), path.Root("image"), "S: ConfigurationError", "It is bad.\n\nWrite another."},
		"nested":    {t.Context(), sandboxcore.Configuration("resources.cpu", "it is bad", ""), path.Root("resources"), "S: ConfigurationError at resources.cpu", "It is bad."},
		"element":   {t.Context(), sandboxcore.Configuration(`labels["x"]`, "it is bad", ""), path.Root("labels").AtMapKey("x"), `S: ConfigurationError at labels["x"]`, "It is bad."},
		"deep":      {t.Context(), sandboxcore.Configuration("network.allow[1]", "it is bad", ""), path.Root("network"), "S: ConfigurationError at network.allow[1]", "It is bad."},
		"elsewhere": {t.Context(), sandboxcore.Configuration("fake.state_dir", "it is bad", ""), path.Empty(), "S: ConfigurationError at fake.state_dir", "It is bad."},
		"nothing":   {t.Context(), sandboxcore.Errorf(sandboxcore.KindNotFound, "it is gone"), path.Empty(), "S: NotFound", "It is gone."},
		"foreign":   {t.Context(), errors.New("odd"), path.Empty(), "S: BackendError", "Odd."},
		"cause": {
			t.Context(), &sandboxcore.Error{Kind: sandboxcore.KindBackend, Reason: "it failed", Err: errors.New("odd"), Remedy: "Wait."},
			path.Empty(), "S: BackendError", "It failed: odd.\n\nWait.",
		},
		"no reason": {t.Context(), &sandboxcore.Error{Kind: sandboxcore.KindBackend}, path.Empty(), "S: BackendError", ""},
		"overdue": {
			overdue, sandboxcore.Errorf(sandboxcore.KindTimeout, "pulling the image: %w", context.DeadlineExceeded),
			path.Root("timeouts"), "S: Timeout at timeouts.create", "It did not end within 1ns: pulling the image: context deadline exceeded.\n\nFind out what it waits for, or raise timeouts.create.",
		},
		"overdue, for another reason": {
			overdue, sandboxcore.Configuration("image", "it is bad", ""), path.Root("image"), "S: ConfigurationError", "It is bad.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var diags diag.Diagnostics
			report(test.ctx, &diags, schema.Schema, "S", test.err)
			if len(diags) != 1 {
				t.Fatalf("%d diagnostics: %v", len(diags), diags)
			}
			at := path.Empty()
			if d, ok := diags[0].(diag.DiagnosticWithPath); ok {
				at = d.Path()
			}
			if !at.Equal(test.at) || diags[0].Summary() != test.headline || !strings.HasPrefix(diags[0].Detail(), test.detail) {
				t.Errorf("at %s: %q: %q", at, diags[0].Summary(), diags[0].Detail())
			}
		})
	}
}
