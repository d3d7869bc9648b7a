// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package contract

import (
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

func testNetworkPolicy(t *testing.T, s *suite) {
	for _, egress := range []sandboxcore.Egress{sandboxcore.EgressDeny, sandboxcore.EgressAllow} {
		t.Run(string(egress), func(t *testing.T) {
			spec := s.spec()
			spec.Network.Egress = egress
			resolved, err := s.backend.Resolve(s.context(t), spec)
			if err != nil || resolved.Network != spec.Network {
				t.Fatalf("resolved %+v, %v", resolved.Network, err)
			}
			sandbox := s.create(t, spec)
			info := sandbox.Info()
			if info.Network != spec.Network || info.Enforcement.Egress == "" || info.Enforcement.Egress == sandboxcore.EnforcementNone {
				t.Errorf("network %+v, enforced by %q", info.Network, info.Enforcement.Egress)
			}
			if !sandbox.Capabilities().Has(sandboxcore.RunCommand) {
				return
			}
			// The kernel's own list of interfaces and routes, from inside.
			result, err := sandbox.Exec(s.context(t), s.sh("tail -n +3 /proc/net/dev | cut -d: -f1; tail -n +2 /proc/net/route"))
			if err != nil || !result.OK() {
				t.Fatalf("%+v, %v", result, err)
			}
			onlyLoopback := strings.TrimSpace(result.Stdout) == "lo"
			if onlyLoopback != (egress == sandboxcore.EgressDeny) {
				t.Errorf("interfaces and routes: %q", result.Stdout)
			}
		})
	}
	spec := s.spec()
	spec.Network = sandboxcore.NetworkPolicy{Egress: sandboxcore.EgressAllow, Allow: sandboxcore.TupleOf("example.org")}
	resolved, err := s.backend.Resolve(s.context(t), spec)
	if err == nil && resolved.Network != spec.Network || err != nil && !sandboxcore.Is(err, sandboxcore.KindCapabilityNotSupported) {
		t.Errorf("an allow list is honoured or refused: %+v, %v", resolved.Network, err)
	}
}

func testGPU(t *testing.T, s *suite) {
	spec := s.spec()
	spec.Resources.GPU = sandboxcore.Some("T4")
	if got := s.create(t, spec).Info().Resources.GPU; got != spec.Resources.GPU {
		t.Errorf("gpu %v", got)
	}
}

func testTunnels(t *testing.T, s *suite) {
	spec := s.spec()
	spec.Network.IngressPorts = sandboxcore.TupleOf(8080, 9090)
	if got := s.create(t, spec).Info().Network; got != spec.Network.Effective() {
		t.Errorf("network %+v", got)
	}
}

func testRunCode(t *testing.T, s *suite) {
	sandbox := s.create(t, s.spec())
	result, err := sandbox.RunCode(s.context(t), sandboxcore.Code{Source: "print(6*7)", Language: "python"})
	if err != nil || result.Stdout != "42\n" {
		t.Errorf("%+v, %v", result, err)
	}
}

func testStatefulCode(t *testing.T, s *suite) {
	sandbox := s.create(t, s.spec())
	for _, step := range []struct{ source, want string }{{"x = 6", ""}, {"print(x*7)", "42\n"}} {
		result, err := sandbox.RunCode(s.context(t), sandboxcore.Code{Source: step.source, Language: "python", ContextID: "c"})
		if err != nil || result.Stdout != step.want {
			t.Errorf("%+v, %v", result, err)
		}
	}
}

func testTerminal(t *testing.T, s *suite) {
	sandbox := s.create(t, s.spec())
	p, err := sandbox.Terminal(s.context(t), s.sh("test -t 0 && test -t 1; exit $?"), 24, 80)
	if err != nil {
		t.Fatal(err)
	}
	if result, err := p.Wait(s.context(t)); err != nil || !result.OK() {
		t.Errorf("%+v, %v", result, err)
	}
}

func testPause(t *testing.T, s *suite) {
	sandbox := s.create(t, s.spec())
	if err := sandbox.Pause(s.context(t)); err != nil {
		t.Fatal(err)
	}
	again, err := s.backend.Get(s.context(t), sandbox.ID())
	if err != nil || again.Info().State != sandboxcore.ManagedPaused {
		t.Errorf("%v, %v", again, err)
	}
}

func testSnapshot(t *testing.T, s *suite) {
	sandbox := s.create(t, s.spec())
	if err := sandbox.Files().Write(s.context(t), "/mark", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	template, err := sandbox.Snapshot(s.context(t))
	if err != nil {
		t.Fatal(err)
	}
	spec := s.spec()
	spec.Template = template
	if got, err := s.create(t, spec).Files().Read(s.context(t), "/mark"); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
}
