// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"math/bits"
	"strings"
)

// Capability is a set of flags that say what a sandbox can do. They are discovered
// from a backend or a sandbox, never inferred from a backend's name: callers branch
// on flags. Adding a flag is compatible; removing one breaks callers.
type Capability uint32

// The capabilities. A declared one has a contract test; an undeclared one that is
// invoked answers [KindCapabilityNotSupported].
const (
	RunCommand Capability = 1 << iota
	RunCode
	StatefulCode
	Streaming
	Filesystem
	UploadDownload
	PTY
	PauseResume
	SnapshotFork
	GPU
	LSP
	Git
	NetworkPolicies
	Tunnels
	// CostReporting is post-hoc cost attribution by label (v0.2 of the domain model).
	CostReporting

	capabilityEnd
)

var capabilityNames = map[Capability]string{
	RunCommand: "RUN_COMMAND", RunCode: "RUN_CODE", StatefulCode: "STATEFUL_CODE",
	Streaming: "STREAMING", Filesystem: "FILESYSTEM", UploadDownload: "UPLOAD_DOWNLOAD",
	PTY: "PTY", PauseResume: "PAUSE_RESUME", SnapshotFork: "SNAPSHOT_FORK",
	GPU: "GPU", LSP: "LSP", Git: "GIT", NetworkPolicies: "NETWORK_POLICY",
	Tunnels: "TUNNELS", CostReporting: "COST_REPORTING",
}

// AllCapabilities lists every single flag, in declaration order.
func AllCapabilities() []Capability { return (capabilityEnd - 1).Flags() }

// Has says whether every flag of want is in c.
func (c Capability) Has(want Capability) bool { return c&want == want }

// Flags splits c into its single flags, in declaration order.
func (c Capability) Flags() []Capability {
	flags := make([]Capability, 0, bits.OnesCount32(uint32(c)))
	for f := Capability(1); f < capabilityEnd; f <<= 1 {
		if c.Has(f) {
			flags = append(flags, f)
		}
	}
	return flags
}

// Names are the names of c's flags, in declaration order.
func (c Capability) Names() []string {
	flags := c.Flags()
	names := make([]string, len(flags))
	for i, f := range flags {
		names[i] = capabilityNames[f]
	}
	return names
}

// String joins the names with "|".
func (c Capability) String() string { return strings.Join(c.Names(), "|") }
