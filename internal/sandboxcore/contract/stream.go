// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package contract

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

func testStreaming(t *testing.T, s *suite) {
	sandbox := s.create(t, s.spec())
	stream := func(t *testing.T, cmd sandboxcore.Command) sandboxcore.Process {
		t.Helper()
		p, err := sandbox.Stream(s.context(t), cmd)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return p
	}
	t.Run("chunks are tagged and in order", func(t *testing.T) {
		p := stream(t, s.sh("for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done; exit 6"))
		var out, errOut strings.Builder
		for chunk, err := range p.Chunks() {
			if err != nil {
				t.Fatal(err)
			}
			if chunk.Stream == sandboxcore.Stdout {
				out.Write(chunk.Data)
			} else {
				errOut.Write(chunk.Data)
			}
		}
		if out.String() != "o1\no2\no3\no4\no5\n" || errOut.String() != "e1\ne2\ne3\ne4\ne5\n" {
			t.Errorf("stdout %q, stderr %q", out.String(), errOut.String())
		}
		for range 2 {
			result, err := p.Wait(s.context(t))
			if err != nil || result.ExitCode != 6 || !result.Streamed || result.Stdout != "" || result.Stderr != "" {
				t.Errorf("%+v, %v", result, err)
			}
		}
	})
	t.Run("chunks come before the end, and closing early kills the tree", func(t *testing.T) {
		p := stream(t, s.sh(tree("300004")))
		readUp(t, p)
		s.treeStands(t, sandbox, "300004")
		for range 2 {
			if err := p.Close(s.context(t)); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		s.treeGone(t, sandbox, "300004")
	})
	t.Run("wait drops what nobody read", func(t *testing.T) {
		for _, read := range []bool{false, true} {
			p := stream(t, s.sh("echo up; sleep 0.2; head -c 5000000 /dev/zero; exit 2"))
			if read {
				readUp(t, p)
			}
			result, err := p.Wait(s.context(t))
			if err != nil || result != (sandboxcore.ExecResult{ExitCode: 2, Streamed: true}) {
				t.Errorf("after a partial read (%v): %+v, %v", read, result, err)
			}
		}
	})
	t.Run("what can't start is told", func(t *testing.T) {
		p, err := sandbox.Stream(s.context(t), sandboxcore.Command{Argv: []string{"no-such-program"}})
		if err == nil { // then the end tells
			_, err = p.Wait(s.context(t))
			if err := p.Close(s.context(t)); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		if !sandboxcore.Is(err, sandboxcore.KindCannotStart) {
			t.Errorf("%v, want CannotStart", err)
		}
	})
	t.Run("a timeout kills the tree", func(t *testing.T) {
		cmd := s.sh(tree("300005"))
		cmd.Timeout = 2 * time.Second
		p := stream(t, cmd)
		var last error
		for _, err := range p.Chunks() {
			last = err
		}
		if _, err := p.Wait(s.context(t)); !sandboxcore.Is(last, sandboxcore.KindTimeout) || !sandboxcore.Is(err, sandboxcore.KindTimeout) {
			t.Errorf("chunks end with %v, wait with %v, want Timeout", last, err)
		}
		s.treeGone(t, sandbox, "300005")
	})
	t.Run("the scope ends the process", func(t *testing.T) { s.processScope(t, sandbox) })
	t.Run("a killed sandbox ends the stream with an error", func(t *testing.T) {
		doomed := s.create(t, s.spec())
		p, err := doomed.Stream(s.context(t), s.sh("echo up; sleep 30000"))
		if err != nil {
			t.Fatal(err)
		}
		var last error
		for _, err := range p.Chunks() {
			if last = err; err == nil {
				if err := doomed.Kill(s.context(t)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if last == nil {
			t.Error("the stream was cut, and ended as if the command had")
		}
	})
}

// readUp reads the first chunk of a tree.
func readUp(t *testing.T, p sandboxcore.Process) {
	t.Helper()
	for chunk, err := range p.Chunks() {
		if err != nil || string(chunk.Data) != "up\n" {
			t.Errorf("%q, %v", chunk.Data, err)
		}
		return
	}
	t.Error("it ended and said nothing")
}

func (s *suite) processScope(t *testing.T, sandbox sandboxcore.Sandbox) {
	ownError := errors.New("own error")
	word := 300010
	for name, end := range map[string]func(cancel context.CancelFunc, p sandboxcore.Process) error{
		"return": func(context.CancelFunc, sandboxcore.Process) error { return nil },
		"error":  func(context.CancelFunc, sandboxcore.Process) error { return ownError },
		"panic":  func(context.CancelFunc, sandboxcore.Process) error { panic("own panic") },
		"cancel": func(cancel context.CancelFunc, p sandboxcore.Process) error {
			cancel()
			// It ends under its reader's hands, and says so.
			if result, err := p.Wait(s.context(t)); err == nil {
				return fmt.Errorf("cancelled, and it ended as if by itself: %+v", result)
			}
			return nil
		},
	} {
		word++
		word := strconv.Itoa(word)
		t.Run("on "+name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(s.context(t))
			defer cancel()
			func() {
				defer func() {
					if p := recover(); (p != nil) != (name == "panic") {
						t.Errorf("panic %v", p)
					}
				}()
				err := sandboxcore.WithProcess(ctx, sandbox, s.sh(tree(word)), func(_ context.Context, p sandboxcore.Process) error {
					readUp(t, p)
					s.treeStands(t, sandbox, word)
					return end(cancel, p)
				})
				if errors.Is(err, ownError) != (name == "error") || err != nil && name != "error" {
					t.Errorf("error %v", err)
				}
			}()
			s.treeGone(t, sandbox, word)
		})
	}
}
