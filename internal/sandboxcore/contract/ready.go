// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package contract

import (
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// readiness is of creation, and needs commands.
func (s *suite) readiness(t *testing.T) {
	failing := map[string]struct {
		change func(*sandboxcore.Spec)
		kind   sandboxcore.ErrorKind
		says   []string
	}{
		"main process dies at once": {func(p *sandboxcore.Spec) { p.Command = s.sh("echo boom >&2; exit 3").Argv }, sandboxcore.KindExecution, []string{"exit code 3", "boom"}},
		"main process dies soon":    {func(p *sandboxcore.Spec) { p.Command = s.sh("sleep 1; exit 4").Argv }, sandboxcore.KindExecution, []string{"exit code 4"}},
		"main process is missing":   {func(p *sandboxcore.Spec) { p.Command = []string{"no-such-program"} }, sandboxcore.KindExecution, []string{"exit code 127", "no-such-program"}},
		"main process dies while probed": {func(p *sandboxcore.Spec) {
			p.Command = s.sh("sleep 1; exit 5").Argv
			p.Readiness.Exec = sandboxcore.TupleOf("false")
		}, sandboxcore.KindExecution, []string{"exit code 5"}},
		"exec probe never passes": {func(p *sandboxcore.Spec) {
			p.Readiness = sandboxcore.Readiness{Exec: sandboxcore.TupleOf(s.sh("echo not yet; exit 9").Argv...), Timeout: time.Second}
		}, sandboxcore.KindTimeout, []string{"exit code 9", "not yet"}},
		"tcp probe never passes": {func(p *sandboxcore.Spec) {
			p.Readiness = sandboxcore.Readiness{TCPPort: sandboxcore.Some(8080), Timeout: time.Second}
		}, sandboxcore.KindTimeout, []string{"refused"}},
		"probe is missing": {func(p *sandboxcore.Spec) {
			p.Readiness = sandboxcore.Readiness{Exec: sandboxcore.TupleOf("no-such-probe"), Timeout: time.Minute}
		}, sandboxcore.KindCannotStart, []string{"no-such-probe"}},
	}
	for name, test := range failing {
		t.Run(name, func(t *testing.T) {
			spec := s.spec()
			test.change(&spec)
			before := s.count(t, s.owner)
			_, err := sandboxcore.Create(s.context(t), s.backend, spec, ignore)
			if !sandboxcore.Is(err, test.kind) {
				t.Fatalf("%v, want %s", err, test.kind)
			}
			for _, word := range test.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q doesn't say %q", err, word)
				}
			}
			if n := s.count(t, s.owner); n != before {
				t.Errorf("%d sandboxes are left", n-before)
			}
		})
	}
	t.Run("passes", func(t *testing.T) {
		spec := s.spec()
		spec.Command = s.sh("sleep 1; touch /tmp/ready; sleep 1000").Argv
		spec.Readiness.Exec = sandboxcore.TupleOf("test", "-f", "/tmp/ready")
		sandbox := s.create(t, spec)
		if _, err := sandbox.Files().Stat(s.context(t), "/tmp/ready"); err != nil {
			t.Errorf("created before it was ready: %v", err)
		}
	})
}
