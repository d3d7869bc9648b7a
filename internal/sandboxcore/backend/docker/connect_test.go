// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/cli/cli/config"
	"github.com/docker/docker/api/types/system"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

func TestUnreachableEngineIsSaid(t *testing.T) {
	host := "unix://" + filepath.Join(t.TempDir(), "none.sock")
	b := New(host)
	_, getErr := b.Get(t.Context(), "x")
	_, resolveErr := b.Resolve(t.Context(), sandboxcore.Spec{})
	for what, err := range map[string]error{"get": getErr, "resolve": resolveErr, "kill": b.Kill(t.Context(), "x")} {
		if !sandboxcore.Is(err, sandboxcore.KindBackendUnavailable) || !strings.Contains(err.Error(), host) {
			t.Errorf("%s: %v, want BackendUnavailable that names the host", what, err)
		}
	}
}

func TestOpeningContactsNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	defer listener.Close()
	contacted := make(chan struct{}, 100)
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { contacted <- struct{}{} }))
	}()
	b, err := Factory().Open(sandboxcore.Settings{settingHost: "tcp://" + listener.Addr().String()})
	noError(t, err)
	select {
	case <-contacted:
		t.Error("opening contacted the engine")
	case <-time.After(50 * time.Millisecond):
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, _ = b.Get(ctx, "x")
	if len(contacted) == 0 {
		t.Error("positive control: using it contacts the engine")
	}
}

// The order is: configuration, DOCKER_HOST, the CLI's context.
func TestHostOrder(t *testing.T) {
	dir := t.TempDir()
	config.SetDir(dir)
	t.Cleanup(func() { config.SetDir("") })
	noError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"currentContext":"other"}`), 0o600))
	// A context's folder is named by the SHA-256 of its name.
	meta := filepath.Join(dir, "contexts", "meta", "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa")
	noError(t, os.MkdirAll(meta, 0o700))
	noError(t, os.WriteFile(filepath.Join(meta, "meta.json"), []byte(`{"Name":"other","Metadata":{},"Endpoints":{"docker":{"Host":"unix:///from-context.sock"}}}`), 0o600))
	t.Setenv("DOCKER_CONTEXT", "")
	for _, test := range []struct{ setting, env, want string }{
		{"", "", "unix:///from-context.sock"},
		{"", "unix:///from-env.sock", "unix:///from-env.sock"},
		{"unix:///from-setting.sock", "unix:///from-env.sock", "unix:///from-setting.sock"},
	} {
		t.Setenv("DOCKER_HOST", test.env)
		if _, err := New(test.setting).connect(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v", test, err)
		}
	}
	t.Setenv("DOCKER_HOST", "")
	t.Setenv("DOCKER_CONTEXT", "none")
	if _, err := New("").connect(t.Context()); !sandboxcore.Is(err, sandboxcore.KindConfiguration) {
		t.Errorf("a context that isn't there: %v", err)
	}
}

// Credentials come from the CLI's helpers, under the registry's own host.
func TestRegistryCredentials(t *testing.T) {
	dir := t.TempDir()
	asked := filepath.Join(dir, "asked")
	helper := "#!/bin/sh\nread host\necho \"$host\" >>" + asked + "\necho '{\"Username\":\"u\",\"Secret\":\"p\"}'\n"
	noError(t, os.WriteFile(filepath.Join(dir, "docker-credential-stub"), []byte(helper), 0o700))
	noError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"credHelpers":{"registry.example.org:5000":"stub"},"auths":{"plain.example.org":{"auth":"`+
		base64.StdEncoding.EncodeToString([]byte("a:b"))+`"}}}`), 0o600))
	config.SetDir(dir)
	t.Cleanup(func() { config.SetDir("") })
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for image, want := range map[string]string{"registry.example.org:5000/a/b:1": "u:p", "plain.example.org/x": "a:b", "other.example.org/x": ":"} {
		named, err := reference.ParseDockerRef(image)
		noError(t, err)
		encoded, source, err := registryAuth(named)
		noError(t, err)
		decoded, err := base64.URLEncoding.DecodeString(encoded)
		noError(t, err)
		var auth struct{ Username, Password string }
		noError(t, json.Unmarshal(decoded, &auth))
		if got := auth.Username + ":" + auth.Password; got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
		if strings.HasPrefix(source, "without") != (want == ":") {
			t.Errorf("%s: %q", image, source)
		}
	}
	if got, err := os.ReadFile(asked); err != nil || string(got) != "registry.example.org:5000\n" {
		t.Errorf("the helper was asked for %q, %v", got, err)
	}
}

func TestDefaultRegistryHasItsOldKey(t *testing.T) {
	named, err := reference.ParseDockerRef("debian:bookworm")
	noError(t, err)
	if key := credentialKey(reference.Domain(named)); !strings.HasPrefix(key, "https://index.") || !strings.HasSuffix(key, "/v1/") {
		t.Errorf("%q", key)
	}
}

// An image that is there needs no registry; a pull that fails says where it tried.
func TestPull(t *testing.T) {
	realEngine(t)
	b := newBackend(t)
	if _, err := b.EnsureTemplate(t.Context(), sandboxcore.Template{Image: busybox}, sandboxcore.PullMissing); err != nil {
		t.Error(err)
	}
	missing := sandboxcore.Template{Image: "127.0.0.1:1/none:1"}
	_, err := b.EnsureTemplate(t.Context(), missing, sandboxcore.PullMissing)
	if !sandboxcore.Is(err, sandboxcore.KindNotFound) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("%v, want NotFound that names the registry", err)
	}
}

func TestRuntimeTiersByWhatTheyAre(t *testing.T) {
	runtime := func(path string) system.RuntimeWithStatus {
		var r system.RuntimeWithStatus
		r.Path = path
		return r
	}
	info := system.Info{DefaultRuntime: "own", Runtimes: map[string]system.RuntimeWithStatus{
		"own": runtime("/usr/bin/crun"), "runc": runtime("runc"), "gvisor": runtime("/usr/bin/runsc"), "runc-really": runtime("/opt/mystery"),
	}}
	got := tiers(info)
	if len(got) != 2 || got[0].Runtime != "own" || got[1].Runtime != "runc" {
		t.Errorf("%+v: want own and runc, the default first", got)
	}
}

func TestDiskIsRefusedUnlessItHolds(t *testing.T) {
	for driver, refused := range map[string]bool{"btrfs": false, "overlay2": true, "overlayfs": true, "fuse-overlayfs": true, "vfs": true} {
		if got := diskRefusal(system.Info{Driver: driver}); (got != "") != refused {
			t.Errorf("%s: %q", driver, got)
		}
	}
}
