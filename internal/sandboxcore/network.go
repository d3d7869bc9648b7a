// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Egress says what a sandbox may reach.
type Egress string

// The egress modes. The zero value means EgressDeny.
const (
	// EgressDeny: nothing, not the host, the gateway, siblings, DNS or metadata either.
	EgressDeny Egress = "deny"
	// EgressAllow: everything, or what the allow list names where a backend enforces one.
	EgressAllow Egress = "allow"
	// EgressLearn records what is reached. It is planned for v0.2 of the domain model and refused until then.
	EgressLearn Egress = "learn"
)

// Egresses are all modes: the one list for validation, documentation and tests.
var Egresses = []Egress{EgressDeny, EgressAllow, EgressLearn}

// NetworkPolicy is what a sandbox may reach and what may reach it.
type NetworkPolicy struct {
	Egress Egress
	// Allow names hosts ("pypi.org", "*.pypi.org") and CIDRs.
	Allow Tuple[string]
	// IngressPorts are TCP ports of the sandbox that are made reachable.
	IngressPorts Tuple[int]
}

// Effective returns the policy with its default written out.
func (p NetworkPolicy) Effective() NetworkPolicy {
	if p.Egress == "" {
		p.Egress = EgressDeny
	}
	return p
}

// One label of a host name: letters, digits and inner hyphens (RFC 1123).
var hostLabel = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`)

func validAllowEntry(entry string) error {
	if strings.Contains(entry, "/") {
		prefix, err := netip.ParsePrefix(entry)
		switch {
		case err != nil:
			return fmt.Errorf("%q is not a CIDR", entry)
		case prefix.Masked() != prefix:
			return fmt.Errorf("%q has bits set beyond its length: the network is %q", entry, prefix.Masked())
		}
		return nil
	}
	if _, err := netip.ParseAddr(entry); err == nil {
		return fmt.Errorf("%q is a bare address: write it as a CIDR with its length", entry)
	}
	labels := strings.Split(strings.TrimPrefix(entry, "*."), ".")
	if strings.HasPrefix(entry, "*.") && len(labels) < 2 {
		return fmt.Errorf("%q would match a whole top-level domain", entry)
	}
	for _, l := range labels {
		if !hostLabel.MatchString(l) {
			return fmt.Errorf("%q is neither a host name, a wildcard such as \"*.example.org\", nor a CIDR", entry)
		}
	}
	return nil
}

func (p NetworkPolicy) validate(errs *problems) {
	switch egress := p.Effective().Egress; {
	case egress == EgressLearn:
		errs.add(NotSupported("network.egress", `egress = "learn" is not available in this version, and is never treated as "deny" in silence`,
			`Write "deny" or "allow".`))
	case !slices.Contains(Egresses, egress):
		errs.add(Configurationf("network.egress", `Write "deny" or "allow".`, "%q is not an egress mode", egress))
	}
	for i, entry := range p.Allow.Slice() {
		if err := validAllowEntry(entry); err != nil {
			errs.add(Configuration(fmt.Sprintf("network.allow[%d]", i), err.Error(), "Write a host name, a wildcard such as \"*.example.org\", or a CIDR such as \"10.1.0.0/16\"."))
		}
	}
	ports := p.IngressPorts.Slice()
	for i, port := range ports {
		field := fmt.Sprintf("network.ingress_ports[%d]", i)
		switch {
		case port < 1 || port > 65535:
			errs.add(Configurationf(field, "Write a TCP port from 1 to 65535.", "%d is not a port", port))
		case slices.Contains(ports[:i], port):
			errs.add(Configurationf(field, "Name each port once.", "port %d is named twice", port))
		}
	}
}
