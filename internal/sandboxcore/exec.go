// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"context"
	"fmt"
	"iter"
	"path"
	"time"
)

// Command is one execution in a sandbox.
type Command struct {
	// Argv is the program and its arguments; no shell is involved.
	Argv []string
	// Env is added to the sandbox's own environment.
	Env        map[string]string
	WorkingDir string
	User       string
	// Stdin is all that the command reads; nil: nothing.
	Stdin []byte
	// Timeout bounds the run; the whole process tree is killed at its end. Zero: no bound but ctx.
	Timeout time.Duration
	// MaxOutputBytes caps what Exec keeps of each stream; what is beyond is read and
	// dropped, so the command isn't blocked. Zero: no cap.
	MaxOutputBytes int
}

// Validate checks what can be known without a sandbox.
func (c Command) Validate() error {
	var errs problems
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		errs.add(Configuration("command", "there is no program to run", "Write the program's name or path first."))
	}
	if c.WorkingDir != "" && !path.IsAbs(c.WorkingDir) {
		errs.add(Configurationf("working_dir", "Write it from the root, such as \"/workspace\".", "%q is not an absolute path", c.WorkingDir))
	}
	if c.Timeout < 0 {
		errs.add(Configuration("timeout", "a bound can't be negative", "Write a duration such as \"30s\"."))
	}
	if c.MaxOutputBytes < 0 {
		errs.add(Configuration("max_output_bytes", "a cap can't be negative", "Write a number of bytes."))
	}
	for name := range c.Env {
		if !envName.MatchString(name) {
			errs.add(Configurationf("env", "Use a name without '='.", "%q can't be the name of an environment variable", name))
		}
	}
	return errs.err()
}

// Code is a piece of source for a backend that has an interpreter.
type Code struct {
	Source   string
	Language string
	// ContextID names a context whose variables live on between runs (StatefulCode); "": a fresh one.
	ContextID string
	Timeout   time.Duration
}

// RichOutput is one output of an interpreter beside its streams.
type RichOutput struct {
	// MIMEType is such as "text/html" or "image/png".
	MIMEType string
	// Data is text; binary payloads are base64.
	Data string
}

// ExecResult is how a command ended.
type ExecResult struct {
	ExitCode int
	// Stdout and Stderr hold the exact bytes, which need not be UTF-8.
	Stdout, Stderr string
	// StdoutTruncated and StderrTruncated: the stream was longer than MaxOutputBytes.
	StdoutTruncated, StderrTruncated bool
	// Results are an interpreter's rich outputs; none where the backend has none, never made up from stdout.
	Results Opt[Tuple[RichOutput]]
	// Streamed: the output went to whoever read the Process, so Stdout and Stderr are empty.
	Streamed bool
}

// OK says that the exit code is 0.
func (r ExecResult) OK() bool { return r.ExitCode == 0 }

// RaiseForStatus returns an [*ExecutionError] unless the exit code is 0.
func (r ExecResult) RaiseForStatus() error {
	if r.OK() {
		return nil
	}
	return &ExecutionError{Result: r}
}

// ExecutionError is a command that exited with another code than 0. Its text has
// the code only: output may hold secrets.
type ExecutionError struct{ Result ExecResult }

func (e *ExecutionError) Error() string {
	return fmt.Sprintf("%s: the command exited with code %d", KindExecution, e.Result.ExitCode)
}

// Unwrap makes [Is] and [Errors] see it as an [*Error] of KindExecution.
func (e *ExecutionError) Unwrap() error {
	return &Error{Kind: KindExecution, Reason: fmt.Sprintf("the command exited with code %d", e.Result.ExitCode)}
}

// Stream tags a chunk of output.
type Stream uint8

// The streams.
const (
	Stdout Stream = iota + 1
	Stderr
)

// Chunk is a piece of output. Chunks of one stream come in order; between the two
// streams no order is promised.
type Chunk struct {
	Stream Stream
	// Data is valid until the next chunk is asked for.
	Data []byte
}

// Process is one execution whose output is read as it comes. Who starts one must
// Close it; [WithProcess] does.
type Process interface {
	// Chunks yields the output until the end of the process. A non-nil error is the
	// last thing that it yields. It can be ranged over once.
	Chunks() iter.Seq2[Chunk, error]
	// Wait reads on to the end, drops what Chunks was not asked for, and returns the
	// result: Streamed set, Stdout and Stderr empty. It may be called again.
	Wait(ctx context.Context) (ExecResult, error)
	// Close ends the process with its descendants if it still runs and returns when
	// they are gone or ctx ends. It may be called again.
	Close(ctx context.Context) error
}

// Collect reads p to its end and returns the result with its output, at most
// maxBytes of each stream (0: no cap). It's how a backend that has Stream has Exec.
func Collect(ctx context.Context, p Process, maxBytes int) (ExecResult, error) {
	var out, errOut capture
	out.max, errOut.max = maxBytes, maxBytes
	for chunk, err := range p.Chunks() {
		if err != nil {
			return ExecResult{}, err
		}
		if chunk.Stream == Stdout {
			out.write(chunk.Data)
		} else {
			errOut.write(chunk.Data)
		}
	}
	result, err := p.Wait(ctx)
	result.Streamed = false
	result.Stdout, result.StdoutTruncated = string(out.kept), out.truncated
	result.Stderr, result.StderrTruncated = string(errOut.kept), errOut.truncated
	return result, err
}

type capture struct {
	kept      []byte
	max       int
	truncated bool
}

func (c *capture) write(data []byte) {
	if room := c.max - len(c.kept); c.max > 0 && len(data) > room {
		data, c.truncated = data[:room], true
	}
	c.kept = append(c.kept, data...)
}
