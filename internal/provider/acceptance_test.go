// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore/backend"
)

// These tests run the real CLI on a real engine (TF_ACC=1). The engine is reached
// beside the provider through the docker CLI, as a user would.

const image = "sandboxio-test/busybox:1"

var factories = map[string]func() (tfprotov6.ProviderServer, error){
	"sandboxio": providerserver.NewProtocol6WithError(provider.New(backend.All())()),
}

var makeImage = sync.OnceValue(func() error {
	if out, err := exec.Command("../../scripts/ensure-image.sh").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// accTest is one acceptance test with an owner of its own, so that it sees only what
// it made.
type accTest struct {
	*testing.T
	owner string
}

func newAccTest(t *testing.T) accTest {
	t.Helper()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance tests need TF_ACC=1")
	}
	if err := makeImage(); err != nil {
		t.Fatal(err)
	}
	return accTest{t, "acc/" + t.Name()}
}

func (a accTest) config(body string) string {
	return fmt.Sprintf("provider \"sandboxio\" {\n  default_backend = \"docker\"\n  owner = %q\n}\n%s", a.owner, body)
}

// containers are the ids of all that the test's owner has.
func (a accTest) containers() []string {
	a.Helper()
	return strings.Fields(docker(a.T, "ps", "-aq", "--no-trunc", "--filter", "label=sandboxio.managed=true", "--filter", "label=sandboxio.owner="+a.owner))
}

func (a accTest) one() string {
	a.Helper()
	ids := a.containers()
	if len(ids) != 1 {
		a.Fatalf("%d containers, want one", len(ids))
	}
	return ids[0]
}

func (a accTest) run(steps ...resource.TestStep) {
	a.Helper()
	resource.Test(a.T, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps:                    steps,
		CheckDestroy: func(*terraform.State) error {
			if left := a.containers(); len(left) > 0 {
				return fmt.Errorf("left: %v", left)
			}
			return nil
		},
	})
}

// sandbox is the configuration of one sandbox with these lines in it.
func sandbox(lines string) string {
	return fmt.Sprintf("resource \"sandboxio_sandbox\" \"s\" {\n  image = %q\n%s\n}\n", image, lines)
}

func execIn(lines string) string {
	return fmt.Sprintf("data \"sandboxio_exec\" \"e\" {\n  sandbox_id = sandboxio_sandbox.s.id\n%s\n}\n", lines)
}

const (
	sandboxAddress = "sandboxio_sandbox.s"
	execAddress    = "data.sandboxio_exec.e"
)

func known(address, attribute string, value knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(address, tfjsonpath.New(attribute), value)
}

func planAction(action plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(sandboxAddress, action)}}
}

func TestAccBasic(t *testing.T) {
	a := newAccTest(t)
	config := a.config(sandbox("env = { GREETING = \"hello\" }") + execIn("script = \"echo $GREETING; echo err >&2; exit 7\""))
	after := func(attribute string, value knownvalue.Check) plancheck.PlanCheck {
		return plancheck.ExpectKnownValue(sandboxAddress, tfjsonpath.New(attribute), value)
	}
	a.run(
		resource.TestStep{
			Config: config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				// The first plan, when nothing exists.
				after("isolation", knownvalue.StringExact("container")),
				after("backend", knownvalue.StringExact("docker")),
				after("resources", knownvalue.ObjectPartial(map[string]knownvalue.Check{"cpu": knownvalue.Float64Exact(1), "memory_mb": knownvalue.Int64Exact(1024)})),
				after("network", knownvalue.ObjectExact(map[string]knownvalue.Check{
					"egress": knownvalue.StringExact("deny"), "allow": knownvalue.ListSizeExact(0), "ingress_ports": knownvalue.ListSizeExact(0),
				})),
				after("enforcement", knownvalue.ObjectPartial(map[string]knownvalue.Check{"egress": knownvalue.StringExact("no network interface")})),
				after("capabilities", knownvalue.ListPartial(map[int]knownvalue.Check{0: knownvalue.StringExact("RUN_COMMAND")})),
				after("image_id", knownvalue.StringRegexp(regexp.MustCompile("^sha256:"))),
				plancheck.ExpectSensitiveValue(sandboxAddress, tfjsonpath.New("env")),
			}},
			ConfigStateChecks: []statecheck.StateCheck{
				known(execAddress, "exit_code", knownvalue.Int64Exact(7)),
				known(execAddress, "ok", knownvalue.Bool(false)),
				known(execAddress, "stdout", knownvalue.StringExact("hello\n")),
				known(execAddress, "stderr", knownvalue.StringExact("err\n")),
				known(execAddress, "stdout_base64", knownvalue.Null()),
				known(execAddress, "stdout_truncated", knownvalue.Bool(false)),
				known(sandboxAddress, "id", knownvalue.StringRegexp(regexp.MustCompile("^docker/[0-9a-f]{64}$"))),
				known(sandboxAddress, "state", knownvalue.StringExact("running")),
			},
		},
		resource.TestStep{Config: config, PlanOnly: true},
	)
}

func TestAccUpdateInPlaceAndBack(t *testing.T) {
	a := newAccTest(t)
	id := ""
	limits := func(want string) func(*terraform.State) error {
		return func(*terraform.State) error {
			if a.one() != id && id != "" {
				return fmt.Errorf("%s became %s", id, a.one())
			}
			id = a.one()
			if got := docker(t, "inspect", "-f", "{{.HostConfig.NanoCpus}} {{.HostConfig.Memory}} {{.HostConfig.MemorySwap}}", id); got != want {
				return fmt.Errorf("limits %s, want %s", got, want)
			}
			return nil
		}
	}
	step := func(lines, want string, action plancheck.ResourceActionType) resource.TestStep {
		return resource.TestStep{Config: a.config(sandbox(lines)), ConfigPlanChecks: planAction(action), Check: limits(want)}
	}
	const update = plancheck.ResourceActionUpdate
	a.run(
		step("resources = { cpu = 0.5, memory_mb = 128 }", "500000000 134217728 134217728", plancheck.ResourceActionCreate),
		step("resources = { cpu = 1.5, memory_mb = 128 }", "1500000000 134217728 134217728", update),
		step("resources = { cpu = 1.5, memory_mb = 512 }", "1500000000 536870912 536870912", update), // beyond the old swap limit
		step("resources = { cpu = 1.5, memory_mb = 64 }", "1500000000 67108864 67108864", update),
		step("resources = { memory_mb = 64 }", "1000000000 67108864 67108864", update),
		step("", "1000000000 1073741824 1073741824", update),
		step("timeouts = { delete = \"1m\" }", "1000000000 1073741824 1073741824", update),
	)
}

// What is only written otherwise changes nothing outside.
func TestAccWrittenOtherwise(t *testing.T) {
	a := newAccTest(t)
	id := ""
	same := func(*terraform.State) error {
		if id == "" {
			id = a.one()
		}
		if now := a.one(); now != id {
			return fmt.Errorf("%s became %s", id, now)
		}
		return nil
	}
	step := func(lines string, action plancheck.ResourceActionType) resource.TestStep {
		return resource.TestStep{Config: a.config(sandbox(lines)), ConfigPlanChecks: planAction(action), Check: same}
	}
	a.run(
		step(`ttl = "60m"`, plancheck.ResourceActionCreate),
		step(`ttl = "1h"`, plancheck.ResourceActionNoop),
		step("ttl = \"1h\"\ncommand = []\nenv = {}\nlabels = {}\ndocker = { read_only = false }", plancheck.ResourceActionUpdate),
		step("ttl = \"1h\"\nnetwork = { egress = \"deny\" }\nresources = { cpu = 1.0 }\nbackend = \"docker\"", plancheck.ResourceActionUpdate),
		step("ttl = \"3600s\"\nrequire_isolation = \"container\"", plancheck.ResourceActionUpdate),
		step(`ttl = "60m"`, plancheck.ResourceActionUpdate),
	)
}

func TestAccReplaceNamesTheAttribute(t *testing.T) {
	a := newAccTest(t)
	a.run(
		resource.TestStep{Config: a.config(sandbox("labels = { a = \"1\" }"))},
		resource.TestStep{Config: a.config(sandbox("labels = { a = \"2\" }")), ConfigPlanChecks: planAction(plancheck.ResourceActionReplace)},
		resource.TestStep{Config: a.config(sandbox("labels = { a = \"2\" }\n network = { egress = \"allow\" }")), ConfigPlanChecks: planAction(plancheck.ResourceActionReplace)},
		resource.TestStep{Config: a.config(sandbox("labels = { a = \"2\" }\n docker = { read_only = true }")), ConfigPlanChecks: planAction(plancheck.ResourceActionReplace)},
	)
	if networks := docker(t, "network", "ls", "-q", "--filter", "label=sandboxio.managed"); networks != "" {
		t.Errorf("networks left: %s", networks)
	}
}

func TestAccDisappears(t *testing.T) {
	a := newAccTest(t)
	a.run(
		resource.TestStep{Config: a.config(sandbox(""))},
		resource.TestStep{
			PreConfig: func() { docker(t, "rm", "-f", a.one()) },
			Config:    a.config(sandbox("")), ConfigPlanChecks: planAction(plancheck.ResourceActionCreate),
		},
		resource.TestStep{ // gone is no error for a destroy
			PreConfig: func() { docker(t, "rm", "-f", a.one()) },
			Config:    a.config(sandbox("")), Destroy: true,
		},
	)
}

func TestAccCapsChangedByHandAreHealed(t *testing.T) {
	a := newAccTest(t)
	config := a.config(sandbox(""))
	a.run(
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() { docker(t, "update", "--memory", "2g", "--memory-swap", "2g", "--cpus", "2", a.one()) },
			Config:    config, ConfigPlanChecks: planAction(plancheck.ResourceActionUpdate),
		},
		resource.TestStep{Config: config, PlanOnly: true},
		resource.TestStep{ // what has no attribute of its own shows in enforcement
			PreConfig: func() { docker(t, "update", "--pids-limit", "100", a.one()) },
			Config:    config, ConfigPlanChecks: planAction(plancheck.ResourceActionUpdate),
			Check: func(*terraform.State) error {
				if got := docker(t, "inspect", "-f", "{{.HostConfig.PidsLimit}}", a.one()); got != "512" {
					return fmt.Errorf("pids limit %s", got)
				}
				return nil
			},
		},
		resource.TestStep{Config: config, PlanOnly: true},
	)
}

func TestAccImport(t *testing.T) {
	a := newAccTest(t)
	lines := `
  name        = "imported"
  command     = ["sh", "-c", "sleep 1000"]
  env         = { A = "1" }
  labels      = { team = "a" }
  ttl         = "1h"
  working_dir = "/tmp"
  user        = "nobody"
  readiness   = { exec = ["true"], timeout = "20s" }
  docker      = { read_only = true }
  resources   = { cpu = 0.5 }`
	config := a.config(sandbox(lines))
	verified := func(id func(*terraform.State) (string, error)) resource.TestStep {
		return resource.TestStep{ResourceName: sandboxAddress, ImportState: true, ImportStateVerify: true, ImportStateIdFunc: id}
	}
	a.run(
		resource.TestStep{Config: config},
		verified(func(*terraform.State) (string, error) { return "docker/" + a.one(), nil }),
		verified(func(*terraform.State) (string, error) { return "docker/" + a.one()[:12], nil }),
		verified(func(*terraform.State) (string, error) { return "docker/imported", nil }),
		verified(func(*terraform.State) (string, error) {
			return "docker" + docker(t, "inspect", "-f", "{{.Name}}", a.one()), nil
		}),
		resource.TestStep{
			ResourceName: sandboxAddress, ImportState: true, ImportStateKind: resource.ImportBlockWithID, // checks that the plan is empty
			ImportStateIdFunc: func(*terraform.State) (string, error) { return "docker/" + a.one(), nil },
		},
		resource.TestStep{ResourceName: sandboxAddress, ImportState: true, ImportStateId: "imported", ExpectError: regexp.MustCompile("not the id of a sandbox")},
		resource.TestStep{ResourceName: sandboxAddress, ImportState: true, ImportStateId: "docker/none", ExpectError: regexp.MustCompile("NotFound")},
	)
}

// Each refusal is at plan, with the line that asks for it, and makes nothing.
func TestAccRejectionsAtPlan(t *testing.T) {
	a := newAccTest(t)
	refused := func(config, line, says string) resource.TestStep {
		// The CLI wraps what is said, and shows the line.
		pattern := `(?s)on \S+ line \d+.*` + regexp.QuoteMeta(line) + `.*` + strings.ReplaceAll(regexp.QuoteMeta(says), " ", `\s+`)
		return resource.TestStep{Config: a.config(config), PlanOnly: true, ExpectError: regexp.MustCompile(pattern)}
	}
	lines := func(l, says string) resource.TestStep { return refused(sandbox(l), l, says) }
	a.run(
		lines(`network = { egress = "learn" }`, "not available in this version"),
		lines(`network = { egress = "allow", allow = ["example.org"] }`, "allow all or nothing"),
		lines(`network = { ingress_ports = [8080] }`, "which this version doesn't make yet"),
		lines(`require_isolation = "unknown"`, "can't be required"),
		lines(`require_isolation = "microvm"`, "container (runc)"),
		lines(`resources = { cpu = 1000 }`, "1000 cores are asked for"),
		lines(`resources = { cpu = 0 }`, "greater than zero"),
		lines(`resources = { cpu = -1 }`, "greater than zero"),
		lines(`resources = { memory_mb = 0 }`, "greater than zero"),
		lines(`resources = { memory_mb = -1 }`, "greater than zero"),
		lines(`resources = { disk_mb = 512 }`, "can't enforce a disk cap here"),
		lines(`resources = { gpu = "T4" }`, "no gpu runtime is registered"),
		lines(`labels = { "sandboxio.owner" = "x" }`, "is reserved"),
		lines(`template_id = "sha256:0"`, "can't both be set"),
		refused("resource \"sandboxio_sandbox\" \"s\" {\n}\n", `resource "sandboxio_sandbox" "s"`, "nothing to make a sandbox from"),
	)
	if made := a.containers(); len(made) > 0 {
		t.Errorf("made %v", made)
	}
}

func TestAccMainProcessDies(t *testing.T) {
	a := newAccTest(t)
	a.run(
		resource.TestStep{
			Config:      a.config(sandbox(`command = ["sh", "-c", "echo boom >&2; exit 3"]`)),
			ExpectError: regexp.MustCompile(`(?s)ended\s+with\s+exit\s+code\s+3.*boom`),
		},
		resource.TestStep{
			Config:      a.config(sandbox(`command = ["sleep", "1000"]` + "\n" + `readiness = { exec = ["sh", "-c", "echo not yet; exit 9"], timeout = "1s" }`)),
			ExpectError: regexp.MustCompile(`(?s)not\s+ready\s+within\s+1s.*exit\s+code\s+9\s+not\s+yet`),
		},
		resource.TestStep{Config: a.config(sandbox(`command = ["nc", "-ll", "-p", "8080", "-e", "true"]` + "\n" + `readiness = { tcp_port = 8080, timeout = "20s" }`))},
		resource.TestStep{
			Config:      a.config(sandbox(`command = ["sleep", "1000"]` + "\n" + `readiness = { tcp_port = 81 }` + "\n" + `timeouts = { create = "3s" }`)),
			ExpectError: regexp.MustCompile(`(?s)Timeout\s+at\s+timeouts\.create.*timeouts = .*did\s+not\s+end\s+within\s+3s`),
		},
	)
}

func TestAccExec(t *testing.T) {
	a := newAccTest(t)
	result := func(lines string, checks ...statecheck.StateCheck) resource.TestStep {
		return resource.TestStep{Config: a.config(sandbox("") + execIn(lines)), ConfigStateChecks: checks}
	}
	fails := func(lines, says string) resource.TestStep {
		return resource.TestStep{Config: a.config(sandbox("") + execIn(lines)), ExpectError: regexp.MustCompile("(?s)" + strings.ReplaceAll(says, " ", `\s+`))}
	}
	a.run(
		result(`command = ["printf", "a\\377\\000b"]`,
			known(execAddress, "stdout", knownvalue.StringExact("a\uFFFD\uFFFDb")),
			known(execAddress, "stdout_base64", knownvalue.StringExact(base64.StdEncoding.EncodeToString([]byte("a\xff\x00b")))),
		),
		result("script = \"pwd; cat; echo $A; id -u\"\n working_dir = \"/etc\"\n stdin = \"in\\n\"\n env = { A = \"x\" }\n user = \"65534\"",
			known(execAddress, "stdout", knownvalue.StringExact("/etc\nin\nx\n65534\n")),
		),
		result("script = \"head -c 100000 /dev/zero | tr '\\\\0' x\"\n max_output_bytes = 10",
			known(execAddress, "stdout", knownvalue.StringExact("xxxxxxxxxx")), known(execAddress, "stdout_truncated", knownvalue.Bool(true)),
			known(execAddress, "stderr_truncated", knownvalue.Bool(false)), known(execAddress, "exit_code", knownvalue.Int64Exact(0)),
		),
		result("script = \"exit 126\"", known(execAddress, "exit_code", knownvalue.Int64Exact(126)), known(execAddress, "stdout", knownvalue.StringExact(""))),
		result("script = \"print\"\n interpreter = [\"echo\"]", known(execAddress, "stdout", knownvalue.StringExact("print\n"))),
		fails(`command = ["no-such-program"]`, "CannotStart.*no-such-program.*not found in PATH"),
		fails("command = [\"true\"]\n working_dir = \"/none\"", "CannotStart.*/none"),
		fails("command = [\"true\"]\n user = \"nosuchuser\"", "CannotStart.*nosuchuser"),
		fails("script = \"sleep 100\"\n timeout = \"1s\"", "did not end within 1s"),
		fails("script = \"echo why >&2; exit 5\"\n fail_on_error = true", "exited with code 5.*why"),
		fails("script = \"true\"\n command = [\"true\"]", "command,script|Invalid Attribute Combination"),
		fails("script = \"true\"\n timeout = \"x\"", "not a duration"),
		result("script = \"true\"", known(execAddress, "ok", knownvalue.Bool(true))),
	)
}

func TestAccExecWhereNothingIs(t *testing.T) {
	a := newAccTest(t)
	a.run(
		resource.TestStep{
			Config:      a.config("data \"sandboxio_exec\" \"e\" {\n sandbox_id = \"docker/none\"\n command = [\"true\"]\n}\n"),
			ExpectError: regexp.MustCompile("NotFound"),
		},
		resource.TestStep{
			Config:      a.config("data \"sandboxio_exec\" \"e\" {\n sandbox_id = \"none\"\n command = [\"true\"]\n}\n"),
			ExpectError: regexp.MustCompile("not the id of a sandbox"),
		},
	)
}

func TestAccTemplate(t *testing.T) {
	a := newAccTest(t)
	config := func(lines string) string {
		return a.config(fmt.Sprintf("resource \"sandboxio_template\" \"t\" {\n  image = %q\n%s\n}\nresource \"sandboxio_sandbox\" \"s\" {\n  template_id = sandboxio_template.t.template_id\n}\n", image, lines))
	}
	template := "sandboxio_template.t"
	a.run(
		resource.TestStep{
			Config: config(""),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectKnownValue(template, tfjsonpath.New("template_id"), knownvalue.StringRegexp(regexp.MustCompile("^sha256:"))),
				plancheck.ExpectKnownValue(sandboxAddress, tfjsonpath.New("image_id"), knownvalue.StringRegexp(regexp.MustCompile("^sha256:"))),
			}},
			ConfigStateChecks: []statecheck.StateCheck{known(template, "digest", knownvalue.Null()), known(template, "resources", knownvalue.Null())},
		},
		resource.TestStep{Config: config("pull_policy = \"never\""), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
			plancheck.ExpectResourceAction(template, plancheck.ResourceActionUpdate), plancheck.ExpectResourceAction(sandboxAddress, plancheck.ResourceActionNoop),
		}}},
		resource.TestStep{ResourceName: template, ImportState: true, ImportStateId: "docker/" + image, ImportStateVerify: true, ImportStateVerifyIgnore: []string{"pull_policy"}},
		resource.TestStep{
			Config:      a.config("resource \"sandboxio_template\" \"n\" {\n  image = \"sandboxio-test/none:1\"\n  pull_policy = \"never\"\n}\n"),
			ExpectError: regexp.MustCompile(`(?s)line \d+.*no\s+image`),
		},
	)
	if docker(t, "image", "ls", "-q", image) == "" {
		t.Error("destroying a template removed the image")
	}
}
