// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore/contract"
)

func TestContract(t *testing.T) {
	api := realEngine(t)
	contract.Run(t, contract.Harness{
		Open:         func(*testing.T) sandboxcore.Backend { return New("") },
		Spec:         sandboxcore.Spec{Template: sandboxcore.Template{Image: busybox}},
		MissingImage: "sandboxio-test/none:1",
		Shell:        []string{"sh", "-c"},
		Stop: func(t *testing.T, id string) {
			noError(t, api.ContainerStop(t.Context(), id, container.StopOptions{}))
		},
		Pause: func(t *testing.T, id string) { noError(t, api.ContainerPause(t.Context(), id)) },
		Unmanaged: func(t *testing.T) (string, func() bool) {
			// A label that looks like ours is not enough.
			made, err := api.ContainerCreate(t.Context(), &container.Config{
				Image: busybox, Cmd: []string{"sleep", "1000"}, Labels: map[string]string{labelManaged: "true", "managed": "true"},
			}, nil, nil, nil, "")
			noError(t, err)
			t.Cleanup(func() {
				noError(t, api.ContainerRemove(context.Background(), made.ID, container.RemoveOptions{Force: true}))
			})
			return made.ID, func() bool {
				_, err := api.ContainerInspect(t.Context(), made.ID)
				return err == nil
			}
		},
		Unreachable: func(t *testing.T) sandboxcore.Backend {
			return New("unix://" + filepath.Join(t.TempDir(), "none.sock"))
		},
		OverLimit: sandboxcore.Some(10000.0),
	})
}
