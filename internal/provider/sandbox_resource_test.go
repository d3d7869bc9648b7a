// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore/backend/fake"
)

const sandboxType = "sandboxio_sandbox"

// with is base changed by changes.
func with(base, changes object) object {
	o := maps.Clone(base)
	maps.Copy(o, changes)
	return o
}

var basic = object{"image": "img"}

func TestModelMirrorsSchema(t *testing.T) {
	t.Parallel()
	r := &sandboxResource{factories: []sandboxcore.Factory{fake.Factory()}}
	var resp resource.SchemaResponse
	r.Schema(t.Context(), resource.SchemaRequest{}, &resp)
	var fields []string
	(&sandboxModel{}).eachAttribute(func(name string, _ reflect.Value) { fields = append(fields, name) })
	slices.Sort(fields)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(resp.Schema.Attributes)), fields); diff != "" {
		t.Error(diff)
	}
}

// What can't be honoured is refused at plan, at its attribute.
func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change object
		at     string
		says   string
	}{
		"learn":                   {object{"network": object{"egress": "learn"}}, "network.egress", "learn"},
		"egress nonsense":         {object{"network": object{"egress": "open"}}, "network.egress", "open"},
		"allow list":              {object{"network": object{"egress": "allow", "allow": []any{"example.org"}}}, "network.allow", "no filter"},
		"allow beside deny":       {object{"network": object{"allow": []any{"example.org"}}}, "network.allow", "contradict"},
		"allow nonsense":          {object{"network": object{"egress": "allow", "allow": []any{"a.org", "exa mple"}}}, "network.allow[1]", "exa mple"},
		"ingress":                 {object{"network": object{"ingress_ports": []any{80}}}, "network.ingress_ports", "no relay"},
		"port nonsense":           {object{"network": object{"ingress_ports": []any{80, 70000}}}, "network.ingress_ports[1]", "70000"},
		"unknown required":        {object{"require_isolation": "unknown"}, "require_isolation", "can't be required"},
		"isolation above":         {object{"require_isolation": "gvisor"}, "require_isolation", "container (runc)"},
		"isolation nonsense":      {object{"require_isolation": "vm"}, "require_isolation", "vm"},
		"cpu above":               {object{"resources": object{"cpu": 3}}, "resources.cpu", "has 2"},
		"cpu of zero":             {object{"resources": object{"cpu": 0}}, "resources.cpu", "greater than zero"},
		"negative cpu":            {object{"resources": object{"cpu": -1}}, "resources.cpu", "greater than zero"},
		"memory of zero":          {object{"resources": object{"memory_mb": 0}}, "resources.memory_mb", "greater than zero"},
		"negative memory":         {object{"resources": object{"memory_mb": -5}}, "resources.memory_mb", "greater than zero"},
		"memory above":            {object{"resources": object{"memory_mb": 5000}}, "resources.memory_mb", "has 4096"},
		"memory below":            {object{"resources": object{"memory_mb": 4}}, "resources.memory_mb", "less than 6"},
		"disk":                    {object{"resources": object{"disk_mb": 512}}, "resources.disk_mb", "no quota"},
		"gpu":                     {object{"resources": object{"gpu": "T4"}}, "resources.gpu", "T4"},
		"reserved label":          {object{"labels": object{"sandboxio.owner": "x"}}, `labels["sandboxio.owner"]`, "reserved"},
		"image and template":      {object{"template_id": "t"}, "template_id", "can't both be set"},
		"neither":                 {object{"image": nil}, "image", "nothing to make"},
		"ttl nonsense":            {object{"ttl": "soon"}, "ttl", "soon"},
		"ttl of zero":             {object{"ttl": "0s"}, "ttl", "greater than zero"},
		"negative ttl":            {object{"ttl": "-1h"}, "ttl", "greater than zero"},
		"backend nonsense":        {object{"backend": "podman"}, "backend", "podman"},
		"relative folder":         {object{"working_dir": "work"}, "working_dir", "absolute"},
		"empty program":           {object{"command": []any{""}}, "command[0]", "no program"},
		"env name":                {object{"env": object{"A=B": "x"}}, "env", "A=B"},
		"two probes":              {object{"readiness": object{"exec": []any{"true"}, "tcp_port": 80}}, "readiness", "both"},
		"no probe":                {object{"readiness": object{"timeout": "5s"}}, "readiness", "nothing to probe"},
		"probe port":              {object{"readiness": object{"tcp_port": 0}}, "readiness.tcp_port", "port"},
		"probe interval nonsense": {object{"readiness": object{"tcp_port": 1, "interval": "x"}}, "readiness.interval", "duration"},
		"name nonsense":           {object{"name": "a b"}, "name", "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, nil).resource(sandboxType)
			config := with(basic, test.change)
			found := r.validate(config)
			if len(found) == 0 {
				found = r.plan(config).problems
			}
			// Of an attribute in an attribute, Terraform finds the line of the outer one only.
			root, nested := test.at, ""
			if i := strings.IndexAny(test.at, ".["); i > 0 {
				nested = " at " + test.at + ": "
				if test.at[i] == '.' {
					root = test.at[:i]
				}
			}
			if len(found) != 1 || !strings.HasPrefix(found[0], root+": ") || !strings.Contains(found[0], nested) || !strings.Contains(found[0], test.says) {
				t.Errorf("got %q, want one at %s that says %q", found, test.at, test.says)
			}
		})
	}
}

func TestSeveralRefusalsAtOnce(t *testing.T) {
	t.Parallel()
	r := newHarness(t, nil).resource(sandboxType)
	found := r.plan(with(basic, object{"resources": object{"cpu": 3, "disk_mb": 1}, "require_isolation": "microvm"})).problems
	if len(found) != 3 {
		t.Errorf("got %q, want three", found)
	}
}

// The first plan, when nothing exists, has every security-relevant value.
func TestFirstPlanIsConcrete(t *testing.T) {
	t.Parallel()
	h := newHarness(t, object{"default_backend": "stub", "default_labels": object{"team": "a"}})
	got := h.resource(sandboxType).plan(with(basic, object{"labels": object{"x": "y"}})).after
	want := object{
		"backend": "stub", "isolation": "container", "state": "running", "image_id": "sha256:img",
		"resources":        object{"cpu": 1.0, "memory_mb": 1024.0, "disk_mb": nil, "gpu": nil},
		"network":          object{"egress": "deny", "allow": []any{}, "ingress_ports": []any{}},
		"enforcement":      object{"cpu": "cgroup", "memory": "cgroup", "disk": "none", "pids": "cgroup", "egress": "no network"},
		"capabilities":     []any{"RUN_COMMAND", "NETWORK_POLICY"},
		"effective_labels": object{"team": "a", "x": "y"},
		"expires_at":       nil,
		"id":               unknown, "sandbox_id": unknown, "created_at": unknown,
	}
	for name, v := range want {
		if diff := cmp.Diff(v, got[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Only what depends on an unknown input is unknown.
func TestUnknownInputs(t *testing.T) {
	t.Parallel()
	everything := []string{"resources", "network", "isolation", "enforcement", "effective_labels", "image_id", "capabilities"}
	for name, test := range map[string]struct {
		change  object
		unknown []string
	}{
		"cpu":               {object{"resources": object{"cpu": unknown}}, []string{"enforcement"}},
		"resources":         {object{"resources": unknown}, []string{"resources", "enforcement"}},
		"egress":            {object{"network": object{"egress": unknown}}, []string{"enforcement"}},
		"require_isolation": {object{"require_isolation": unknown}, []string{"isolation"}},
		"image":             {object{"image": unknown}, []string{"image_id"}},
		"labels":            {object{"labels": unknown}, []string{"effective_labels"}},
		"a label":           {object{"labels": object{"a": unknown}}, []string{"effective_labels"}},
		"env":               {object{"env": object{"A": unknown}}, nil},
		"command":           {object{"command": []any{"a", unknown}}, nil},
		"ttl":               {object{"ttl": unknown}, nil},
		"readiness":         {object{"readiness": object{"exec": unknown}}, nil},
		"backend":           {object{"backend": unknown}, []string{"resources", "network", "isolation", "enforcement", "image_id", "capabilities"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, nil).resource(sandboxType)
			config := with(basic, test.change)
			if found := r.validate(config); len(found) > 0 {
				t.Fatalf("validate: %q", found)
			}
			p := r.plan(config)
			if len(p.problems) > 0 {
				t.Fatalf("plan: %q", p.problems)
			}
			for _, attribute := range everything {
				if is, want := p.after[attribute] == unknown, slices.Contains(test.unknown, attribute); is != want {
					t.Errorf("%s: %v", attribute, p.after[attribute])
				}
			}
		})
	}
	r := newHarness(t, nil).resource(sandboxType)
	after := r.plan(with(basic, object{"resources": object{"cpu": unknown, "memory_mb": 64}})).after
	if diff := cmp.Diff(object{"cpu": unknown, "memory_mb": 64.0, "disk_mb": nil, "gpu": nil}, after["resources"]); diff != "" {
		t.Error(diff)
	}
}

// Unknown provider configuration opens no backend, and is no error.
func TestUnknownProviderConfigurationContactsNothing(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]object{
		"setting":         {"default_backend": "stub", "stub": object{"host": unknown}},
		"settings":        {"default_backend": "stub", "stub": unknown},
		"default_backend": {"default_backend": unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, config)
			p := h.resource(sandboxType).plan(basic)
			if len(p.problems) > 0 || p.after["resources"] != unknown || p.after["isolation"] != unknown {
				t.Errorf("%q %v", p.problems, p.after)
			}
			tp := h.resource("sandboxio_template").plan(basic)
			if len(tp.problems) > 0 || tp.after["template_id"] != unknown {
				t.Errorf("%q %v", tp.problems, tp.after)
			}
			if h.opened != 0 {
				t.Errorf("opened %d backends", h.opened)
			}
		})
	}
}

func TestBackendIsOpenedOnceAndOnFirstUse(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	if h.opened != 0 {
		t.Error("configuring opened a backend")
	}
	for range 3 {
		h.resource(sandboxType).plan(basic)
	}
	if h.opened != 1 {
		t.Errorf("opened %d times", h.opened)
	}
}

func TestRefusedBackend(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		provider object
		says     string
	}{
		"its settings":     {object{"default_backend": "stub", "stub": object{"refuse": true}}, "told to refuse"},
		"fake not enabled": {object{"default_backend": "fake"}, "tests only"},
		"none named":       {object{}, "no backend is named"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := newHarness(t, test.provider).resource(sandboxType).plan(basic).problems
			if len(found) != 1 || !strings.Contains(strings.ToLower(found[0]), test.says) {
				t.Errorf("got %q", found)
			}
		})
	}
}

// In place or replace is the backend's word, shown at the attribute that changed.
func TestInPlaceOrReplace(t *testing.T) {
	t.Parallel()
	base := object{
		"image": "img", "name": "n", "resources": object{"cpu": 1, "memory_mb": 512}, "env": object{"A": "1"}, "labels": object{"a": "1"},
		"command": []any{"run"}, "working_dir": "/w", "user": "u", "ttl": "60m", "stub": object{"read_only": true},
		"readiness": object{"tcp_port": 8080},
	}
	for name, test := range map[string]struct {
		change   object
		replaces []string
	}{
		"nothing":           {object{}, nil},
		"same ttl":          {object{"ttl": "1h"}, nil},
		"cpu":               {object{"resources": object{"cpu": 2, "memory_mb": 512}}, nil},
		"memory":            {object{"resources": object{"cpu": 1, "memory_mb": 64}}, nil},
		"caps removed":      {object{"resources": nil}, nil},
		"timeouts":          {object{"timeouts": object{"create": "1m"}}, nil},
		"readiness":         {object{"readiness": object{"tcp_port": 80}}, nil},
		"require_isolation": {object{"require_isolation": "container"}, nil},
		"image":             {object{"image": "other"}, []string{"image"}},
		"name":              {object{"name": "other"}, []string{"name"}},
		"env":               {object{"env": object{"A": "2"}}, []string{"env"}},
		"env removed":       {object{"env": nil}, []string{"env"}},
		"labels":            {object{"labels": object{"a": "2"}}, []string{"labels"}},
		"command":           {object{"command": []any{"run", "x"}}, []string{"command"}},
		"command removed":   {object{"command": nil}, []string{"command"}},
		"working_dir":       {object{"working_dir": "/x"}, []string{"working_dir"}},
		"user":              {object{"user": nil}, []string{"user"}},
		"ttl":               {object{"ttl": "2h"}, []string{"ttl"}},
		"egress":            {object{"network": object{"egress": "allow"}}, []string{"network.egress"}},
		"option":            {object{"stub": nil}, []string{"stub.read_only"}},
		"image to template": {object{"image": nil, "template_id": "t"}, []string{"image", "template_id"}},
		"cpu and user":      {object{"resources": object{"cpu": 2, "memory_mb": 512}, "user": "v"}, []string{"user"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, nil).resource(sandboxType)
			if _, found := r.apply(base); found != nil {
				t.Fatal(found)
			}
			p := r.plan(with(base, test.change))
			if diff := cmp.Diff(test.replaces, p.replaces); diff != "" || len(p.problems) > 0 {
				t.Errorf("%s %q", diff, p.problems)
			}
			if name == "nothing" || name == "same ttl" {
				if !p.value.Equal(r.state) {
					t.Errorf("a change is planned: %v", p.after)
				}
				return
			}
			if p.after["id"] == unknown {
				t.Error("the id of an existing sandbox became unknown")
			}
			if test.replaces == nil {
				if _, found := r.apply(with(base, test.change)); found != nil {
					t.Fatal(found)
				}
				if again := r.plan(with(base, test.change)); !again.value.Equal(r.state) {
					t.Errorf("planned again: %v", again.after)
				}
			}
		})
	}
}

func TestRemovedFieldReturnsToItsDefault(t *testing.T) {
	t.Parallel()
	r := newHarness(t, nil).resource(sandboxType)
	if _, found := r.apply(with(basic, object{"resources": object{"cpu": 0.5, "memory_mb": 64}})); found != nil {
		t.Fatal(found)
	}
	after, found := r.apply(with(basic, object{"resources": object{"memory_mb": 64}}))
	if found != nil {
		t.Fatal(found)
	}
	if diff := cmp.Diff(object{"cpu": 1.0, "memory_mb": 64.0, "disk_mb": nil, "gpu": nil}, after["resources"]); diff != "" {
		t.Error(diff)
	}
}

func TestDefaultLabelsThatChangeReplace(t *testing.T) {
	t.Parallel()
	h := newHarness(t, object{"default_backend": "stub", "default_labels": object{"team": "a"}})
	r := h.resource(sandboxType)
	if _, found := r.apply(basic); found != nil {
		t.Fatal(found)
	}
	again := newHarness(t, object{"default_backend": "stub", "default_labels": object{"team": "b"}}).resource(sandboxType)
	again.state = r.state
	if p := again.plan(basic); !slices.Equal(p.replaces, []string{"effective_labels"}) {
		t.Errorf("replaced by %v", p.replaces)
	}
}

func TestNullAndEmptyStayAsWritten(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]object{
		"null": basic,
		"empty": with(basic, object{
			"command": []any{}, "env": object{}, "labels": object{}, "network": object{"allow": []any{}, "ingress_ports": []any{}}, "resources": object{},
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, nil).resource(sandboxType)
			if _, found := r.apply(config); found != nil {
				t.Fatal(found)
			}
			if _, found := r.read(); found != nil {
				t.Fatal(found)
			}
			if p := r.plan(config); !p.value.Equal(r.state) {
				t.Errorf("a change is planned: %v", p.after)
			}
		})
	}
}

// Stopped and paused are planned as an in-place start; gone is planned anew.
func TestDrift(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"stopped", "paused"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, nil)
			r := h.resource(sandboxType)
			made, _ := r.apply(basic)
			id, _ := made["sandbox_id"].(string)
			if state == "stopped" {
				h.must(h.backend.Stop(id))
			} else {
				h.must(h.backend.Pause(id))
			}
			if seen, _ := r.read(); seen["state"] != state {
				t.Fatalf("state %v", seen["state"])
			}
			p := r.plan(basic)
			if len(p.replaces) > 0 || p.value.Equal(r.state) || p.after["state"] != "running" || p.after["id"] != made["id"] {
				t.Errorf("replaces %v, after %v", p.replaces, p.after)
			}
			healed, found := r.apply(basic)
			if found != nil || healed["state"] != "running" || healed["id"] != made["id"] {
				t.Errorf("%v %v", found, healed)
			}
		})
	}
	t.Run("caps changed by hand", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, nil)
		r := h.resource(sandboxType)
		made, _ := r.apply(basic)
		id, _ := made["sandbox_id"].(string)
		spec := sandboxcore.Spec{Owner: "default", Template: sandboxcore.Template{Image: "img"}, Resources: sandboxcore.Resources{CPU: sandboxcore.Some(2.0)}}
		_, err := sandboxcore.Update(t.Context(), h.backend, id, spec)
		h.must(err)
		if _, found := r.read(); found != nil {
			t.Fatal(found)
		}
		healed, found := r.apply(basic)
		if found != nil || as[object](t, healed["resources"])["cpu"] != 1.0 {
			t.Errorf("%v %v", found, healed["resources"])
		}
	})
	t.Run("gone", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, nil)
		r := h.resource(sandboxType)
		made, _ := r.apply(basic)
		id, _ := made["sandbox_id"].(string)
		h.must(h.backend.Kill(t.Context(), id))
		if seen, found := r.read(); seen != nil || found != nil {
			t.Errorf("still %v, %v", seen, found)
		}
	})
	t.Run("destroyed twice", func(t *testing.T) {
		t.Parallel()
		r := newHarness(t, nil).resource(sandboxType)
		r.apply(basic)
		state := r.state
		for range 2 {
			r.state = state
			if found := r.destroy(); found != nil {
				t.Error(found)
			}
		}
	})
}

func TestExpiredIsPlannedAnewAndSaysWhy(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	r := h.resource(sandboxType)
	// It is over as soon as it's made.
	if _, found := r.apply(with(basic, object{"ttl": "1ns"})); found != nil {
		t.Fatal(found)
	}
	if seen, found := r.read(); seen != nil || found != nil {
		t.Errorf("still %v, %v", seen, found)
	}
	if !slices.Equal(r.warnings, []string{"Sandbox expired"}) {
		t.Errorf("warnings %q", r.warnings)
	}
}

// An expired sandbox that the backend still has, stopped, isn't started again.
func TestExpiredButThereIsReplaced(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	r := h.resource(sandboxType)
	config := with(basic, object{"ttl": "1h"})
	if _, found := r.apply(config); found != nil {
		t.Fatal(found)
	}
	h.backend.look = func(i *sandboxcore.Info) {
		i.State, i.ExpiresAt = sandboxcore.ManagedStopped, time.Now().Add(-time.Second)
	}
	if seen, found := r.read(); found != nil || seen["state"] != "stopped" {
		t.Fatalf("%v %q", seen, found)
	}
	p := r.plan(config)
	if !slices.Equal(p.replaces, []string{"state"}) || !slices.Equal(p.warnings, []string{"Sandbox expired"}) {
		t.Errorf("replaced by %v, warnings %q", p.replaces, p.warnings)
	}
}

// An error of the backend never loses the state.
func TestUnavailableKeepsState(t *testing.T) {
	t.Parallel()
	for _, fault := range []fake.Fault{fake.FaultUnavailable, fake.FaultRefuse, fake.FaultTooMany} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, nil)
			r := h.resource(sandboxType)
			r.apply(basic)
			before := r.state
			h.must(h.backend.Inject(fake.Injection{Op: fake.OpGet, Fault: fault, Always: true}, fake.Injection{Op: fake.OpKill, Fault: fault, Always: true}))
			if _, found := r.read(); len(found) != 1 {
				t.Errorf("read: %q", found)
			}
			if found := r.destroy(); len(found) != 1 {
				t.Errorf("destroy: %q", found)
			}
			if !r.state.Equal(before) {
				t.Error("the state was lost")
			}
			h.must(h.backend.Inject(fake.Injection{Op: fake.OpUpdate, Fault: fault, Always: true}))
			if _, found := r.apply(with(basic, object{"resources": object{"cpu": 2}})); len(found) != 1 {
				t.Errorf("update: %q", found)
			}
			if !r.state.Equal(before) {
				t.Error("a failed update changed the state")
			}
		})
	}
	h := newHarness(t, nil)
	h.backend.fail = sandboxcore.Errorf(sandboxcore.KindBackendUnavailable, "no engine answers")
	if found := h.resource(sandboxType).plan(basic).problems; len(found) != 1 || !strings.Contains(found[0], "o engine answers") {
		t.Errorf("plan: %q", found)
	}
}

func TestFailedCreate(t *testing.T) {
	t.Parallel()
	t.Run("leaves no state", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, nil)
		r := h.resource(sandboxType)
		h.must(h.backend.Inject(fake.Injection{Op: fake.OpCreate, Fault: fake.FaultRefuse, Times: 1}))
		if after, found := r.apply(basic); len(found) != 1 || after != nil {
			t.Errorf("%v %q", after, found)
		}
	})
	t.Run("that can't be taken back is kept as tainted", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, nil)
		// What is made falls short of what was resolved, and can't be removed.
		h.backend.offer = func(o *sandboxcore.Offer) { o.Tiers[0].Tier = sandboxcore.TierUnknown }
		h.must(h.backend.Inject(fake.Injection{Op: fake.OpKill, Fault: fake.FaultRefuse, Always: true}))
		after, found := h.resource(sandboxType).apply(basic)
		if len(found) != 2 || after["sandbox_id"] == nil {
			t.Errorf("%v %q", after, found)
		}
	})
}

func TestUnknownTierSatisfiesNothing(t *testing.T) {
	h := newHarness(t, nil)
	h.backend.offer = func(o *sandboxcore.Offer) { o.Tiers = nil }
	if p := h.resource(sandboxType).plan(with(basic, object{"require_isolation": "container"})); len(p.problems) != 1 {
		t.Errorf("required of a backend that claims nothing: %q", p.problems)
	}
}

func TestImport(t *testing.T) {
	t.Parallel()
	h := newHarness(t, object{"default_backend": "stub", "default_labels": object{"team": "a"}})
	config := with(basic, object{
		"name": "n", "labels": object{"x": "y"}, "env": object{"A": "1"}, "command": []any{"run"}, "ttl": "90m", "resources": object{"cpu": 2},
		"working_dir": "/w", "user": "u", "readiness": object{"tcp_port": 8080}, "stub": object{"read_only": true, "caps": []any{"a"}},
	})
	made, found := h.resource(sandboxType).apply(config)
	if found != nil {
		t.Fatal(found)
	}
	for _, id := range []any{made["id"], "stub/n"} {
		r := h.resource(sandboxType)
		if found := r.importID(as[string](t, id)); found != nil {
			t.Fatal(found)
		}
		if _, found := r.read(); found != nil {
			t.Fatal(found)
		}
		if p := r.plan(config); !p.value.Equal(r.state) || len(p.replaces) > 0 {
			t.Errorf("%s: a change is planned: %v, %v", id, p.replaces, cmp.Diff(toGo(t, r.state), any(p.after)))
		}
	}
	for id, says := range map[string]string{"n": "not the id", "stub/": "not the id", "none/x": "no backend", "stub/none": "NotFound"} {
		if found := h.resource(sandboxType).importID(id); len(found) != 1 || !strings.Contains(found[0], says) {
			t.Errorf("%s: %q", id, found)
		}
	}
}

func TestDefaultLabelsAreChecked(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	resp, err := h.server.ConfigureProvider(t.Context(), configureRequest(h, object{"default_labels": object{"sandboxio.owner": "x"}}))
	h.must(err)
	if found := problems(resp.Diagnostics); len(found) != 1 || !strings.HasPrefix(found[0], "default_labels") {
		t.Errorf("%q", found)
	}
}
