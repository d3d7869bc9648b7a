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

// tree is a script that leaves processes in its group, in a session of their own, and
// orphaned, all with the word in their command lines, makes a file once they are
// there, and then waits.
func tree(word string) string {
	sleep := "sleep " + word
	return sleep + " & setsid " + sleep + " & (setsid " + sleep + " &) ; echo up; touch /tmp/" + word + "; " + sleep
}

// treeStands waits until the tree of this word is there.
func (s *suite) treeStands(t *testing.T, sandbox sandboxcore.Sandbox, word string) {
	t.Helper()
	stands := eventually(func() bool {
		result, err := sandbox.Exec(s.context(t), sandboxcore.Command{Argv: []string{"test", "-f", "/tmp/" + word}})
		if err != nil {
			t.Errorf("looking for the tree: %v", err)
		}
		return err != nil || result.OK()
	})
	if !stands {
		t.Error("the tree never stood")
	}
}

// treeGone checks that the tree of this word was there, and waits until none of it is.
func (s *suite) treeGone(t *testing.T, sandbox sandboxcore.Sandbox, word string) {
	t.Helper()
	if result, err := sandbox.Exec(s.context(t), sandboxcore.Command{Argv: []string{"test", "-f", "/tmp/" + word}}); err != nil || !result.OK() {
		t.Fatalf("the tree never stood: %v", err)
	}
	// The first letter in brackets, so that the search doesn't find itself.
	search := s.sh("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c '[s]leep " + word + "'")
	var left string
	gone := eventually(func() bool {
		found, err := sandbox.Exec(s.context(t), search)
		if err != nil {
			t.Fatal(err)
		}
		left = strings.TrimSpace(found.Stdout)
		return left == "0"
	})
	if !gone {
		t.Errorf("still there: %q", left)
	}
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
		const bytes = "a\xff\x00b\r\n"
		if got := exec(t, s.sh(`printf 'a\377\000b\r\n'; printf 'a\377\000b\r\n' >&2`)); got.Stdout != bytes || got.Stderr != bytes {
			t.Errorf("stdout %q, stderr %q", got.Stdout, got.Stderr)
		}
		cmd := s.sh("cat")
		cmd.Stdin = []byte(bytes)
		if got := exec(t, cmd); got.Stdout != bytes {
			t.Errorf("in and out: %q", got.Stdout)
		}
	})
	t.Run("arguments are exact", func(t *testing.T) {
		cmd := s.sh(`for a in "$@"; do printf '<%s>' "$a"; done`)
		cmd.Argv = append(cmd.Argv, "sh", "a b", "", "$HOME", "*", "'\"", "\n")
		if got := exec(t, cmd); got.Stdout != "<a b><><$HOME><*><'\"><\n>" {
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
		both := s.sh("head -c 1001 /dev/zero >&2; echo o")
		both.MaxOutputBytes = 1000
		if got := exec(t, both); got.Stdout != "o\n" || got.StdoutTruncated || len(got.Stderr) != 1000 || !got.StderrTruncated {
			t.Errorf("each stream has its own cap: %d and %d bytes, truncated %v %v", len(got.Stdout), len(got.Stderr), got.StdoutTruncated, got.StderrTruncated)
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
			if len(errs) != 1 || errs[0].Kind != sandboxcore.KindCannotStart || errs[0].Field != field || result.Stdout+result.Stderr != "" {
				t.Errorf("%s: %v, stdout %q, stderr %q", field, err, result.Stdout, result.Stderr)
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
		cmd := s.sh(tree("300001"))
		cmd.Timeout = 2 * time.Second
		start := time.Now()
		if result, err := sandbox.Exec(s.context(t), cmd); !sandboxcore.Is(err, sandboxcore.KindTimeout) {
			t.Errorf("%+v, %v, want Timeout", result, err)
		}
		if took := time.Since(start); took < cmd.Timeout {
			t.Errorf("it took %s", took)
		}
		s.treeGone(t, sandbox, "300001")
	})
	t.Run("a deadline kills the tree", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(s.context(t), 2*time.Second)
		defer cancel()
		if _, err := sandbox.Exec(ctx, s.sh(tree("300002"))); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the context's error", err)
		}
		s.treeGone(t, sandbox, "300002")
	})
	t.Run("cancellation kills the tree", func(t *testing.T) {
		ctx, cancel := context.WithCancel(s.context(t))
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, err := sandbox.Exec(ctx, s.sh(tree("300003")))
			ended <- err
		}()
		s.treeStands(t, sandbox, "300003")
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the context's error", err)
		}
		s.treeGone(t, sandbox, "300003")
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
	t.Run("secrets stay out of errors", func(t *testing.T) {
		cmd := sandboxcore.Command{Argv: []string{"no-such-program"}, Env: map[string]string{"TOKEN": "s3cr3t"}, Stdin: []byte("s3cr3t")}
		if _, err := sandbox.Exec(s.context(t), cmd); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%v", err)
		}
	})
	t.Run("readiness", func(t *testing.T) { s.readiness(t) })
}
