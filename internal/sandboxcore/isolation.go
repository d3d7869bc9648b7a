// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"cmp"
	"slices"
	"time"
)

// IsolationTier orders one thing only: resistance to kernel escape by an
// adversarial tenant. It is no general scale of "more secure". It has no numeric
// form, so tiers can't be added or subtracted.
type IsolationTier struct{ name string }

// The tiers.
var (
	// TierUnknown is undeclared or unverified: it satisfies no requirement. It is
	// the zero value, so that an adapter that says nothing has claimed nothing.
	TierUnknown = IsolationTier{}
	// TierContainer shares the host's kernel (runc): for trusted, development and CI code only.
	TierContainer = IsolationTier{"container"}
	// TierGVisor has a user-space kernel: defence in depth, not equivalent to a VM.
	TierGVisor = IsolationTier{"gvisor"}
	// TierMicroVM has a guest kernel of its own: the floor for untrusted multi-tenant code.
	TierMicroVM = IsolationTier{"microvm"}
)

// tierRanks is the order. It is spaced by ten so that a tier can be inserted
// without renumbering.
var tierRanks = map[IsolationTier]int{
	TierUnknown: 0, TierContainer: 10, TierGVisor: 20, TierMicroVM: 30,
}

// IsolationTiers lists every tier, weakest first.
func IsolationTiers() []IsolationTier {
	tiers := make([]IsolationTier, 0, len(tierRanks))
	for t := range tierRanks {
		tiers = append(tiers, t)
	}
	slices.SortFunc(tiers, IsolationTier.Compare)
	return tiers
}

// ParseIsolationTier returns the tier of that name.
func ParseIsolationTier(name string) (IsolationTier, error) {
	for t := range tierRanks {
		if t.String() == name {
			return t, nil
		}
	}
	return TierUnknown, Configurationf("require_isolation", `Write "container", "gvisor" or "microvm".`, "%q is not an isolation tier", name)
}

// String returns the tier's name.
func (t IsolationTier) String() string {
	if t == TierUnknown {
		return "unknown"
	}
	return t.name
}

// Compare returns -1, 0 or +1 by rank.
func (t IsolationTier) Compare(other IsolationTier) int {
	return cmp.Compare(tierRanks[t], tierRanks[other])
}

// Less, AtMost, More and AtLeast compare by rank.
func (t IsolationTier) Less(other IsolationTier) bool    { return t.Compare(other) < 0 }
func (t IsolationTier) AtMost(other IsolationTier) bool  { return t.Compare(other) <= 0 }
func (t IsolationTier) More(other IsolationTier) bool    { return t.Compare(other) > 0 }
func (t IsolationTier) AtLeast(other IsolationTier) bool { return t.Compare(other) >= 0 }

// Satisfies says whether a sandbox of tier t may be used where minimum is
// required. Unknown satisfies nothing and can't be required.
func (t IsolationTier) Satisfies(minimum IsolationTier) bool {
	return t != TierUnknown && minimum != TierUnknown && t.AtLeast(minimum)
}

// Evidence is what a tier above container rests on: the provider's own document
// and the day it was read.
type Evidence struct {
	Document string
	Date     string // YYYY-MM-DD
}

func (e Evidence) valid() bool {
	_, err := time.Parse(time.DateOnly, e.Date)
	return err == nil && e.Document != ""
}

// TierOffer is one tier that a backend can give.
type TierOffer struct {
	Tier IsolationTier
	// Runtime is what gives it, in the backend's own terms ("runc", "runsc").
	Runtime  string
	Evidence Evidence
}
