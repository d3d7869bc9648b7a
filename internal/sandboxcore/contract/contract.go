// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

// Package contract is the one suite that every backend passes. Each declared
// capability has its test here; an undeclared one is invoked, and has to answer
// CapabilityNotSupported.
package contract

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// Harness is what the suite needs to know of a backend.
type Harness struct {
	// Open returns the backend; the suite closes it.
	Open func(t *testing.T) sandboxcore.Backend
	// Spec is a spec that works on it, without an owner.
	Spec sandboxcore.Spec
	// MissingImage is an image that the backend has not.
	MissingImage string
	// Shell is the argv prefix that runs a POSIX script inside: only used where
	// RUN_COMMAND is declared.
	Shell []string
	// Stop and Pause do to a sandbox what somebody outside could. Nil: nobody can.
	Stop, Pause func(t *testing.T, id string)
	// Unreachable returns the backend as it is when its service doesn't answer. Nil:
	// that isn't tested.
	Unreachable func(t *testing.T) sandboxcore.Backend
	// Unmanaged makes something on the backend that isn't sandboxio's and returns its
	// id and whether it's still there. Nil: the backend can't hold such things.
	Unmanaged func(t *testing.T) (id string, there func() bool)
	// OverLimit is a spec of which Resolve has to refuse resources.cpu.
	OverLimit sandboxcore.Opt[float64]
}

// suite is one run of a harness.
type suite struct {
	Harness
	backend sandboxcore.Backend
	owner   string
}

// capabilityTest is what the suite knows of one capability.
type capabilityTest struct {
	declared   func(t *testing.T, s *suite)
	undeclared func(ctx context.Context, s *suite, sandbox sandboxcore.Sandbox) error
}

// capabilityTests has an entry for every capability; a test enumerates that.
var capabilityTests = map[sandboxcore.Capability]capabilityTest{
	sandboxcore.RunCommand: {testRunCommand, func(ctx context.Context, _ *suite, sb sandboxcore.Sandbox) error {
		_, err := sb.Exec(ctx, sandboxcore.Command{Argv: []string{"true"}})
		return err
	}},
	sandboxcore.Streaming: {testStreaming, func(ctx context.Context, _ *suite, sb sandboxcore.Sandbox) error {
		_, err := sb.Stream(ctx, sandboxcore.Command{Argv: []string{"true"}})
		return err
	}},
	sandboxcore.Filesystem: {testFilesystem, func(ctx context.Context, _ *suite, sb sandboxcore.Sandbox) error {
		_, err := sb.Files().Read(ctx, "/etc/passwd")
		return err
	}},
	sandboxcore.UploadDownload: {testUploadDownload, func(ctx context.Context, _ *suite, sb sandboxcore.Sandbox) error {
		return sb.Files().Download(ctx, "/etc/passwd", nil)
	}},
	sandboxcore.RunCode: {testRunCode, func(ctx context.Context, _ *suite, sb sandboxcore.Sandbox) error {
		_, err := sb.RunCode(ctx, sandboxcore.Code{Source: "1"})
		return err
	}},
	sandboxcore.StatefulCode: {testStatefulCode, func(ctx context.Context, _ *suite, sb sandboxcore.Sandbox) error {
		_, err := sb.RunCode(ctx, sandboxcore.Code{Source: "1", ContextID: "c"})
		return err
	}},
	sandboxcore.PTY: {testTerminal, func(ctx context.Context, _ *suite, sb sandboxcore.Sandbox) error {
		_, err := sb.Terminal(ctx, sandboxcore.Command{Argv: []string{"true"}}, 24, 80)
		return err
	}},
	sandboxcore.PauseResume: {testPause, func(ctx context.Context, _ *suite, sb sandboxcore.Sandbox) error {
		return sb.Pause(ctx)
	}},
	sandboxcore.SnapshotFork: {testSnapshot, func(ctx context.Context, _ *suite, sb sandboxcore.Sandbox) error {
		_, err := sb.Snapshot(ctx)
		return err
	}},
	sandboxcore.LSP: {untested, func(ctx context.Context, _ *suite, sb sandboxcore.Sandbox) error {
		_, err := sb.LanguageServer(ctx, "go")
		return err
	}},
	sandboxcore.Git: {untested, func(ctx context.Context, _ *suite, sb sandboxcore.Sandbox) error {
		return sb.GitClone(ctx, "https://example.org/r.git", "/r")
	}},
	sandboxcore.CostReporting: {untested, func(ctx context.Context, _ *suite, sb sandboxcore.Sandbox) error {
		_, err := sb.Cost(ctx, "team")
		return err
	}},
	// What is asked for at creation is invoked by resolving.
	sandboxcore.GPU: {testGPU, func(ctx context.Context, s *suite, _ sandboxcore.Sandbox) error {
		spec := s.spec()
		spec.Resources.GPU = sandboxcore.Some("T4")
		_, err := s.backend.Resolve(ctx, spec)
		return err
	}},
	sandboxcore.NetworkPolicies: {testNetworkPolicy, func(ctx context.Context, s *suite, _ sandboxcore.Sandbox) error {
		_, err := s.backend.Resolve(ctx, s.spec())
		return err
	}},
	sandboxcore.Tunnels: {testTunnels, func(ctx context.Context, s *suite, _ sandboxcore.Sandbox) error {
		spec := s.spec()
		spec.Network.IngressPorts = sandboxcore.TupleOf(8080)
		_, err := s.backend.Resolve(ctx, spec)
		return err
	}},
}

// untested fails for a capability that is declared although the suite has no test of
// it yet: rule 1 of the model is that a declared capability has a passing test.
func untested(t *testing.T, _ *suite) {
	t.Error("declared, and the contract suite has no test of it: write one first")
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	t.Helper()
	s := &suite{Harness: h, backend: h.Open(t), owner: fmt.Sprintf("contract-%d", time.Now().UnixNano())}
	t.Cleanup(func() { _ = s.backend.Close() })
	t.Cleanup(func() { s.nothingLeft(t) })

	for name, test := range map[string]func(*testing.T, *suite){
		"Identity": testIdentity, "RoundTrip": testRoundTrip, "Resolve": testResolve, "Refusals": testRefusals, "Tier": testTier,
		"Kill": testKill, "Scope": testScope, "CancelledCreate": testCancelledCreate, "TimeToLive": testTimeToLive,
		"UpdateInPlace": testUpdateInPlace, "Wake": testWake, "ListAndReap": testListAndReap, "Unmanaged": testUnmanaged, "Templates": testTemplates,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
	if s.Unreachable != nil {
		t.Run("Unreachable", func(t *testing.T) { testUnreachable(t, s) })
	}
	t.Run("Capabilities", func(t *testing.T) { s.capabilities(t) })
}

func (s *suite) capabilities(t *testing.T) {
	sandbox := s.create(t, s.spec())
	for _, c := range sandboxcore.AllCapabilities() {
		t.Run(c.String(), func(t *testing.T) {
			test := capabilityTests[c]
			if sandbox.Capabilities().Has(c) {
				test.declared(t, s)
				return
			}
			if err := test.undeclared(s.context(t), s, sandbox); !sandboxcore.Is(err, sandboxcore.KindCapabilityNotSupported) {
				t.Errorf("invoked although undeclared: got %v, want CapabilityNotSupported", err)
			}
		})
	}
}

func (s *suite) context(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func (s *suite) spec() sandboxcore.Spec {
	spec := s.Spec
	spec.Owner = s.owner
	return spec
}

// create makes a sandbox for the length of the test.
func (s *suite) create(t *testing.T, spec sandboxcore.Spec) sandboxcore.Sandbox {
	t.Helper()
	sandbox, err := sandboxcore.Create(s.context(t), s.backend, spec, ignore)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := sandbox.Kill(ctx); err != nil {
			t.Errorf("kill: %v", err)
		}
	})
	return sandbox
}

// reapable is the backend as what can find what it leaves behind.
func (s *suite) reapable(t *testing.T) sandboxcore.ReapableBackend {
	t.Helper()
	reapable, ok := s.backend.(sandboxcore.ReapableBackend)
	if !ok {
		t.Fatal("the backend isn't reapable, so nothing can find what it leaves behind")
	}
	return reapable
}

// list returns what matches filter, also when the test's own context is over.
func (s *suite) list(t *testing.T, filter sandboxcore.Filter) []sandboxcore.ManagedSandbox {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	found, err := s.reapable(t).ListManaged(ctx, filter)
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	return found
}

// count is how many sandboxes owner has.
func (s *suite) count(t *testing.T, owner string) int {
	t.Helper()
	return len(s.list(t, sandboxcore.Filter{Owner: owner}))
}

// nothingLeft looks for the other owners of the suite too: all begin with the first.
func (s *suite) nothingLeft(t *testing.T) {
	for _, m := range s.list(t, sandboxcore.Filter{}) {
		if strings.HasPrefix(m.Owner, s.owner) {
			t.Errorf("left: sandbox %s of %s", m.SandboxID, m.Owner)
		}
	}
}
