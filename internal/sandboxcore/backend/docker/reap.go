// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// Kill removes a sandbox with its anonymous volumes, and the shared network with its
// last sandbox.
func (b *Backend) Kill(ctx context.Context, id string) error {
	conn, err := b.connect(ctx)
	if err != nil {
		return err
	}
	inspected, err := conn.inspect(ctx, id)
	if sandboxcore.Is(err, sandboxcore.KindNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return conn.kill(ctx, inspected.ID, networkOf(inspected).Egress)
}

func (c *connection) kill(ctx context.Context, id string, egress sandboxcore.Egress) error {
	err := c.removeSandbox(ctx, id)
	// A busy mount or a dying process can make the engine give up; a little later it succeeds.
	for attempt := 1; attempt < 4 && sandboxcore.Is(failed(err, ""), sandboxcore.KindBackend); attempt++ {
		select {
		case <-time.After(time.Duration(attempt) * 250 * time.Millisecond):
			err = c.removeSandbox(ctx, id)
		case <-ctx.Done():
			return failed(ctx.Err(), "removing sandbox %s", id)
		}
	}
	if err != nil {
		return failed(err, "removing sandbox %s", id)
	}
	if egress == sandboxcore.EgressAllow {
		c.removeEgress(ctx)
	}
	return nil
}

// removeSandbox removes the container, or waits for whoever is at it already. Gone is no error.
func (c *connection) removeSandbox(ctx context.Context, id string) error {
	err := c.api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && strings.Contains(err.Error(), "already in progress") {
		gone, errs := c.api.ContainerWait(ctx, id, container.WaitConditionRemoved)
		select {
		case <-gone:
			err = nil
		case err = <-errs:
		}
	}
	if isNotFound(err) {
		return nil
	}
	return err
}

// ListManaged lists sandboxes of this engine that sandboxio made, by anyone.
func (b *Backend) ListManaged(ctx context.Context, filter sandboxcore.Filter) ([]sandboxcore.ManagedSandbox, error) {
	conn, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	args := roleFilter(roleSandbox)
	if filter.Owner != "" {
		args.Add("label", labelOwner+"="+filter.Owner)
	}
	for key, value := range filter.Labels.Map() {
		args.Add("label", key+"="+value)
	}
	found, err := conn.api.ContainerList(ctx, container.ListOptions{All: true, Filters: args})
	if err != nil {
		return nil, failed(err, "listing sandboxes")
	}
	managed := make([]sandboxcore.ManagedSandbox, 0, len(found))
	for _, c := range found {
		managed = append(managed, listed(c))
	}
	return managed, nil
}

func listed(c container.Summary) sandboxcore.ManagedSandbox {
	var was asked
	_ = json.Unmarshal([]byte(c.Labels[labelSpec]), &was) // unreadable: only the user's labels are missing then
	expires, _ := time.Parse(time.RFC3339, c.Labels[labelExpires])
	state := sandboxcore.ManagedStopped
	switch c.State {
	case container.StateRunning:
		state = sandboxcore.ManagedRunning
	case container.StatePaused:
		state = sandboxcore.ManagedPaused
	}
	return sandboxcore.ManagedSandbox{
		SandboxID: c.ID, Backend: Name, State: state, Owner: c.Labels[labelOwner],
		CreatedAt: sandboxcore.Timestamp(time.Unix(c.Created, 0)), ExpiresAt: sandboxcore.Timestamp(expires),
		Labels: sandboxcore.LabelsOf(userLabels(c.Labels, was.Labels)),
	}
}

// Reap ends a sandbox of owner's and touches nothing else.
func (b *Backend) Reap(ctx context.Context, owner, id string) error {
	conn, err := b.connect(ctx)
	if err != nil {
		return err
	}
	inspected, err := conn.inspect(ctx, id)
	if sandboxcore.Is(err, sandboxcore.KindNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if is := inspected.Config.Labels[labelOwner]; owner == "" || is != owner {
		return sandboxcore.WrongOwner(id, is, owner)
	}
	return conn.kill(ctx, inspected.ID, networkOf(inspected).Egress)
}

// ReapHelpers removes the shared network if no sandbox is on it, and what an
// interrupted installation of the guest helper left. The filled volume and its image
// stay: they are the engine's cache.
func (b *Backend) ReapHelpers(ctx context.Context) error {
	conn, err := b.connect(ctx)
	if err != nil {
		return err
	}
	conn.removeEgress(ctx)
	installers, err := conn.api.ContainerList(ctx, container.ListOptions{All: true, Filters: roleFilter(roleGuest)})
	if err != nil {
		return failed(err, "listing helper containers")
	}
	for _, c := range installers {
		if time.Since(time.Unix(c.Created, 0)) > requestTimeout { // a younger one may be at work
			conn.remove(ctx, c.ID)
		}
	}
	conn.removeUntaggedGuests(ctx)
	return nil
}
