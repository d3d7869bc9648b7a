// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Spec is what is asked of a sandbox.
type Spec struct {
	// Name is a human's name for it; "" lets the backend choose.
	Name string
	// Owner is whom it belongs to; reaping acts on one owner.
	Owner    string
	Template Template

	Resources        Resources
	Network          NetworkPolicy
	RequireIsolation Opt[IsolationTier]

	// Command is the whole argv of the main process. Empty: the sandbox idles.
	Command    []string
	WorkingDir string
	User       string
	Env        map[string]string
	Labels     map[string]string
	// TTL ends the sandbox that long after its creation; zero: never.
	TTL       time.Duration
	Readiness Readiness
	// Options are the settings of one backend, by the names that it registers.
	Options Settings
}

// Readiness says when a sandbox counts as ready. The zero value: as soon as it runs.
type Readiness struct {
	// Exec is an argv that exits 0 inside once the sandbox is ready.
	Exec Tuple[string]
	// TCPPort is a port that accepts connections, seen from inside.
	TCPPort Opt[int]
	// Interval is the pause between probes, Timeout the bound on all of them; zero: the defaults.
	Interval, Timeout time.Duration
}

// The defaults of Readiness.
const (
	DefaultReadinessInterval = 250 * time.Millisecond
	DefaultReadinessTimeout  = 60 * time.Second
)

// IsZero says that no probe is configured.
func (r Readiness) IsZero() bool { return r.Exec.Len() == 0 && !r.TCPPort.IsSet() }

// ReservedLabelPrefix begins the labels by which sandboxio knows its own: users can't set them.
const ReservedLabelPrefix = "sandboxio."

var (
	envName = regexp.MustCompile(`^[^=\x00]+$`)
	// A name becomes part of host names, file names and labels.
	sandboxName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)
)

// Validate checks what can be known without any backend. Every refusal in the
// joined error is an *[Error] that names its field.
func (s Spec) Validate() error {
	var errs problems
	s.Template.validate(&errs)
	s.Resources.validate(&errs)
	s.Network.validate(&errs)
	if tier, ok := s.RequireIsolation.Get(); ok && tier == TierUnknown {
		errs.add(Configuration("require_isolation", `"unknown" satisfies no requirement, so it can't be required`,
			`Write "container", "gvisor" or "microvm", or leave it out.`))
	}
	if s.Name != "" && !sandboxName.MatchString(s.Name) {
		errs.add(Configurationf("name", "Use up to 63 letters, digits, '.', '_' and '-', beginning with a letter or digit.", "%q is not a sandbox name", s.Name))
	}
	if len(s.Command) > 0 && s.Command[0] == "" {
		errs.add(Configuration("command[0]", "an empty string is no program", "Write the program's name or path."))
	}
	if s.WorkingDir != "" && !path.IsAbs(s.WorkingDir) {
		errs.add(Configurationf("working_dir", "Write it from the root, such as \"/workspace\".", "%q is not an absolute path", s.WorkingDir))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !envName.MatchString(name) {
			errs.add(Configurationf("env", "Use a name without '='.", "%q can't be the name of an environment variable", name))
		}
	}
	validateLabels(&errs, s.Labels)
	if s.TTL < 0 {
		errs.add(Configurationf("ttl", "Write a positive duration such as \"1h\", or leave it out for no limit.", "%s is not a time to live", s.TTL))
	}
	s.Readiness.validate(&errs)
	return errs.err()
}

func validateLabels(errs *problems, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		switch {
		case strings.TrimSpace(key) == "":
			errs.add(Configuration("labels", "a label needs a key", "Name the label."))
		case strings.HasPrefix(strings.ToLower(key), ReservedLabelPrefix):
			errs.add(Configurationf(`labels["`+key+`"]`, "Choose a key with another prefix.",
				"the label %q is reserved: sandboxio tells by these what it may reap", key))
		}
	}
}

func (r Readiness) validate(errs *problems) {
	if r.Exec.Len() > 0 && r.TCPPort.IsSet() {
		errs.add(Configuration("readiness", "exec and tcp_port can't both be set", "Set one of them."))
	}
	if port, ok := r.TCPPort.Get(); ok && (port < 1 || port > 65535) {
		errs.add(Configurationf("readiness.tcp_port", "Write a TCP port from 1 to 65535.", "%d is not a port", port))
	}
	if argv := r.Exec.Slice(); len(argv) > 0 && argv[0] == "" {
		errs.add(Configuration("readiness.exec[0]", "an empty string is no program", "Write the program's name or path."))
	}
	if r.Interval < 0 {
		errs.add(Configuration("readiness.interval", "a pause can't be negative", "Write a duration such as \"500ms\"."))
	}
	if r.Timeout < 0 {
		errs.add(Configuration("readiness.timeout", "a bound can't be negative", "Write a duration such as \"30s\"."))
	}
}
