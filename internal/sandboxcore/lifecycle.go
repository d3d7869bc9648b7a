// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"fmt"
	"slices"
	"sync"
)

// State is where a live Sandbox stands: creating, running, then killed or failed.
// Paused isn't a state of the model; [ManagedState] has it for what is only listed.
type State string

// The states.
const (
	StateCreating State = "creating"
	StateRunning  State = "running"
	StateKilled   State = "killed"
	StateFailed   State = "failed"
)

var nextStates = map[State][]State{
	StateCreating: {StateRunning, StateKilled, StateFailed},
	StateRunning:  {StateKilled, StateFailed},
}

// CanBecome says whether next may follow s.
func (s State) CanBecome(next State) bool { return slices.Contains(nextStates[s], next) }

// Lifecycle tracks the state of one sandbox. The zero value is StateCreating.
type Lifecycle struct {
	mu    sync.Mutex
	state State
}

// State returns the current state.
func (l *Lifecycle) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current()
}

func (l *Lifecycle) current() State {
	if l.state == "" {
		return StateCreating
	}
	return l.state
}

// To moves on to next. Staying is no error; a step that the model doesn't have is.
func (l *Lifecycle) To(next State) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.current(); now != next && !now.CanBecome(next) {
		return fmt.Errorf("a sandbox that is %s can't become %s", now, next)
	}
	l.state = next
	return nil
}
