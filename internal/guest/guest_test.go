// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

//go:build linux

package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/protocol"
)

// binary is the guest, built as it's embedded.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "guest-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "guest"), ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return filepath.Join(dir, "guest"), nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// client is the host's end of one guest.
type client struct {
	*testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	frames *protocol.Writer
	reader *protocol.Reader
}

func dial(t *testing.T, args []string) *client {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	c := &client{T: t, cmd: exec.Command(path, args[1:]...)}
	c.cmd.Stderr = os.Stderr
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Time to kill its tree first, also after a test that failed.
		_ = c.stdin.Close()
		kill := time.AfterFunc(10*time.Second, func() { _ = c.cmd.Process.Kill() })
		defer kill.Stop()
		_ = c.cmd.Wait()
	})
	c.frames, c.reader = protocol.NewWriter(c.stdin), protocol.NewGuestReader(out)
	return c
}

func run(t *testing.T, argv ...string) *client {
	t.Helper()
	return dial(t, protocol.ExecArgs(0, "", argv))
}

// finish reads to the terminal frame and returns it with both streams.
func (c *client) finish() (end protocol.Terminal, stdout, stderr []byte) {
	c.Helper()
	for {
		frame, err := c.reader.Next()
		if err != nil {
			c.Fatalf("no terminal frame: %v", err)
		}
		switch frame.Kind {
		case protocol.Stdout:
			stdout = append(stdout, frame.Payload...)
		case protocol.Stderr:
			stderr = append(stderr, frame.Payload...)
		case protocol.End:
			if end, err = protocol.DecodeTerminal(frame.Payload); err != nil {
				c.Fatal(err)
			}
			return end, stdout, stderr
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{"exit 0": 0, "exit 1": 1, "exit 7": 7, "exit 126": 126, "exit 127": 127, "exit 255": 255, "kill -KILL $$": 137, "kill -TERM $$": 143} {
		if end, _, _ := run(t, "sh", "-c", script).finish(); end.Outcome != protocol.Exited || end.Code != want {
			t.Errorf("%s: %+v, want exit code %d", script, end, want)
		}
	}
}

func TestCannotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain, script := filepath.Join(dir, "plain"), filepath.Join(dir, "script")
	for path, content := range map[string]string{plain: "x", script: "#!/no/such/interpreter\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args   []string
		reason protocol.Reason
	}{
		"missing":          {protocol.ExecArgs(0, "", []string{"no-such-program"}), protocol.NotFound},
		"missing path":     {protocol.ExecArgs(0, "", []string{"/no/such"}), protocol.NotFound},
		"not executable":   {protocol.ExecArgs(0, "", []string{plain}), protocol.Permission},
		"interpreter":      {protocol.ExecArgs(0, "", []string{script}), protocol.NotFound},
		"folder":           {protocol.ExecArgs(0, "/no/such", []string{"true"}), protocol.WorkingDir},
		"folder is a file": {protocol.ExecArgs(0, plain, []string{"true"}), protocol.WorkingDir},
	} {
		if end, out, _ := dial(t, test.args).finish(); end.Outcome != protocol.CannotStart || end.Reason != test.reason || end.Message == "" || len(out) > 0 {
			t.Errorf("%s: %+v, want reason %d", name, end, test.reason)
		}
	}
}

func TestStreamsAreExactAndApart(t *testing.T) {
	t.Parallel()
	c := run(t, "sh", "-c", `cat; printf 'a\377\000b' >&2`)
	sent := bytes.Repeat([]byte{0, 255, '\n', 'x'}, 1000)
	for _, step := range []error{c.frames.WriteData(protocol.StdinData, sent), c.frames.Write(protocol.CloseStdin, nil)} {
		if step != nil {
			t.Fatal(step)
		}
	}
	if end, out, errOut := c.finish(); end.Code != 0 || !bytes.Equal(out, sent) || string(errOut) != "a\xff\x00b" {
		t.Errorf("%+v, %d bytes out, %q", end, len(out), errOut)
	}
}

// All that the main process wrote arrives, also when it ends at once after.
func TestOutputIsWhole(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	end, out, _ := run(t, "sh", "-c", "head -c "+strconv.Itoa(size)+" /dev/zero").finish()
	if end.Code != 0 || sha256.Sum256(out) != sha256.Sum256(make([]byte, size)) {
		t.Errorf("%+v, %d bytes", end, len(out))
	}
}

func TestBackgroundProcessDelaysNothing(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	c := run(t, "sh", "-c", "sleep 5 & echo done")
	if end, out, _ := c.finish(); end.Code != 0 || string(out) != "done\n" {
		t.Errorf("%+v %q", end, out)
	}
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("it waited for the background process: %s", took)
	}
}

// alive counts processes with this word in their command line.
func alive(word string) int {
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	count := 0
	for _, path := range found {
		if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, []byte(word)) && !bytes.Contains(line, []byte("guest")) {
			count++
		}
	}
	return count
}

func awaitAlive(t *testing.T, word string, is func(int) bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(alive(word)); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d processes have %q", alive(word), word)
		}
	}
}

// Every way to end early takes the whole tree: children, other sessions, orphans, and
// what ignores signals.
func TestTreeIsKilled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		timeout time.Duration
		end     func(c *client)
		outcome protocol.Outcome
	}{
		"timeout":     {5 * time.Second, func(*client) {}, protocol.TimedOut},
		"kill frame":  {0, func(c *client) { _ = c.frames.Write(protocol.Kill, nil) }, protocol.Killed},
		"client gone": {0, func(c *client) { _ = c.stdin.Close() }, 0},
		"behind stdin data": {0, func(c *client) {
			for range protocol.StdinWindow {
				_ = c.frames.Write(protocol.StdinData, make([]byte, protocol.MaxData))
			}
			_ = c.frames.Write(protocol.Kill, nil)
		}, protocol.Killed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A length of sleep that nobody else uses, an earlier run included.
			word := strconv.FormatInt(1e9+time.Now().UnixNano()%1e9*100+int64(len(name)), 10)
			script := "trap '' TERM; sleep " + word + " & setsid sleep " + word + " & (setsid sleep " + word + " &); sleep " + word
			c := dial(t, protocol.ExecArgs(test.timeout, "", []string{"sh", "-c", script}))
			awaitAlive(t, "sleep\x00"+word, func(n int) bool { return n == 4 })
			test.end(c)
			if test.outcome != 0 {
				if end, _, _ := c.finish(); end.Outcome != test.outcome {
					t.Errorf("%+v", end)
				}
			}
			awaitAlive(t, "sleep\x00"+word, func(n int) bool { return n == 0 })
		})
	}
}

// The main process dies first of a killed tree: the guest doesn't take that for the end
// of the run, and leave before the others are dead.
func TestClientGoneTakesAllEveryTime(t *testing.T) {
	t.Parallel()
	for i := range 30 {
		word := strconv.FormatInt(2e9+time.Now().UnixNano()%1e9*100+int64(i), 10)
		c := run(t, "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do setsid sleep "+word+" & done; wait")
		awaitAlive(t, "sleep\x00"+word, func(n int) bool { return n == 8 })
		_ = c.stdin.Close()
		_ = c.cmd.Wait()
		if code := c.cmd.ProcessState.ExitCode(); code != 1 {
			t.Errorf("the guest ended with code %d, as if the run had ended", code)
		}
		awaitAlive(t, "sleep\x00"+word, func(n int) bool { return n == 0 })
	}
}

// A client that stopped reading and then went away still takes the tree with it.
func TestBlockedOutputAndClientGone(t *testing.T) {
	t.Parallel()
	c := run(t, "sh", "-c", "sleep 600001 & cat /dev/zero")
	awaitAlive(t, "sleep\x00600001", func(n int) bool { return n == 1 })
	time.Sleep(200 * time.Millisecond) // the pipes fill meanwhile; nobody reads them
	_ = c.stdin.Close()
	awaitAlive(t, "sleep\x00600001", func(n int) bool { return n == 0 })
}

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a b")
	write := func(content string, finish bool) *client {
		c := dial(t, protocol.WriteArgs(path, 0o640))
		if err := c.frames.Write(protocol.StdinData, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if finish {
			if err := c.frames.Write(protocol.CloseStdin, nil); err != nil {
				t.Fatal(err)
			}
		}
		return c
	}
	if end, _, _ := write("content", true).finish(); end.Outcome != protocol.Exited {
		t.Fatalf("%+v", end)
	}
	if _, out, _ := dial(t, protocol.ReadArgs(path)).finish(); string(out) != "content" {
		t.Errorf("%q", out)
	}
	broken := write("half", false)
	_ = broken.stdin.Close()
	_ = broken.cmd.Wait()
	if content, err := os.ReadFile(path); err != nil || string(content) != "content" {
		t.Errorf("a broken write changed the file: %q, %v", content, err)
	}
	_, out, _ := dial(t, protocol.ListArgs(dir)).finish()
	entries, err := protocol.DecodeEntries(out)
	if err != nil || len(entries) != 1 || entries[0] != (protocol.Entry{Path: path, Size: 7, Mode: 0o640}) {
		t.Errorf("%+v, %v", entries, err)
	}
	for name, test := range map[string]struct {
		args   []string
		reason protocol.Reason
	}{
		"read missing":     {protocol.ReadArgs(dir + "/none"), protocol.NotFound},
		"read a folder":    {protocol.ReadArgs(dir), protocol.IsDir},
		"list a file":      {protocol.ListArgs(path), protocol.NotDir},
		"remove missing":   {protocol.RemoveArgs(dir + "/none"), protocol.NotFound},
		"write no folder":  {protocol.WriteArgs(dir+"/none/x", 0o600), protocol.NotFound},
		"mkdir below file": {protocol.MkdirArgs(path + "/x"), protocol.NotDir},
		"nothing listens":  {protocol.ProbeArgs(1), protocol.Refused},
	} {
		c := dial(t, test.args)
		_ = c.frames.Write(protocol.CloseStdin, nil)
		if end, _, _ := c.finish(); end.Outcome != protocol.Failed || end.Reason != test.reason || end.Message == "" {
			t.Errorf("%s: %+v, want reason %d", name, end, test.reason)
		}
	}
}

// initIn runs the guest as PID 1 of a namespace of its own.
func initIn(t *testing.T, args []string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		t.Skip("a PID namespace needs root")
	}
	return exec.Command("unshare", append([]string{"--pid", "--fork", "--mount-proc", "--kill-child", path}, args[1:]...)...)
}

func TestInit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		argv []string
		code int
		says string
	}{
		"exit code":      {[]string{"sh", "-c", "exit 9"}, 9, ""},
		"signal":         {[]string{"sh", "-c", "kill -KILL $$"}, 137, ""},
		"missing":        {[]string{"no-such-program"}, 127, "not found in PATH"},
		"not executable": {[]string{"/etc/passwd"}, 126, "permission denied"},
		"reaps orphans":  {[]string{"sh", "-c", "(sleep 0.1 &); sleep 1; cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ' ; true"}, 0, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := initIn(t, append(protocol.InitArgs(time.Time{}), test.argv...))
			out, _ := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != test.code || !strings.Contains(string(out), test.says) {
				t.Errorf("exit code %d, %q", cmd.ProcessState.ExitCode(), out)
			}
		})
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]time.Duration{"later": 2 * time.Second, "already over": -time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := initIn(t, append(protocol.InitArgs(time.Now().Add(in)), "sleep", "700001"))
			begun := time.Now()
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "time to live is over") {
				t.Errorf("%v, %q", err, out)
			}
			// The expiry is in whole seconds.
			if took := time.Since(begun); took < in-1500*time.Millisecond || took > in+20*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestInstall(t *testing.T) {
	t.Parallel()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for range 2 { // over itself too
		if out, err := exec.Command(path, protocol.InstallArgs(dir)[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	want, _ := os.ReadFile(path)
	got, err := os.ReadFile(filepath.Join(dir, "guest"))
	entries, _ := os.ReadDir(dir)
	if err != nil || !bytes.Equal(got, want) || len(entries) != 1 {
		t.Errorf("%d bytes, want %d; %v, %v", len(got), len(want), entries, err)
	}
}
