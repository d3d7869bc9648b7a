// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package fake

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// Op is an operation that a fault can hit.
type Op string

// The operations.
const (
	OpResolve Op = "resolve"
	OpCreate  Op = "create"
	OpGet     Op = "get"
	OpUpdate  Op = "update"
	OpKill    Op = "kill"
	OpList    Op = "list"
)

// Fault is a way to fail.
type Fault string

// The faults.
const (
	// FaultRefuse: the operation is refused; nothing is done.
	FaultRefuse Fault = "refuse"
	// FaultUnavailable: no answer; nothing is done.
	FaultUnavailable Fault = "unavailable"
	// FaultTooMany: too many requests, with a time to wait; nothing is done.
	FaultTooMany Fault = "too_many_requests"
	// FaultLostReply: create, update or kill is done, and its answer is lost.
	FaultLostReply Fault = "lost_reply"
	// FaultLag: get answers with what was before the last change.
	FaultLag Fault = "lag"
	// FaultExpire: the sandbox that get, update or kill asks for is gone, as if its time were over.
	FaultExpire Fault = "expire"
)

// Injection arms a fault. The file faults.json in the folder holds a list of them, in
// which the first that fits hits.
type Injection struct {
	Op    Op
	Fault Fault
	// ID is of the only sandbox that is hit; "": any.
	ID string `json:",omitempty"`
	// Times is how many calls are hit; Always overrides it.
	Times  int  `json:",omitempty"`
	Always bool `json:",omitempty"`
	// RetryAfter goes with FaultTooMany; zero: a second.
	RetryAfter time.Duration `json:",omitempty"`
}

func (b *Backend) faultsFile() string { return filepath.Join(b.dir, "faults.json") }

// Inject arms faults, in place of those that were, for every process on the folder.
func (b *Backend) Inject(faults ...Injection) error {
	return b.locked(func() error { return b.writeFaults(faults) })
}

func (b *Backend) writeFaults(faults []Injection) error {
	content, err := json.Marshal(faults)
	if err != nil {
		return err
	}
	return replaceFile(b.faultsFile(), content)
}

// take returns the armed fault of one of these kinds that hits this call, and counts
// the hit. None: its Fault is "".
func (b *Backend) take(op Op, id string, kinds ...Fault) (hit Injection, err error) {
	// Without faults nothing is locked: who only looks then makes no file.
	if _, err := os.Stat(b.faultsFile()); errors.Is(err, fs.ErrNotExist) {
		return hit, nil
	}
	err = b.locked(func() error {
		content, err := os.ReadFile(b.faultsFile())
		if err != nil {
			return err
		}
		var faults []Injection
		if err := json.Unmarshal(content, &faults); err != nil {
			return err
		}
		i := slices.IndexFunc(faults, func(f Injection) bool {
			return f.Op == op && slices.Contains(kinds, f.Fault) && (f.ID == "" || f.ID == id) && (f.Always || f.Times > 0)
		})
		if i < 0 {
			return nil
		}
		hit = faults[i]
		if hit.Always {
			return nil
		}
		faults[i].Times--
		return b.writeFaults(faults)
	})
	if err != nil { // a fault that can't be read fails rather than vanishes
		return hit, sandboxcore.Errorf(sandboxcore.KindBackend, "the faults of the fake can't be read: %w", err)
	}
	return hit, nil
}

// before returns the error of an armed fault that stops op before it does anything.
func (b *Backend) before(op Op, id string) error {
	hit, err := b.take(op, id, FaultRefuse, FaultUnavailable, FaultTooMany)
	if err != nil {
		return err
	}
	switch hit.Fault {
	case FaultRefuse:
		return sandboxcore.Errorf(sandboxcore.KindBackend, "the fake was told to refuse %s", op)
	case FaultUnavailable:
		return sandboxcore.Errorf(sandboxcore.KindBackendUnavailable, "the fake was told not to answer %s", op)
	case FaultTooMany:
		e := sandboxcore.Errorf(sandboxcore.KindTooManyRequests, "the fake was told to take no more requests")
		e.RetryAfter = cmp.Or(hit.RetryAfter, time.Second)
		return e
	}
	return nil
}

// after returns the error of an armed fault that loses the answer of op.
func (b *Backend) after(op Op, id string) error {
	hit, err := b.take(op, id, FaultLostReply)
	if err == nil && hit.Fault != "" {
		return sandboxcore.Errorf(sandboxcore.KindBackendUnavailable, "the fake was told to lose the answer of %s", op)
	}
	return err
}
