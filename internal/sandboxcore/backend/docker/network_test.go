// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

func TestEgressNetworkIsSharedClosedAndGone(t *testing.T) {
	api := realEngine(t)
	b := newBackend(t)
	spec := busyboxSpec(t)
	spec.Network.Egress = sandboxcore.EgressAllow
	spec.Command = []string{"nc", "-ll", "-p", "8080", "-e", "echo", "hi"}
	one, two := create(t, b, spec), create(t, b, spec)
	for _, target := range []sandboxcore.Sandbox{one, two} {
		inspected, err := api.ContainerInspect(t.Context(), target.ID())
		noError(t, err)
		address := ""
		for _, endpoint := range inspected.NetworkSettings.Networks {
			address = endpoint.IPAddress
		}
		if target == one {
			// Positive control: the server answers where it should.
			if got := run(t, one, "nc", "-w", "2", address, "8080"); got != "hi" {
				t.Fatalf("itself: %q", got)
			}
			continue
		}
		result, err := one.Exec(t.Context(), sandboxcore.Command{Argv: []string{"nc", "-w", "2", address, "8080"}, Timeout: 10 * time.Second})
		if err == nil && result.OK() {
			t.Errorf("a sibling answered: %+v", result)
		}
	}
	noError(t, one.Kill(t.Context()))
	if _, err := api.ContainerInspect(t.Context(), two.ID()); err != nil {
		t.Error(err)
	}
	noError(t, two.Kill(t.Context()))
	nothingLeft(t, b, spec.Owner)
}

// Sandboxes that come while others go meet a network that vanishes under them.
func TestEgressNetworkUnderChurn(t *testing.T) {
	realEngine(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			b := New("") // as separate processes: nothing shared but the engine
			defer b.Close()
			spec := busyboxSpec(t)
			spec.Network.Egress = sandboxcore.EgressAllow
			for range 3 {
				sandbox, err := sandboxcore.Create(t.Context(), b, spec, func(sandboxcore.Warning) {})
				if err != nil {
					t.Error(err)
					return
				}
				if err := sandbox.Kill(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

// nothingLeft checks that no sandbox of owner's is there, and no shared network
// without a sandbox on it.
func nothingLeft(t *testing.T, b *Backend, owner string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	found, err := b.ListManaged(ctx, sandboxcore.Filter{Owner: owner})
	if err != nil || len(found) != 0 {
		t.Errorf("%d sandboxes are left, %v", len(found), err)
	}
	conn, err := b.connect(ctx)
	noError(t, err)
	// Other runs on this engine may have sandboxes on it.
	await(t, "the shared network to be gone or used", func() bool {
		id, err := conn.oldestEgress(ctx)
		noError(t, err)
		return id == "" || conn.egressUsed(ctx, id)
	})
}

// A stopped sandbox needs the shared network as much as a running one, which the
// engine doesn't know.
func TestStoppedSandboxKeepsItsNetwork(t *testing.T) {
	api := realEngine(t)
	b := newBackend(t)
	spec := busyboxSpec(t)
	spec.Network.Egress = sandboxcore.EgressAllow
	stopped, other := create(t, b, spec), create(t, b, spec)
	noError(t, api.ContainerStop(t.Context(), stopped.ID(), container.StopOptions{}))
	noError(t, other.Kill(t.Context()))
	awake, err := sandboxcore.Update(t.Context(), b, stopped.ID(), spec)
	noError(t, err)
	if info := awake.Info(); info.State != sandboxcore.ManagedRunning || info.Network.Egress != sandboxcore.EgressAllow {
		t.Errorf("%+v", info)
	}
	noError(t, awake.Kill(t.Context()))
	nothingLeft(t, b, spec.Owner)
}

func TestNetworkAttachedByHandShows(t *testing.T) {
	api := realEngine(t)
	b := newBackend(t)
	sandbox := create(t, b, busyboxSpec(t))
	// The engine refuses the second while the first is attached.
	noError(t, api.NetworkDisconnect(t.Context(), "none", sandbox.ID(), true))
	noError(t, api.NetworkConnect(t.Context(), "bridge", sandbox.ID(), nil))
	seen, err := b.Get(t.Context(), sandbox.ID())
	noError(t, err)
	if got := seen.Info().Network.Egress; got != sandboxcore.EgressAllow {
		t.Errorf("egress %s is reported for a sandbox on the bridge", got)
	}
}
