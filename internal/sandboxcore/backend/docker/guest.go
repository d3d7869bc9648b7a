// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/embedded"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/protocol"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// guestCache remembers the volume that holds the guest helper.
type guestCache struct {
	mu     sync.Mutex
	volume string
}

// ensureGuest returns the name of a volume that holds the guest helper. It is filled
// once per engine and guest version, by a run of an image that holds just the guest.
// The image gets its tag last: so the tag and the labelled volume together mean
// "filled", whoever crashed on the way and however many try at once.
func (c *connection) ensureGuest(ctx context.Context) (string, error) {
	c.guest.mu.Lock()
	defer c.guest.mu.Unlock()
	if c.guest.volume != "" {
		return c.guest.volume, nil
	}
	guest, err := embedded.For(c.info.Architecture)
	if err != nil {
		return "", err
	}
	name, tag := "sandboxio-guest-"+guest.Version, "sandboxio-guest:"+guest.Version
	// Somebody else who fills it at the same time may remove what this attempt stands on.
	for attempt := 0; ; attempt++ {
		filled, err := c.guestFilled(ctx, name, tag)
		if err == nil && !filled {
			err = c.fillGuest(ctx, guest, name, tag)
		}
		if err == nil {
			c.guest.volume = name
			return name, nil
		}
		if attempt == 2 || ctx.Err() != nil {
			return "", failed(err, "installing the guest helper on the engine")
		}
	}
}

func (c *connection) guestFilled(ctx context.Context, name, tag string) (bool, error) {
	v, err := c.api.VolumeInspect(ctx, name)
	if isNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if v.Labels[labelRole] != roleGuest {
		// The engine made it again, empty, for a mount after somebody removed ours.
		return false, c.api.VolumeRemove(ctx, name, false)
	}
	_, err = c.api.ImageInspect(ctx, tag)
	if isNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func (c *connection) fillGuest(ctx context.Context, guest embedded.Guest, name, tag string) error {
	if _, err := c.api.VolumeCreate(ctx, volume.CreateOptions{Name: name, Labels: roleLabels(roleGuest)}); err != nil {
		return err
	}
	imageID, err := c.importGuest(ctx, guest)
	if err != nil {
		return err
	}
	if err := c.runInstaller(ctx, imageID, name); err != nil {
		c.removeImage(ctx, imageID)
		return err
	}
	c.removeUntaggedGuests(ctx)
	if _, err := c.api.ImageInspect(ctx, tag); err == nil {
		// Somebody else was faster; nobody knows this one's image.
		c.removeImage(ctx, imageID)
		return nil
	}
	return c.api.ImageTag(ctx, imageID, tag)
}

// importGuest makes an image that holds just the guest, and returns its id.
func (c *connection) importGuest(ctx context.Context, guest embedded.Guest) (string, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	path := strings.TrimPrefix(protocol.Path, "/")
	if err := w.WriteHeader(&tar.Header{Name: path, Mode: 0o555, Size: int64(len(guest.Binary)), Typeflag: tar.TypeReg}); err != nil {
		return "", err
	}
	if _, err := w.Write(guest.Binary); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	var changes []string
	for key, value := range roleLabels(roleGuest) {
		changes = append(changes, fmt.Sprintf("LABEL %s=%q", key, value))
	}
	stream, err := c.api.ImageImport(ctx, image.ImportSource{Source: &archive, SourceName: "-"}, "", image.ImportOptions{Changes: changes})
	if err != nil {
		return "", err
	}
	defer stream.Close()
	id := ""
	for decoder := json.NewDecoder(stream); ; {
		var message struct{ Status, Error string }
		switch err := decoder.Decode(&message); {
		case errors.Is(err, io.EOF) && id == "":
			return "", errors.New("the engine imported the guest's image and told no id")
		case errors.Is(err, io.EOF):
			return id, nil
		case err != nil:
			return "", err
		case message.Error != "":
			return "", errors.New(message.Error)
		case strings.HasPrefix(message.Status, "sha256:"):
			id = message.Status
		}
	}
}

func (c *connection) runInstaller(ctx context.Context, imageID, volumeName string) error {
	const target = "/out"
	made, err := c.createContainer(ctx,
		&container.Config{Image: imageID, Entrypoint: protocol.InstallArgs(target), Labels: roleLabels(roleGuest)},
		&container.HostConfig{
			NetworkMode: "none", CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"},
			Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: volumeName, Target: target}},
		}, "sandboxio-guest-"+randomHex(4))
	if err != nil {
		return err
	}
	defer c.remove(ctx, made.ID)
	waiting, waitErr := c.api.ContainerWait(ctx, made.ID, container.WaitConditionNextExit)
	if err := c.api.ContainerStart(ctx, made.ID, container.StartOptions{}); err != nil {
		return err
	}
	select {
	case done := <-waiting:
		if done.StatusCode != 0 {
			return fmt.Errorf("the guest's installer ended with code %d: %s", done.StatusCode, c.lastLog(ctx, made.ID))
		}
		return nil
	case err := <-waitErr:
		return err
	}
}

// remove takes a container away whatever state it's in, also when ctx is over.
func (c *connection) remove(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if err := c.api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true}); err != nil && !isNotFound(err) {
		sandboxcore.Logger(ctx).WarnContext(ctx, "a container could not be removed", "id", id, "error", err.Error())
	}
}

// removeUntaggedGuests takes away what crashed or overtaken attempts left. A young
// image may be at work, and get its tag between this look and the removal.
func (c *connection) removeUntaggedGuests(ctx context.Context) {
	images, err := c.api.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(
		filters.Arg("label", labelRole+"="+roleGuest), filters.Arg("dangling", "true"))})
	if err != nil {
		return
	}
	for _, i := range images {
		if time.Since(time.Unix(i.Created, 0)) < requestTimeout {
			continue
		}
		c.removeImage(ctx, i.ID)
	}
}

func (c *connection) removeImage(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if _, err := c.api.ImageRemove(ctx, id, image.RemoveOptions{}); err != nil && !isNotFound(err) {
		sandboxcore.Logger(ctx).DebugContext(ctx, "an image of the guest stays for now", "id", id, "reason", err.Error())
	}
}
