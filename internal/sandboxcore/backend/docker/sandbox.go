// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"context"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/protocol"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// sandbox is a handle of one container.
type sandbox struct {
	sandboxcore.Unsupported
	sandboxcore.Lifecycle
	conn *connection
	info sandboxcore.Info
}

func (c *connection) sandbox(inspected container.InspectResponse) (*sandbox, error) {
	info, err := c.describe(inspected)
	if err != nil {
		return nil, err
	}
	s := &sandbox{Unsupported: sandboxcore.Unsupported{Backend: Name}, conn: c, info: info}
	state := sandboxcore.StateRunning
	if info.State == sandboxcore.ManagedStopped {
		state = sandboxcore.StateFailed
	}
	return s, s.To(state)
}

func (s *sandbox) ID() string                           { return s.info.ID }
func (s *sandbox) Info() sandboxcore.Info               { return s.info }
func (s *sandbox) Isolation() sandboxcore.IsolationTier { return s.info.Isolation }
func (s *sandbox) Capabilities() sandboxcore.Capability { return capabilities }
func (s *sandbox) Files() sandboxcore.FileSystem        { return files{s} }

// Native is the container's id, for whoever talks to the engine directly.
func (s *sandbox) Native() any { return s.info.ID }

func (s *sandbox) Kill(ctx context.Context) error {
	if err := s.conn.kill(ctx, s.info.ID, s.info.Network.Egress); err != nil {
		return err
	}
	if s.State() == sandboxcore.StateFailed {
		return nil
	}
	return s.To(sandboxcore.StateKilled)
}

// Wait blocks until the main process, or the idle guest, ends.
func (s *sandbox) Wait(ctx context.Context) (sandboxcore.Exit, error) {
	ended, errs := s.conn.api.ContainerWait(ctx, s.info.ID, container.WaitConditionNotRunning)
	select {
	case <-ended:
	case err := <-errs:
		return sandboxcore.Exit{}, failed(err, "waiting for sandbox %s", s.info.ID)
	}
	inspected, err := s.conn.api.ContainerInspect(ctx, s.info.ID)
	if err != nil {
		return sandboxcore.Exit{}, failed(err, "looking at sandbox %s", s.info.ID)
	}
	if s.State() == sandboxcore.StateRunning {
		_ = s.To(sandboxcore.StateFailed)
	}
	code := inspected.State.ExitCode
	return sandboxcore.Exit{
		Code: code,
		// The engine sets the flag for any process of the sandbox, one that didn't matter too.
		OutOfMemory: inspected.State.OOMKilled && code != 0,
		Log:         s.conn.lastLog(ctx, s.info.ID),
	}, nil
}

// lastLog returns the last lines that the main process wrote, as far as they can be had.
func (c *connection) lastLog(ctx context.Context, id string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	stream, err := c.api.ContainerLogs(ctx, id, container.LogsOptions{ShowStdout: true, ShowStderr: true, Tail: "20"})
	if err != nil {
		return ""
	}
	defer stream.Close()
	var text strings.Builder
	_, _ = stdcopy.StdCopy(&text, &text, stream)
	return strings.TrimSpace(text.String())
}

// ProbeTCP connects from inside.
func (s *sandbox) ProbeTCP(ctx context.Context, port int) error {
	return s.operate(ctx, protocol.ProbeArgs(port), nil, nil)
}
