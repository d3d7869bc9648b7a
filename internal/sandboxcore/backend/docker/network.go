// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/network"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// egressName is the shared network of sandboxes with egress allow. It is made with
// the first and goes with the last.
const egressName = "sandboxio-egress"

// ensureEgress returns the id of the shared network.
func (c *connection) ensureEgress(ctx context.Context) (string, error) {
	c.egress.Lock()
	defer c.egress.Unlock()
	// An engine lets two networks have one name, if two clients make them at once: the
	// older one counts, and who made the other takes it back.
	id, err := c.oldestEgress(ctx)
	if err != nil || id != "" {
		return id, err
	}
	made, err := c.api.NetworkCreate(ctx, egressName, network.CreateOptions{
		Driver: "bridge", Labels: roleLabels(roleEgress),
		Options: map[string]string{"com.docker.network.bridge.enable_icc": "false"},
	})
	if err != nil && !sandboxcore.Is(failed(err, ""), sandboxcore.KindConflict) {
		return "", failed(err, "creating the network %s", egressName)
	}
	id, err = c.oldestEgress(ctx)
	if err == nil && made.ID != "" && id != made.ID {
		_ = c.api.NetworkRemove(ctx, made.ID)
	}
	if err == nil && id == "" {
		return "", failed(errMissingNetwork, "creating the network %s", egressName)
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

// removeEgress removes the shared network unless a sandbox still uses it, which the
// engine itself says.
func (c *connection) removeEgress(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	c.egress.Lock()
	defer c.egress.Unlock()
	found, err := c.api.NetworkList(ctx, network.ListOptions{Filters: roleFilter(roleEgress)})
	if err != nil {
		return
	}
	for _, n := range found {
		if err := c.api.NetworkRemove(ctx, n.ID); err != nil {
			sandboxcore.Logger(ctx).DebugContext(ctx, "the shared network stays", "id", n.ID, "reason", err.Error())
		}
	}
}

var errMissingNetwork = errors.New("network not found")

// isNetworkInFlux knows an engine's answers that a network isn't there (any more), or
// that there are two of its name for a moment.
func isNetworkInFlux(err error) bool {
	text := err.Error()
	return strings.Contains(text, "network") && (strings.Contains(text, "not found") || strings.Contains(text, "is ambiguous"))
}
