// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package fake

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// record is a sandbox as it's kept: <dir>/sandboxes/<id>/sandbox.json, beside its files.
type record struct {
	ID        string
	State     sandboxcore.ManagedState
	CreatedAt time.Time
	Spec      storedSpec
	// Previous is what it was before its last change, for a backend whose reads lag.
	Previous *record `json:",omitempty"`
}

// storedSpec is a Spec with its resolved values, in a form that JSON can hold.
type storedSpec struct {
	Name, Owner, Image, TemplateID, ResolvedTemplate string
	CPU                                              *float64
	MemoryMB, DiskMB                                 *int64
	GPU                                              *string
	Egress                                           sandboxcore.Egress
	Allow                                            []string
	IngressPorts                                     []int
	Command                                          []string
	WorkingDir, User                                 string
	Env, Labels                                      map[string]string
	TTL                                              time.Duration
}

func (r *record) set(spec sandboxcore.Spec, resolved sandboxcore.Resolved) {
	r.Spec = storedSpec{
		Name: spec.Name, Owner: spec.Owner, Image: spec.Template.Image, TemplateID: spec.Template.ID, ResolvedTemplate: resolved.Template.ID,
		CPU: pointer(resolved.Resources.CPU), MemoryMB: pointer(resolved.Resources.MemoryMB), DiskMB: pointer(resolved.Resources.DiskMB), GPU: pointer(resolved.Resources.GPU),
		Egress: resolved.Network.Egress, Allow: resolved.Network.Allow.Slice(), IngressPorts: resolved.Network.IngressPorts.Slice(),
		Command: spec.Command, WorkingDir: spec.WorkingDir, User: spec.User, Env: spec.Env, Labels: spec.Labels, TTL: spec.TTL,
	}
}

func pointer[T comparable](o sandboxcore.Opt[T]) *T {
	if v, ok := o.Get(); ok {
		return &v
	}
	return nil
}

func optional[T comparable](p *T) sandboxcore.Opt[T] {
	if p == nil {
		return sandboxcore.None[T]()
	}
	return sandboxcore.Some(*p)
}

func (r *record) expires() time.Time {
	if r.Spec.TTL == 0 {
		return time.Time{}
	}
	return r.CreatedAt.Add(r.Spec.TTL)
}

func newID() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails: crypto/rand crashes the program instead
	return hex.EncodeToString(b)
}

// save writes r in one step, so that another process reads the old or the new.
func (b *Backend) save(r record) error {
	folder := b.folder(r.ID)
	if err := os.MkdirAll(filepath.Join(folder, "files"), 0o700); err != nil {
		return broken(err, "saving a sandbox")
	}
	content, err := json.Marshal(r)
	if err != nil {
		return broken(err, "saving a sandbox")
	}
	temp := filepath.Join(folder, newID()+".tmp")
	if err := os.WriteFile(temp, content, 0o600); err != nil {
		return broken(err, "saving a sandbox")
	}
	if err := os.Rename(temp, filepath.Join(folder, "sandbox.json")); err != nil {
		return broken(err, "saving a sandbox")
	}
	return nil
}

// find returns a sandbox by id or name. One whose time is over is gone.
func (b *Backend) find(id string) (record, error) {
	if strings.ContainsAny(id, "/\\") || id == "" || id == "." || id == ".." {
		return record{}, notFound(id)
	}
	r, err := b.read(id)
	if sandboxcore.Is(err, sandboxcore.KindNotFound) {
		all, listErr := b.all()
		if listErr != nil {
			return record{}, listErr
		}
		for _, named := range all {
			if named.Spec.Name == id {
				return named, nil
			}
		}
		return record{}, notFound(id)
	}
	return r, err
}

func (b *Backend) read(id string) (record, error) {
	content, err := os.ReadFile(filepath.Join(b.folder(id), "sandbox.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, notFound(id)
	}
	if err != nil {
		return record{}, broken(err, "reading a sandbox")
	}
	var r record
	if err := json.Unmarshal(content, &r); err != nil {
		return record{}, broken(err, "reading a sandbox")
	}
	if expires := r.expires(); !expires.IsZero() && !b.now().Before(expires) || b.faultArmed(FaultExpire, OpGet) {
		if err := os.RemoveAll(b.folder(id)); err != nil {
			return record{}, broken(err, "removing an expired sandbox")
		}
		return record{}, notFound(id)
	}
	return r, nil
}

func (b *Backend) all() ([]record, error) {
	entries, err := os.ReadDir(filepath.Join(b.dir, "sandboxes"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, broken(err, "listing sandboxes")
	}
	var all []record
	for _, e := range entries {
		r, err := b.read(e.Name())
		if sandboxcore.Is(err, sandboxcore.KindNotFound) {
			continue // killed meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// change changes a sandbox, and keeps what it was before.
func (b *Backend) change(id string, how func(*record)) error {
	r, err := b.find(id)
	if err != nil {
		return err
	}
	before := r
	before.Previous = nil
	how(&r)
	r.Previous = &before
	return b.save(r)
}

// sandbox is a handle. All that it can do is files.
type sandbox struct {
	sandboxcore.Unsupported
	sandboxcore.Lifecycle
	backend *Backend
	info    sandboxcore.Info
}

func (b *Backend) handle(r record) *sandbox {
	s := &sandbox{Unsupported: sandboxcore.Unsupported{Backend: Name}, backend: b, info: b.describe(r)}
	state := sandboxcore.StateRunning
	if r.State == sandboxcore.ManagedStopped {
		state = sandboxcore.StateFailed
	}
	_ = s.To(state) // from creating: always possible
	return s
}

func (b *Backend) describe(r record) sandboxcore.Info {
	s := r.Spec
	enforcement := b.offer(sandboxcore.Template{}).Enforcement
	enforcement.Egress = recorded
	return sandboxcore.Info{
		ID: r.ID, Name: s.Name, Owner: s.Owner, State: r.State,
		Template: sandboxcore.Template{Image: s.Image, ID: s.TemplateID}, TemplateID: s.ResolvedTemplate,
		Isolation: sandboxcore.TierContainer,
		Resources: sandboxcore.Resources{CPU: optional(s.CPU), MemoryMB: optional(s.MemoryMB), DiskMB: optional(s.DiskMB), GPU: optional(s.GPU)},
		Network: sandboxcore.NetworkPolicy{
			Egress: s.Egress, Allow: sandboxcore.TupleOf(s.Allow...), IngressPorts: sandboxcore.TupleOf(s.IngressPorts...),
		},
		Enforcement: enforcement,
		Command:     s.Command, WorkingDir: s.WorkingDir, User: s.User, Env: s.Env, Labels: s.Labels, TTL: s.TTL,
		CreatedAt: r.CreatedAt, ExpiresAt: r.expires(),
	}
}

func (s *sandbox) ID() string                           { return s.info.ID }
func (s *sandbox) Info() sandboxcore.Info               { return s.info }
func (s *sandbox) Isolation() sandboxcore.IsolationTier { return s.info.Isolation }
func (s *sandbox) Capabilities() sandboxcore.Capability { return capabilities }
func (s *sandbox) Files() sandboxcore.FileSystem        { return files{s} }

// Native is the folder that stands for the sandbox.
func (s *sandbox) Native() any { return s.backend.folder(s.info.ID) }

func (s *sandbox) Kill(ctx context.Context) error {
	if err := s.backend.Kill(ctx, s.info.ID); err != nil {
		return err
	}
	if s.State() == sandboxcore.StateFailed {
		return nil
	}
	return s.To(sandboxcore.StateKilled)
}

// Wait ends with ctx: nothing runs that could end before.
func (s *sandbox) Wait(ctx context.Context) (sandboxcore.Exit, error) {
	<-ctx.Done()
	return sandboxcore.Exit{}, ctx.Err()
}
