// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

// Package fake is a backend for tests. It executes nothing: it keeps what it was asked
// for in a folder, so that separate provider processes see the same sandboxes, and it
// can be told to fail in the ways that real backends do. The folder holds
//
//	sandboxes/<id>/sandbox.json  what was asked for
//	sandboxes/<id>/files/        the sandbox's files
//	faults.json                  the armed faults, a list of [Injection]
//	lock                         held by who changes any of these
package fake

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// Name is the backend's name.
const Name = "fake"

const (
	settingStateDir = "state_dir"
	settingEnabled  = "enabled_for_tests"
)

const capabilities = sandboxcore.Filesystem | sandboxcore.UploadDownload | sandboxcore.NetworkPolicies | sandboxcore.Tunnels | sandboxcore.GPU

// recorded is what enforces a promise here: nobody.
const recorded = "recorded by the fake"

// Backend is the fake backend over one folder.
type Backend struct {
	dir string
	now func() time.Time
}

var _ sandboxcore.ReapableBackend = (*Backend)(nil)

// Factory describes the backend. It opens only where the configuration says that this
// is a test.
func Factory() sandboxcore.Factory {
	return sandboxcore.Factory{
		Name:        Name,
		Description: "For tests of modules only: it executes nothing.",
		Settings: []sandboxcore.Setting{
			{Name: settingEnabled, Kind: sandboxcore.BoolSetting, Description: "Has to be `true`: it says that this configuration is a test. Default: `false`."},
			{Name: settingStateDir, Kind: sandboxcore.StringSetting, Description: "Folder that holds the sandboxes; it is made if it isn't there. Required."},
		},
		Open: func(s sandboxcore.Settings) (sandboxcore.Backend, error) {
			if !s.Bool(settingEnabled) {
				return nil, sandboxcore.Configuration(Name+"."+settingEnabled, "the fake backend executes nothing and isolates nothing, so it is for tests only",
					"Choose another backend, or set fake = { enabled_for_tests = true, state_dir = \"…\" } in the provider of a test.")
			}
			if s.String(settingStateDir) == "" {
				return nil, sandboxcore.Configuration(Name+"."+settingStateDir, "the fake backend needs a folder", "Set state_dir.")
			}
			return New(s.String(settingStateDir)), nil
		},
	}
}

// Option changes a Backend that [New] makes.
type Option func(*Backend)

// WithClock makes now the clock by which sandboxes are created and expire.
func WithClock(now func() time.Time) Option { return func(b *Backend) { b.now = now } }

// New returns the fake over dir, which is made when something has to be kept.
func New(dir string, options ...Option) *Backend {
	b := &Backend{dir: dir, now: time.Now}
	for _, option := range options {
		option(b)
	}
	return b
}

// Name returns "fake".
func (b *Backend) Name() string { return Name }

// Close does nothing.
func (b *Backend) Close() error { return nil }

// Resolve admits anything that a plain container backend could honour.
func (b *Backend) Resolve(_ context.Context, spec sandboxcore.Spec) (sandboxcore.Resolved, error) {
	if err := b.before(OpResolve, ""); err != nil {
		return sandboxcore.Resolved{}, err
	}
	return sandboxcore.Admit(spec, b.offer(spec.Template))
}

func (b *Backend) offer(t sandboxcore.Template) sandboxcore.Offer {
	return sandboxcore.Offer{
		Backend: Name, Capabilities: capabilities,
		Tiers:            []sandboxcore.TierOffer{{Tier: sandboxcore.TierContainer, Runtime: Name}},
		Template:         templateInfo(t),
		MaxCPU:           64,
		MinMemoryMB:      6,
		MaxMemoryMB:      1 << 20,
		AllowListRefusal: "",
		EgressEnforcement: map[sandboxcore.Egress]string{
			sandboxcore.EgressDeny: recorded, sandboxcore.EgressAllow: recorded,
		},
		Enforcement: sandboxcore.Enforcement{CPU: recorded, Memory: recorded, Disk: recorded, Pids: recorded},
		InPlace:     []string{"resources.cpu", "resources.memory_mb", "labels", "ttl"},
	}
}

func templateInfo(t sandboxcore.Template) sandboxcore.TemplateInfo {
	switch {
	case t.ID != "":
		return sandboxcore.TemplateInfo{ID: t.ID}
	case t.Image != "":
		return sandboxcore.TemplateInfo{ID: Name + ":" + t.Image}
	}
	return sandboxcore.TemplateInfo{}
}

// MissingImage is an image that the fake never has.
const MissingImage = "missing.invalid/image:1"

// LookupTemplate knows every template but MissingImage.
func (b *Backend) LookupTemplate(_ context.Context, t sandboxcore.Template) (sandboxcore.TemplateInfo, error) {
	if t.Image == MissingImage {
		return sandboxcore.TemplateInfo{}, &sandboxcore.Error{Kind: sandboxcore.KindNotFound, Field: "image", Reason: "the fake has no such image", Remedy: "Name another one."}
	}
	return templateInfo(t), nil
}

// EnsureTemplate can't fetch MissingImage either.
func (b *Backend) EnsureTemplate(ctx context.Context, t sandboxcore.Template, _ sandboxcore.PullPolicy) (sandboxcore.TemplateInfo, error) {
	return b.LookupTemplate(ctx, t)
}

// Create records a sandbox.
func (b *Backend) Create(ctx context.Context, spec sandboxcore.Spec, resolved sandboxcore.Resolved) (sandboxcore.Sandbox, error) {
	if err := b.before(OpCreate, ""); err != nil {
		return nil, err
	}
	if _, err := b.LookupTemplate(ctx, spec.Template); err != nil {
		return nil, err
	}
	r := record{ID: newID(), State: sandboxcore.ManagedRunning, CreatedAt: b.now().UTC().Truncate(time.Second)}
	r.set(spec, resolved)
	if err := errors.Join(b.save(r), cancelled(ctx)); err != nil {
		return nil, errors.Join(err, b.remove(r.ID))
	}
	if err := b.after(OpCreate, ""); err != nil {
		return nil, err
	}
	return b.handle(r), nil
}

func cancelled(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return sandboxcore.Errorf(sandboxcore.KindTimeout, "creating a sandbox: %w", err)
	}
	return nil
}

// Get looks at a sandbox by id or name.
func (b *Backend) Get(_ context.Context, id string) (sandboxcore.Sandbox, error) {
	r, err := b.request(OpGet, id)
	if err != nil {
		return nil, err
	}
	if r.Previous == nil {
		return b.handle(r), nil
	}
	hit, err := b.take(OpGet, r.ID, FaultLag)
	if err != nil {
		return nil, err
	}
	if hit.Fault != "" {
		return b.handle(*r.Previous), nil
	}
	return b.handle(r), nil
}

// Update records the new caps, labels and time to live, and that it runs.
func (b *Backend) Update(_ context.Context, id string, spec sandboxcore.Spec, resolved sandboxcore.Resolved) (sandboxcore.Sandbox, error) {
	r, err := b.request(OpUpdate, id)
	if err != nil {
		return nil, err
	}
	updated, err := b.change(r.ID, func(r *record) {
		r.set(spec, resolved)
		r.State = sandboxcore.ManagedRunning
	})
	if err != nil {
		return nil, err
	}
	if err := b.after(OpUpdate, r.ID); err != nil {
		return nil, err
	}
	return b.handle(updated), nil
}

// Kill forgets a sandbox with its files.
func (b *Backend) Kill(_ context.Context, id string) error {
	r, err := b.request(OpKill, id)
	if sandboxcore.Is(err, sandboxcore.KindNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return b.end(r)
}

func (b *Backend) end(r record) error {
	if err := b.remove(r.ID); err != nil {
		return err
	}
	return b.after(OpKill, r.ID)
}

// request begins an operation on a sandbox, with the faults that are armed for it.
func (b *Backend) request(op Op, id string) (record, error) {
	if err := b.before(op, id); err != nil {
		return record{}, err
	}
	r, err := b.find(id)
	if err != nil {
		return record{}, err
	}
	hit, err := b.take(op, r.ID, FaultExpire)
	if err != nil {
		return record{}, err
	}
	if hit.Fault != "" {
		return record{}, errors.Join(notFound(id), b.remove(r.ID))
	}
	return r, nil
}

// Stop and Pause are for tests: what somebody else does to a sandbox.
func (b *Backend) Stop(id string) error { return b.put(id, sandboxcore.ManagedStopped) }

// Pause pauses a sandbox.
func (b *Backend) Pause(id string) error { return b.put(id, sandboxcore.ManagedPaused) }

func (b *Backend) put(id string, state sandboxcore.ManagedState) error {
	r, err := b.find(id)
	if err != nil {
		return err
	}
	_, err = b.change(r.ID, func(r *record) { r.State = state })
	return err
}

// ListManaged lists the sandboxes of the folder.
func (b *Backend) ListManaged(_ context.Context, filter sandboxcore.Filter) ([]sandboxcore.ManagedSandbox, error) {
	if err := b.before(OpList, ""); err != nil {
		return nil, err
	}
	all, err := b.all()
	if err != nil {
		return nil, err
	}
	managed := []sandboxcore.ManagedSandbox{}
	for _, r := range all {
		if filter.Matches(r.Spec.Owner, r.Spec.Labels) {
			managed = append(managed, sandboxcore.ManagedSandbox{
				SandboxID: r.ID, Backend: Name, State: r.State, Owner: r.Spec.Owner, Labels: sandboxcore.LabelsOf(r.Spec.Labels),
				CreatedAt: sandboxcore.Timestamp(r.CreatedAt), ExpiresAt: sandboxcore.Timestamp(r.expires()),
			})
		}
	}
	return managed, nil
}

// Reap ends a sandbox of owner's; the faults of kill hit it too.
func (b *Backend) Reap(_ context.Context, owner, id string) error {
	r, err := b.request(OpKill, id)
	if sandboxcore.Is(err, sandboxcore.KindNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if owner == "" || r.Spec.Owner != owner {
		return sandboxcore.WrongOwner(id, r.Spec.Owner, owner)
	}
	return b.end(r)
}

// ReapHelpers removes what is kept of sandboxes whose time is over: nothing else outlives one.
func (b *Backend) ReapHelpers(context.Context) error {
	ids, err := b.ids()
	for _, id := range ids {
		if r, readErr := b.load(id); readErr == nil && b.isOver(r) {
			err = errors.Join(err, b.remove(id))
		}
	}
	return err
}

func notFound(id string) error {
	return sandboxcore.Errorf(sandboxcore.KindNotFound, "the fake has no sandbox %s", id)
}

func (b *Backend) folder(id string) string { return filepath.Join(b.dir, "sandboxes", id) }

func broken(err error, what string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return sandboxcore.Errorf(sandboxcore.KindNotFound, "%s: %w", what, err)
	}
	return sandboxcore.Errorf(sandboxcore.KindBackend, "%s: %w", what, err)
}
