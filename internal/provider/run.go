// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// run is what resources and data sources get: the provider's configuration, and the
// backends that were opened so far, each once.
type run struct {
	factories      []sandboxcore.Factory
	defaultBackend types.String
	owner          types.String
	defaultLabels  types.Map
	settings       map[string]types.Object

	mu     sync.Mutex
	opened map[string]sandboxcore.Backend
}

// errUnknownConfiguration: the provider's configuration isn't known yet, so nothing
// may be contacted.
var errUnknownConfiguration = sandboxcore.Configuration("", "the provider's configuration is not known yet, so nothing can be asked of the backend",
	"Apply first what the provider's configuration depends on, for example with -target.")

// warnNotRefreshed says that the state is kept as it is because of errUnknownConfiguration.
func warnNotRefreshed(diags *diag.Diagnostics, id types.String) {
	diags.AddWarning("Not refreshed", fmt.Sprintf("The provider's configuration is not known yet, so %s was not looked at. The apply will.", id.ValueString()))
}

// backend opens the backend of that name on first use.
func (r *run) backend(name string) (sandboxcore.Backend, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b, ok := r.opened[name]; ok {
		return b, nil
	}
	f, ok := factory(r.factories, name)
	if !ok {
		return nil, sandboxcore.Configurationf("backend", "Write "+oneOf(backendNames(r.factories))+".", "there is no backend %q", name)
	}
	settings, known := toSettings(r.settings[name], f.Settings)
	if !known {
		return nil, errUnknownConfiguration
	}
	b, err := f.Open(settings)
	if err != nil {
		return nil, err
	}
	r.opened[name] = b
	return b, nil
}

// backendOf chooses the backend of an object whose own attribute is own. An unknown
// choice is errUnknownConfiguration.
func (r *run) backendOf(own types.String) (string, sandboxcore.Backend, error) {
	choice := own
	if choice.IsNull() {
		choice = r.defaultBackend
	}
	switch {
	case choice.IsUnknown():
		return "", nil, errUnknownConfiguration
	case choice.IsNull():
		return "", nil, sandboxcore.Configuration("backend", "no backend is named", "Set backend here or default_backend in the provider: "+oneOf(backendNames(r.factories))+".")
	}
	b, err := r.backend(choice.ValueString())
	return choice.ValueString(), b, err
}

func (r *run) ownerName() string {
	if name := r.owner.ValueString(); name != "" {
		return name
	}
	return defaultOwner
}

// configured hands the run to a resource or data source. Terraform validates before
// it configures: then there is none, and no error.
func configured(data any, diags *diag.Diagnostics) *run {
	if data == nil {
		return nil
	}
	r, ok := data.(*run)
	if !ok {
		diags.AddError("Unexpected provider data", fmt.Sprintf("Got %T. This is a bug in the provider: please report it.", data))
	}
	return r
}

func factory(factories []sandboxcore.Factory, name string) (sandboxcore.Factory, bool) {
	i := slices.IndexFunc(factories, func(f sandboxcore.Factory) bool { return f.Name == name })
	if i < 0 {
		return sandboxcore.Factory{}, false
	}
	return factories[i], true
}

func backendNames(factories []sandboxcore.Factory) []string {
	names := make([]string, len(factories))
	for i, f := range factories {
		names[i] = f.Name
	}
	return names
}

// oneOf writes names as a choice, in Markdown.
func oneOf[S ~string](names []S) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = "`" + string(n) + "`"
	}
	return strings.Join(quoted, ", ")
}

// stringMap returns the known entries of m, and whether all are known.
func stringMap(m types.Map) (map[string]string, bool) {
	known := !m.IsUnknown()
	values := map[string]string{}
	for key, value := range m.Elements() {
		s, ok := value.(types.String)
		if !ok || s.IsUnknown() || s.IsNull() {
			known = false
			continue
		}
		values[key] = s.ValueString()
	}
	return values, known
}

// withDefaults returns own over the provider's default labels, and whether all is known.
func (r *run) withDefaults(own types.Map) (map[string]string, bool) {
	labels, knownDefaults := stringMap(r.defaultLabels)
	mine, known := stringMap(own)
	maps.Copy(labels, mine)
	return labels, known && knownDefaults
}

// bounded is ctx with Terraform's log and a deadline. What fails for the deadline is
// blamed on field by report.
func bounded(ctx context.Context, field string, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx = sandboxcore.WithLogger(ctx, terraformLogger)
	return context.WithTimeoutCause(ctx, timeout, &sandboxcore.Error{
		Kind: sandboxcore.KindTimeout, Field: field, Reason: fmt.Sprintf("it did not end within %s", timeout),
		Remedy: fmt.Sprintf("Find out what it waits for, or raise %s.", field),
	})
}
