// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"context"
	"fmt"
	"sync"
)

// Backend makes sandboxes. Its methods are safe for concurrent use. It connects on
// first use, not when opened.
type Backend interface {
	// Name is the backend's name in configurations and ids.
	Name() string
	// Resolve says what Create would make of spec, and makes nothing. It gathers an
	// [Offer] and calls [Admit]. A spec whose Template is zero (not known yet) is
	// resolved as far as it can be.
	Resolve(ctx context.Context, spec Spec) (Resolved, error)
	// Create makes the sandbox that resolved describes, with its labels, and returns
	// when it runs. On any error, cancellation included, it leaves nothing behind.
	// Callers use [Create] or [With] instead, which resolve first and verify after.
	Create(ctx context.Context, spec Spec, resolved Resolved) (Sandbox, error)
	// Get looks at a managed sandbox by its id or its backend's name for it, and
	// changes nothing. KindNotFound only where the backend itself said so.
	Get(ctx context.Context, id string) (Sandbox, error)
	// Update brings an existing sandbox in place to what resolved describes: running,
	// and with the fields of resolved.InPlace as in spec.
	Update(ctx context.Context, id string, spec Spec, resolved Resolved) (Sandbox, error)
	// Kill ends a managed sandbox from any state with every helper object that only
	// it needed. Gone already is no error.
	Kill(ctx context.Context, id string) error
	// LookupTemplate says what is known of a template, and fetches nothing. KindNotFound
	// where the backend doesn't have it.
	LookupTemplate(ctx context.Context, t Template) (TemplateInfo, error)
	// EnsureTemplate fetches the template as policy says.
	EnsureTemplate(ctx context.Context, t Template, policy PullPolicy) (TemplateInfo, error)
	// Close gives up connections. Sandboxes live on.
	Close() error
}

// ReapableBackend is a backend that can find what it made, whoever asks.
type ReapableBackend interface {
	Backend
	// ListManaged returns what carries sandboxio's labels and matches filter.
	ListManaged(ctx context.Context, filter Filter) ([]ManagedSandbox, error)
	// Reap ends a sandbox like Kill, but only one that is labelled as owner's:
	// anything else is a ConfigurationError and left alone.
	Reap(ctx context.Context, owner, id string) error
	// ReapHelpers removes helper objects that no sandbox needs any more.
	ReapHelpers(ctx context.Context) error
}

// Filter selects managed sandboxes. Zero fields select all.
type Filter struct {
	Owner  string
	Labels Labels
}

// Warning is something a user should know that refuses nothing.
type Warning struct {
	Name, Summary, Detail string
}

// UnverifiedIsolationWarning is the name of the warning of [WarnUnverified].
const UnverifiedIsolationWarning = "UnverifiedIsolationWarning"

var warnedUnverified sync.Map

// WarnUnverified hands warn the UnverifiedIsolationWarning if tier is unknown, once
// per backend per process.
func WarnUnverified(backend string, tier IsolationTier, warn func(Warning)) {
	if tier != TierUnknown {
		return
	}
	if _, warned := warnedUnverified.LoadOrStore(backend, true); warned {
		return
	}
	warn(Warning{
		Name:    UnverifiedIsolationWarning,
		Summary: fmt.Sprintf("Isolation of the %s backend is unverified", backend),
		Detail:  fmt.Sprintf("Nothing documented says how the %s backend isolates a sandbox from its host and neighbours (%s). Don't run untrusted code in it.", backend, UnverifiedIsolationWarning),
	})
}

// Matches says whether a sandbox of this owner with these labels is selected.
func (f Filter) Matches(owner string, labels map[string]string) bool {
	if f.Owner != "" && f.Owner != owner {
		return false
	}
	for key, want := range f.Labels.Map() {
		if got, ok := labels[key]; !ok || got != want {
			return false
		}
	}
	return true
}
