// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"context"
	"time"
)

// Sandbox is a live, isolated execution environment. What its Capabilities don't
// declare answers [KindCapabilityNotSupported]: embed [Unsupported] for that.
type Sandbox interface {
	// ID is unique within the backend for the sandbox's lifetime.
	ID() string
	// State is where this handle's sandbox stands.
	State() State
	// Capabilities and Isolation are this sandbox's own, not its backend's default.
	Capabilities() Capability
	Isolation() IsolationTier
	Files() FileSystem
	// Native is the backend's own handle.
	Native() any
	// Info is what the backend said of it when this handle was made or last refreshed.
	Info() Info
	// Kill ends the sandbox with all that belongs to it. Gone already is no error.
	Kill(ctx context.Context) error
	// Wait blocks until the main process ends and says how; or until ctx ends, whose error it returns.
	Wait(ctx context.Context) (Exit, error)

	Exec(ctx context.Context, cmd Command) (ExecResult, error)
	Stream(ctx context.Context, cmd Command) (Process, error)
	RunCode(ctx context.Context, code Code) (ExecResult, error)
	// ProbeTCP says whether the port accepts connections, seen from inside (RunCommand).
	ProbeTCP(ctx context.Context, port int) error

	Terminal(ctx context.Context, cmd Command, rows, columns int) (Process, error)
	Pause(ctx context.Context) error
	Snapshot(ctx context.Context) (Template, error)
	LanguageServer(ctx context.Context, language string) (Process, error)
	GitClone(ctx context.Context, url, path string) error
	Cost(ctx context.Context, label string) (amount float64, err error)
}

// Exit is how a main process ended.
type Exit struct {
	Code int
	// OutOfMemory: the kernel ended it for its memory cap.
	OutOfMemory bool
	// Log are its last lines of output.
	Log string
}

// Info is all that a backend can read back of a sandbox.
type Info struct {
	ID    string
	Name  string
	Owner string
	State ManagedState
	// Template is as it was asked for.
	Template    Template
	TemplateID  string
	Isolation   IsolationTier
	Resources   Resources
	Network     NetworkPolicy
	Enforcement Enforcement
	// Command, WorkingDir, User and Env are what was asked for, without what comes from the image.
	Command    []string
	WorkingDir string
	User       string
	Env        map[string]string
	// Labels are the caller's, without the reserved ones.
	Labels    map[string]string
	Readiness Readiness
	TTL       time.Duration
	Options   Settings
	CreatedAt time.Time
	// ExpiresAt is zero without a TTL.
	ExpiresAt time.Time
}

// Expired says whether the time to live is over at now.
func (i Info) Expired(now time.Time) bool { return !i.ExpiresAt.IsZero() && !now.Before(i.ExpiresAt) }

// ManagedState is the state of a sandbox that is only listed.
type ManagedState string

// The managed states.
const (
	ManagedRunning ManagedState = "running"
	ManagedStopped ManagedState = "stopped"
	ManagedPaused  ManagedState = "paused"
)

// ManagedSandbox is what listing and reaping see. It isn't a [Sandbox]: nothing can
// be executed through it.
type ManagedSandbox struct {
	SandboxID string
	Backend   string
	State     ManagedState
	// CreatedAt and ExpiresAt are in UTC without a monotonic reading (see [Timestamp]), so == compares them.
	CreatedAt, ExpiresAt Opt[time.Time]
	Owner                string
	// Labels are the caller's metadata as stored, without the reserved ones.
	Labels Labels
}

// Timestamp normalises t so that equal instants are equal by ==. The zero time is none.
func Timestamp(t time.Time) Opt[time.Time] {
	if t.IsZero() {
		return None[time.Time]()
	}
	return Some(t.Round(0).UTC())
}
