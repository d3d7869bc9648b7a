// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"context"

	"github.com/docker/docker/api/types/container"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// Update starts the sandbox again if it's stopped or paused, and sets its caps.
func (b *Backend) Update(ctx context.Context, id string, _ sandboxcore.Spec, resolved sandboxcore.Resolved) (sandboxcore.Sandbox, error) {
	conn, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	inspected, err := conn.inspect(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := conn.setCaps(ctx, inspected, resolved.Resources); err != nil {
		return nil, err
	}
	if err := conn.wake(ctx, inspected); err != nil {
		return nil, err
	}
	if inspected, err = conn.inspect(ctx, id); err != nil {
		return nil, err
	}
	return conn.sandbox(inspected)
}

func (c *connection) setCaps(ctx context.Context, inspected container.InspectResponse, want sandboxcore.Resources) error {
	pids := int64(pidsLimit)
	if c.resourcesOf(inspected.HostConfig) == want && pidsOf(inspected.HostConfig) == pids {
		return nil
	}
	memory := want.MemoryMB.Or(0) << 20
	// Both limits in one call: alone, neither may pass the other.
	_, err := c.api.ContainerUpdate(ctx, inspected.ID, container.UpdateConfig{Resources: container.Resources{
		NanoCPUs: nanoCPUs(want.CPU.Or(0)), Memory: memory, MemorySwap: memory, PidsLimit: &pids,
	}})
	return failed(err, "changing the caps of sandbox %s", inspected.ID)
}

// wake brings a stopped or paused sandbox to run.
func (c *connection) wake(ctx context.Context, inspected container.InspectResponse) error {
	switch managedState(inspected.State) {
	case sandboxcore.ManagedPaused:
		return failed(c.api.ContainerUnpause(ctx, inspected.ID), "resuming sandbox %s", inspected.ID)
	case sandboxcore.ManagedStopped:
		// A start that meets a container on its way out is answered with success and
		// does nothing, so wait until it really stands still.
		ended, errs := c.api.ContainerWait(ctx, inspected.ID, container.WaitConditionNotRunning)
		select {
		case <-ended:
		case err := <-errs:
			return failed(err, "waiting for sandbox %s to stop", inspected.ID)
		}
		return failed(c.api.ContainerStart(ctx, inspected.ID, container.StartOptions{}), "starting sandbox %s", inspected.ID)
	}
	return nil
}
