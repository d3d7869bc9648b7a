// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/protocol"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

func TestReadOnlyRoot(t *testing.T) {
	realEngine(t)
	spec := busyboxSpec(t)
	spec.Options = sandboxcore.Settings{optionReadOnly: true}
	sandbox := create(t, newBackend(t), spec)
	if err := sandbox.Files().Write(t.Context(), "/f", nil, 0o600); err == nil {
		t.Error("the root could be written to")
	}
	noError(t, sandbox.Files().Write(t.Context(), "/tmp/f", []byte("x"), 0o755))
	if got := run(t, sandbox, "cat", "/tmp/f"); got != "x" {
		t.Errorf("%q", got)
	}
}

// Hardening is proved from inside, not from what the engine echoes.
func TestHardening(t *testing.T) {
	realEngine(t)
	spec := busyboxSpec(t)
	spec.Resources = sandboxcore.Resources{CPU: sandboxcore.Some(0.5), MemoryMB: sandboxcore.Some(int64(64))}
	sandbox := create(t, newBackend(t), spec)
	status := run(t, sandbox, "cat", "/proc/self/status")
	// CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE.
	for _, line := range []string{"CapEff:\t00000000000004fb", "CapBnd:\t00000000000004fb", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(status, line) {
			t.Errorf("no %q in\n%s", line, status)
		}
	}
	if mounts := run(t, sandbox, "cat", "/proc/mounts"); strings.Contains(mounts, "docker.sock") {
		t.Error("the engine's socket is inside")
	}
	if result, err := sandbox.Exec(t.Context(), sandboxcore.Command{Argv: []string{"sh", "-c", "echo x > /sandboxio/guest"}}); err != nil || result.OK() {
		t.Errorf("the guest could be overwritten: %+v, %v", result, err)
	}
	// More than the cap and as much swap again, if it had any.
	result, err := sandbox.Exec(t.Context(), sandboxcore.Command{Argv: []string{"sh", "-c", "head -c 200000000 /dev/zero | tail"}, Timeout: time.Minute})
	noError(t, err)
	if result.OK() {
		t.Error("a process took 200 MB under a cap of 64 MiB")
	}
	// 600 processes are more than the cap of 512. They need more memory than the cap above.
	sandbox = create(t, newBackend(t), busyboxSpec(t))
	result, err = sandbox.Exec(t.Context(), sandboxcore.Command{Argv: []string{"sh", "-c", "for i in $(seq 600); do sleep 5 & done; wait"}, Timeout: time.Minute})
	noError(t, err)
	if !strings.Contains(result.Stderr, "fork") {
		t.Errorf("600 processes were made: %+v", result)
	}
}

// What the engine was told, for what can't be seen from inside.
func TestHardeningAsInspected(t *testing.T) {
	api := realEngine(t)
	sandbox := create(t, newBackend(t), busyboxSpec(t))
	inspected, err := api.ContainerInspect(t.Context(), sandbox.ID())
	noError(t, err)
	host := inspected.HostConfig
	for what, holds := range map[string]bool{
		"not privileged":       !host.Privileged,
		"no host mounts":       len(host.Binds) == 0 && len(inspected.Mounts) == 1 && inspected.Mounts[0].Destination == protocol.Dir && !inspected.Mounts[0].RW,
		"all dropped":          slices.Equal(host.CapDrop, []string{"ALL"}),
		"no new privileges":    slices.Equal(host.SecurityOpt, []string{"no-new-privileges"}),
		"memory without swap":  host.Memory == 1024<<20 && host.MemorySwap == host.Memory,
		"cpu":                  host.NanoCPUs == 1e9,
		"pids":                 host.PidsLimit != nil && *host.PidsLimit == 512,
		"no network":           host.NetworkMode == "none" && len(host.PortBindings) == 0,
		"own namespaces":       host.PidMode == "" && host.UTSMode == "" && host.IpcMode == "private",
		"no devices":           len(host.Devices) == 0 && len(host.DeviceRequests) == 0,
		"not restarted":        host.RestartPolicy.IsNone() && !host.AutoRemove,
		"log is capped":        host.LogConfig.Type == "json-file" && host.LogConfig.Config["max-size"] == "10m" && host.LogConfig.Config["max-file"] == "1",
		"the guest is PID 1":   host.Init != nil && !*host.Init && inspected.Path == protocol.Path,
		"kernel files covered": len(host.MaskedPaths) > 0 && len(host.ReadonlyPaths) > 0,
	} {
		if !holds {
			t.Errorf("%s: not so in %+v", what, host)
		}
	}
}

// limitInside is a cap as the kernel has it, on cgroup v1 or v2.
func limitInside(t *testing.T, sandbox sandboxcore.Sandbox, v1, v2 string) string {
	t.Helper()
	return run(t, sandbox, "sh", "-c", "cat /sys/fs/cgroup/"+v1+" 2>/dev/null || cat /sys/fs/cgroup/"+v2)
}

// Somebody's docker update shows at the next look, and Update takes it back in place.
func TestCapsChangedByHandAreHealed(t *testing.T) {
	realEngine(t)
	b := newBackend(t)
	spec := busyboxSpec(t)
	spec.Resources = sandboxcore.Resources{CPU: sandboxcore.Some(0.5), MemoryMB: sandboxcore.Some(int64(128))}
	sandbox := create(t, b, spec)
	made := sandbox.Info()
	for _, byHand := range [][]string{
		{"--cpus", "1"},
		{"--memory", "64m", "--memory-swap", "64m"},
		{"--memory", "128m", "--memory-swap", "1g"},
		{"--pids-limit", "4000"},
	} {
		if out, err := exec.Command("docker", append(append([]string{"update"}, byHand...), sandbox.ID())...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		seen, err := b.Get(t.Context(), sandbox.ID())
		noError(t, err)
		if info := seen.Info(); info.Resources == made.Resources && info.Enforcement == made.Enforcement {
			t.Errorf("%v: isn't seen", byHand)
		}
		healed, err := sandboxcore.Update(t.Context(), b, sandbox.ID(), spec)
		noError(t, err)
		if info := healed.Info(); info.Resources != made.Resources || info.Enforcement != made.Enforcement || info.ID != made.ID {
			t.Errorf("%v: healed to %+v", byHand, info)
		}
	}
	if got, want := limitInside(t, sandbox, "memory/memory.limit_in_bytes", "memory.max"), strconv.Itoa(128<<20); got != want {
		t.Errorf("the kernel's memory limit is %s, want %s", got, want)
	}
	if got := limitInside(t, sandbox, "cpu/cpu.cfs_quota_us", "cpu.max"); !strings.HasPrefix(got, "50000") {
		t.Errorf("the kernel's quota is %q, want half of 100000", got)
	}
	if got := limitInside(t, sandbox, "pids/pids.max", "pids.max"); got != "512" {
		t.Errorf("the kernel's limit of processes is %s", got)
	}
}

func TestCoresGoThroughTheEnginesUnit(t *testing.T) {
	t.Parallel()
	for thousandths := 1; thousandths <= 256000; thousandths++ {
		asked, err := strconv.ParseFloat(strconv.Itoa(thousandths)+"e-3", 64)
		noError(t, err)
		if got := cores(nanoCPUs(asked)); got != asked {
			t.Fatalf("%v came back as %v", asked, got)
		}
	}
}
