// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

// Command bench times apply, plan and destroy of N sandboxes against the floor, in
// one run: the same Terraform with a provider that does nothing, plus the bare
// engine calls (create and start, inspect, remove). It prints ratios; absolute times
// of a shared machine say little.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

const image = "sandboxio-test/busybox:1"

// parallelism is Terraform's default; the bare calls run as many at once.
const parallelism = 10

var phases = []string{"apply", "plan", "destroy"}

// timing holds the seconds of each phase, by the order of phases.
type timing [3]float64

func main() {
	log.SetFlags(0)
	sizes := flag.String("n", "1,10,50", "numbers of sandboxes, with commas between")
	reps := flag.Int("reps", 3, "repetitions; medians are printed")
	cli := flag.String("cli", "terraform", "the Terraform or OpenTofu CLI")
	flag.Parse()
	if err := run(context.Background(), *sizes, *reps, *cli); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, sizes string, reps int, cli string) error {
	dir, err := os.MkdirTemp("", "sandboxio-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := build(ctx, dir); err != nil {
		return err
	}
	engine, err := newBareEngine(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "N\tphase\tsandboxio s\tterraform alone s\tengine alone s\tratio to the floor\t")
	for size := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			return err
		}
		var ours, null, bare []timing
		for range reps + 1 { // the first is a warm-up
			for _, m := range []struct {
				into    *[]timing
				measure func() (timing, error)
			}{
				{&ours, func() (timing, error) { return terraform(ctx, cli, dir, "ours", sandboxes(n)) }},
				{&null, func() (timing, error) { return terraform(ctx, cli, dir, "null", nothings(n)) }},
				{&bare, func() (timing, error) { return engine.measure(ctx, n) }},
			} {
				t, err := m.measure()
				if err != nil {
					return err
				}
				*m.into = append(*m.into, t)
			}
		}
		for i, phase := range phases {
			o, t, e := median(ours[1:], i), median(null[1:], i), median(bare[1:], i)
			fmt.Fprintf(w, "%d\t%s\t%.2f\t%.2f\t%.3f\t%.2f\t\n", n, phase, o, t, e, o/(t+e))
		}
	}
	return w.Flush()
}

func median(ts []timing, phase int) float64 {
	var values []float64
	for _, t := range ts {
		values = append(values, t[phase])
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func build(ctx context.Context, dir string) error {
	for name, pkg := range map[string]string{"sandboxio": ".", "null": "./internal/bench/nullprovider"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "terraform-provider-"+name), pkg)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", pkg, err, out)
		}
	}
	rc := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"sandboxio/sandboxio\" = %q\n    \"sandboxio/null\" = %[1]q\n  }\n  direct {}\n}\n", dir)
	return os.WriteFile(filepath.Join(dir, "bench.tfrc"), []byte(rc), 0o600)
}

func sandboxes(n int) string {
	return fmt.Sprintf(`
terraform {
  required_providers {
    sandboxio = { source = "sandboxio/sandboxio" }
  }
}
provider "sandboxio" {
  default_backend = "docker"
  owner           = "bench"
}
resource "sandboxio_sandbox" "s" {
  count     = %d
  image     = %q
  resources = { cpu = 0.5, memory_mb = 256 }
}
`, n, image)
}

func nothings(n int) string {
	return fmt.Sprintf(`
terraform {
  required_providers {
    null = { source = "sandboxio/null" }
  }
}
resource "null_thing" "s" {
  count = %d
  image = %q
}
`, n, image)
}

// terraform times the three phases of a configuration. Plan is that of an applied,
// unchanged configuration: a refresh.
func terraform(ctx context.Context, cli, dir, name, config string) (t timing, err error) {
	work := filepath.Join(dir, name)
	if err := os.MkdirAll(work, 0o700); err != nil {
		return t, err
	}
	defer os.RemoveAll(work)
	if err := os.WriteFile(filepath.Join(work, "main.tf"), []byte(config), 0o600); err != nil {
		return t, err
	}
	args := [][]string{
		{"apply", "-auto-approve"}, {"plan", "-detailed-exitcode"}, {"destroy", "-auto-approve"},
	}
	for i := range phases {
		start := time.Now()
		cmd := exec.CommandContext(ctx, cli, append(args[i], "-input=false", "-no-color")...)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(dir, "bench.tfrc"), "CHECKPOINT_DISABLE=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			return t, fmt.Errorf("%s: %s: %w\n%s", name, phases[i], err, out)
		}
		t[i] = time.Since(start).Seconds()
	}
	return t, nil
}
