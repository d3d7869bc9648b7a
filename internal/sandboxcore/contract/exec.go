// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package contract

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// sh is a command that runs script inside.
func (s *suite) sh(script string) sandboxcore.Command {
	return sandboxcore.Command{Argv: append(append([]string(nil), s.Shell...), script)}
}

// gone waits until no process inside has this word in its command line.
func (s *suite) gone(t *testing.T, sandbox sandboxcore.Sandbox, word string) {
	t.Helper()
	// The first letter in brackets, so that the search doesn't find itself.
	pattern := "[" + word[:1] + "]" + word[1:]
	deadline := time.Now().Add(10 * time.Second)
	for {
		found, err := sandbox.Exec(s.context(t), s.sh("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c '"+pattern+"'"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(found.Stdout) == "0" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still there: %q", found.Stdout)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// tree is a script that leaves processes in its group, in a session of their own, and
// orphaned, all with the word, and then waits.
func tree(word string) string {
	sleep := "sleep 30000" + word
	return sleep + " & setsid " + sleep + " & (setsid " + sleep + " &) ; echo up; " + sleep
}

func testRunCommand(t *testing.T, s *suite) {
	sandbox := s.create(t, s.spec())
	exec := func(t *testing.T, cmd sandboxcore.Command) sandboxcore.ExecResult {
		t.Helper()
		result, err := sandbox.Exec(s.context(t), cmd)
		if err != nil {
			t.Fatal(err)
		}
		if result.Streamed || result.Results.IsSet() && !sandbox.Capabilities().Has(sandboxcore.RunCode) {
			t.Errorf("streamed %v, results %v", result.Streamed, result.Results)
		}
		return result
	}
	t.Run("exit codes are exact", func(t *testing.T) {
		for _, code := range []int{0, 1, 2, 7, 42, 124, 125, 126, 127, 128, 137, 255} {
			if got := exec(t, s.sh(fmt.Sprintf("exit %d", code))); got.ExitCode != code || got.OK() != (code == 0) {
				t.Errorf("exit code %d, want %d", got.ExitCode, code)
			}
		}
		if got := exec(t, s.sh("kill -KILL $$")); got.ExitCode != 137 {
			t.Errorf("killed: exit code %d, want 137", got.ExitCode)
		}
	})
	t.Run("stdout and stderr are apart", func(t *testing.T) {
		got := exec(t, s.sh("echo a; echo b >&2; echo c; exit 3"))
		if got.Stdout != "a\nc\n" || got.Stderr != "b\n" || got.ExitCode != 3 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("bytes are exact", func(t *testing.T) {
		if got := exec(t, s.sh(`printf 'a\377\000b'`)); got.Stdout != "a\xff\x00b" {
			t.Errorf("%q", got.Stdout)
		}
	})
	t.Run("environment and folder", func(t *testing.T) {
		cmd := s.sh("echo \"$A|$B|$PWD\"")
		cmd.Env, cmd.WorkingDir = map[string]string{"A": "x y", "B": "1=2"}, "/etc"
		if got := exec(t, cmd); got.Stdout != "x y|1=2|/etc\n" {
			t.Errorf("%q", got.Stdout)
		}
	})
	t.Run("stdin", func(t *testing.T) {
		for _, size := range []int{0, 5, 3 << 20} {
			cmd := s.sh("wc -c")
			cmd.Stdin = []byte(strings.Repeat("x", size))
			if got := exec(t, cmd); strings.TrimSpace(got.Stdout) != strconv.Itoa(size) {
				t.Errorf("%d bytes in: %q", size, got.Stdout)
			}
		}
		cmd := s.sh("exit 4") // reads none of it
		cmd.Stdin = []byte(strings.Repeat("x", 3<<20))
		if got := exec(t, cmd); got.ExitCode != 4 {
			t.Errorf("unread input: exit code %d", got.ExitCode)
		}
	})
	t.Run("output", func(t *testing.T) {
		big := s.sh("head -c 20000000 /dev/zero; echo e >&2")
		if got := exec(t, big); len(got.Stdout) != 20000000 || got.StdoutTruncated || got.Stderr != "e\n" {
			t.Errorf("%d bytes, truncated %v", len(got.Stdout), got.StdoutTruncated)
		}
		big.MaxOutputBytes = 1000
		if got := exec(t, big); len(got.Stdout) != 1000 || !got.StdoutTruncated || got.StderrTruncated || !got.OK() {
			t.Errorf("%d bytes, truncated %v %v, exit code %d", len(got.Stdout), got.StdoutTruncated, got.StderrTruncated, got.ExitCode)
		}
		exact := s.sh("head -c 1000 /dev/zero")
		exact.MaxOutputBytes = 1000
		if got := exec(t, exact); len(got.Stdout) != 1000 || got.StdoutTruncated {
			t.Errorf("exactly the cap: %d bytes, truncated %v", len(got.Stdout), got.StdoutTruncated)
		}
	})
	t.Run("a background process delays nothing", func(t *testing.T) {
		cmd := s.sh("sleep 20 & echo done")
		cmd.Timeout = 10 * time.Second
		if got := exec(t, cmd); got.Stdout != "done\n" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("what can't start is an error of its own", func(t *testing.T) {
		for field, cmd := range map[string]sandboxcore.Command{
			"command":     {Argv: []string{"no-such-program"}},
			"working_dir": {Argv: s.sh("true").Argv, WorkingDir: "/no/such/folder"},
			"user":        {Argv: s.sh("true").Argv, User: "no-such-user"},
		} {
			result, err := sandbox.Exec(s.context(t), cmd)
			errs := sandboxcore.Errors(err)
			if len(errs) != 1 || errs[0].Kind != sandboxcore.KindCannotStart || errs[0].Field != field || result.Stdout != "" {
				t.Errorf("%s: %v, stdout %q", field, err, result.Stdout)
			}
		}
		if _, err := sandbox.Exec(s.context(t), sandboxcore.Command{}); !sandboxcore.Is(err, sandboxcore.KindConfiguration) {
			t.Errorf("no program: %v", err)
		}
		if _, err := sandbox.Exec(s.context(t), sandboxcore.Command{Argv: []string{"/etc/passwd"}}); !sandboxcore.Is(err, sandboxcore.KindCannotStart) {
			t.Errorf("not executable: %v", err)
		}
	})
	t.Run("a timeout kills the tree", func(t *testing.T) {
		cmd := s.sh(tree("1"))
		cmd.Timeout = time.Second
		start := time.Now()
		if _, err := sandbox.Exec(s.context(t), cmd); !sandboxcore.Is(err, sandboxcore.KindTimeout) {
			t.Errorf("%v, want Timeout", err)
		}
		if took := time.Since(start); took < cmd.Timeout {
			t.Errorf("it took %s", took)
		}
		s.gone(t, sandbox, "sleep 300001")
	})
	t.Run("cancellation kills the tree", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(s.context(t), time.Second)
		defer cancel()
		if _, err := sandbox.Exec(ctx, s.sh(tree("2"))); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the context's error", err)
		}
		s.gone(t, sandbox, "sleep 300002")
	})
	t.Run("many at once", func(t *testing.T) {
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() {
				got, err := sandbox.Exec(s.context(t), s.sh(fmt.Sprintf("echo %d; exit %d", i, i)))
				if err != nil || got.ExitCode != i || got.Stdout != fmt.Sprintf("%d\n", i) {
					t.Errorf("%d: %+v, %v", i, got, err)
				}
			})
		}
		group.Wait()
	})
	t.Run("readiness", func(t *testing.T) { s.readiness(t) })
}

// readiness is of creation, and needs commands.
func (s *suite) readiness(t *testing.T) {
	failing := map[string]struct {
		change func(*sandboxcore.Spec)
		kind   sandboxcore.ErrorKind
		says   []string
	}{
		"main process dies at once": {func(p *sandboxcore.Spec) { p.Command = s.sh("echo boom >&2; exit 3").Argv }, sandboxcore.KindExecution, []string{"exit code 3", "boom"}},
		"main process dies soon":    {func(p *sandboxcore.Spec) { p.Command = s.sh("sleep 1; exit 4").Argv }, sandboxcore.KindExecution, []string{"exit code 4"}},
		"main process is missing":   {func(p *sandboxcore.Spec) { p.Command = []string{"no-such-program"} }, sandboxcore.KindExecution, []string{"exit code 127", "no-such-program"}},
		"main process dies while probed": {func(p *sandboxcore.Spec) {
			p.Command = s.sh("sleep 1; exit 5").Argv
			p.Readiness.Exec = sandboxcore.TupleOf("false")
		}, sandboxcore.KindExecution, []string{"exit code 5"}},
		"exec probe never passes": {func(p *sandboxcore.Spec) {
			p.Readiness = sandboxcore.Readiness{Exec: sandboxcore.TupleOf(s.sh("echo not yet; exit 9").Argv...), Timeout: time.Second}
		}, sandboxcore.KindTimeout, []string{"exit code 9", "not yet"}},
		"tcp probe never passes": {func(p *sandboxcore.Spec) {
			p.Readiness = sandboxcore.Readiness{TCPPort: sandboxcore.Some(8080), Timeout: time.Second}
		}, sandboxcore.KindTimeout, []string{"refused"}},
		"probe is missing": {func(p *sandboxcore.Spec) {
			p.Readiness = sandboxcore.Readiness{Exec: sandboxcore.TupleOf("no-such-probe"), Timeout: time.Minute}
		}, sandboxcore.KindCannotStart, []string{"no-such-probe"}},
	}
	for name, test := range failing {
		t.Run(name, func(t *testing.T) {
			spec := s.spec()
			test.change(&spec)
			before := s.count(t, s.owner)
			_, err := sandboxcore.Create(s.context(t), s.backend, spec, func(sandboxcore.Warning) {})
			if !sandboxcore.Is(err, test.kind) {
				t.Fatalf("%v, want %s", err, test.kind)
			}
			for _, word := range test.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q doesn't say %q", err, word)
				}
			}
			if n := s.count(t, s.owner); n != before {
				t.Errorf("%d sandboxes are left", n-before)
			}
		})
	}
	t.Run("passes", func(t *testing.T) {
		spec := s.spec()
		spec.Command = s.sh("sleep 1; touch /tmp/ready; sleep 1000").Argv
		spec.Readiness.Exec = sandboxcore.TupleOf("test", "-f", "/tmp/ready")
		sandbox := s.create(t, spec)
		if _, err := sandbox.Files().Stat(s.context(t), "/tmp/ready"); err != nil {
			t.Errorf("created before it was ready: %v", err)
		}
	})
}

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
	t.Run("chunks come before the end", func(t *testing.T) {
		p := stream(t, s.sh("echo first; sleep 30000"))
		for chunk, err := range p.Chunks() {
			if err != nil || string(chunk.Data) != "first\n" {
				t.Errorf("%q, %v", chunk.Data, err)
			}
			break
		}
	})
	t.Run("wait drops what nobody read", func(t *testing.T) {
		p := stream(t, s.sh("head -c 5000000 /dev/zero; exit 2"))
		result, err := p.Wait(s.context(t))
		if err != nil || result.ExitCode != 2 || !result.Streamed || result.Stdout != "" {
			t.Errorf("%+v, %v", result, err)
		}
	})
	ownError := errors.New("own error")
	for name, end := range map[string]func(cancel context.CancelFunc) error{
		"return": func(context.CancelFunc) error { return nil },
		"error":  func(context.CancelFunc) error { return ownError },
		"panic":  func(context.CancelFunc) error { panic("own panic") },
		"cancel": func(cancel context.CancelFunc) error { cancel(); return nil },
	} {
		t.Run("the scope ends the process on "+name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(s.context(t))
			defer cancel()
			func() {
				defer func() {
					if p := recover(); (p != nil) != (name == "panic") {
						t.Errorf("panic %v", p)
					}
				}()
				err := sandboxcore.WithProcess(ctx, sandbox, s.sh(tree("3")), func(_ context.Context, p sandboxcore.Process) error {
					for chunk, err := range p.Chunks() {
						if err != nil || string(chunk.Data) != "up\n" {
							t.Errorf("%q, %v", chunk.Data, err)
						}
						break // early
					}
					return end(cancel)
				})
				if errors.Is(err, ownError) != (name == "error") {
					t.Errorf("error %v", err)
				}
			}()
			s.gone(t, sandbox, "sleep 300003")
		})
	}
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
