// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/filters"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// The labels by which sandboxio knows its own. Every object that it makes on an
// engine carries the first and the role.
const (
	labelManaged = sandboxcore.ReservedLabelPrefix + "managed"
	labelRole    = sandboxcore.ReservedLabelPrefix + "role"
	labelOwner   = sandboxcore.ReservedLabelPrefix + "owner"
	labelName    = sandboxcore.ReservedLabelPrefix + "name"
	labelVersion = sandboxcore.ReservedLabelPrefix + "version"
	labelExpires = sandboxcore.ReservedLabelPrefix + "expires-at"
	labelSpec    = sandboxcore.ReservedLabelPrefix + "spec"
)

// The roles.
const (
	roleSandbox = "sandbox"
	// roleGuest: the cached volume and image of the guest helper.
	roleGuest = "guest"
	// roleEgress: the shared network of sandboxes with egress allow.
	roleEgress = "egress"
)

func roleLabels(role string) map[string]string {
	return map[string]string{labelManaged: "true", labelRole: role, labelVersion: sandboxcore.Version}
}

func roleFilter(role string, more ...string) filters.Args {
	args := filters.NewArgs(filters.Arg("label", labelManaged+"=true"), filters.Arg("label", labelRole+"="+role))
	for _, label := range more {
		args.Add("label", label)
	}
	return args
}

// asked is kept in a label: what was asked for and can't be told, afterwards, from
// what the image or the engine brought along. It has names only where values could be
// secret.
type asked struct {
	Image      string               `json:"image,omitempty"`
	TemplateID string               `json:"template_id,omitempty"`
	WorkingDir bool                 `json:"working_dir,omitempty"`
	User       bool                 `json:"user,omitempty"`
	Env        []string             `json:"env,omitempty"`
	Labels     []string             `json:"labels,omitempty"`
	TTL        time.Duration        `json:"ttl,omitempty"`
	ReadyExec  []string             `json:"ready_exec,omitempty"`
	ReadyPort  int                  `json:"ready_port,omitempty"`
	ReadyEvery time.Duration        `json:"ready_every,omitempty"`
	ReadyIn    time.Duration        `json:"ready_in,omitempty"`
	Options    sandboxcore.Settings `json:"options,omitempty"`
}

func sandboxLabels(spec sandboxcore.Spec, expires time.Time) (map[string]string, error) {
	labels := roleLabels(roleSandbox)
	labels[labelOwner] = spec.Owner
	labels[labelName] = spec.Name
	if !expires.IsZero() {
		labels[labelExpires] = expires.Format(time.RFC3339)
	}
	port, _ := spec.Readiness.TCPPort.Get()
	encoded, err := json.Marshal(asked{
		Image: spec.Template.Image, TemplateID: spec.Template.ID,
		WorkingDir: spec.WorkingDir != "", User: spec.User != "",
		Env: slices.Sorted(maps.Keys(spec.Env)), Labels: slices.Sorted(maps.Keys(spec.Labels)), TTL: spec.TTL,
		ReadyExec: spec.Readiness.Exec.Slice(), ReadyPort: port, ReadyEvery: spec.Readiness.Interval, ReadyIn: spec.Readiness.Timeout,
		Options: spec.Options,
	})
	if err != nil {
		return nil, err
	}
	labels[labelSpec] = string(encoded)
	maps.Copy(labels, spec.Labels)
	return labels, nil
}

func (a asked) readiness() sandboxcore.Readiness {
	r := sandboxcore.Readiness{Exec: sandboxcore.TupleOf(a.ReadyExec...), Interval: a.ReadyEvery, Timeout: a.ReadyIn}
	if a.ReadyPort != 0 {
		r.TCPPort = sandboxcore.Some(a.ReadyPort)
	}
	return r
}

// userLabels are the caller's own: without the reserved ones, and without those that
// came from the image.
func userLabels(labels map[string]string, names []string) map[string]string {
	own := map[string]string{}
	for key, value := range labels {
		if !strings.HasPrefix(key, sandboxcore.ReservedLabelPrefix) && slices.Contains(names, key) {
			own[key] = value
		}
	}
	return own
}
