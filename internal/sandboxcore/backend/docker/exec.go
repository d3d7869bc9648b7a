// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/protocol"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// killGrace is how long a cancelled execution has to report its end, before its
// connection is cut. The guest kills the tree in either case.
const killGrace = 5 * time.Second

// Exec runs cmd to its end.
func (s *sandbox) Exec(ctx context.Context, cmd sandboxcore.Command) (sandboxcore.ExecResult, error) {
	p, err := s.start(ctx, cmd)
	if err != nil {
		return sandboxcore.ExecResult{}, err
	}
	defer p.leave()
	return sandboxcore.Collect(ctx, p, cmd.MaxOutputBytes)
}

// Stream starts cmd.
func (s *sandbox) Stream(ctx context.Context, cmd sandboxcore.Command) (sandboxcore.Process, error) {
	return s.start(ctx, cmd)
}

func (s *sandbox) start(ctx context.Context, cmd sandboxcore.Command) (*process, error) {
	if err := cmd.Validate(); err != nil {
		return nil, err
	}
	env := make([]string, 0, len(cmd.Env))
	for name, value := range cmd.Env {
		env = append(env, name+"="+value)
	}
	return s.dial(ctx, container.ExecOptions{
		Cmd: protocol.ExecArgs(cmd.Timeout, cmd.WorkingDir, cmd.Argv), Env: env, User: cmd.User,
	}, bytes.NewReader(cmd.Stdin), cmd.Timeout)
}

// dial starts a guest in the sandbox. Whether it came up shows in its first frame.
func (s *sandbox) dial(ctx context.Context, options container.ExecOptions, stdin io.Reader, timeout time.Duration) (*process, error) {
	options.AttachStdin, options.AttachStdout, options.AttachStderr = true, true, true
	made, err := s.conn.api.ContainerExecCreate(ctx, s.info.ID, options)
	if err != nil {
		return nil, s.execFailed(ctx, err)
	}
	attached, err := s.conn.api.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		return nil, s.execFailed(ctx, err)
	}
	stream, demuxed := io.Pipe()
	p := &process{
		ctx: ctx, sandbox: s, timeout: timeout,
		// Both ends: cutting the connection alone would leave the demultiplexer writing to nobody.
		hangUp: func() { attached.Close(); _ = stream.Close() },
		in:     protocol.NewGuestReader(stream), out: protocol.NewWriter(attached.Conn),
		window: make(chan struct{}, protocol.StdinWindow), reading: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	go func() {
		_, err := stdcopy.StdCopy(demuxed, &p.engineText, attached.Reader)
		_ = demuxed.CloseWithError(err) // nil becomes io.EOF
	}()
	p.stopWatching = p.endWith(ctx)
	go p.send(stdin)
	return p, nil
}

// execFailed says why the engine took no command.
func (s *sandbox) execFailed(ctx context.Context, err error) error {
	e := failed(err, "starting a command in sandbox %s", s.info.ID)
	switch {
	case sandboxcore.Is(e, sandboxcore.KindNotRunning):
		return s.notRunning("stopped or paused")
	case sandboxcore.Is(e, sandboxcore.KindTimeout), sandboxcore.Is(e, sandboxcore.KindBackendUnavailable), sandboxcore.Is(e, sandboxcore.KindNotFound):
		return e
	case isUnknownUser(err.Error()): // newer engines say so here, older ones in the stream
		return unknownUser(err.Error())
	}
	if gone := s.whyGone(ctx); gone != nil {
		return gone
	}
	return e
}

func (s *sandbox) notRunning(state string) error {
	return &sandboxcore.Error{
		Kind: sandboxcore.KindNotRunning, Reason: fmt.Sprintf("sandbox %s is %s, so nothing can run in it", s.info.ID, state),
		Remedy: "Apply its resource: that starts it again.",
	}
}

// whyGone says why nothing runs in the sandbox any more, or nil while it could.
func (s *sandbox) whyGone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killGrace)
	defer cancel()
	inspected, err := s.conn.api.ContainerInspect(ctx, s.info.ID)
	switch {
	case isNotFound(err):
		return sandboxcore.Errorf(sandboxcore.KindNotFound, "sandbox %s is gone", s.info.ID)
	case client.IsErrConnectionFailed(err):
		return failed(err, "looking at sandbox %s", s.info.ID)
	case err == nil && managedState(inspected.State) == sandboxcore.ManagedStopped:
		return s.notRunning("stopped")
	}
	return nil
}

func isUnknownUser(text string) bool {
	return strings.Contains(text, "unable to find user") || strings.Contains(text, "unable to find group") || strings.Contains(text, "no matching entries in")
}

func unknownUser(text string) error {
	return &sandboxcore.Error{Kind: sandboxcore.KindCannotStart, Field: "user", Reason: text, Remedy: "Name a user that the image has, or a numeric id."}
}

// process is one execution under the guest.
type process struct {
	ctx          context.Context
	sandbox      *sandbox
	timeout      time.Duration
	out          *protocol.Writer
	in           *protocol.Reader
	engineText   lockedBuffer // what the engine, not the guest, wrote to stderr
	window       chan struct{}
	hangUp       func()
	stopWatching func() bool

	reading chan struct{} // holds a token while somebody reads frames
	ended   chan struct{} // closed with the terminal set
	result  sandboxcore.ExecResult
	err     error
}

// send passes stdin on, never further ahead than the guest can hold.
func (p *process) send(stdin io.Reader) {
	buf := make([]byte, protocol.MaxData)
	for {
		n, err := stdin.Read(buf)
		if n > 0 {
			select {
			case p.window <- struct{}{}:
			case <-p.ended:
				return
			}
			if p.out.Write(protocol.StdinData, buf[:n]) != nil {
				return
			}
		}
		if errors.Is(err, io.EOF) {
			_ = p.out.Write(protocol.CloseStdin, nil)
			return
		}
		if err != nil {
			p.kill() // half of an input is no input
			return
		}
	}
}

// endWith ends the process when ctx ends: by a request, and if nothing comes of that,
// by cutting the connection.
func (p *process) endWith(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		go p.kill() // a stuck connection holds it up until it's cut
		select {
		case <-p.ended:
		case <-time.After(killGrace):
			p.hangUp()
		}
	})
}

func (p *process) kill() { _ = p.out.Write(protocol.Kill, nil) }

// Chunks yields the output.
func (p *process) Chunks() iter.Seq2[sandboxcore.Chunk, error] {
	return func(yield func(sandboxcore.Chunk, error) bool) {
		p.reading <- struct{}{}
		defer func() { <-p.reading }()
		for {
			chunk, ok := p.next()
			if !ok {
				if p.err != nil {
					yield(sandboxcore.Chunk{}, p.err)
				}
				return
			}
			if !yield(chunk, nil) {
				return
			}
		}
	}
}

// next returns the next piece of output, or false at the end.
func (p *process) next() (sandboxcore.Chunk, bool) {
	select {
	case <-p.ended:
		return sandboxcore.Chunk{}, false
	default:
	}
	for {
		frame, err := p.in.Next()
		if err != nil {
			p.finish(sandboxcore.ExecResult{}, p.cut(err))
			return sandboxcore.Chunk{}, false
		}
		switch frame.Kind {
		case protocol.Stdout:
			return sandboxcore.Chunk{Stream: sandboxcore.Stdout, Data: frame.Payload}, true
		case protocol.Stderr:
			return sandboxcore.Chunk{Stream: sandboxcore.Stderr, Data: frame.Payload}, true
		case protocol.Ack:
			select {
			case <-p.window:
			default: // one too many, which only something inside can have forged
			}
		case protocol.End:
			p.finish(p.terminal(frame.Payload))
			return sandboxcore.Chunk{}, false
		}
	}
}

func (p *process) finish(result sandboxcore.ExecResult, err error) {
	p.result, p.err = result, err
	p.result.Streamed = true
	close(p.ended)
	p.stopWatching()
	p.hangUp()
}

// Wait reads on to the end.
func (p *process) Wait(ctx context.Context) (sandboxcore.ExecResult, error) {
	select {
	case p.reading <- struct{}{}:
	case <-ctx.Done():
		return sandboxcore.ExecResult{}, ctx.Err()
	}
	defer func() { <-p.reading }()
	defer p.endWith(ctx)()
	for {
		if _, more := p.next(); !more {
			return p.result, p.err
		}
	}
}

// Close kills what still runs, and returns when it's gone.
func (p *process) Close(ctx context.Context) error {
	select {
	case <-p.ended:
		return nil
	default:
	}
	defer context.AfterFunc(ctx, p.hangUp)()
	go p.kill() // a stuck connection holds it up until it's cut
	select {
	case <-p.ended: // whoever else reads has seen the end
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case p.reading <- struct{}{}:
	}
	defer func() { <-p.reading }()
	for more := true; more; {
		_, more = p.next()
	}
	return ctx.Err()
}

// leave ends what still runs, so that nothing waits for it for ever.
func (p *process) leave() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), killGrace)
	defer cancel()
	_ = p.Close(ctx)
}

func (p *process) terminal(payload []byte) (sandboxcore.ExecResult, error) {
	t, err := protocol.DecodeTerminal(payload)
	if err != nil {
		return sandboxcore.ExecResult{}, sandboxcore.Errorf(sandboxcore.KindBackend, "the end of the command can't be read: %w", err)
	}
	switch t.Outcome {
	case protocol.Exited:
		return sandboxcore.ExecResult{ExitCode: t.Code}, nil
	case protocol.TimedOut:
		return sandboxcore.ExecResult{}, &sandboxcore.Error{
			Kind: sandboxcore.KindTimeout, Field: "timeout", Reason: fmt.Sprintf("the command did not end within %s; it and its children were killed", p.timeout),
			Remedy: "Raise timeout, or make the command end sooner.",
		}
	case protocol.Killed:
		if cause := context.Cause(p.ctx); cause != nil {
			return sandboxcore.ExecResult{}, sandboxcore.Errorf(sandboxcore.KindTimeout, "the command was killed: %w", cause)
		}
		return sandboxcore.ExecResult{}, sandboxcore.Errorf(sandboxcore.KindTimeout, "the command was killed")
	case protocol.CannotStart:
		field := "command"
		if t.Reason == protocol.WorkingDir {
			field = "working_dir"
		}
		return sandboxcore.ExecResult{}, &sandboxcore.Error{Kind: sandboxcore.KindCannotStart, Field: field, Reason: t.Message, Remedy: "The command never ran: check its name, its path and the image."}
	}
	return sandboxcore.ExecResult{}, operationFailed(t)
}

// cut says why a stream ended without its terminal frame.
func (p *process) cut(err error) error {
	text := p.engineText.String()
	if foreign, ok := errors.AsType[*protocol.ForeignError](err); ok {
		text = strings.TrimSpace(foreign.Text + text)
	}
	if cause := context.Cause(p.ctx); cause != nil {
		return sandboxcore.Errorf(sandboxcore.KindTimeout, "the command was killed: %w", cause)
	}
	if gone := p.sandbox.whyGone(p.ctx); gone != nil {
		return gone
	}
	switch {
	case isUnknownUser(text):
		return unknownUser(text)
	case text != "":
		return &sandboxcore.Error{Kind: sandboxcore.KindCannotStart, Field: "command", Reason: "the engine could not start the command: " + text, Remedy: "Check user and the image."}
	}
	return sandboxcore.Errorf(sandboxcore.KindBackend, "the connection to the command broke off: %w", err)
}

// lockedBuffer keeps the first few KiB written to it.
type lockedBuffer struct {
	mu   sync.Mutex
	text []byte
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p[:min(len(p), 4096-len(b.text))]...)
	return len(p), nil
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(bytes.TrimSpace(b.text))
}
