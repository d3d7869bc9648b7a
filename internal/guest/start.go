// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

//go:build linux

package main

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/protocol"
)

// failure is an error with the reason that the protocol has for it.
type failure struct {
	reason  protocol.Reason
	message string
}

func (f *failure) Error() string { return f.message }

// lookPath finds the program as execvp would.
func lookPath(name string) (string, *failure) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	denied := false
	for dir := range strings.SplitSeq(os.Getenv("PATH"), ":") {
		if dir == "" {
			dir = "."
		}
		path := dir + "/" + name
		info, err := os.Stat(path)
		switch {
		case err != nil || info.IsDir():
		case info.Mode()&0o111 == 0:
			denied = true
		default:
			return path, nil
		}
	}
	if denied {
		return "", &failure{protocol.Permission, "cannot start \"" + name + "\": found in PATH, but not executable"}
	}
	return "", &failure{protocol.NotFound, "cannot start \"" + name + "\": not found in PATH"}
}

func startError(name string, err error) *failure {
	f := &failure{protocol.Other, "cannot start \"" + name + "\": " + err.Error()}
	switch {
	case errors.Is(err, syscall.ENOENT):
		f.reason = protocol.NotFound
		if _, statErr := os.Stat(name); statErr == nil {
			f.message += " (it is there, so its interpreter or loader isn't)"
		}
	case errors.Is(err, os.ErrPermission):
		f.reason = protocol.Permission
	}
	return f
}

// terminalOf turns the error of an operation into the terminal frame.
func terminalOf(err error) protocol.Terminal {
	if err == nil {
		return protocol.Terminal{Outcome: protocol.Exited}
	}
	t := protocol.Terminal{Outcome: protocol.Failed, Message: err.Error()}
	if f, ok := errors.AsType[*failure](err); ok {
		t.Reason = f.reason
		return t
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		t.Reason = reasons[errno]
	}
	return t
}

var reasons = map[syscall.Errno]protocol.Reason{
	syscall.ENOENT: protocol.NotFound, syscall.EACCES: protocol.Permission, syscall.EPERM: protocol.Permission,
	syscall.EEXIST: protocol.Exists, syscall.EISDIR: protocol.IsDir, syscall.ENOTDIR: protocol.NotDir,
	syscall.EROFS: protocol.ReadOnly, syscall.ENOSPC: protocol.NoSpace, syscall.EDQUOT: protocol.NoSpace,
	syscall.ECONNREFUSED: protocol.Refused,
}
