// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package contract

import (
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

func testListAndReap(t *testing.T, s *suite) {
	reapable, ctx := s.reapable(t), s.context(t)
	mine, theirs := s.spec(), s.spec()
	mine.Owner, theirs.Owner = s.owner+"-mine", s.owner+"-theirs"
	mine.Labels = map[string]string{"kind": "a"}
	mine.TTL = time.Hour
	first, second := s.create(t, mine), s.create(t, theirs)
	theirState := sandboxcore.ManagedRunning
	if s.Stop != nil {
		s.Stop(t, second.ID())
		theirState = sandboxcore.ManagedStopped
	}

	found, err := reapable.ListManaged(ctx, sandboxcore.Filter{Owner: mine.Owner})
	if err != nil || len(found) != 1 {
		t.Fatalf("found %v, %v", found, err)
	}
	got := found[0]
	if got.SandboxID != first.ID() || got.Backend != s.backend.Name() || got.State != sandboxcore.ManagedRunning || got.Owner != mine.Owner {
		t.Errorf("listed %+v", got)
	}
	if got.Labels != sandboxcore.LabelsOf(mine.Labels) {
		t.Errorf("labels %v", got.Labels.Map())
	}
	if got.ExpiresAt != sandboxcore.Timestamp(first.Info().ExpiresAt) || !got.CreatedAt.IsSet() {
		t.Errorf("created %v, expires %v", got.CreatedAt, got.ExpiresAt)
	}
	if found, err := reapable.ListManaged(ctx, sandboxcore.Filter{Owner: mine.Owner, Labels: sandboxcore.LabelsOf(map[string]string{"kind": "b"})}); err != nil || len(found) != 0 {
		t.Errorf("another label: %v, %v", found, err)
	}
	if found, err := reapable.ListManaged(ctx, sandboxcore.Filter{Owner: theirs.Owner}); err != nil || len(found) != 1 || found[0].State != theirState {
		t.Errorf("theirs: %v, %v, want one that is %s", found, err, theirState)
	}
	for _, owner := range []string{mine.Owner, ""} {
		if err := reapable.Reap(ctx, owner, second.ID()); !sandboxcore.Is(err, sandboxcore.KindConfiguration) {
			t.Errorf("reaping as %q: %v, want ConfigurationError", owner, err)
		}
	}
	if _, err := s.backend.Get(ctx, second.ID()); err != nil {
		t.Errorf("another owner's sandbox: %v", err)
	}
	for range 2 {
		if err := reapable.Reap(ctx, mine.Owner, first.ID()); err != nil {
			t.Error(err)
		}
	}
	if err := reapable.ReapHelpers(ctx); err != nil {
		t.Error(err)
	}
	s.isGone(t, first.ID())
	if _, err := s.backend.Get(ctx, second.ID()); err != nil {
		t.Errorf("another owner's sandbox after reaping: %v", err)
	}
}

func testUnmanaged(t *testing.T, s *suite) {
	if s.Unmanaged == nil {
		t.Skip("this backend holds nothing but sandboxes")
	}
	id, there := s.Unmanaged(t)
	ctx := s.context(t)
	_, getErr := s.backend.Get(ctx, id)
	_, updateErr := s.backend.Update(ctx, id, s.spec(), sandboxcore.Resolved{})
	reapable := s.reapable(t)
	for what, err := range map[string]error{
		"get": getErr, "update": updateErr, "kill": s.backend.Kill(ctx, id), "reap": reapable.Reap(ctx, s.owner, id), "reap without owner": reapable.Reap(ctx, "", id),
	} {
		if !sandboxcore.Is(err, sandboxcore.KindConfiguration) {
			t.Errorf("%s: %v, want ConfigurationError", what, err)
		}
	}
	for _, m := range s.list(t, sandboxcore.Filter{}) {
		if m.SandboxID == id {
			t.Errorf("listed %+v", m)
		}
	}
	if !there() {
		t.Error("what isn't sandboxio's was removed")
	}
}

func testTemplates(t *testing.T, s *suite) {
	ctx := s.context(t)
	missing := sandboxcore.Template{Image: s.MissingImage}
	if _, err := s.backend.LookupTemplate(ctx, missing); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
		t.Errorf("lookup: %v, want NotFound", err)
	}
	if _, err := s.backend.EnsureTemplate(ctx, missing, sandboxcore.PullNever); !sandboxcore.Is(err, sandboxcore.KindNotFound) {
		t.Errorf("ensure without a pull: %v, want NotFound", err)
	}
	info, err := s.backend.EnsureTemplate(ctx, s.Spec.Template, sandboxcore.PullMissing)
	if err != nil || info.ID == "" {
		t.Fatalf("ensure: %+v, %v", info, err)
	}
	if known, err := s.backend.LookupTemplate(ctx, s.Spec.Template); err != nil || known != info {
		t.Errorf("ensured %+v, then known as %+v, %v", info, known, err)
	}
	spec := s.spec()
	spec.Template = sandboxcore.Template{ID: info.ID}
	if got := s.create(t, spec).Info(); got.TemplateID != info.ID || got.Template != spec.Template {
		t.Errorf("made from %v, %s", got.Template, got.TemplateID)
	}
}
