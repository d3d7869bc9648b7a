// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"context"
	"fmt"
	"io"
	"io/fs"
)

// Unsupported answers CapabilityNotSupported to every optional operation. A
// backend's sandbox embeds it and overrides what it declares, so what it doesn't
// mention is refused, never a silent no-op.
type Unsupported struct{ Backend string }

func (u Unsupported) refuse(c Capability) *Error {
	return NotSupported("", fmt.Sprintf("the %s backend does not declare %s", u.Backend, c), "Check the capabilities first.")
}

// Exec needs RunCommand.
func (u Unsupported) Exec(context.Context, Command) (ExecResult, error) {
	return ExecResult{}, u.refuse(RunCommand)
}

// ProbeTCP needs RunCommand.
func (u Unsupported) ProbeTCP(context.Context, int) error { return u.refuse(RunCommand) }

// Stream needs Streaming.
func (u Unsupported) Stream(context.Context, Command) (Process, error) {
	return nil, u.refuse(Streaming)
}

// RunCode needs RunCode, and StatefulCode where a context is named.
func (u Unsupported) RunCode(_ context.Context, code Code) (ExecResult, error) {
	if code.ContextID != "" {
		return ExecResult{}, u.refuse(StatefulCode)
	}
	return ExecResult{}, u.refuse(RunCode)
}

// Terminal needs PTY.
func (u Unsupported) Terminal(context.Context, Command, int, int) (Process, error) {
	return nil, u.refuse(PTY)
}

// Pause needs PauseResume.
func (u Unsupported) Pause(context.Context) error { return u.refuse(PauseResume) }

// Snapshot needs SnapshotFork.
func (u Unsupported) Snapshot(context.Context) (Template, error) {
	return Template{}, u.refuse(SnapshotFork)
}

// LanguageServer needs LSP.
func (u Unsupported) LanguageServer(context.Context, string) (Process, error) {
	return nil, u.refuse(LSP)
}

// GitClone needs Git.
func (u Unsupported) GitClone(context.Context, string, string) error { return u.refuse(Git) }

// Cost needs CostReporting.
func (u Unsupported) Cost(context.Context, string) (float64, error) {
	return 0, u.refuse(CostReporting)
}

// Files returns a file system that needs Filesystem, and UploadDownload for its streams.
func (u Unsupported) Files() FileSystem { return unsupportedFiles{u} }

type unsupportedFiles struct{ u Unsupported }

func (f unsupportedFiles) Read(context.Context, string) ([]byte, error) {
	return nil, f.u.refuse(Filesystem)
}

func (f unsupportedFiles) Write(context.Context, string, []byte, fs.FileMode) error {
	return f.u.refuse(Filesystem)
}

func (f unsupportedFiles) List(context.Context, string) ([]FileInfo, error) {
	return nil, f.u.refuse(Filesystem)
}

func (f unsupportedFiles) Stat(context.Context, string) (FileInfo, error) {
	return FileInfo{}, f.u.refuse(Filesystem)
}
func (f unsupportedFiles) Mkdir(context.Context, string) error  { return f.u.refuse(Filesystem) }
func (f unsupportedFiles) Remove(context.Context, string) error { return f.u.refuse(Filesystem) }

func (f unsupportedFiles) Upload(context.Context, string, io.Reader, fs.FileMode) error {
	return f.u.refuse(UploadDownload)
}

func (f unsupportedFiles) Download(context.Context, string, io.Writer) error {
	return f.u.refuse(UploadDownload)
}
