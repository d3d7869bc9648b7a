// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package protocol

import (
	"io/fs"
	"strconv"
	"time"
)

// Where the guest is inside a sandbox.
const (
	Dir  = "/sandboxio"
	Path = Dir + "/guest"
)

// ExitExpired is the exit code of init when the time to live is over.
const ExitExpired = 0

// InitArgs is the command line of PID 1, to which the engine appends the main
// process's argv, if there is one. A zero expires is none.
func InitArgs(expires time.Time) []string {
	unix := "0"
	if !expires.IsZero() {
		unix = strconv.FormatInt(expires.Unix(), 10)
	}
	return []string{Path, "init", unix}
}

// ExecArgs is the command line of one execution. A zero timeout is none; an empty
// dir is the sandbox's own.
func ExecArgs(timeout time.Duration, dir string, argv []string) []string {
	millis := timeout.Milliseconds()
	if timeout%time.Millisecond != 0 {
		millis++ // rounded down, a short timeout would be none
	}
	return append([]string{Path, "exec", strconv.FormatInt(millis, 10), dir}, argv...)
}

// The command lines of the file operations. Paths are absolute.

// ReadArgs sends the file's content as Stdout frames.
func ReadArgs(path string) []string { return []string{Path, "read", path} }

// WriteArgs takes the content from StdinData frames until CloseStdin, and replaces
// the file by a rename.
func WriteArgs(path string, mode fs.FileMode) []string {
	return []string{Path, "write", path, strconv.FormatUint(uint64(mode.Perm()), 8)}
}

// ListArgs sends the entries of a folder as Stdout frames.
func ListArgs(path string) []string { return []string{Path, "list", path} }

// StatArgs sends one entry.
func StatArgs(path string) []string { return []string{Path, "stat", path} }

// MkdirArgs makes a folder and its parents.
func MkdirArgs(path string) []string { return []string{Path, "mkdir", path} }

// RemoveArgs removes a file or a whole folder.
func RemoveArgs(path string) []string { return []string{Path, "remove", path} }

// ProbeArgs connects to a TCP port from inside.
func ProbeArgs(port int) []string { return []string{Path, "probe", strconv.Itoa(port)} }

// InstallArgs copies the guest itself into dir, in one step.
func InstallArgs(dir string) []string { return []string{Path, "install", dir} }
