// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Enforcement says what holds each promise, in the backend's own terms, such as
// "cgroup" or "no network interface". EnforcementNone where nothing does.
type Enforcement struct {
	CPU, Memory, Disk, Pids, Egress string
}

// EnforcementNone says that nothing holds a cap.
const EnforcementNone = "none"

// Offer is what a backend can give, as it found out. It holds facts only: [Admit]
// has the rules.
type Offer struct {
	Backend      string
	Capabilities Capability
	// Tiers are those that can be had. The first is what a sandbox gets when it
	// requires none. Empty: the backend claims nothing, so TierUnknown.
	Tiers []TierOffer
	// CapsFromTemplate: cpu, memory and disk belong to the template, so asking for
	// them is refused. Resources of Template are what is then in effect.
	CapsFromTemplate bool
	Template         TemplateInfo
	// MinCPU and MaxCPU are in cores, MinMemoryMB and MaxMemoryMB in MiB; zero: no limit known.
	MinCPU, MaxCPU           float64
	MinMemoryMB, MaxMemoryMB int64
	// DiskRefusal says why disk_mb can't be enforced, or is "" where it can.
	DiskRefusal string
	// GPURefusal says why a gpu can't be had although the backend knows gpus.
	GPURefusal string
	// AllowListRefusal says why an egress allow list can't be enforced, or is "" where it can.
	AllowListRefusal string
	// IngressRefusal says why ingress ports can't be had.
	IngressRefusal string
	// EgressEnforcement says what holds each mode of egress.
	EgressEnforcement map[Egress]string
	// Enforcement holds the rest; its Egress is overwritten from EgressEnforcement.
	Enforcement Enforcement
	// InPlace are the fields that an existing sandbox can change; all others replace it.
	InPlace []string
}

// Resolved is what would be made of a Spec: each value concrete.
type Resolved struct {
	Tier         TierOffer
	Capabilities Capability
	Resources    Resources
	Network      NetworkPolicy
	Enforcement  Enforcement
	Template     TemplateInfo
	// InPlace are the fields that an existing sandbox can change; all others replace it.
	InPlace []string
}

// Admit decides whether a backend with this offer can honour spec, and what in
// effect it would be. It refuses rather than weakens: each refusal is an *[Error]
// with the field to blame, and all of them are joined. A zero Template is one that
// isn't known yet.
func Admit(spec Spec, offer Offer) (Resolved, error) {
	if err := spec.Validate(); err != nil {
		return Resolved{}, err
	}
	var errs problems
	resolved := Resolved{
		Capabilities: offer.Capabilities,
		Tier:         admitTier(&errs, spec, offer),
		Resources:    admitResources(&errs, spec.Resources, offer),
		Network:      admitNetwork(&errs, spec.Network.Effective(), offer),
		Enforcement:  offer.Enforcement,
		Template:     offer.Template,
		InPlace:      offer.InPlace,
	}
	resolved.Enforcement.Egress = offer.EgressEnforcement[resolved.Network.Egress]
	if !resolved.Resources.DiskMB.IsSet() {
		resolved.Enforcement.Disk = EnforcementNone
	}
	if !spec.Readiness.IsZero() && !offer.Capabilities.Has(RunCommand) {
		errs.add(NotSupported("readiness", fmt.Sprintf("the %s backend runs no commands, so it can't probe", offer.Backend), "Leave readiness out."))
	}
	return resolved, errs.err()
}

func admitTier(errs *problems, spec Spec, offer Offer) TierOffer {
	tiers := claimed(offer.Tiers)
	tier := TierOffer{Tier: TierUnknown}
	if len(tiers) > 0 {
		tier = tiers[0]
	}
	minimum, required := spec.RequireIsolation.Get()
	if !required {
		return tier
	}
	found := false
	var have []string
	for _, t := range tiers {
		have = append(have, fmt.Sprintf("%s (%s)", t.Tier, t.Runtime))
		if t.Tier.Satisfies(minimum) && (!found || t.Tier.Less(tier.Tier)) {
			tier, found = t, true
		}
	}
	if found {
		return tier
	}
	if len(have) == 0 {
		have = []string{"none that is documented"}
	}
	errs.add(Configurationf("require_isolation", "Require a tier that the backend has, register a runtime that gives it, or choose another backend.",
		"%q is required, and the %s backend offers: %s", minimum, offer.Backend, strings.Join(have, ", ")))
	return tier
}

// claimed takes a tier above container for unknown unless it carries its evidence.
func claimed(tiers []TierOffer) []TierOffer {
	tiers = slices.Clone(tiers)
	for i, t := range tiers {
		if t.Tier.More(TierContainer) && !t.Evidence.valid() {
			tiers[i].Tier = TierUnknown
		}
	}
	return tiers
}

func admitResources(errs *problems, want Resources, offer Offer) Resources {
	admitGPU(errs, want, offer)
	if offer.CapsFromTemplate {
		refuse := func(field string, set bool) {
			if set {
				errs.add(Configurationf(field, "Leave it out, and choose a template that has the caps you want.",
					"on the %s backend the caps belong to the template, so they can't be set on a sandbox", offer.Backend))
			}
		}
		refuse("resources.cpu", want.CPU.IsSet())
		refuse("resources.memory_mb", want.MemoryMB.IsSet())
		refuse("resources.disk_mb", want.DiskMB.IsSet())
		effective := offer.Template.Resources
		effective.GPU = want.GPU
		return effective
	}

	defaultCPU, defaultMemory := math.Max(DefaultCPU, offer.MinCPU), max(int64(DefaultMemoryMB), offer.MinMemoryMB)
	if offer.MaxCPU > 0 {
		defaultCPU = math.Min(defaultCPU, offer.MaxCPU)
	}
	if offer.MaxMemoryMB > 0 {
		defaultMemory = min(defaultMemory, offer.MaxMemoryMB)
	}
	cpu, memory := want.CPU.Or(defaultCPU), want.MemoryMB.Or(defaultMemory)
	if offer.MaxCPU > 0 && cpu > offer.MaxCPU {
		errs.add(Configurationf("resources.cpu", fmt.Sprintf("Ask for %v or less.", offer.MaxCPU),
			"%v cores are asked for, and the %s backend has %v", cpu, offer.Backend, offer.MaxCPU))
	}
	if cpu < offer.MinCPU {
		errs.add(Configurationf("resources.cpu", fmt.Sprintf("Ask for %v or more.", offer.MinCPU),
			"%v cores are asked for, and the %s backend gives no less than %v", cpu, offer.Backend, offer.MinCPU))
	}
	if offer.MaxMemoryMB > 0 && memory > offer.MaxMemoryMB {
		errs.add(Configurationf("resources.memory_mb", fmt.Sprintf("Ask for %d or less.", offer.MaxMemoryMB),
			"%d MiB are asked for, and the %s backend has %d", memory, offer.Backend, offer.MaxMemoryMB))
	}
	if memory < offer.MinMemoryMB {
		errs.add(Configurationf("resources.memory_mb", fmt.Sprintf("Ask for %d or more.", offer.MinMemoryMB),
			"%d MiB are asked for, and the %s backend starts nothing with less than %d", memory, offer.Backend, offer.MinMemoryMB))
	}
	effective := Resources{CPU: Some(cpu), MemoryMB: Some(memory), GPU: want.GPU}
	switch {
	case offer.DiskRefusal == "":
		effective.DiskMB = Some(want.DiskMB.Or(DefaultDiskMB))
	case want.DiskMB.IsSet():
		errs.add(Configurationf("resources.disk_mb", "Leave disk_mb out: the plan then says that the disk isn't capped.",
			"the %s backend can't enforce a disk cap here: %s", offer.Backend, offer.DiskRefusal))
	}
	return effective
}

func admitGPU(errs *problems, want Resources, offer Offer) {
	gpu, wanted := want.GPU.Get()
	switch {
	case !wanted:
	case !offer.Capabilities.Has(GPU):
		reason := offer.GPURefusal
		if reason == "" {
			reason = "it has no gpus"
		}
		errs.add(NotSupported("resources.gpu", fmt.Sprintf("gpu %q is asked for, and the %s backend can't give one: %s", gpu, offer.Backend, reason),
			"Leave gpu out, or choose a backend with gpus."))
	}
}

func admitNetwork(errs *problems, want NetworkPolicy, offer Offer) NetworkPolicy {
	if _, enforced := offer.EgressEnforcement[want.Egress]; !enforced || !offer.Capabilities.Has(NetworkPolicies) && want.Egress != EgressAllow {
		errs.add(NotSupported("network.egress", fmt.Sprintf("the %s backend can't enforce egress = %q", offer.Backend, want.Egress), "Choose another mode or another backend."))
	}
	if want.Allow.Len() > 0 {
		switch {
		case want.Egress == EgressDeny:
			errs.add(Configuration("network.allow", `egress = "deny" and an allow list contradict each other`, `Write egress = "allow", or leave the list out.`))
		case offer.AllowListRefusal != "":
			errs.add(NotSupported("network.allow", fmt.Sprintf("the %s backend can't enforce an allow list: %s", offer.Backend, offer.AllowListRefusal),
				"Leave the list out, or choose a backend that enforces one."))
		}
	}
	if want.IngressPorts.Len() > 0 && !offer.Capabilities.Has(Tunnels) {
		reason := offer.IngressRefusal
		if reason == "" {
			reason = "it has no tunnels"
		}
		errs.add(NotSupported("network.ingress_ports", fmt.Sprintf("the %s backend can't make ports reachable: %s", offer.Backend, reason),
			"Leave ingress_ports out, or choose another backend."))
	}
	return want
}
