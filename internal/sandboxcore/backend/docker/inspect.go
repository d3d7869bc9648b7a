// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// Get looks at a sandbox by its container's id or name, or by its own name if no other has the same.
func (b *Backend) Get(ctx context.Context, id string) (sandboxcore.Sandbox, error) {
	conn, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	inspected, err := conn.inspect(ctx, id)
	if err != nil {
		return nil, err
	}
	return conn.sandbox(inspected)
}

// inspect refuses what isn't a sandbox of ours.
func (c *connection) inspect(ctx context.Context, id string) (container.InspectResponse, error) {
	inspected, err := c.api.ContainerInspect(ctx, id)
	if isNotFound(err) {
		if named := c.byName(ctx, id); named != "" {
			inspected, err = c.api.ContainerInspect(ctx, named)
		}
	}
	if err != nil {
		return inspected, failed(err, "looking at sandbox %s", id)
	}
	if inspected.Config.Labels[labelManaged] != "true" || inspected.Config.Labels[labelRole] != roleSandbox {
		return inspected, sandboxcore.Configurationf("id", "Name a sandbox that sandboxio made.", "container %s is not managed by sandboxio", id)
	}
	return inspected, nil
}

// byName returns the id of the only sandbox that was given this name, or "".
func (c *connection) byName(ctx context.Context, name string) string {
	found, err := c.api.ContainerList(ctx, container.ListOptions{All: true, Filters: roleFilter(roleSandbox, labelName+"="+name)})
	if err != nil || len(found) != 1 || name == "" {
		return ""
	}
	return found[0].ID
}

// describe is all that the engine says of a sandbox.
func (c *connection) describe(inspected container.InspectResponse) (sandboxcore.Info, error) {
	labels := inspected.Config.Labels
	var was asked
	if err := json.Unmarshal([]byte(labels[labelSpec]), &was); err != nil {
		return sandboxcore.Info{}, sandboxcore.Errorf(sandboxcore.KindBackend, "the label %s of container %s can't be read: %w", labelSpec, inspected.ID, err)
	}
	network := networkOf(inspected)
	offer := c.offer()
	info := sandboxcore.Info{
		ID: inspected.ID, Name: labels[labelName], Owner: labels[labelOwner], State: managedState(inspected.State),
		Template: sandboxcore.Template{Image: was.Image, ID: was.TemplateID}, TemplateID: inspected.Image,
		Isolation: c.tierOf(inspected.HostConfig.Runtime), Resources: c.resourcesOf(inspected.HostConfig), Network: network,
		Enforcement: offer.Enforcement, Command: inspected.Config.Cmd,
		Env: map[string]string{}, Labels: userLabels(labels, was.Labels),
		Readiness: was.readiness(), TTL: was.TTL, Options: was.Options,
	}
	info.Enforcement.Pids = c.pidsEnforcement(pidsOf(inspected.HostConfig))
	info.Enforcement.Egress = offer.EgressEnforcement[network.Egress]
	if !info.Resources.DiskMB.IsSet() {
		info.Enforcement.Disk = sandboxcore.EnforcementNone
	}
	if was.WorkingDir {
		info.WorkingDir = inspected.Config.WorkingDir
	}
	if was.User {
		info.User = inspected.Config.User
	}
	for _, entry := range inspected.Config.Env {
		if name, value, _ := strings.Cut(entry, "="); slices.Contains(was.Env, name) {
			info.Env[name] = value
		}
	}
	var err error
	if info.CreatedAt, err = time.Parse(time.RFC3339Nano, inspected.Created); err != nil {
		return info, sandboxcore.Errorf(sandboxcore.KindBackend, "the engine's time of creation can't be read: %w", err)
	}
	if expires := labels[labelExpires]; expires != "" {
		if info.ExpiresAt, err = time.Parse(time.RFC3339, expires); err != nil {
			return info, sandboxcore.Errorf(sandboxcore.KindBackend, "the label %s of container %s can't be read: %w", labelExpires, inspected.ID, err)
		}
	}
	return info, nil
}

func managedState(s *container.State) sandboxcore.ManagedState {
	switch {
	case s.Paused:
		return sandboxcore.ManagedPaused
	case s.Running:
		return sandboxcore.ManagedRunning
	}
	return sandboxcore.ManagedStopped
}

func (c *connection) tierOf(runtime string) sandboxcore.IsolationTier {
	for _, t := range tiers(c.info) {
		if t.Runtime == runtime {
			return t.Tier
		}
	}
	return sandboxcore.TierUnknown
}

func (c *connection) resourcesOf(host *container.HostConfig) (r sandboxcore.Resources) {
	if host.NanoCPUs > 0 {
		r.CPU = sandboxcore.Some(cores(host.NanoCPUs))
	}
	// With swap on top there is no cap of this size, so somebody's change shows.
	if host.Memory > 0 && (host.MemorySwap == host.Memory || !c.info.SwapLimit) {
		r.MemoryMB = sandboxcore.Some(host.Memory >> 20)
	}
	var disk int64
	if _, err := fmt.Sscanf(host.StorageOpt["size"], "%dm", &disk); err == nil {
		r.DiskMB = sandboxcore.Some(disk)
	}
	return r
}

func pidsOf(host *container.HostConfig) int64 {
	if host.PidsLimit == nil {
		return 0
	}
	return *host.PidsLimit
}

// networkOf says what the container is really attached to.
func networkOf(inspected container.InspectResponse) sandboxcore.NetworkPolicy {
	for name := range inspected.NetworkSettings.Networks {
		if name != "none" {
			return sandboxcore.NetworkPolicy{Egress: sandboxcore.EgressAllow}
		}
	}
	return sandboxcore.NetworkPolicy{Egress: sandboxcore.EgressDeny}
}
