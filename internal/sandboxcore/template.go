// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import "strings"

// Template is a base environment: an image reference, or a provider's template id.
// Exactly one is set; sandboxio builds no images.
type Template struct {
	Image string
	ID    string
}

// IsZero says that the template isn't known (yet).
func (t Template) IsZero() bool { return t == Template{} }

// NoTemplate is the refusal of a sandbox that names nothing to be made from.
func NoTemplate() *Error {
	return Configuration("image", "there is nothing to make a sandbox from", "Set exactly one of image and template_id.")
}

func (t Template) validate(errs *problems) {
	const remedy = "Set exactly one of image and template_id."
	switch {
	case t.Image != "" && t.ID != "":
		errs.add(Configuration("template_id", "image and template_id can't both be set", remedy))
	case t.Image != strings.TrimSpace(t.Image):
		errs.add(Configurationf("image", "Remove the white space.", "%q is not an image reference", t.Image))
	}
}

// PullPolicy says when a template's image is fetched.
type PullPolicy string

// The pull policies.
const (
	// PullMissing fetches the image only where the backend doesn't have it.
	PullMissing PullPolicy = "missing"
	// PullAlways asks the registry each time.
	PullAlways PullPolicy = "always"
	// PullNever fails where the backend doesn't have the image.
	PullNever PullPolicy = "never"
)

// PullPolicies are all policies: the one list for validation, documentation and tests.
var PullPolicies = []PullPolicy{PullMissing, PullAlways, PullNever}

// TemplateInfo is what a backend knows of a template.
type TemplateInfo struct {
	// ID is the backend's own id: what Template.ID takes.
	ID string
	// Digest pins the content in its registry, or is "" for an image that never was in one.
	Digest string
	// Resources are the caps that belong to the template, absent where they belong to the sandbox.
	Resources Resources
}
