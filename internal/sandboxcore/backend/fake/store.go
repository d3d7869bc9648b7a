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

// locked runs do while no other process, and nobody else in this one, changes anything.
// It doesn't nest.
func (b *Backend) locked(do func() error) error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(b.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // which unlocks
	if err := lockFile(lock); err != nil {
		return err
	}
	return do()
}

// replaceFile writes a file in one step, so that who doesn't lock reads the old or the new.
func replaceFile(name string, content []byte) error {
	temp := name + "." + newID()
	err := os.WriteFile(temp, content, 0o600)
	if err == nil {
		err = os.Rename(temp, name)
	}
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}

func (b *Backend) save(r record) error {
	content, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(filepath.Join(b.folder(r.ID), "files"), 0o700)
	}
	if err == nil {
		err = replaceFile(filepath.Join(b.folder(r.ID), "sandbox.json"), content)
	}
	if err != nil {
		return sandboxcore.Errorf(sandboxcore.KindBackend, "saving a sandbox: %w", err)
	}
	return nil
}

// remove forgets a sandbox. Gone already is no error.
func (b *Backend) remove(id string) error {
	if err := b.locked(func() error { return os.RemoveAll(b.folder(id)) }); err != nil {
		return broken(err, "removing a sandbox")
	}
	return nil
}

// find returns a sandbox by id or name. One whose time is over is gone.
func (b *Backend) find(id string) (record, error) {
	if strings.ContainsAny(id, "/\\") || id == "" || id == "." || id == ".." {
		return record{}, notFound(id)
	}
	r, err := b.read(id)
	if !sandboxcore.Is(err, sandboxcore.KindNotFound) {
		return r, err
	}
	all, err := b.all()
	if err != nil {
		return record{}, err
	}
	for _, named := range all {
		if named.Spec.Name == id {
			return named, nil
		}
	}
	return record{}, notFound(id)
}

// isOver says whether the time to live is over.
func (b *Backend) isOver(r record) bool {
	expires := r.expires()
	return !expires.IsZero() && !b.now().Before(expires)
}

// load returns what is kept, also of a sandbox whose time is over.
func (b *Backend) load(id string) (r record, err error) {
	content, err := os.ReadFile(filepath.Join(b.folder(id), "sandbox.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return r, notFound(id)
	}
	if err == nil {
		err = json.Unmarshal(content, &r)
	}
	if err != nil {
		return r, broken(err, "reading a sandbox")
	}
	return r, nil
}

func (b *Backend) read(id string) (record, error) {
	r, err := b.load(id)
	if err == nil && b.isOver(r) {
		return record{}, notFound(id)
	}
	return r, err
}

func (b *Backend) ids() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(b.dir, "sandboxes"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, broken(err, "listing sandboxes")
	}
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.Name()
	}
	return ids, nil
}

func (b *Backend) all() ([]record, error) {
	ids, err := b.ids()
	if err != nil {
		return nil, err
	}
	var all []record
	for _, id := range ids {
		r, err := b.read(id)
		if sandboxcore.Is(err, sandboxcore.KindNotFound) {
			continue // killed meanwhile, or not yet made
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// change changes a sandbox, and keeps what it was before.
func (b *Backend) change(id string, how func(*record)) (r record, err error) {
	err = b.locked(func() error {
		if r, err = b.read(id); err != nil {
			return err
		}
		before := r
		before.Previous = nil
		how(&r)
		r.Previous = &before
		return b.save(r)
	})
	return r, err
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
