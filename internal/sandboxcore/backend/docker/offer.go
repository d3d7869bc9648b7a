// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/system"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/embedded"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

const (
	// minMemoryMB is what the engine itself refuses to go below.
	minMemoryMB = 6
	minCPU      = 0.01
	// pidsLimit is every sandbox's cap of processes and threads.
	pidsLimit = 512
)

const capabilities = sandboxcore.RunCommand | sandboxcore.Streaming | sandboxcore.Filesystem |
	sandboxcore.UploadDownload | sandboxcore.NetworkPolicies

// inPlace are the fields that Update changes; the engine can't change the others.
var inPlace = []string{"resources.cpu", "resources.memory_mb"}

// Resolve says what Create would make of spec.
func (b *Backend) Resolve(ctx context.Context, spec sandboxcore.Spec) (sandboxcore.Resolved, error) {
	// What can be refused without an engine is, so that it's refused also where none answers.
	if err := spec.Validate(); err != nil {
		return sandboxcore.Resolved{}, err
	}
	conn, err := b.connect(ctx)
	if err != nil {
		return sandboxcore.Resolved{}, err
	}
	if err := conn.runsSandboxes(); err != nil {
		return sandboxcore.Resolved{}, err
	}
	offer := conn.offer()
	if !spec.Template.IsZero() {
		offer.Template, err = conn.lookup(ctx, spec.Template)
		// An image that isn't there yet is pulled by Create; an image id can't be.
		if err != nil && (spec.Template.ID != "" || !sandboxcore.Is(err, sandboxcore.KindNotFound)) {
			return sandboxcore.Resolved{}, err
		}
	}
	if cpu, ok := spec.Resources.CPU.Get(); ok && cores(nanoCPUs(cpu)) != cpu {
		return sandboxcore.Resolved{}, sandboxcore.Configurationf("resources.cpu", "Write at most nine decimals.", "the engine counts cpu in billionths of a core, and %v isn't a whole number of them", cpu)
	}
	return sandboxcore.Admit(spec, offer)
}

// nanoCPUs and cores convert to the engine's unit, billionths of a core, and back.
func nanoCPUs(cores float64) int64 { return int64(math.Round(cores * 1e9)) }
func cores(nanoCPUs int64) float64 { return float64(nanoCPUs) / 1e9 }

// runsSandboxes says why no sandbox at all can run on this engine.
func (c *connection) runsSandboxes() error {
	refuse := func(reason string) error {
		return sandboxcore.Configurationf("backend", "Use an engine of Linux containers on amd64 or arm64.", "the engine at %s can't run sandboxes: %s", c.api.DaemonHost(), reason)
	}
	if c.info.OSType != "linux" {
		return refuse(fmt.Sprintf("it runs %s containers", c.info.OSType))
	}
	if _, err := embedded.For(c.info.Architecture); err != nil {
		return refuse(err.Error())
	}
	return nil
}

func (c *connection) offer() sandboxcore.Offer {
	return sandboxcore.Offer{
		Backend:          Name,
		Capabilities:     capabilities,
		Tiers:            tiers(c.info),
		MinCPU:           minCPU,
		MaxCPU:           float64(c.info.NCPU),
		MinMemoryMB:      minMemoryMB,
		MaxMemoryMB:      c.info.MemTotal >> 20,
		DiskRefusal:      diskRefusal(c.info),
		GPURefusal:       gpuRefusal(c.info),
		AllowListRefusal: "it has no filter between a sandbox and the network, so it can allow all or nothing",
		IngressRefusal:   "ports need a closed network segment and a relay, which this version doesn't make yet",
		EgressEnforcement: map[sandboxcore.Egress]string{
			sandboxcore.EgressDeny:  "no network interface",
			sandboxcore.EgressAllow: "shared bridge without traffic between sandboxes",
		},
		Enforcement: sandboxcore.Enforcement{CPU: "cgroup", Memory: c.memoryEnforcement(), Disk: "storage driver quota", Pids: c.pidsEnforcement(pidsLimit)},
		InPlace:     inPlace,
	}
}

// memoryEnforcement is the truth where the kernel doesn't account swap: the engine
// then drops that part of the cap with no more than a warning.
func (c *connection) memoryEnforcement() string {
	if c.info.SwapLimit {
		return "cgroup, swap included"
	}
	return "cgroup, swap not capped"
}

func (c *connection) pidsEnforcement(limit int64) string {
	if !c.info.PidsLimit || limit <= 0 {
		return sandboxcore.EnforcementNone
	}
	return fmt.Sprintf("cgroup, %d", limit)
}

// tiers are those of the runtimes that this version can drive, the default runtime
// first. A runtime's tier is told by what it is, never by the name it is registered under.
func tiers(info system.Info) []sandboxcore.TierOffer {
	var offers []sandboxcore.TierOffer
	for name, runtime := range info.Runtimes {
		if isRunc(cmp.Or(runtime.Path, runtime.Type)) {
			offers = append(offers, sandboxcore.TierOffer{Tier: sandboxcore.TierContainer, Runtime: name})
		}
	}
	slices.SortFunc(offers, func(a, b sandboxcore.TierOffer) int {
		return cmp.Or(-cmp.Compare(btoi(a.Runtime == info.DefaultRuntime), btoi(b.Runtime == info.DefaultRuntime)), cmp.Compare(a.Runtime, b.Runtime))
	})
	return offers
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// isRunc knows the runtimes that share the host's kernel by their program or shim.
func isRunc(program string) bool {
	switch path.Base(program) {
	case "runc", "crun", "io.containerd.runc.v2", "io.containerd.runtime.v1.linux":
		return true
	}
	return false
}

// diskRefusal says why a disk cap isn't enforced. It trusts drivers only that were
// seen to enforce it: newer engines accept the option and ignore it.
func diskRefusal(info system.Info) string {
	if info.Driver == "btrfs" {
		return ""
	}
	return fmt.Sprintf("its storage driver %q has no quota that is known to hold", info.Driver)
}

func gpuRefusal(info system.Info) string {
	names := make([]string, 0, len(info.Runtimes))
	for name := range info.Runtimes {
		names = append(names, name)
	}
	slices.Sort(names)
	if slices.Contains(names, "nvidia") {
		return "gpus are not driven by this version yet"
	}
	return "no gpu runtime is registered, only " + strings.Join(names, ", ")
}
