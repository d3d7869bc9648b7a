// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import "strings"

// Resources are the caps of a sandbox. In a request an absent value means the
// backend's default, never "unlimited"; in an answer ([Resolved], [Info]) absent
// means that nothing holds this cap, which [Enforcement] then says too.
type Resources struct {
	// CPU is in cores.
	CPU Opt[float64]
	// MemoryMB is in MiB; swap is never added on top.
	MemoryMB Opt[int64]
	// DiskMB is in MiB, for the writable layer.
	DiskMB Opt[int64]
	// GPU is a device type such as "T4", or a count, as the backend names it.
	GPU Opt[string]
}

// IsDefault says that nothing was asked for.
func (r Resources) IsDefault() bool { return r == Resources{} }

// The caps of a sandbox about whose resources nothing was said: modest, concrete.
const (
	DefaultCPU      = 1.0
	DefaultMemoryMB = 1024
	DefaultDiskMB   = 10240
)

func (r Resources) validate(errs *problems) {
	positive(errs, "resources.cpu", r.CPU, "cores, such as 0.5")
	positive(errs, "resources.memory_mb", r.MemoryMB, "MiB, such as 512")
	positive(errs, "resources.disk_mb", r.DiskMB, "MiB, such as 10240")
	if gpu, ok := r.GPU.Get(); ok && strings.TrimSpace(gpu) == "" {
		errs.add(Configuration("resources.gpu", "an empty gpu type says nothing", "Leave gpu out, or name a type such as \"T4\"."))
	}
}

func positive[T int64 | float64](errs *problems, field string, v Opt[T], unit string) {
	// Not v > 0, rather than v <= 0, so that a NaN is refused too.
	if n, ok := v.Get(); ok && !(n > 0) {
		errs.add(Configurationf(field, "Write a number of "+unit+", or leave it out for the default.",
			"%v is not a cap: it has to be greater than zero", n))
	}
}
