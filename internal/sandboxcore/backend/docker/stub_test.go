// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// stubEngine answers as a test says where a real engine can't be made to.
type stubEngine struct {
	engine
	create func() (container.CreateResponse, error)
	remove func(id string) error
	attach func() (types.HijackedResponse, error)
	state  container.State
}

func (e *stubEngine) ContainerCreate(context.Context, *container.Config, *container.HostConfig, *network.NetworkingConfig, *ocispec.Platform, string) (container.CreateResponse, error) {
	return e.create()
}

func (e *stubEngine) ContainerRemove(_ context.Context, id string, _ container.RemoveOptions) error {
	return e.remove(id)
}

func (e *stubEngine) ContainerInspect(context.Context, string) (container.InspectResponse, error) {
	return container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{State: &e.state}}, nil
}

func (e *stubEngine) ContainerExecCreate(context.Context, string, container.ExecOptions) (container.ExecCreateResponse, error) {
	return container.ExecCreateResponse{ID: "x"}, nil
}

func (e *stubEngine) ContainerExecAttach(context.Context, string, container.ExecAttachOptions) (types.HijackedResponse, error) {
	return e.attach()
}

// connectionLost is the client's own error for an engine that doesn't answer.
func connectionLost(t *testing.T) error {
	t.Helper()
	api, err := client.NewClientWithOpts(client.WithHost("unix://" + filepath.Join(t.TempDir(), "none.sock")))
	noError(t, err)
	defer api.Close()
	if _, err = api.Info(t.Context()); err == nil {
		t.Fatal("something answers")
	}
	return err
}

// Only who lost the answer looks for what the engine may have made: after a conflict
// the name is somebody else's.
func TestLostAnswerOfCreate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err     error
		removes bool
	}{
		"lost":     {connectionLost(t), true},
		"late":     {context.DeadlineExceeded, true},
		"conflict": {errdefs.ErrConflict, false},
		"refused":  {errdefs.ErrInvalidArgument, false},
	} {
		removed := false
		stub := &stubEngine{
			create: func() (container.CreateResponse, error) { return container.CreateResponse{}, test.err },
			remove: func(id string) error { removed = id == "sandboxio-x"; return nil },
		}
		_, err := (&connection{api: stub}).createContainer(t.Context(), nil, nil, "sandboxio-x")
		if !errors.Is(err, test.err) || removed != test.removes {
			t.Errorf("%s: %v, removed %v", name, err, removed)
		}
	}
}

func TestRemovalIsTriedAgain(t *testing.T) {
	t.Parallel()
	busy := errors.New("driver failed to remove root filesystem: device or resource busy")
	for name, test := range map[string]struct {
		answers []error
		kind    sandboxcore.ErrorKind
	}{
		"at once":     {[]error{nil}, ""},
		"gone":        {[]error{errdefs.ErrNotFound}, ""},
		"busy a bit":  {[]error{busy, busy, nil}, ""},
		"busy, gone":  {[]error{busy, errdefs.ErrNotFound}, ""},
		"always busy": {[]error{busy, busy, busy, busy}, sandboxcore.KindBackend},
		"unreachable": {[]error{connectionLost(t)}, sandboxcore.KindBackendUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			stub := &stubEngine{remove: func(string) error { calls++; return test.answers[calls-1] }}
			err := (&connection{api: stub}).kill(t.Context(), "x", sandboxcore.EgressDeny)
			if calls != len(test.answers) || (test.kind == "") != (err == nil) || err != nil && !sandboxcore.Is(err, test.kind) {
				t.Errorf("after %d calls: %v", calls, err)
			}
		})
	}
}

func stubSandbox(stub *stubEngine) *sandbox {
	return &sandbox{conn: &connection{api: stub}, info: sandboxcore.Info{ID: "x"}}
}

// What engines of other versions say, which the one at hand doesn't.
func TestWhyACommandIsNotTaken(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err   error
		state container.State
		kind  sandboxcore.ErrorKind
		field string
	}{
		"unknown user":     {errors.New("unable to find user x: no matching entries in passwd file"), container.State{Running: true}, sandboxcore.KindCannotStart, "user"},
		"dying":            {errors.New("unable to upgrade to tcp, received 500"), container.State{}, sandboxcore.KindNotRunning, ""},
		"some other":       {errors.New("unable to upgrade to tcp, received 500"), container.State{Running: true}, sandboxcore.KindBackend, ""},
		"gone":             {errdefs.ErrNotFound, container.State{}, sandboxcore.KindNotFound, ""},
		"engine went away": {connectionLost(t), container.State{}, sandboxcore.KindBackendUnavailable, ""},
	} {
		stub := &stubEngine{attach: func() (types.HijackedResponse, error) { return types.HijackedResponse{}, test.err }, state: test.state}
		_, err := stubSandbox(stub).Exec(t.Context(), sandboxcore.Command{Argv: []string{"true"}})
		if errs := sandboxcore.Errors(err); len(errs) != 1 || errs[0].Kind != test.kind || errs[0].Field != test.field {
			t.Errorf("%s: %v, want %s at %q", name, err, test.kind, test.field)
		}
	}
}

// An engine that stopped answering holds nobody up for longer than the grace.
func TestStuckConnectionIsCut(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe() // unbuffered: a write that nobody reads blocks
	defer theirs.Close()
	stub := &stubEngine{state: container.State{Running: true}, attach: func() (types.HijackedResponse, error) {
		return types.HijackedResponse{Conn: ours, Reader: bufio.NewReader(ours)}, nil
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := stubSandbox(stub).Exec(ctx, sandboxcore.Command{Argv: []string{"true"}, Stdin: []byte("x")})
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the context's error", err)
		}
	case <-time.After(4 * killGrace):
		t.Fatal("it hangs")
	}
}

// fakeDaemon answers the first contact with an API version, and info as a test says.
func fakeDaemon(t *testing.T, version string, info http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", version)
		if strings.HasSuffix(r.URL.Path, "/info") {
			info(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return strings.Replace(server.URL, "http://", "tcp://", 1)
}

func TestEngineThatCannotServeIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ version, info, says string }{
		"too old":      {"1.40", `{}`, "1.40"},
		"windows":      {"1.41", `{"OSType":"windows","Architecture":"x86_64"}`, "windows"},
		"architecture": {"1.41", `{"OSType":"linux","Architecture":"s390x"}`, "s390x"},
	} {
		b := New(fakeDaemon(t, test.version, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(test.info)) }))
		_, err := b.Resolve(t.Context(), sandboxcore.Spec{})
		if !sandboxcore.Is(err, sandboxcore.KindConfiguration) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want a refusal that says %q", name, err, test.says)
		}
		_ = b.Close()
	}
}

// Many who begin at once share one contact, and whoever gives up takes only itself away.
func TestFirstContactIsShared(t *testing.T) {
	t.Parallel()
	var contacts atomic.Int32
	contacted, answer := make(chan struct{}, 10), make(chan struct{})
	b := New(fakeDaemon(t, "1.41", func(w http.ResponseWriter, _ *http.Request) {
		contacts.Add(1)
		contacted <- struct{}{}
		<-answer
		_, _ = w.Write([]byte(`{}`))
	}))
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { _, err := b.connect(ctx); first <- err }()
	<-contacted
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) || sandboxcore.Is(err, sandboxcore.KindBackendUnavailable) {
		t.Errorf("who gave up: %v", err)
	}
	others := make(chan error)
	for range 5 {
		go func() { _, err := b.connect(t.Context()); others <- err }()
	}
	close(answer)
	for range 5 {
		if err := <-others; err != nil {
			t.Error(err)
		}
	}
	if n := contacts.Load(); n != 1 {
		t.Errorf("%d contacts", n)
	}
}

// Where the kernel doesn't account swap or processes, no cap on them is claimed.
func TestEnforcementIsTheTruth(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		info         system.Info
		memory, pids string
		drift        bool
	}{
		{system.Info{SwapLimit: true, PidsLimit: true}, "cgroup, swap included", "cgroup, 512", true},
		{system.Info{}, "cgroup, swap not capped", sandboxcore.EnforcementNone, false},
	} {
		c := &connection{info: test.info}
		if e := c.offer().Enforcement; e.Memory != test.memory || e.Pids != test.pids {
			t.Errorf("%+v", e)
		}
		var host container.HostConfig
		host.Memory, host.MemorySwap = 64<<20, -1
		if r := c.resourcesOf(&host); r.MemoryMB.IsSet() == test.drift {
			t.Errorf("swap without bounds: %+v", r)
		}
	}
}
