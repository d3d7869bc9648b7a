// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/docker/cli/cli/config"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

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

// An image that was imported has no digest of a registry, so its id is what pins it.
func TestImageByItsID(t *testing.T) {
	realEngine(t)
	b := newBackend(t)
	info, err := b.LookupTemplate(t.Context(), sandboxcore.Template{Image: busybox})
	noError(t, err)
	spec := busyboxSpec(t)
	spec.Template.Image = info.ID
	if got := create(t, b, spec).Info(); got.TemplateID != info.ID || got.Template.Image != info.ID {
		t.Errorf("%+v", got)
	}
}

// imageEngine is an engine of which only images are asked.
type imageEngine struct {
	engine
	has          map[string]bool
	architecture string
	pulls        []string
}

func (e *imageEngine) ImageInspect(_ context.Context, ref string, _ ...client.ImageInspectOption) (image.InspectResponse, error) {
	if !e.has[ref] {
		return image.InspectResponse{}, errdefs.ErrNotFound
	}
	return image.InspectResponse{ID: "sha256:" + strings.Repeat("0", 64), Architecture: e.architecture}, nil
}

func (e *imageEngine) ImagePull(_ context.Context, ref string, _ image.PullOptions) (io.ReadCloser, error) {
	e.pulls = append(e.pulls, ref)
	return nil, errors.New("unreachable")
}

func TestRegistryIsContactedOnlyForWhatIsMissing(t *testing.T) {
	config.SetDir(t.TempDir())
	t.Cleanup(func() { config.SetDir("") })
	const registry = "registry.example.org/a:1"
	id := "sha256:" + strings.Repeat("a", 64)
	for name, test := range map[string]struct {
		has      map[string]bool
		template sandboxcore.Template
		policy   sandboxcore.PullPolicy
		pulls    int
	}{
		"there":           {map[string]bool{registry: true}, sandboxcore.Template{Image: registry}, sandboxcore.PullMissing, 0},
		"missing":         {nil, sandboxcore.Template{Image: registry}, sandboxcore.PullMissing, 1},
		"there, always":   {map[string]bool{registry: true}, sandboxcore.Template{Image: registry}, sandboxcore.PullAlways, 1},
		"missing, never":  {nil, sandboxcore.Template{Image: registry}, sandboxcore.PullNever, 0},
		"id":              {nil, sandboxcore.Template{ID: id}, sandboxcore.PullAlways, 0},
		"image that's id": {nil, sandboxcore.Template{Image: id}, sandboxcore.PullAlways, 0},
		"nonsense":        {nil, sandboxcore.Template{Image: "A B"}, sandboxcore.PullMissing, 0},
	} {
		stub := &imageEngine{has: test.has}
		_, err := (&connection{api: stub}).ensure(t.Context(), test.template, test.policy)
		if len(stub.pulls) != test.pulls || (err == nil) != (len(test.has) > 0 && test.pulls == 0) {
			t.Errorf("%s: pulls %v, %v", name, stub.pulls, err)
		}
	}
}

func TestImageOfAnotherArchitectureIsRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		image, engine string
		refused       bool
	}{{"amd64", "x86_64", false}, {"arm64", "aarch64", false}, {"", "x86_64", false}, {"arm64", "x86_64", true}, {"amd64", "aarch64", true}} {
		stub := &imageEngine{has: map[string]bool{"a": true}, architecture: test.image}
		_, err := (&connection{api: stub, info: system.Info{Architecture: test.engine}}).lookup(t.Context(), sandboxcore.Template{Image: "a"})
		errs := sandboxcore.Errors(err)
		if refused := len(errs) == 1 && errs[0].Kind == sandboxcore.KindConfiguration && errs[0].Field == "image" && errs[0].Remedy != ""; refused != test.refused || (err != nil) != test.refused {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
