// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// These acceptance tests drive the CLI by hand: the testing library refreshes on its
// own between steps, and can't kill a provider.

// binaries is a folder with the provider built from this checkout, and a CLI
// configuration that uses it.
var binaries = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sandboxio-acc-")
	if err != nil {
		return "", err
	}
	binariesDir = dir
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "terraform-provider-sandboxio"), "../..").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	rc := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"sandboxio/sandboxio\" = %q\n  }\n  direct {}\n}\n", dir)
	return dir, os.WriteFile(filepath.Join(dir, "dev.tfrc"), []byte(rc), 0o600)
})

// binariesDir is what is to be removed at the end: set where binaries was needed.
var binariesDir string

func TestMain(m *testing.M) {
	code := m.Run()
	if binariesDir != "" {
		_ = os.RemoveAll(binariesDir)
	}
	os.Exit(code)
}

// cli is a configuration in a folder of its own.
type cli struct {
	accTest
	dir string
}

func newCLI(t *testing.T, body string) cli {
	t.Helper()
	a := newAccTest(t)
	c := cli{a, t.TempDir()}
	c.write(body)
	t.Cleanup(func() {
		c.terraform(0, "destroy", "-auto-approve")
		if left := c.containers(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
	return c
}

func (c cli) write(body string) {
	c.Helper()
	c.writeProvider("", body)
}

// writeProvider writes body under a provider with these lines in it.
func (c cli) writeProvider(lines, body string) {
	c.Helper()
	config := "terraform {\n  required_providers {\n    sandboxio = { source = \"sandboxio/sandboxio\" }\n  }\n}\n" +
		strings.Replace(c.config(body), "default_backend", lines+"\n  default_backend", 1)
	if err := os.WriteFile(filepath.Join(c.dir, "main.tf"), []byte(config), 0o600); err != nil {
		c.Fatal(err)
	}
}

func (c cli) command(args ...string) *exec.Cmd {
	c.Helper()
	dir, err := binaries()
	if err != nil {
		c.Fatal(err)
	}
	program := os.Getenv("TF_ACC_TERRAFORM_PATH")
	if program == "" {
		program = "terraform"
	}
	cmd := exec.Command(program, append(args, "-no-color", "-input=false")...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(dir, "dev.tfrc"), "CHECKPOINT_DISABLE=1")
	return cmd
}

// terraform runs the CLI, expects this exit code, and returns what it printed.
func (c cli) terraform(code int, args ...string) string {
	c.Helper()
	cmd := c.command(args...)
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		c.Fatalf("%v: exit code %d, want %d: %v\n%s", args, got, code, err, out)
	}
	return string(out)
}

// Whatever was done to the sandbox outside, an exec that hangs on it breaks neither
// plan nor apply nor destroy.
func TestAccStoppedAndPausedAreHealedInPlace(t *testing.T) {
	for state, do := range map[string]string{"stopped": "stop", "paused": "pause", "killed": "kill"} {
		t.Run(state, func(t *testing.T) {
			c := newCLI(t, sandbox("")+execIn("command = [\"echo\", \"hi\"]"))
			c.terraform(0, "apply", "-auto-approve")
			id := c.one()
			docker(t, do, id)
			if plan := c.terraform(2, "plan", "-detailed-exitcode"); !strings.Contains(plan, "updated in-place") || !strings.Contains(plan, "0 to add, 1 to change, 0 to destroy") {
				t.Errorf("plan:\n%s", plan)
			}
			c.terraform(0, "apply", "-auto-approve")
			if c.one() != id || docker(t, "inspect", "-f", "{{.State.Status}}", id) != "running" {
				t.Errorf("%s is not running again", id)
			}
			c.terraform(0, "plan", "-detailed-exitcode")
			docker(t, do, id)
			c.terraform(0, "destroy", "-auto-approve")
			if left := c.containers(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestAccUnreachableEngineKeepsState(t *testing.T) {
	c := newCLI(t, sandbox(""))
	c.terraform(0, "apply", "-auto-approve")
	before, err := os.ReadFile(filepath.Join(c.dir, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"plan"}, {"apply", "-auto-approve"}, {"destroy", "-auto-approve"}} {
		cmd := c.command(args...)
		cmd.Env = append(cmd.Env, "DOCKER_HOST=unix:///none/docker.sock")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "BackendUnavailable") || !strings.Contains(string(out), "/none/docker.sock") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	if after, err := os.ReadFile(filepath.Join(c.dir, "terraform.tfstate")); err != nil || string(after) != string(before) {
		t.Errorf("the state changed: %v\n%s", err, after)
	}
}

// The provider's configuration depends on something that doesn't exist yet: the plan
// works, and contacts nothing.
func TestAccUnknownProviderConfiguration(t *testing.T) {
	c := newCLI(t, sandbox(""))
	host := docker(t, "context", "inspect", "-f", "{{.Endpoints.docker.Host}}")
	c.writeProvider("docker = { host = terraform_data.host.output }", sandbox("")+fmt.Sprintf("resource \"terraform_data\" \"host\" {\n  input = %q\n}\n", host))
	cmd := c.command("plan")
	cmd.Env = append(cmd.Env, "DOCKER_HOST=unix:///none/docker.sock") // no default either
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	c.terraform(0, "apply", "-auto-approve")
	c.terraform(0, "plan", "-detailed-exitcode")
}

// It depends on something that is made anew while the sandbox exists: the sandbox stays
// the same, is brought up to date, and what hangs on it waits for the apply.
func TestAccProviderConfigurationUnknownAgain(t *testing.T) {
	host := docker(t, "context", "inspect", "-f", "{{.Endpoints.docker.Host}}")
	c := newCLI(t, "")
	write := func(round int, lines string) {
		c.writeProvider("docker = { host = terraform_data.host.output }", fmt.Sprintf(
			"resource \"terraform_data\" \"host\" {\n  input = %q\n  triggers_replace = [%d]\n}\n", host, round)+sandbox(lines)+execIn("command = [\"true\"]"))
	}
	write(1, `ttl = "60m"`)
	c.terraform(0, "apply", "-auto-approve")
	id := c.one()
	for round, lines := range []string{`ttl = "1h"`, "ttl = \"1h\"\nresources = { cpu = 0.5 }"} {
		write(round+2, lines)
		if out := c.terraform(0, "apply", "-auto-approve"); !strings.Contains(out, "Not refreshed") {
			t.Errorf("nothing says that the sandbox was not looked at:\n%s", out)
		}
		if c.one() != id {
			t.Errorf("%s became %s", id, c.one())
		}
		c.terraform(0, "plan", "-detailed-exitcode")
	}
	if cpus := docker(t, "inspect", "-f", "{{.HostConfig.NanoCpus}}", id); cpus != "500000000" {
		t.Errorf("the cap did not arrive: %s", cpus)
	}
}

// A sandbox whose time is over is made anew, and the plan says why.
func TestAccExpired(t *testing.T) {
	c := newCLI(t, sandbox(`ttl = "4s"`)+execIn("command = [\"true\"]"))
	c.terraform(0, "apply", "-auto-approve")
	id := c.one()
	docker(t, "wait", id)
	plan := c.terraform(2, "plan", "-detailed-exitcode")
	if !strings.Contains(plan, "Sandbox expired") || !strings.Contains(plan, "1 to add, 0 to change") {
		t.Errorf("plan:\n%s", plan)
	}
	c.write(sandbox(`ttl = "1h"`) + execIn("command = [\"true\"]"))
	c.terraform(0, "apply", "-auto-approve")
	if c.one() == id {
		t.Error("the expired sandbox was started again")
	}
	c.terraform(0, "plan", "-detailed-exitcode")
}

// Neither the log at its loudest nor an error tells what env and stdin hold.
func TestAccSecretsStayOutOfLogs(t *testing.T) {
	const secret = "hunter2"
	c := newCLI(t, sandbox(`env = { TOKEN = "`+secret+`" }`)+
		execIn(`command = ["no-such-program"]`+"\n"+`env = { TOKEN = "`+secret+`" }`+"\n"+`stdin = "`+secret+`"`))
	apply := c.command("apply", "-auto-approve")
	apply.Env = append(apply.Env, "TF_LOG=TRACE")
	out, err := apply.CombinedOutput()
	// The log has to be there for its silence to mean something.
	if err == nil || !strings.Contains(string(out), "[TRACE]") || !strings.Contains(string(out), "CannotStart") || !strings.Contains(string(out), "sandboxio_exec") {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, secret) {
			t.Errorf("told: %s", line)
		}
	}
	c.write(sandbox("")) // a destroy would run the command too
}

func fleet(n int) string {
	return fmt.Sprintf("resource \"sandboxio_sandbox\" \"s\" {\n  count = %d\n  image = %q\n  resources = { cpu = 0.5, memory_mb = 64 }\n}\n", n, image)
}

func TestAccTwentyAtOnce(t *testing.T) {
	c := newCLI(t, fleet(20))
	c.terraform(0, "apply", "-auto-approve", "-parallelism=10")
	if n := len(c.containers()); n != 20 {
		t.Errorf("%d containers", n)
	}
	c.terraform(0, "plan", "-detailed-exitcode", "-parallelism=10")
	c.terraform(0, "destroy", "-auto-approve", "-parallelism=10")
	if n := len(c.containers()); n != 0 {
		t.Errorf("%d containers are left", n)
	}
}

// The provider is killed with no time to clean up. Whatever is left is labelled, so it
// can be found, and the next apply needs no hand work.
func TestAccKilledProvider(t *testing.T) {
	c := newCLI(t, fleet(10))
	apply := c.command("apply", "-auto-approve")
	if err := apply.Start(); err != nil {
		t.Fatal(err)
	}
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for len(c.containers()) < 3 {
		if time.Now().After(deadline) {
			t.Fatal("no container in a minute")
		}
	}
	killed := 0
	for _, pid := range processesOf(t, filepath.Join(dir, "terraform-provider-sandboxio")) {
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if err := apply.Wait(); err == nil || killed == 0 {
		t.Errorf("killed %d providers, and the apply ended with %v", killed, err)
	}
	c.terraform(0, "apply", "-auto-approve")
	c.terraform(0, "plan", "-detailed-exitcode")
	c.terraform(0, "destroy", "-auto-approve")
	// What is left is what the killed provider, and the engine after it, had under way.
	// All of it carries the owner's label, so that reaping finds it.
	left := c.containers()
	for line := range strings.Lines(docker(t, "ps", "-a", "--filter", "name=sandboxio-", "--format", `{{.Names}}={{.Label "sandboxio.owner"}}`)) {
		if name, owner, _ := strings.Cut(strings.TrimSpace(line), "="); owner == "" {
			t.Errorf("%s has no owner", name)
		}
	}
	if len(left) > 10 {
		t.Errorf("%d are left of an apply of 10", len(left))
	}
	for _, id := range left {
		docker(t, "rm", "-f", "-v", id) // what reap is for
	}
}

// processesOf are the processes that run this program.
func processesOf(t *testing.T, program string) (pids []int) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == program {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestAccPlanShowsLineOfEachRefusal(t *testing.T) {
	c := newCLI(t, sandbox("resources = {\n  cpu = 1000\n}\nrequire_isolation = \"gvisor\""))
	shows := func(lines ...string) {
		t.Helper()
		plan := c.terraform(1, "plan")
		for _, line := range lines {
			if !regexp.MustCompile(`on main\.tf line \d+.*\n +\d+: *` + line).MatchString(plan) {
				t.Errorf("no line %q in\n%s", line, plan)
			}
		}
	}
	shows(`resources = \{`, `require_isolation = "gvisor"`)
	c.write(sandbox("labels = {\n  ok = \"1\"\n  \"sandboxio.role\" = \"x\"\n}\ncommand = [\n  \"\",\n]\nttl = \"soon\""))
	shows(`"sandboxio\.role" = "x"`, `"",`, `ttl = "soon"`)
	c.write("")
}

// Every example is applied, planned again without a change, and destroyed. The one of
// the provider alone names an engine's address, so it's only validated.
func TestAccExamples(t *testing.T) {
	newAccTest(t)
	var folders []string
	for _, pattern := range []string{"provider", "resources/*", "data-sources/*", "scenarios/*"} {
		found, err := filepath.Glob(filepath.Join("../../examples", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no examples in %s, %v", pattern, err)
		}
		folders = append(folders, found...)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			c := cli{accTest{t, ""}, t.TempDir()}
			files, err := filepath.Glob(filepath.Join(folder, "*.tf"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no configuration in %s, %v", folder, err)
			}
			declared := false
			for _, file := range files {
				content, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				declared = declared || strings.Contains(string(content), "required_providers")
				if err := os.WriteFile(filepath.Join(c.dir, filepath.Base(file)), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if !declared { // as the user's own configuration does
				source := "terraform {\n  required_providers {\n    sandboxio = { source = \"sandboxio/sandboxio\" }\n  }\n}\n"
				if err := os.WriteFile(filepath.Join(c.dir, "versions.tf"), []byte(source), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if filepath.Base(folder) == "provider" {
				validate := c.command("validate")
				validate.Args = slices.DeleteFunc(validate.Args, func(a string) bool { return a == "-input=false" })
				if out, err := validate.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
				return
			}
			t.Cleanup(func() { c.terraform(0, "destroy", "-auto-approve") })
			c.terraform(0, "apply", "-auto-approve")
			c.terraform(0, "plan", "-detailed-exitcode")
		})
	}
}
