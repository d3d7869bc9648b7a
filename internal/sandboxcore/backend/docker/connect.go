// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/docker/cli/cli/config"
	clicontext "github.com/docker/cli/cli/context/docker"
	"github.com/docker/cli/cli/context/store"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// engine is what this package needs of an engine's client.
type engine interface {
	Close() error
	ClientVersion() string
	DaemonHost() string
	Info(ctx context.Context) (system.Info, error)

	ContainerCreate(ctx context.Context, config *container.Config, host *container.HostConfig, net *network.NetworkingConfig, platform *ocispec.Platform, name string) (container.CreateResponse, error)
	ContainerStart(ctx context.Context, id string, options container.StartOptions) error
	ContainerInspect(ctx context.Context, id string) (container.InspectResponse, error)
	ContainerList(ctx context.Context, options container.ListOptions) ([]container.Summary, error)
	ContainerLogs(ctx context.Context, id string, options container.LogsOptions) (io.ReadCloser, error)
	ContainerRemove(ctx context.Context, id string, options container.RemoveOptions) error
	ContainerUnpause(ctx context.Context, id string) error
	ContainerUpdate(ctx context.Context, id string, config container.UpdateConfig) (container.UpdateResponse, error)
	ContainerWait(ctx context.Context, id string, condition container.WaitCondition) (<-chan container.WaitResponse, <-chan error)
	ContainerExecCreate(ctx context.Context, id string, options container.ExecOptions) (container.ExecCreateResponse, error)
	ContainerExecAttach(ctx context.Context, execID string, options container.ExecAttachOptions) (types.HijackedResponse, error)

	ImageImport(ctx context.Context, source image.ImportSource, ref string, options image.ImportOptions) (io.ReadCloser, error)
	ImageInspect(ctx context.Context, id string, options ...client.ImageInspectOption) (image.InspectResponse, error)
	ImageList(ctx context.Context, options image.ListOptions) ([]image.Summary, error)
	ImagePull(ctx context.Context, ref string, options image.PullOptions) (io.ReadCloser, error)
	ImageRemove(ctx context.Context, id string, options image.RemoveOptions) ([]image.DeleteResponse, error)
	ImageTag(ctx context.Context, source, target string) error

	NetworkCreate(ctx context.Context, name string, options network.CreateOptions) (network.CreateResponse, error)
	NetworkList(ctx context.Context, options network.ListOptions) ([]network.Summary, error)
	NetworkRemove(ctx context.Context, id string) error

	VolumeCreate(ctx context.Context, options volume.CreateOptions) (volume.Volume, error)
	VolumeInspect(ctx context.Context, name string) (volume.Volume, error)
	VolumeRemove(ctx context.Context, name string, force bool) error
}

// connection is one client with what was found out once: it serves a whole run.
type connection struct {
	api  engine
	info system.Info

	guest  guestCache
	images sync.Map // reference -> image.InspectResponse, found ones only

	egress sync.Mutex
}

const (
	// connectTimeout bounds the first contact, so that a dead address is an error and not a hang.
	connectTimeout = 20 * time.Second
	// minAPI is the API of engine 20.10.
	minAPI = "1.41"
)

// connect returns the connection, made on first use. A failure isn't remembered, but
// shared by all who wait for the same attempt: a dead address costs its timeout once,
// not once for each sandbox.
func (b *Backend) connect(ctx context.Context) (*connection, error) {
	b.mu.Lock()
	conn := b.conn
	b.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	attempt := b.dialing.DoChan("", func() (any, error) {
		// Who came first may give up; those who wait with it have not.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
		defer cancel()
		conn, err := dial(ctx, b.host)
		if err != nil {
			return nil, err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.conn = conn
		return conn, nil
	})
	select {
	case done := <-attempt:
		conn, _ := done.Val.(*connection) // nil with an error
		return conn, done.Err
	case <-ctx.Done():
		return nil, failed(context.Cause(ctx), "connecting to the engine")
	}
}

func dial(ctx context.Context, host string) (*connection, error) {
	options, err := clientOptions(host)
	if err != nil {
		return nil, err
	}
	api, err := client.NewClientWithOpts(append(options, client.WithAPIVersionNegotiation())...)
	if err != nil {
		return nil, &sandboxcore.Error{Kind: sandboxcore.KindConfiguration, Field: "docker.host", Reason: "the engine's address can't be used", Remedy: "Write it like \"unix:///var/run/docker.sock\".", Err: err}
	}
	info, err := api.Info(ctx)
	if err != nil {
		_ = api.Close()
		return nil, &sandboxcore.Error{
			Kind: sandboxcore.KindBackendUnavailable, Reason: fmt.Sprintf("no Docker Engine answers at %s", api.DaemonHost()), Err: err,
			Remedy: "Start the engine, or name another one in the provider's docker.host, in DOCKER_HOST or in the Docker CLI's context.",
		}
	}
	if version := api.ClientVersion(); versions.LessThan(version, minAPI) {
		_ = api.Close()
		return nil, &sandboxcore.Error{
			Kind: sandboxcore.KindConfiguration, Field: "docker.host", Remedy: "Use Docker Engine 20.10 or later.",
			Reason: fmt.Sprintf("the engine at %s speaks API %s, and %s is needed", api.DaemonHost(), version, minAPI),
		}
	}
	return &connection{api: api, info: info}, nil
}

// clientOptions finds the engine: the configuration, the environment, the CLI's
// context, the operating system's default, in this order.
func clientOptions(host string) ([]client.Opt, error) {
	switch {
	case host != "":
		return hostOptions(host)
	case os.Getenv(client.EnvOverrideHost) != "":
		return hostOptions(os.Getenv(client.EnvOverrideHost))
	}
	name := os.Getenv("DOCKER_CONTEXT")
	if name == "" {
		name = config.LoadDefaultConfigFile(io.Discard).CurrentContext
	}
	if name == "" || name == "default" {
		return []client.Opt{client.FromEnv}, nil
	}
	options, err := contextOptions(name)
	if err != nil {
		return nil, &sandboxcore.Error{
			Kind: sandboxcore.KindConfiguration, Field: "docker.host", Err: err,
			Reason: fmt.Sprintf("the Docker CLI's context %q can't be used", name),
			Remedy: "Choose another context, or name the engine in the provider's docker.host.",
		}
	}
	return options, nil
}

// hostOptions takes certificates and API version from the environment, like the CLI.
func hostOptions(host string) ([]client.Opt, error) {
	if strings.HasPrefix(host, "ssh://") { // which the client itself doesn't know
		return (&clicontext.Endpoint{EndpointMeta: clicontext.EndpointMeta{Host: host}}).ClientOpts()
	}
	return []client.Opt{client.WithTLSClientConfigFromEnv(), client.WithHost(host), client.WithVersionFromEnv()}, nil
}

func contextOptions(name string) ([]client.Opt, error) {
	contexts := store.New(config.ContextStoreDir(), store.NewConfig(
		func() any { return &map[string]any{} },
		store.EndpointTypeGetter(clicontext.DockerEndpoint, func() any { return &clicontext.EndpointMeta{} }),
	))
	metadata, err := contexts.GetMetadata(name)
	if err != nil {
		return nil, err
	}
	meta, err := clicontext.EndpointFromContext(metadata)
	if err != nil {
		return nil, err
	}
	endpoint, err := clicontext.WithTLSData(contexts, name, meta)
	if err != nil {
		return nil, err
	}
	return endpoint.ClientOpts()
}
