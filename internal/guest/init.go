// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

//go:build linux

package main

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/protocol"
)

// expiryStep bounds one sleep until the expiry, which is a time of the wall clock: a
// timer alone would run late by as long as the machine was suspended.
const expiryStep = 30 * time.Second

// runInit is PID 1: it starts argv if there is one, reaps every orphan, passes
// signals on, and ends the sandbox with the main process or at the expiry.
func runInit(expires int64, argv []string) {
	// Without this a process of the same user could take over PID 1 by ptrace, and
	// with it the time to live. gVisor may not know it.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)

	signals := make(chan os.Signal, 64)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH)

	expired := make(chan struct{})
	if expires != 0 {
		if left(expires) <= 0 {
			expire()
		}
		go func() {
			for d := left(expires); d > 0; d = left(expires) {
				time.Sleep(min(d, expiryStep))
			}
			close(expired)
		}()
	}

	main := 0
	if len(argv) > 0 {
		main = startMain(argv)
	}
	for {
		select {
		case <-expired:
			expire()
		case s := <-signals:
			switch {
			case s == syscall.SIGCHLD:
				if code, ended := reap(main); ended {
					os.Exit(code)
				}
			case main != 0:
				if s, ok := s.(syscall.Signal); ok { // on Linux always
					_ = syscall.Kill(-main, s)
				}
			case s == syscall.SIGTERM, s == syscall.SIGINT, s == syscall.SIGQUIT:
				os.Exit(0)
			}
		}
	}
}

func left(expires int64) time.Duration { return time.Until(time.Unix(expires, 0)) }

func expire() {
	say("the time to live is over")
	os.Exit(protocol.ExitExpired) // the kernel ends all others with PID 1
}

func startMain(argv []string) int {
	path, reason := lookPath(argv[0])
	if reason == nil {
		pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
			Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true},
		})
		if err == nil {
			return pid
		}
		reason = startError(argv[0], err)
	}
	say(reason.message)
	if reason.reason == protocol.NotFound {
		os.Exit(127)
	}
	os.Exit(126)
	return 0
}

// reap collects every child that ended, and says whether main was one of them.
func reap(main int) (code int, ended bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return code, ended
		}
		if pid == main {
			code, ended = exitCode(status), true
		}
	}
}

func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// install copies this program into dir in one step, so that whoever finds it there
// finds it whole.
func install(dir string) error {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	temp := dir + "/.guest-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	if err := os.WriteFile(temp, self, 0o555); err != nil {
		return err
	}
	if err := os.Chmod(temp, 0o555); err != nil {
		return err
	}
	return os.Rename(temp, dir+"/guest")
}
