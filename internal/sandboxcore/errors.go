// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrorKind tells errors apart by what a caller can do about them.
type ErrorKind string

// The kinds.
const (
	// KindConfiguration: the request contradicts itself or what the backend can hold.
	KindConfiguration ErrorKind = "ConfigurationError"
	// KindCapabilityNotSupported: the backend or sandbox doesn't declare what was invoked.
	KindCapabilityNotSupported ErrorKind = "CapabilityNotSupported"
	// KindNotFound: it isn't there, as the backend itself said.
	KindNotFound ErrorKind = "NotFound"
	// KindNotRunning: the sandbox is there but stopped or paused.
	KindNotRunning ErrorKind = "NotRunning"
	// KindExecution: a command ended badly, or the main process of a sandbox died.
	KindExecution ErrorKind = "ExecutionError"
	// KindCannotStart: a command never ran.
	KindCannotStart ErrorKind = "CannotStart"
	// KindTimeout: a deadline passed and what ran was ended.
	KindTimeout ErrorKind = "Timeout"
	// KindConflict: something of that name or port is there already.
	KindConflict ErrorKind = "Conflict"
	// KindIsolationShortfall: a made sandbox doesn't hold what was resolved; it was torn down.
	KindIsolationShortfall ErrorKind = "IsolationShortfall"
	// KindBackendUnavailable: the backend can't be reached or didn't answer; nothing is known about the sandbox.
	KindBackendUnavailable ErrorKind = "BackendUnavailable"
	// KindTooManyRequests: the backend took no more requests for now; see RetryAfter.
	KindTooManyRequests ErrorKind = "TooManyRequests"
	// KindBackend: the backend refused for a reason of its own.
	KindBackend ErrorKind = "BackendError"
)

// Error is an error of the domain.
type Error struct {
	Kind ErrorKind
	// Field is the path of the configuration field to blame, such as
	// "resources.cpu" or "network.allow[2]", or "".
	Field string
	// Reason says what was asked and why it can't be.
	Reason string
	// Remedy says what to do instead, or is "".
	Remedy string
	// RetryAfter is how long the backend asks to wait (KindTooManyRequests); zero: it didn't say.
	RetryAfter time.Duration
	// Err is the cause, or nil.
	Err error
}

func (e *Error) Error() string {
	s := string(e.Kind)
	if e.Field != "" {
		s += " at " + e.Field
	}
	s += ": " + e.Reason
	if e.Err != nil && e.Err.Error() != "" {
		s += ": " + e.Err.Error()
	}
	if e.Remedy != "" {
		s += " (" + e.Remedy + ")"
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Configuration returns a ConfigurationError.
func Configuration(field, reason, remedy string) *Error {
	return &Error{Kind: KindConfiguration, Field: field, Reason: reason, Remedy: remedy}
}

// Configurationf is Configuration with a formatted reason.
func Configurationf(field, remedy, reason string, args ...any) *Error {
	return Configuration(field, fmt.Sprintf(reason, args...), remedy)
}

// NotSupported returns a CapabilityNotSupported error.
func NotSupported(field, reason, remedy string) *Error {
	return &Error{Kind: KindCapabilityNotSupported, Field: field, Reason: reason, Remedy: remedy}
}

// WrongOwner is the refusal to reap a sandbox of another owner.
func WrongOwner(id, is, asked string) *Error {
	return Configurationf("owner", "Name the owner whose sandboxes are to be reaped.", "sandbox %s belongs to %q, not to %q", id, is, asked)
}

// Errorf returns an error of kind k. A %w verb sets the cause.
func Errorf(k ErrorKind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: k, Reason: err.Error(), Err: reasonless{errors.Unwrap(err)}.orNil()}
}

// reasonless keeps a cause reachable for errors.Is and errors.As without printing
// it a second time behind the reason that holds its text already.
type reasonless struct{ cause error }

func (r reasonless) Error() string { return "" }
func (r reasonless) Unwrap() error { return r.cause }
func (r reasonless) orNil() error {
	if r.cause == nil {
		return nil
	}
	return r
}

// Is reports whether an error of kind k is in err's chain.
func Is(err error, k ErrorKind) bool {
	return slices.ContainsFunc(Errors(err), func(e *Error) bool { return e.Kind == k })
}

// Errors flattens err into its domain errors. A foreign error becomes one of
// KindBackend, so nothing is lost.
func Errors(err error) []*Error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Error
		for _, e := range joined.Unwrap() {
			all = append(all, Errors(e)...)
		}
		return all
	}
	e, ok := errors.AsType[*Error](err)
	switch inner := errors.Unwrap(err); {
	case !ok:
		return []*Error{{Kind: KindBackend, Reason: err.Error(), Err: reasonless{err}}}
	case err == error(e) || inner == nil: //nolint:errorlint // what a domain error wraps is its cause, not another one
		return []*Error{e}
	default: // below a wrapper there may be several
		return Errors(inner)
	}
}

// problems collects refusals, so that a user sees all of them at once.
type problems struct{ errs []error }

func (p *problems) add(e *Error) { p.errs = append(p.errs, e) }
func (p *problems) err() error   { return errors.Join(p.errs...) }
