// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/distribution/reference"
	"github.com/docker/cli/cli/config"
	"github.com/docker/docker/api/types/image"
	registrytypes "github.com/docker/docker/api/types/registry"
	"github.com/opencontainers/go-digest"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/embedded"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// LookupTemplate says what the engine knows of an image. No registry is contacted.
func (b *Backend) LookupTemplate(ctx context.Context, t sandboxcore.Template) (sandboxcore.TemplateInfo, error) {
	conn, err := b.connect(ctx)
	if err != nil {
		return sandboxcore.TemplateInfo{}, err
	}
	return conn.lookup(ctx, t)
}

// EnsureTemplate pulls the image as policy says.
func (b *Backend) EnsureTemplate(ctx context.Context, t sandboxcore.Template, policy sandboxcore.PullPolicy) (sandboxcore.TemplateInfo, error) {
	conn, err := b.connect(ctx)
	if err != nil {
		return sandboxcore.TemplateInfo{}, err
	}
	return conn.ensure(ctx, t, policy)
}

func (c *connection) ensure(ctx context.Context, t sandboxcore.Template, policy sandboxcore.PullPolicy) (sandboxcore.TemplateInfo, error) {
	// No registry knows an image by its id.
	byID := t.ID != "" || isImageID(t.Image)
	if policy != sandboxcore.PullAlways || byID {
		info, err := c.lookup(ctx, t)
		if err == nil || policy == sandboxcore.PullNever || byID || !sandboxcore.Is(err, sandboxcore.KindNotFound) {
			return info, err
		}
	}
	if err := c.pull(ctx, t.Image); err != nil {
		return sandboxcore.TemplateInfo{}, err
	}
	c.images.Delete(t.Image)
	return c.lookup(ctx, t)
}

func (c *connection) lookup(ctx context.Context, t sandboxcore.Template) (sandboxcore.TemplateInfo, error) {
	ref, field := t.Image, "image"
	if t.ID != "" {
		ref, field = t.ID, "template_id"
		if !isImageID(t.ID) {
			return sandboxcore.TemplateInfo{}, sandboxcore.Configurationf(field, "Write the whole image id, \"sha256:\" included, or use image.", "on the docker backend a template id is an image id, and %q is none", t.ID)
		}
	} else if _, err := reference.ParseAnyReference(ref); err != nil {
		return sandboxcore.TemplateInfo{}, sandboxcore.Configurationf(field, "Write it like \"debian:bookworm-slim\".", "%q is not an image reference", ref)
	}
	cached, _ := c.images.Load(ref)
	inspected, ok := cached.(image.InspectResponse)
	if !ok {
		var err error
		inspected, err = c.api.ImageInspect(ctx, ref)
		if isNotFound(err) {
			return sandboxcore.TemplateInfo{}, &sandboxcore.Error{
				Kind: sandboxcore.KindNotFound, Field: field,
				Reason: fmt.Sprintf("the engine has no image %q", ref), Remedy: "Pull or load the image, or name another one.",
			}
		}
		if err != nil {
			return sandboxcore.TemplateInfo{}, failed(err, "looking at image %s", ref)
		}
		c.images.Store(ref, inspected)
	}
	if have, want := embedded.Architecture(inspected.Architecture), embedded.Architecture(c.info.Architecture); have != want && have != "" {
		return sandboxcore.TemplateInfo{}, sandboxcore.Configurationf(field, "Use an image for "+want+".", "image %q is for %s, and the engine runs %s", ref, have, want)
	}
	info := sandboxcore.TemplateInfo{ID: inspected.ID}
	if len(inspected.RepoDigests) > 0 {
		info.Digest = inspected.RepoDigests[0]
	}
	return info, nil
}

func isImageID(ref string) bool {
	_, err := digest.Parse(ref)
	return err == nil
}

// pull fetches an image with the credentials that the Docker CLI would use.
func (c *connection) pull(ctx context.Context, ref string) error {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return sandboxcore.Configurationf("image", "Write it like \"debian:bookworm-slim\".", "%q is not an image reference that a registry knows", ref)
	}
	auth, source, err := registryAuth(named)
	if err != nil {
		return err
	}
	log := sandboxcore.Logger(ctx).With("image", ref)
	log.InfoContext(ctx, "pulling image")
	stream, err := c.api.ImagePull(ctx, named.String(), image.PullOptions{RegistryAuth: auth})
	if err != nil {
		return pullFailed(err, named, source)
	}
	defer stream.Close()
	for decoder := json.NewDecoder(stream); ; {
		var message struct{ Status, ID, Error string }
		switch err := decoder.Decode(&message); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return pullFailed(err, named, source)
		case message.Error != "":
			return pullFailed(errors.New(message.Error), named, source)
		case !strings.HasSuffix(message.Status, "ing"): // not each step of a bar
			log.InfoContext(ctx, "pulling image", "layer", message.ID, "status", message.Status)
		}
	}
}

func pullFailed(err error, named reference.Named, credentials string) error {
	e := failed(err, "pulling image %s", reference.FamiliarString(named))
	if sandboxcore.Is(e, sandboxcore.KindTimeout) || sandboxcore.Is(e, sandboxcore.KindBackendUnavailable) {
		return e
	}
	return &sandboxcore.Error{
		Kind: sandboxcore.KindNotFound, Field: "image", Err: err,
		Reason: fmt.Sprintf("the engine doesn't have image %q and couldn't pull it from %s %s", reference.FamiliarString(named), reference.Domain(named), credentials),
		Remedy: "Check the name, the network of the engine's host, and `docker login` for that registry; or load the image into the engine.",
	}
}

// registryAuth resolves credentials as the Docker CLI does: its configuration file,
// credential stores and helpers. source says in words where they come from.
func registryAuth(named reference.Named) (encoded, source string, err error) {
	key := credentialKey(reference.Domain(named))
	auth, err := config.LoadDefaultConfigFile(io.Discard).GetAuthConfig(key)
	if err != nil {
		return "", "", &sandboxcore.Error{
			Kind: sandboxcore.KindConfiguration, Field: "image", Err: err,
			Reason: fmt.Sprintf("the Docker CLI's credentials for %s can't be read", key), Remedy: "Check the credential helper in the Docker CLI's config.json.",
		}
	}
	source = fmt.Sprintf("with the Docker CLI's credentials for %s", key)
	if auth.Username == "" && auth.Auth == "" && auth.IdentityToken == "" && auth.RegistryToken == "" {
		source = fmt.Sprintf("without credentials: the Docker CLI has none for %s", key)
	}
	encoded, err = registrytypes.EncodeAuthConfig(registrytypes.AuthConfig(auth))
	return encoded, source, err
}

// credentialKey is the name under which the Docker CLI keeps a registry's
// credentials: the host, but for the default registry its old address.
func credentialKey(domain string) string {
	if byDefault, err := reference.ParseNormalizedNamed("image"); err == nil && domain == reference.Domain(byDefault) {
		return "https://index." + domain + "/v1/"
	}
	return domain
}
