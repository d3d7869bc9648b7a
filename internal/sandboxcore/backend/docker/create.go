// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/protocol"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// keptCapabilities are the Linux capabilities that a sandbox keeps: what package
// managers and servers need within their own files and processes. All others go:
// NET_RAW, MKNOD, SYS_CHROOT, SETPCAP, SETFCAP and AUDIT_WRITE too.
var keptCapabilities = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "NET_BIND_SERVICE"}

const (
	// requestTimeout bounds one request whose answer must not be missed.
	requestTimeout = 2 * time.Minute
	// cleanupTimeout bounds what takes things back, also when the caller's own context is over.
	cleanupTimeout = 30 * time.Second
)

// Create makes and starts a container.
func (b *Backend) Create(ctx context.Context, spec sandboxcore.Spec, resolved sandboxcore.Resolved) (sandboxcore.Sandbox, error) {
	conn, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ensure(ctx, spec.Template, sandboxcore.PullMissing); err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		s, err := conn.create(ctx, spec, resolved)
		// The shared network goes with its last sandbox, which may have been this moment.
		if err == nil || attempt == 3 || resolved.Network.Egress != sandboxcore.EgressAllow || !isMissingNetwork(err) {
			return s, err
		}
	}
}

func (c *connection) create(ctx context.Context, spec sandboxcore.Spec, resolved sandboxcore.Resolved) (_ sandboxcore.Sandbox, err error) {
	if resolved.Network.Egress == sandboxcore.EgressAllow {
		defer func() {
			if err != nil {
				c.removeEgress(ctx)
			}
		}()
	}
	config, host, err := c.containerConfig(ctx, spec, resolved)
	if err != nil {
		return nil, err
	}
	made, err := c.createContainer(ctx, config, host, containerName(spec.Name))
	if err != nil {
		return nil, failed(err, "creating the container")
	}
	defer func() {
		if err != nil {
			c.remove(ctx, made.ID)
		}
	}()
	for _, warning := range made.Warnings {
		sandboxcore.Logger(ctx).WarnContext(ctx, "the engine warns", "container", made.ID, "warning", warning)
	}
	if err := c.api.ContainerStart(ctx, made.ID, container.StartOptions{}); err != nil {
		return nil, failed(err, "starting the container")
	}
	inspected, err := c.api.ContainerInspect(ctx, made.ID)
	if err != nil {
		return nil, failed(err, "inspecting the container")
	}
	return c.sandbox(inspected)
}

// createContainer doesn't let go of the request when ctx ends, since the engine goes
// on with it: only who has the answer can take the container back.
func (c *connection) createContainer(ctx context.Context, config *container.Config, host *container.HostConfig, name string) (container.CreateResponse, error) {
	requestCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	made, err := c.api.ContainerCreate(requestCtx, config, host, nil, nil, name)
	switch {
	case err == nil && ctx.Err() != nil:
		c.remove(ctx, made.ID)
		return made, ctx.Err()
	case client.IsErrConnectionFailed(err), errors.Is(err, context.DeadlineExceeded):
		// The answer was lost on the way, but the engine may have done it. Nobody else
		// has this name: had anybody, the answer would be a conflict.
		c.remove(ctx, name)
	}
	return made, err
}

func (c *connection) containerConfig(ctx context.Context, spec sandboxcore.Spec, resolved sandboxcore.Resolved) (*container.Config, *container.HostConfig, error) {
	guest, err := c.ensureGuest(ctx)
	if err != nil {
		return nil, nil, err
	}
	var expires time.Time
	if spec.TTL > 0 {
		expires = time.Now().Add(spec.TTL).UTC().Truncate(time.Second)
	}
	labels, err := sandboxLabels(spec, expires)
	if err != nil {
		return nil, nil, err
	}
	env := make([]string, 0, len(spec.Env))
	for name, value := range spec.Env {
		env = append(env, name+"="+value)
	}
	image := spec.Template.Image
	if spec.Template.ID != "" {
		image = spec.Template.ID
	}
	config := &container.Config{
		Image: image, Entrypoint: protocol.InitArgs(expires), Cmd: spec.Command,
		WorkingDir: spec.WorkingDir, User: spec.User, Env: env, Labels: labels,
		// The image's own health check would run in a sandbox that may not even have its program.
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
	}
	networkMode := "none"
	if resolved.Network.Egress == sandboxcore.EgressAllow {
		if networkMode, err = c.ensureEgress(ctx); err != nil {
			return nil, nil, err
		}
	}
	pids, noInit := int64(pidsLimit), false
	memory := resolved.Resources.MemoryMB.Or(0) << 20
	host := &container.HostConfig{
		NetworkMode:   container.NetworkMode(networkMode),
		Runtime:       resolved.Tier.Runtime,
		CapDrop:       []string{"ALL"},
		CapAdd:        keptCapabilities,
		SecurityOpt:   []string{"no-new-privileges"},
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		LogConfig:     container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "10m", "max-file": "1"}},
		Resources: container.Resources{
			// Without a swap limit the engine would allow as much swap again.
			Memory: memory, MemorySwap: memory,
			NanoCPUs: nanoCPUs(resolved.Resources.CPU.Or(0)), PidsLimit: &pids,
		},
		Init: &noInit, // the guest is PID 1, whatever the engine's default is
		Mounts: []mount.Mount{{
			Type: mount.TypeVolume, Source: guest, Target: protocol.Dir, ReadOnly: true,
			VolumeOptions: &mount.VolumeOptions{NoCopy: true},
		}},
	}
	if disk, ok := resolved.Resources.DiskMB.Get(); ok {
		host.StorageOpt = map[string]string{"size": fmt.Sprintf("%dm", disk)}
	}
	if spec.Options.Bool(optionReadOnly) {
		host.ReadonlyRootfs = true
		host.Tmpfs = map[string]string{"/tmp": "size=64m,mode=1777,exec"}
	}
	return config, host, nil
}

// containerName is unique, so that a replacement, a second owner or a second try
// never meets an old one.
func containerName(name string) string {
	if name == "" {
		name = "sandbox"
	}
	return "sandboxio-" + name + "-" + randomHex(4)
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails: crypto/rand crashes the program instead
	return hex.EncodeToString(b)
}
