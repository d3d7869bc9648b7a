// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// settleTime is how long a main process without a readiness probe has to live to
// count as started: a crash right after the start is the creator's error, not the
// next resource's riddle.
const settleTime = 1500 * time.Millisecond

// awaitReady returns once the sandbox is ready, or with the reason why it isn't: its
// main process ended, the probes' time ran out, or ctx ended.
func awaitReady(ctx context.Context, s Sandbox, spec Spec) error {
	if spec.Readiness.IsZero() && len(spec.Command) == 0 {
		return nil // it idles: nothing of the user's can die
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if exit, err := s.Wait(ctx); err == nil {
			cancel(mainProcessEnded(exit))
		}
	}()
	defer func() { cancel(nil); <-watched }()

	if spec.Readiness.IsZero() {
		settled := time.NewTimer(settleTime)
		defer settled.Stop()
		select {
		case <-settled.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return probe(ctx, s, spec.Readiness)
}

func probe(ctx context.Context, s Sandbox, r Readiness) error {
	timeout := cmp.Or(r.Timeout, DefaultReadinessTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errProbesOver)
	defer cancel()
	pause := time.NewTicker(cmp.Or(r.Interval, DefaultReadinessInterval))
	defer pause.Stop()
	last := "no probe came to an end"
	for {
		failure, err := probeOnce(ctx, s, r)
		switch {
		case ctx.Err() != nil: // what a probe says after that tells of the cancellation only
		case Is(err, KindCannotStart), Is(err, KindCapabilityNotSupported):
			return err // no later probe will do better
		case err != nil:
			last = err.Error()
		case failure == "":
			return nil
		default:
			last = failure
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		if cause := context.Cause(ctx); errors.Is(cause, errProbesOver) {
			return &Error{
				Kind: KindTimeout, Field: "readiness", Reason: fmt.Sprintf("the sandbox was not ready within %s; the last probe said: %s", timeout, last),
				Remedy: "Check the probe, or raise readiness.timeout.",
			}
		} else if cause != nil {
			return cause
		}
	}
}

var errProbesOver = errors.New("the probes' time is over")

// probeOnce returns why the sandbox isn't ready, or "".
func probeOnce(ctx context.Context, s Sandbox, r Readiness) (string, error) {
	if port, ok := r.TCPPort.Get(); ok {
		return "", s.ProbeTCP(ctx, port)
	}
	result, err := s.Exec(ctx, Command{Argv: r.Exec.Slice(), MaxOutputBytes: 2048})
	if err != nil || result.OK() {
		return "", err
	}
	output := strings.TrimSpace(result.Stdout + result.Stderr)
	return strings.TrimSpace(fmt.Sprintf("exit code %d %s", result.ExitCode, output)), nil
}

func mainProcessEnded(exit Exit) *Error {
	reason := fmt.Sprintf("the main process ended with exit code %d", exit.Code)
	if exit.OutOfMemory {
		reason += ", killed for its memory cap"
	}
	if exit.Log != "" {
		reason += "; its last output:\n" + exit.Log
	}
	return &Error{
		Kind: KindExecution, Field: "command", Reason: reason,
		Remedy: "Give a command that keeps running, or leave command out: the sandbox then idles.",
	}
}
