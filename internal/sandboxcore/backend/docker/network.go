// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// egressPrefix begins the name of the shared network of sandboxes with egress allow. It
// is made with the first and goes with the last; its label is what it's found by.
const egressPrefix = "sandboxio-egress-"

// ensureEgress returns the id of the shared network. Two clients may make one at once,
// which no engine prevents: the older one counts, and who made the other takes it back.
// If one name were on both, no sandbox would start meanwhile, nor, if both came into
// use, ever: an engine finds a container's network by its name. So each try has its own.
func (c *connection) ensureEgress(ctx context.Context) (string, error) {
	c.egress.Lock()
	defer c.egress.Unlock()
	id, err := c.oldestEgress(ctx)
	if err != nil || id != "" {
		return id, err
	}
	// The engine goes on with it when ctx ends: only who has the answer can take it back.
	requestCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	made, err := c.api.NetworkCreate(requestCtx, egressPrefix+randomHex(4), network.CreateOptions{
		Driver: "bridge", Labels: roleLabels(roleEgress),
		Options: map[string]string{"com.docker.network.bridge.enable_icc": "false"},
	})
	if err != nil {
		return "", failed(err, "creating the shared network")
	}
	id, err = c.oldestEgress(ctx)
	switch {
	case err == nil && id == "": // its last sandbox has just taken it away
		return "", failed(errMissingNetwork, "creating the shared network")
	case id != made.ID:
		_ = c.api.NetworkRemove(requestCtx, made.ID)
	}
	return id, err
}

func (c *connection) oldestEgress(ctx context.Context) (string, error) {
	found, err := c.api.NetworkList(ctx, network.ListOptions{Filters: roleFilter(roleEgress)})
	if err != nil {
		return "", failed(err, "listing networks")
	}
	if len(found) == 0 {
		return "", nil
	}
	return slices.MinFunc(found, func(a, b network.Summary) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	}).ID, nil
}

// removeEgress removes the shared network unless a sandbox still needs it. The engine
// itself keeps it for one that runs; one that is stopped has to find it again.
func (c *connection) removeEgress(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	c.egress.Lock()
	defer c.egress.Unlock()
	found, err := c.api.NetworkList(ctx, network.ListOptions{Filters: roleFilter(roleEgress)})
	if err != nil {
		return
	}
	for _, n := range found {
		if c.egressUsed(ctx, n.ID) {
			continue
		}
		if err := c.api.NetworkRemove(ctx, n.ID); err != nil {
			sandboxcore.Logger(ctx).DebugContext(ctx, "the shared network stays", "id", n.ID, "reason", err.Error())
		}
	}
}

// egressUsed says whether a sandbox in any state was made for the network. Where that
// can't be told, it counts as used.
func (c *connection) egressUsed(ctx context.Context, id string) bool {
	sandboxes, err := c.api.ContainerList(ctx, container.ListOptions{All: true, Filters: roleFilter(roleSandbox)})
	return err != nil || slices.ContainsFunc(sandboxes, func(s container.Summary) bool { return s.HostConfig.NetworkMode == id })
}

var errMissingNetwork = errors.New("network not found")

// isMissingNetwork knows an engine's answer that a network isn't there (any more).
func isMissingNetwork(err error) bool {
	text := err.Error()
	return strings.Contains(text, "network") && strings.Contains(text, "not found")
}
