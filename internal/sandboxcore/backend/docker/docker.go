// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

// Package docker runs sandboxes on a Docker Engine (20.10, API 1.41, to 29). All use
// of the engine's client stays in this package, behind the interface engine.
package docker

import (
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// Name is the backend's name.
const Name = "docker"

// Backend is the Docker backend. It connects on first use.
type Backend struct {
	host string

	dialing singleflight.Group
	mu      sync.Mutex
	conn    *connection // nil until the first successful use
}

var _ sandboxcore.ReapableBackend = (*Backend)(nil)

const (
	settingHost    = "host"
	optionReadOnly = "read_only"
)

// Factory describes the backend.
func Factory() sandboxcore.Factory {
	return sandboxcore.Factory{
		Name:        Name,
		Description: "Docker Engine 20.10 or later.",
		Settings: []sandboxcore.Setting{{
			Name: settingHost, Kind: sandboxcore.StringSetting,
			Description: "Address of the engine, such as `unix:///var/run/docker.sock` or `tcp://127.0.0.1:2375`. " +
				"Default: `DOCKER_HOST`, then the Docker CLI's current context, then the operating system's default.",
		}},
		SandboxOptions: []sandboxcore.Setting{{
			Name: optionReadOnly, Kind: sandboxcore.BoolSetting,
			Description: "Mount the root file system read-only; `/tmp` is then a tmpfs of 64 MiB that counts against `memory_mb`. Default: `false`. A change replaces the sandbox.",
		}},
		Open: func(s sandboxcore.Settings) (sandboxcore.Backend, error) { return New(s.String(settingHost)), nil },
	}
}

// New returns the backend of the engine at host; "" finds it as the Docker CLI does.
func New(host string) *Backend { return &Backend{host: host} }

// Name returns "docker".
func (b *Backend) Name() string { return Name }

// Close gives up the connection.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn == nil {
		return nil
	}
	err := b.conn.api.Close()
	b.conn = nil
	return err
}
