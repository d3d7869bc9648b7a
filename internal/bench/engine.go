// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"context"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"golang.org/x/sync/errgroup"
)

// bareEngine makes containers with nothing around them: what the engine costs.
type bareEngine struct{ api *client.Client }

func newBareEngine(ctx context.Context) (bareEngine, error) {
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return bareEngine{}, err
	}
	_, err = api.Ping(ctx)
	return bareEngine{api}, err
}

func (e bareEngine) measure(ctx context.Context, n int) (t timing, err error) {
	ids := make([]string, n)
	steps := []func(ctx context.Context, i int) error{
		func(ctx context.Context, i int) error {
			made, err := e.api.ContainerCreate(ctx, &container.Config{Image: image, Cmd: []string{"sleep", "100000"}},
				&container.HostConfig{
					NetworkMode: "none",
					Resources:   container.Resources{Memory: 256 << 20, MemorySwap: 256 << 20, NanoCPUs: 5e8},
				}, nil, nil, "")
			if err != nil {
				return err
			}
			ids[i] = made.ID
			return e.api.ContainerStart(ctx, made.ID, container.StartOptions{})
		},
		func(ctx context.Context, i int) error {
			_, err := e.api.ContainerInspect(ctx, ids[i])
			return err
		},
		func(ctx context.Context, i int) error {
			return e.api.ContainerRemove(ctx, ids[i], container.RemoveOptions{Force: true})
		},
	}
	for phase, step := range steps {
		start := time.Now()
		var group errgroup.Group
		group.SetLimit(parallelism)
		for i := range n {
			group.Go(func() error { return step(ctx, i) })
		}
		if err := group.Wait(); err != nil {
			return t, err
		}
		t[phase] = time.Since(start).Seconds()
	}
	return t, nil
}
