// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package fake

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
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
	// FaultRefuse: the operation is refused.
	FaultRefuse Fault = "refuse"
	// FaultUnavailable: no answer; nothing is done.
	FaultUnavailable Fault = "unavailable"
	// FaultLostReply: the operation is done, and its answer is lost.
	FaultLostReply Fault = "lost_reply"
	// FaultLag: Get answers with what was before the last change.
	FaultLag Fault = "lag"
	// FaultExpire: the sandbox is gone, as if its time were over.
	FaultExpire Fault = "expire"
	// FaultTooMany: too many requests, with a time to wait.
	FaultTooMany Fault = "too_many_requests"
)

// Injection arms a fault for the next Times calls of Op; Always overrides Times.
type Injection struct {
	Op     Op
	Fault  Fault
	Times  int
	Always bool
}

// faultsMu serialises this process; tests arm faults before they start another one.
var faultsMu sync.Mutex

func (b *Backend) faultsFile() string { return filepath.Join(b.dir, "faults.json") }

// Inject arms faults, in place of those that were, for every process on the folder.
func (b *Backend) Inject(faults ...Injection) error {
	faultsMu.Lock()
	defer faultsMu.Unlock()
	return b.writeFaults(faults)
}

func (b *Backend) writeFaults(faults []Injection) error {
	content, err := json.Marshal(faults)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	temp := b.faultsFile() + "." + newID()
	if err := os.WriteFile(temp, content, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, b.faultsFile())
}

// faultArmed says whether this fault hits this call, and counts the hit.
func (b *Backend) faultArmed(fault Fault, op Op) bool {
	faultsMu.Lock()
	defer faultsMu.Unlock()
	content, err := os.ReadFile(b.faultsFile())
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	var faults []Injection
	if err != nil || json.Unmarshal(content, &faults) != nil {
		return true // a fault that can't be read fails rather than vanishes
	}
	for i, f := range faults {
		if f.Op != op || f.Fault != fault || !f.Always && f.Times <= 0 {
			continue
		}
		faults[i].Times--
		return f.Always || b.writeFaults(faults) == nil
	}
	return false
}

// fault returns the error of an armed fault that stops op before it does anything.
func (b *Backend) fault(op Op) error {
	switch {
	case b.faultArmed(FaultRefuse, op):
		return sandboxcore.Errorf(sandboxcore.KindBackend, "the fake was told to refuse %s", op)
	case b.faultArmed(FaultUnavailable, op):
		return sandboxcore.Errorf(sandboxcore.KindBackendUnavailable, "the fake was told not to answer %s", op)
	case b.faultArmed(FaultTooMany, op):
		e := sandboxcore.Errorf(sandboxcore.KindTooManyRequests, "the fake was told to take no more requests")
		e.RetryAfter = time.Second
		return e
	}
	return nil
}
