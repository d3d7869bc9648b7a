// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// cleanupTimeout bounds a teardown, which runs also when the caller's own context is over.
const cleanupTimeout = 60 * time.Second

// Create resolves spec, makes the sandbox, verifies what was made and waits until it
// is ready. What falls short or fails is torn down: never a silent downgrade, never
// a leftover. Only if that teardown fails too is the Sandbox returned beside the
// error, so that the caller can remember it.
func Create(ctx context.Context, b Backend, spec Spec, warn func(Warning)) (Sandbox, error) {
	if spec.Template.IsZero() {
		return nil, NoTemplate()
	}
	resolved, err := b.Resolve(ctx, spec)
	if err != nil {
		return nil, err
	}
	WarnUnverified(b.Name(), resolved.Tier.Tier, warn)
	sandbox, err := b.Create(ctx, spec, resolved)
	if err != nil {
		return nil, err
	}
	if err := accept(ctx, sandbox, spec, resolved); err != nil {
		if killErr := teardown(ctx, sandbox); killErr != nil {
			return sandbox, errors.Join(err, Errorf(KindBackend, "sandbox %s could not be removed after that: %w", sandbox.ID(), killErr))
		}
		return nil, err
	}
	return sandbox, nil
}

// Update brings the sandbox in place to what spec says, running and ready, and
// verifies it like [Create]. On an error the sandbox stays.
func Update(ctx context.Context, b Backend, id string, spec Spec) (Sandbox, error) {
	resolved, err := b.Resolve(ctx, spec)
	if err != nil {
		return nil, err
	}
	sandbox, err := b.Update(ctx, id, spec, resolved)
	if err != nil {
		return nil, err
	}
	return sandbox, accept(ctx, sandbox, spec, resolved)
}

// With makes a sandbox for the length of use, and tears it down when use returns,
// fails or panics, or as soon as ctx is cancelled.
func With(ctx context.Context, b Backend, spec Spec, warn func(Warning), use func(context.Context, Sandbox) error) (err error) {
	sandbox, err := Create(ctx, b, spec, warn)
	if err != nil {
		return err
	}
	// Cancellation doesn't wait for use to notice.
	stop := context.AfterFunc(ctx, func() { _ = teardown(ctx, sandbox) })
	defer func() {
		stop()
		err = errors.Join(err, teardown(ctx, sandbox))
	}()
	return use(ctx, sandbox)
}

// WithProcess starts cmd for the length of use. The process and its descendants are
// ended when use returns early, fails or panics, or ctx is cancelled.
func WithProcess(ctx context.Context, s Sandbox, cmd Command, use func(context.Context, Process) error) (err error) {
	p, err := s.Stream(ctx, cmd)
	if err != nil {
		return err
	}
	end := func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		return p.Close(ctx)
	}
	stop := context.AfterFunc(ctx, func() { _ = end() })
	defer func() {
		stop()
		err = errors.Join(err, end())
	}()
	return use(ctx, p)
}

func teardown(ctx context.Context, s Sandbox) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return s.Kill(ctx)
}

func accept(ctx context.Context, s Sandbox, spec Spec, resolved Resolved) error {
	if err := verify(s, spec, resolved); err != nil {
		return err
	}
	return awaitReady(ctx, s, spec)
}

// verify compares what was made with what was resolved.
func verify(s Sandbox, spec Spec, resolved Resolved) error {
	var errs problems
	short := func(field, what string, want, got any) {
		errs.add(&Error{
			Kind: KindIsolationShortfall, Field: field,
			Reason: fmt.Sprintf("the sandbox was made with %s %v, and %v was resolved", what, got, want),
			Remedy: "Report this: the backend didn't hold what it offered.",
		})
	}
	if minimum, ok := spec.RequireIsolation.Get(); ok && !s.Isolation().Satisfies(minimum) {
		short("require_isolation", "isolation", minimum, s.Isolation())
	} else if s.Isolation() != resolved.Tier.Tier {
		short("require_isolation", "isolation", resolved.Tier.Tier, s.Isolation())
	}
	info := s.Info()
	if info.Resources != resolved.Resources {
		short("resources", "resources", resolved.Resources, info.Resources)
	}
	if info.Network != resolved.Network {
		short("network", "the network", resolved.Network, info.Network)
	}
	return errs.err()
}
