// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore/contract"
)

const busybox = "sandboxio-test/busybox:1"

var makeImage = sync.OnceValue(func() error {
	out, err := exec.Command("../../../../scripts/ensure-image.sh").CombinedOutput()
	if err != nil {
		return errors.New(string(out))
	}
	return nil
})

// realEngine returns a client of the engine on which the tests run.
func realEngine(t *testing.T) *client.Client {
	t.Helper()
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	if _, err := api.Ping(t.Context()); err != nil {
		if os.Getenv("SANDBOXIO_REQUIRE_ENGINE") == "1" {
			t.Fatal(err)
		}
		t.Skipf("no Docker Engine answers: %v", err)
	}
	if err := makeImage(); err != nil {
		t.Fatalf("making the test image: %v", err)
	}
	return api
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func busyboxSpec(t *testing.T) sandboxcore.Spec {
	return sandboxcore.Spec{Owner: "docker-test-" + randomHex(4) + t.Name()[:4], Template: sandboxcore.Template{Image: busybox}}
}

func newBackend(t *testing.T) *Backend {
	b := New("")
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func create(t *testing.T, b *Backend, spec sandboxcore.Spec) sandboxcore.Sandbox {
	t.Helper()
	sandbox, err := sandboxcore.Create(t.Context(), b, spec, func(sandboxcore.Warning) {})
	noError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		noError(t, sandbox.Kill(ctx))
	})
	return sandbox
}

func run(t *testing.T, sandbox sandboxcore.Sandbox, argv ...string) string {
	t.Helper()
	result, err := sandbox.Exec(t.Context(), sandboxcore.Command{Argv: argv})
	noError(t, err)
	if !result.OK() {
		t.Fatalf("%v: exit code %d: %s", argv, result.ExitCode, result.Stderr)
	}
	return strings.TrimSpace(result.Stdout)
}

// importImage makes an image of files, with changes in Dockerfile syntax.
func importImage(t *testing.T, api *client.Client, files map[string][]byte, changes ...string) string {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for name, content := range files {
		noError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}))
		_, err := w.Write(content)
		noError(t, err)
	}
	noError(t, w.Close())
	ref := "sandboxio-test/" + randomHex(6) + ":1"
	stream, err := api.ImageImport(t.Context(), image.ImportSource{Source: &archive, SourceName: "-"}, ref, image.ImportOptions{Changes: changes})
	noError(t, err)
	_, err = io.Copy(io.Discard, stream)
	noError(t, err)
	noError(t, stream.Close())
	t.Cleanup(func() {
		_, err := api.ImageRemove(context.Background(), ref, image.RemoveOptions{Force: true})
		noError(t, err)
	})
	return ref
}

func TestContract(t *testing.T) {
	api := realEngine(t)
	contract.Run(t, contract.Harness{
		Open:         func(*testing.T) sandboxcore.Backend { return New("") },
		Spec:         sandboxcore.Spec{Template: sandboxcore.Template{Image: busybox}},
		MissingImage: "sandboxio-test/none:1",
		Shell:        []string{"sh", "-c"},
		Stop: func(t *testing.T, id string) {
			noError(t, api.ContainerStop(t.Context(), id, container.StopOptions{}))
		},
		Pause: func(t *testing.T, id string) { noError(t, api.ContainerPause(t.Context(), id)) },
		Unmanaged: func(t *testing.T) (string, func() bool) {
			// A label that looks like ours is not enough.
			made, err := api.ContainerCreate(t.Context(), &container.Config{
				Image: busybox, Cmd: []string{"sleep", "1000"}, Labels: map[string]string{labelManaged: "true", "managed": "true"},
			}, nil, nil, nil, "")
			noError(t, err)
			t.Cleanup(func() {
				noError(t, api.ContainerRemove(context.Background(), made.ID, container.RemoveOptions{Force: true}))
			})
			return made.ID, func() bool {
				_, err := api.ContainerInspect(t.Context(), made.ID)
				return err == nil
			}
		},
		OverLimit: sandboxcore.Some(10000.0),
	})
}

// staticProgram builds a Go program that prints its arguments, for images with nothing else.
func staticProgram(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	source := "package main\n\nimport \"os\"\n\nfunc main() {\n\tfor _, a := range os.Args[1:] {\n\t\t_, _ = os.Stdout.WriteString(a + \"\\n\")\n\t}\n}\n"
	noError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600))
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "app"), filepath.Join(dir, "main.go"))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(dir, "app"))
	noError(t, err)
	return program
}

func TestImageWithoutShellOrCommand(t *testing.T) {
	api := realEngine(t)
	spec := busyboxSpec(t)
	spec.Template.Image = importImage(t, api, map[string][]byte{"app": staticProgram(t)})
	sandbox := create(t, newBackend(t), spec)
	if got := run(t, sandbox, "/app", "x", "y z"); got != "x\ny z" {
		t.Errorf("%q", got)
	}
	noError(t, sandbox.Files().Write(t.Context(), "/f", []byte("x"), 0o600))
	if got, err := sandbox.Files().Read(t.Context(), "/f"); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := sandbox.Exec(t.Context(), sandboxcore.Command{Argv: []string{"sh"}}); !sandboxcore.Is(err, sandboxcore.KindCannotStart) {
		t.Errorf("%v, want CannotStart", err)
	}
}

// What an image brings along is never taken for what was asked.
func TestImageMetadataIsNoDrift(t *testing.T) {
	api := realEngine(t)
	content := busyboxProgram(t)
	spec := busyboxSpec(t)
	spec.Template.Image = importImage(t, api, map[string][]byte{"bin/busybox": content, "work/.keep": nil, "data/.keep": nil},
		"ENTRYPOINT [\"/bin/busybox\",\"false\"]", "CMD [\"x\"]", "USER 1000:1000", "ENV FROM_IMAGE=1", "LABEL from.image=1", "WORKDIR /work", "EXPOSE 80", "VOLUME /data")
	before := volumes(t)
	b := newBackend(t)
	sandbox, err := sandboxcore.Create(t.Context(), b, spec, func(sandboxcore.Warning) {})
	noError(t, err)
	info := sandbox.Info()
	if len(info.Env) != 0 || len(info.Labels) != 0 || info.User != "" || info.WorkingDir != "" || len(info.Command) != 0 || info.Network.Egress != sandboxcore.EgressDeny {
		t.Errorf("%+v", info)
	}
	if got := run(t, sandbox, "/bin/busybox", "sh", "-c", "/bin/busybox id -u; pwd; echo $FROM_IMAGE"); got != "1000\n/work\n1" {
		t.Errorf("%q: the image's user, folder and environment are in effect", got)
	}
	noError(t, sandbox.Kill(t.Context()))
	if after := volumes(t); after != before {
		t.Errorf("%d volumes before, %d after", before, after)
	}
}

// busyboxProgram is the program of the test image, which the host needn't have.
func busyboxProgram(t *testing.T) []byte {
	t.Helper()
	made, err := exec.Command("docker", "create", busybox, "true").Output()
	noError(t, err)
	id := strings.TrimSpace(string(made))
	defer func() { noError(t, exec.Command("docker", "rm", id).Run()) }()
	path := filepath.Join(t.TempDir(), "busybox")
	noError(t, exec.Command("docker", "cp", id+":/bin/busybox", path).Run())
	content, err := os.ReadFile(path)
	noError(t, err)
	return content
}

// volumes counts those that nothing uses, but for the guest's.
func volumes(t *testing.T) int {
	t.Helper()
	list, err := exec.Command("docker", "volume", "ls", "-q", "--filter", "dangling=true").Output()
	noError(t, err)
	count := 0
	for name := range strings.FieldsSeq(string(list)) {
		if !strings.HasPrefix(name, "sandboxio-guest-") {
			count++
		}
	}
	return count
}

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
	// 600 processes are more than the cap of 512.
	result, err = sandbox.Exec(t.Context(), sandboxcore.Command{Argv: []string{"sh", "-c", "for i in $(seq 600); do sleep 5 & done; wait"}, Timeout: time.Minute})
	noError(t, err)
	if !strings.Contains(result.Stderr, "fork") {
		t.Errorf("600 processes were made: %+v", result)
	}
}

func TestEgressNetworkIsSharedClosedAndGone(t *testing.T) {
	api := realEngine(t)
	b := newBackend(t)
	spec := busyboxSpec(t)
	spec.Network.Egress = sandboxcore.EgressAllow
	spec.Command = []string{"nc", "-ll", "-p", "8080", "-e", "echo", "hi"}
	one, two := create(t, b, spec), create(t, b, spec)
	for _, target := range []sandboxcore.Sandbox{one, two} {
		inspected, err := api.ContainerInspect(t.Context(), target.ID())
		noError(t, err)
		address := inspected.NetworkSettings.Networks[egressName].IPAddress
		if target == one {
			// Positive control: the server answers where it should.
			if got := run(t, one, "nc", "-w", "2", address, "8080"); got != "hi" {
				t.Fatalf("itself: %q", got)
			}
			continue
		}
		result, err := one.Exec(t.Context(), sandboxcore.Command{Argv: []string{"nc", "-w", "2", address, "8080"}, Timeout: 10 * time.Second})
		if err == nil && result.OK() {
			t.Errorf("a sibling answered: %+v", result)
		}
	}
	noError(t, one.Kill(t.Context()))
	if _, err := api.ContainerInspect(t.Context(), two.ID()); err != nil {
		t.Error(err)
	}
	noError(t, two.Kill(t.Context()))
	conn, err := b.connect(t.Context())
	noError(t, err)
	if id, err := conn.oldestEgress(t.Context()); err != nil || id != "" {
		t.Errorf("the shared network %s is left, %v", id, err)
	}
}

// Sandboxes that come while others go meet a network that vanishes under them.
func TestEgressNetworkUnderChurn(t *testing.T) {
	realEngine(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			b := New("") // as separate processes: nothing shared but the engine
			defer b.Close()
			spec := busyboxSpec(t)
			spec.Network.Egress = sandboxcore.EgressAllow
			for range 3 {
				sandbox, err := sandboxcore.Create(t.Context(), b, spec, func(sandboxcore.Warning) {})
				if err != nil {
					t.Error(err)
					return
				}
				if err := sandbox.Kill(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

func TestFailedStartLeavesNothing(t *testing.T) {
	api := realEngine(t)
	b := newBackend(t)
	spec := busyboxSpec(t)
	spec.WorkingDir = "/etc/passwd/x" // the engine can't make it a folder
	_, err := sandboxcore.Create(t.Context(), b, spec, func(sandboxcore.Warning) {})
	if err == nil {
		t.Fatal("it started")
	}
	found, err := api.ContainerList(t.Context(), container.ListOptions{All: true, Filters: roleFilter(roleSandbox, labelOwner+"="+spec.Owner)})
	if err != nil || len(found) != 0 {
		t.Errorf("%d containers are left, %v", len(found), err)
	}
}

func TestAskedSurvivesTheLabel(t *testing.T) {
	spec := sandboxcore.Spec{
		Template: sandboxcore.Template{Image: "i"}, TTL: time.Hour, Env: map[string]string{"SECRET": "s3cr3t-value"},
		Readiness: sandboxcore.Readiness{Exec: sandboxcore.TupleOf("a", "b"), Interval: time.Second, Timeout: time.Minute},
	}
	labels, err := sandboxLabels(spec, time.Time{})
	noError(t, err)
	if strings.Contains(labels[labelSpec], "s3cr3t-value") {
		t.Error("a label holds a value of env")
	}
	var was asked
	noError(t, json.Unmarshal([]byte(labels[labelSpec]), &was))
	if was.readiness() != spec.Readiness || was.TTL != spec.TTL || was.Image != "i" {
		t.Errorf("%+v", was)
	}
}
