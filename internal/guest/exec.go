// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

//go:build linux

package main

import (
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/protocol"
)

// pipeSize is what output may wait in for the client, in bytes.
const pipeSize = 256 << 10

// runExec supervises one execution. Whatever happens to the client, no descendant of
// a run that was timed out, killed or abandoned is left.
func runExec(timeoutMillis int64, dir string, argv []string) {
	out := protocol.NewWriter(os.Stdout)
	if out.WriteHello() != nil {
		os.Exit(1)
	}
	// A broken stdout is an error of a write then, and not the guest's death.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	end := func(t protocol.Terminal) {
		if out.WriteEnd(t) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	cannotStart := func(f *failure) {
		end(protocol.Terminal{Outcome: protocol.CannotStart, Reason: f.reason, Message: f.message})
	}

	reserveThreads()
	// Descendants that lose their parent become children of this process, so that
	// it finds all of them.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if dir != "" {
		if err := os.Chdir(dir); err != nil {
			t := terminalOf(err)
			cannotStart(&failure{protocol.WorkingDir, t.Message})
		}
	}
	path, f := lookPath(argv[0])
	if f != nil {
		cannotStart(f)
	}
	run, err := start(path, argv, out)
	if err != nil {
		cannotStart(startError(argv[0], err))
	}

	var timeout <-chan time.Time
	if timeoutMillis > 0 {
		timeout = time.After(time.Duration(timeoutMillis) * time.Millisecond)
	}
	var t protocol.Terminal
	select {
	case status := <-run.mainEnded:
		run.drain()
		t = protocol.Terminal{Outcome: protocol.Exited, Code: exitCode(status)}
	case <-timeout:
		run.killTree()
		t = protocol.Terminal{Outcome: protocol.TimedOut}
	case <-run.kill:
		run.killTree()
		t = protocol.Terminal{Outcome: protocol.Killed}
	}
	if !run.settled.CompareAndSwap(false, true) {
		select {} // the client is gone: abandon is killing the tree, which must not be cut short
	}
	end(t)
}

// reserveThreads makes the threads that a run can need before there is a command that
// could use up the sandbox's pids: Go ends a program that can't make one more.
func reserveThreads() {
	// Blocked in wait4, in a read of stdin, in writes of both pumps; and as many again
	// for the runtime's own.
	const threads = 8
	var ready, done sync.WaitGroup
	ready.Add(threads)
	for range threads {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			ready.Wait() // all at once, each on a thread of its own
		})
	}
	done.Wait()
}

// execution is a started command with what serves its streams.
type execution struct {
	// mainEnded gets the main process's status.
	mainEnded chan syscall.WaitStatus
	// allEnded is closed when there is no child left.
	allEnded chan struct{}
	// kill is closed when the client asks for it.
	kill chan struct{}
	// settled is taken by who ends the run: its own end, or abandon.
	settled atomic.Bool
	pumps   []*pump
	done    sync.WaitGroup
}

func start(path string, argv []string, out *protocol.Writer) (*execution, error) {
	var stdin [2]int
	if err := unix.Pipe2(stdin[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	run := &execution{
		mainEnded: make(chan syscall.WaitStatus, 1), allEnded: make(chan struct{}), kill: make(chan struct{}),
	}
	files := []uintptr{uintptr(stdin[0])}
	for _, kind := range []protocol.Kind{protocol.Stdout, protocol.Stderr} {
		p, writeEnd, err := newPump(kind, out)
		if err != nil {
			return nil, err
		}
		run.pumps = append(run.pumps, p)
		files = append(files, uintptr(writeEnd))
	}
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Env: os.Environ(), Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	for _, f := range files {
		_ = syscall.Close(int(f))
	}
	if err != nil {
		return nil, err
	}
	go run.reap(pid)
	for _, p := range run.pumps {
		run.done.Go(p.run)
	}
	go run.serveClient(os.NewFile(uintptr(stdin[1]), "stdin"), out)
	return run, nil
}

func (run *execution) reap(main int) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // ECHILD
			close(run.allEnded)
			return
		case pid == main:
			run.mainEnded <- status
		}
	}
}

// serveClient reads the client's frames to their end.
func (run *execution) serveClient(stdin *os.File, out *protocol.Writer) {
	// What the client may send ahead fits into the queue (protocol.StdinWindow), so
	// reading never waits for the command.
	queue := make(chan []byte, protocol.StdinWindow)
	go func() {
		defer stdin.Close()
		broken := false
		for data := range queue {
			if !broken {
				// The command needn't read its input, and may have closed it.
				_, err := stdin.Write(data)
				broken = err != nil
			}
			_ = out.Write(protocol.Ack, nil)
		}
	}()
	in := protocol.NewReader(os.Stdin)
	closed, killed := false, false
	for {
		frame, err := in.Next()
		if err != nil {
			run.abandon()
		}
		switch {
		case frame.Kind == protocol.StdinData && len(frame.Payload) > 0 && !closed:
			queue <- append([]byte(nil), frame.Payload...)
		case frame.Kind == protocol.CloseStdin && !closed:
			closed = true
			close(queue)
		case frame.Kind == protocol.Kill && !killed:
			killed = true
			close(run.kill)
		}
	}
}

// abandon ends a run whose client is gone. The main process's death by it isn't the
// run's own end.
func (run *execution) abandon() {
	if run.settled.CompareAndSwap(false, true) {
		run.killTree()
	}
	os.Exit(1)
}

// drain passes on what the main process wrote, without waiting for others that hold
// its streams open.
func (run *execution) drain() {
	for _, p := range run.pumps {
		p.finish()
	}
	run.done.Wait()
}

// killTree ends every descendant.
func (run *execution) killTree() {
	for {
		for _, pid := range descendants(os.Getpid()) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-run.allEnded:
			return
		case <-time.After(5 * time.Millisecond): // one may have forked meanwhile
		}
	}
}

// pump passes one stream on to the client.
type pump struct {
	kind protocol.Kind
	out  *protocol.Writer
	fd   int
	file *os.File
}

func newPump(kind protocol.Kind, out *protocol.Writer) (p *pump, writeEnd int, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, 0, err
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, 0, err
	}
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, pipeSize)
	return &pump{kind: kind, out: out, fd: fds[0], file: os.NewFile(uintptr(fds[0]), "output")}, fds[1], nil
}

func (p *pump) run() {
	buf := make([]byte, protocol.MaxData)
	for {
		n, err := p.file.Read(buf)
		if !p.pass(buf[:n]) {
			return
		}
		if err != nil {
			break
		}
	}
	// The end of the stream, or the deadline that finish set. What is in the pipe by
	// now is at most its size; more is of background processes.
	size, err := unix.FcntlInt(uintptr(p.fd), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		size = pipeSize
	}
	for size > 0 {
		n, err := unix.Read(p.fd, buf)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 || !p.pass(buf[:n]) {
			return
		}
		size -= n
	}
}

func (p *pump) pass(data []byte) bool {
	return len(data) == 0 || p.out.Write(p.kind, data) == nil
}

// finish makes run stop waiting for more.
func (p *pump) finish() { _ = p.file.SetReadDeadline(time.Unix(1, 0)) }
