// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// Written in another way, but the same: neither replaced nor sent to the backend.
func TestWrittenOtherwise(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ before, after object }{
		"no command":      {object{}, object{"command": []any{}}},
		"empty command":   {object{"command": []any{}}, object{}},
		"no env":          {object{}, object{"env": object{}}},
		"empty env":       {object{"env": object{}}, object{}},
		"no labels":       {object{}, object{"labels": object{}}},
		"no options":      {object{}, object{"stub": object{}}},
		"default option":  {object{}, object{"stub": object{"read_only": false}}},
		"empty option":    {object{"stub": object{"caps": []any{}}}, object{}},
		"duration":        {object{"ttl": "60m"}, object{"ttl": "1h"}},
		"default network": {object{}, object{"network": object{"egress": "deny", "allow": []any{}}}},
		"default caps":    {object{}, object{"resources": object{"cpu": 1.0, "memory_mb": 1024}}},
		"default backend": {object{}, object{"backend": "stub"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, nil)
			r := h.resource(sandboxType)
			if _, found := r.apply(with(basic, test.before)); found != nil {
				t.Fatal(found)
			}
			after := with(basic, test.after)
			if p := r.plan(after); len(p.replaces) > 0 || len(p.problems) > 0 {
				t.Fatalf("replaced by %v, problems %q", p.replaces, p.problems)
			}
			if _, found := r.apply(after); found != nil {
				t.Fatal(found)
			}
			if h.backend.updates != 0 {
				t.Error("the backend was asked to update")
			}
			if p := r.plan(after); !p.value.Equal(r.state) {
				t.Errorf("planned again: %v", p.after)
			}
		})
	}
}

// An option that changes is named, and so is what changes isolation.
func TestReplacePathIsExact(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, after object
		offer         func(*sandboxcore.Offer)
		replaces      []string
	}{
		"option set":      {object{}, object{"stub": object{"read_only": true}}, nil, []string{"stub.read_only"}},
		"option removed":  {object{"stub": object{"read_only": true, "caps": []any{"a"}}}, object{"stub": object{"caps": []any{"a"}}}, nil, []string{"stub.read_only"}},
		"options gone":    {object{"stub": object{"read_only": true}}, object{}, nil, []string{"stub.read_only"}},
		"unknown option":  {object{}, object{"stub": object{"read_only": unknown}}, nil, []string{"stub.read_only"}},
		"unknown options": {object{}, object{"stub": unknown}, nil, []string{"stub"}},
		"stronger isolation": {object{}, object{"require_isolation": "gvisor"}, func(o *sandboxcore.Offer) {
			o.Tiers = append(o.Tiers, sandboxcore.TierOffer{Tier: sandboxcore.TierGVisor, Runtime: "runsc", Evidence: sandboxcore.Evidence{Document: "https://gvisor.dev", Date: "2026-01-01"}})
		}, []string{"require_isolation"}},
		"unknown isolation": {object{}, object{"require_isolation": unknown}, nil, []string{"require_isolation"}},
		"backend":           {object{}, object{"backend": "fake"}, nil, []string{"backend"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, object{"default_backend": "stub", "fake": object{"enabled_for_tests": true, "state_dir": t.TempDir()}})
			r := h.resource(sandboxType)
			if _, found := r.apply(with(basic, test.before)); found != nil {
				t.Fatal(found)
			}
			h.backend.offer = test.offer
			p := r.plan(with(basic, test.after))
			if !slices.Contains(p.replaces, test.replaces[0]) || len(p.problems) > 0 {
				t.Errorf("replaced by %v, want %v; problems %q", p.replaces, test.replaces, p.problems)
			}
			if name != "backend" && !slices.Equal(p.replaces, test.replaces) {
				t.Errorf("replaced by %v, want %v", p.replaces, test.replaces)
			}
		})
	}
}

// A runtime that now gives another tier is drift that only a new sandbox heals.
func TestWeakerTierOfTheBackendReplaces(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	r := h.resource(sandboxType)
	if _, found := r.apply(basic); found != nil {
		t.Fatal(found)
	}
	h.backend.offer = func(o *sandboxcore.Offer) { o.Tiers = nil }
	if p := r.plan(basic); !slices.Equal(p.replaces, []string{"isolation"}) {
		t.Errorf("replaced by %v", p.replaces)
	}
}

// What the backend can change in place reaches it, whatever field that is.
func TestInPlaceFieldsReachTheBackend(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	h.backend.offer = func(o *sandboxcore.Offer) { o.InPlace = append(o.InPlace, "env", "labels", "ttl", "stub.read_only") }
	r := h.resource(sandboxType)
	base := with(basic, object{"env": object{"A": "1"}, "labels": object{"a": "1"}, "ttl": "1h"})
	made, found := r.apply(base)
	if found != nil {
		t.Fatal(found)
	}
	for i, change := range []object{
		{"env": object{"A": "2"}}, {"labels": object{"a": "2"}}, {"ttl": "2h"}, {"stub": object{"read_only": true}},
	} {
		config := with(base, change)
		p := r.plan(config)
		if len(p.replaces) > 0 || len(p.problems) > 0 {
			t.Fatalf("%v: replaced by %v, problems %q", change, p.replaces, p.problems)
		}
		after, found := r.apply(config)
		if found != nil || after["id"] != made["id"] {
			t.Fatalf("%v: %q, %v", change, found, after)
		}
		if h.backend.updates != i+1 {
			t.Errorf("%v: %d updates so far", change, h.backend.updates)
		}
		if change["ttl"] != nil && (p.after["expires_at"] != unknown || after["expires_at"] == made["expires_at"]) {
			t.Errorf("expires_at: planned %v, is %v, was %v", p.after["expires_at"], after["expires_at"], made["expires_at"])
		}
		base = config
	}
	config := with(base, object{"ttl": nil})
	if after, found := r.apply(config); found != nil || after["expires_at"] != nil {
		t.Errorf("%q, expires_at %v", found, after["expires_at"])
	}
}

// An allow list beside an egress that isn't known yet contradicts nothing yet, and
// stays in the plan.
func TestUnknownEgressBesideAnAllowList(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	h.backend.offer = func(o *sandboxcore.Offer) { o.AllowListRefusal = "" }
	r := h.resource(sandboxType)
	config := with(basic, object{"network": object{"egress": unknown, "allow": []any{"example.org"}}})
	if found := r.validate(config); len(found) > 0 {
		t.Errorf("validate: %q", found)
	}
	p := r.plan(config)
	if len(p.problems) > 0 {
		t.Fatalf("plan: %q", p.problems)
	}
	want := object{"egress": unknown, "allow": []any{"example.org"}, "ingress_ports": []any{}}
	if diff := cmp.Diff(want, p.after["network"]); diff != "" {
		t.Error(diff)
	}
}

// What an empty string would ask for is unclear, so it's refused before the apply.
func TestEmptyStringsAreRefused(t *testing.T) {
	t.Parallel()
	for at, change := range map[string]object{
		"image":             {"image": ""},
		"template_id":       {"image": nil, "template_id": ""},
		"name":              {"name": ""},
		"network.egress":    {"network": object{"egress": ""}},
		"require_isolation": {"require_isolation": ""},
		"working_dir":       {"working_dir": ""},
		"user":              {"user": ""},
		"ttl":               {"ttl": ""},
		"backend":           {"backend": ""},
		"resources":         {"resources": object{"gpu": ""}},
		"readiness":         {"readiness": object{"tcp_port": 1, "timeout": ""}},
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			found := newHarness(t, nil).resource(sandboxType).validate(with(basic, change))
			if len(found) != 1 || !strings.HasPrefix(found[0], at+": ") {
				t.Errorf("got %q", found)
			}
		})
	}
}

// A sandbox whose backend can't be asked yet keeps its state and is planned again
// once it can.
func TestUnknownProviderConfigurationKeepsWhatExists(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	r := h.resource(sandboxType)
	config := with(basic, object{"ttl": "60m"})
	made, found := r.apply(config)
	if found != nil {
		t.Fatal(found)
	}
	template := h.resource("sandboxio_template")
	if _, found := template.apply(basic); found != nil {
		t.Fatal(found)
	}
	opened := h.opened
	_, err := h.server.ConfigureProvider(t.Context(), configureRequest(h, object{"default_backend": "stub", "stub": object{"host": unknown}}))
	h.must(err)
	configs := map[string]object{sandboxType: config, templateType: basic}
	for _, kept := range []*resourceUnderTest{r, template} {
		before := kept.state
		if seen, found := kept.read(); found != nil || seen == nil || !kept.state.Equal(before) {
			t.Errorf("%s: read %v, %q", kept.typeName, seen, found)
		}
		if !slices.Equal(kept.warnings, []string{"Not refreshed"}) {
			t.Errorf("%s: warnings %q", kept.typeName, kept.warnings)
		}
		if p := kept.plan(configs[kept.typeName]); len(p.problems) > 0 || len(p.replaces) > 0 || p.after["id"] == unknown {
			t.Errorf("%s: %q, replaced by %v, id %v", kept.typeName, p.problems, p.replaces, p.after["id"])
		}
	}
	// Whatever the apply will plan once the backend is known has to fit into this plan.
	for name, test := range map[string]struct {
		change object
		want   object
	}{
		"nothing":       {object{}, object{"state": unknown, "isolation": unknown, "ttl": "60m", "expires_at": made["expires_at"], "resources": unknown, "network": unknown}},
		"same ttl":      {object{"ttl": "1h"}, object{"ttl": "60m", "expires_at": made["expires_at"]}},
		"another ttl":   {object{"ttl": "2h"}, object{"ttl": "2h", "expires_at": unknown}},
		"no ttl":        {object{"ttl": nil}, object{"ttl": nil, "expires_at": nil}},
		"labels":        {object{"labels": object{"a": "b"}}, object{"effective_labels": object{"a": "b"}}},
		"a cap":         {object{"resources": object{"cpu": 2}}, object{"resources": object{"cpu": 2.0, "memory_mb": unknown, "disk_mb": unknown, "gpu": unknown}}},
		"egress":        {object{"network": object{"egress": "deny"}}, object{"network": object{"egress": "deny", "allow": unknown, "ingress_ports": unknown}}},
		"what it keeps": {object{}, object{"id": made["id"], "sandbox_id": made["sandbox_id"], "created_at": made["created_at"], "image_id": made["image_id"], "backend": "stub"}},
	} {
		p := r.plan(with(config, test.change))
		if len(p.problems) > 0 {
			t.Errorf("%s: %q", name, p.problems)
		}
		for attribute, want := range test.want {
			if diff := cmp.Diff(want, p.after[attribute]); diff != "" {
				t.Errorf("%s: %s: %s", name, attribute, diff)
			}
		}
	}
	if h.opened != opened {
		t.Error("a backend was opened")
	}
	_, err = h.server.ConfigureProvider(t.Context(), configureRequest(h, object{"default_backend": "stub", "stub": object{"host": "known"}}))
	h.must(err)
	if after, found := r.apply(config); found != nil || after["id"] != made["id"] {
		t.Errorf("%q %v", found, after)
	}
}
