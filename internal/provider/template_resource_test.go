// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore/backend/fake"
)

const templateType = "sandboxio_template"

func TestTemplateRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config   object
		at, says string
	}{
		"neither":               {object{}, "image: ", "nothing to make"},
		"both":                  {object{"image": "i", "template_id": "t"}, "template_id: ", "can't both be set"},
		"empty image":           {object{"image": ""}, "image: ", "at least 1"},
		"pull_policy nonsense":  {object{"image": "i", "pull_policy": "sometimes"}, "pull_policy: ", "sometimes"},
		"backend nonsense":      {object{"image": "i", "backend": "podman"}, "backend: ", "podman"},
		"image with spaces":     {object{"image": " i"}, "image: ", "white space"},
		"missing, never pulled": {object{"image": fake.MissingImage, "pull_policy": "never"}, "image: ", "no such image"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, nil).resource(templateType)
			found := r.validate(test.config)
			if len(found) == 0 {
				found = r.plan(test.config).problems
			}
			if len(found) != 1 || !strings.HasPrefix(found[0], test.at) || !strings.Contains(found[0], test.says) {
				t.Errorf("got %q, want one at %q that says %q", found, test.at, test.says)
			}
		})
	}
}

// What the backend has already is known in the plan, and nothing else is.
func TestTemplateFirstPlan(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config object
		known  bool
	}{
		"there":        {object{"image": "i"}, true},
		"by id":        {object{"template_id": "t"}, true},
		"asked anew":   {object{"image": "i", "pull_policy": "always"}, false},
		"not there":    {object{"image": fake.MissingImage}, false},
		"unknown":      {object{"image": unknown}, false},
		"unknown rule": {object{"image": "i", "pull_policy": unknown}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newHarness(t, nil).resource(templateType).plan(test.config)
			if len(p.problems) > 0 || p.after["id"] != unknown != test.known || p.after["digest"] != unknown != test.known || p.after["backend"] != "stub" {
				t.Errorf("%q %v", p.problems, p.after)
			}
		})
	}
}

func TestTemplateLifecycle(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	r := h.resource(templateType)
	made, found := r.apply(object{"image": "i"})
	if found != nil || made["id"] != "stub/fake:i" || made["template_id"] != "fake:i" || made["digest"] != nil || made["resources"] != nil {
		t.Fatalf("%q %v", found, made)
	}
	if p := r.plan(object{"image": "i"}); !p.value.Equal(r.state) {
		t.Errorf("a change is planned: %v", p.after)
	}
	if p := r.plan(object{"image": "j"}); len(p.replaces) != 1 || p.replaces[0] != "image" {
		t.Errorf("another image: replaced by %v", p.replaces)
	}
	if after, found := r.apply(object{"image": "i", "pull_policy": "never", "timeouts": object{"read": "1m"}}); found != nil || after["id"] != made["id"] {
		t.Errorf("%q %v", found, after)
	}
	h.backend.caps = sandboxcore.Resources{CPU: sandboxcore.Some(2.0)}
	if seen, found := r.read(); found != nil || as[object](t, seen["resources"])["cpu"] != 2.0 {
		t.Errorf("caps of the template: %q %v", found, seen)
	}
	before := r.state
	h.backend.fail = sandboxcore.Errorf(sandboxcore.KindBackendUnavailable, "no answer")
	if _, found := r.read(); len(found) != 1 || !r.state.Equal(before) {
		t.Errorf("unavailable: %q", found)
	}
	h.backend.fail = sandboxcore.Errorf(sandboxcore.KindNotFound, "pruned")
	if seen, found := r.read(); found != nil || seen != nil {
		t.Errorf("pruned: %q %v", found, seen)
	}
	r.state = before
	if found := r.destroy(); found != nil {
		t.Error(found)
	}
}

func TestTemplateImport(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	for id, config := range map[string]object{"stub/t": {"template_id": "t"}, "stub/registry/i:1": {"image": "registry/i:1"}} {
		h.backend.onlyID = "t"
		r := h.resource(templateType)
		if found := r.importID(id); found != nil {
			t.Fatal(found)
		}
		if _, found := r.read(); found != nil {
			t.Fatal(found)
		}
		if p := r.plan(config); !p.value.Equal(r.state) || len(p.replaces) > 0 {
			t.Errorf("%s: a change is planned: %v from %v", id, p.after, toGo(t, r.state))
		}
	}
	for id, says := range map[string]string{"i": "not the id", "stub/" + fake.MissingImage: "NotFound", "none/x": "no backend"} {
		if found := h.resource(templateType).importID(id); len(found) != 1 || !strings.Contains(found[0], says) {
			t.Errorf("%s: %q", id, found)
		}
	}
}
