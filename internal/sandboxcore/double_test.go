// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"context"
	"errors"
	"iter"
	"sync"
)

// double is a backend and its only sandbox in one, as a test sets it up.
type double struct {
	Unsupported
	Lifecycle
	Backend // nil: what a test doesn't set up panics

	name     string
	offer    Offer
	tier     IsolationTier // what the made sandbox has, where it isn't what was resolved
	short    *Resources    // likewise
	open     bool          // the made sandbox has another network than was resolved
	made     int
	killErr  error
	exec     func(context.Context, Command) (ExecResult, error)
	probeTCP error
	ended    chan Exit

	mu       sync.Mutex
	kills    int
	info     Info
	isolated IsolationTier
}

func newDouble() *double {
	return &double{name: "double", ended: make(chan Exit, 1), offer: fullOffer()}
}

func (d *double) Name() string { return d.name }

func (d *double) Resolve(_ context.Context, spec Spec) (Resolved, error) { return Admit(spec, d.offer) }

func (d *double) Create(_ context.Context, _ Spec, resolved Resolved) (Sandbox, error) {
	d.made++
	return d.bring(resolved)
}

func (d *double) Update(_ context.Context, _ string, _ Spec, resolved Resolved) (Sandbox, error) {
	return d.bring(resolved)
}

func (d *double) bring(resolved Resolved) (Sandbox, error) {
	d.info = Info{ID: "1", Resources: resolved.Resources, Network: resolved.Network, State: ManagedRunning}
	if d.short != nil {
		d.info.Resources = *d.short
	}
	if d.open {
		d.info.Network.Egress = EgressAllow
	}
	d.isolated = resolved.Tier.Tier
	if d.tier != TierUnknown {
		d.isolated = d.tier
	}
	return doubleSandbox{d}, d.To(StateRunning)
}

func (d *double) killed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.kills
}

type doubleSandbox struct{ *double }

func (s doubleSandbox) ID() string               { return "1" }
func (s doubleSandbox) Info() Info               { return s.info }
func (s doubleSandbox) Isolation() IsolationTier { return s.isolated }
func (s doubleSandbox) Capabilities() Capability { return s.offer.Capabilities }
func (s doubleSandbox) Native() any              { return s }
func (s doubleSandbox) Files() FileSystem        { return s.Unsupported.Files() }

func (s doubleSandbox) Kill(ctx context.Context) error {
	s.mu.Lock()
	s.kills++
	s.mu.Unlock()
	// A teardown that comes with a context that is over already couldn't do anything.
	return errors.Join(ctx.Err(), s.killErr)
}

func (s doubleSandbox) Wait(ctx context.Context) (Exit, error) {
	select {
	case exit := <-s.ended:
		return exit, nil
	case <-ctx.Done():
		return Exit{}, ctx.Err()
	}
}

func (s doubleSandbox) Exec(ctx context.Context, cmd Command) (ExecResult, error) {
	return s.exec(ctx, cmd)
}
func (s doubleSandbox) ProbeTCP(context.Context, int) error { return s.probeTCP }

func (s doubleSandbox) Stream(context.Context, Command) (Process, error) {
	return &doubleProcess{closed: make(chan struct{})}, nil
}

// doubleProcess yields these chunks.
type doubleProcess struct {
	chunks []Chunk
	result ExecResult
	cut    error // the last thing that Chunks yields
	once   sync.Once
	closed chan struct{}
}

func (p *doubleProcess) Chunks() iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		for _, c := range p.chunks {
			if !yield(c, nil) {
				return
			}
		}
		if p.cut != nil {
			yield(Chunk{}, p.cut)
		}
	}
}

func (p *doubleProcess) Wait(context.Context) (ExecResult, error) {
	result := p.result
	result.Streamed = true
	return result, nil
}

func (p *doubleProcess) Close(ctx context.Context) error {
	p.once.Do(func() { close(p.closed) })
	return ctx.Err()
}
