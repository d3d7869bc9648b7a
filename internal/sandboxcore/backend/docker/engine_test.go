// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
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
