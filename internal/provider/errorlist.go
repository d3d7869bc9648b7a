// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// errorList collects errors, so that a user sees all of them at once.
type errorList struct{ all []error }

func (l *errorList) add(err error) {
	if err != nil {
		l.all = append(l.all, err)
	}
}

func (l *errorList) err() error { return errors.Join(l.all...) }

// positiveDuration reads a Go duration, which has to be greater than zero if it's set.
func (l *errorList) positiveDuration(field string, v types.String) time.Duration {
	if !known(v) {
		return 0
	}
	d, err := time.ParseDuration(v.ValueString())
	if err != nil || d <= 0 {
		l.add(sandboxcore.Configurationf(field, "Write it like \"90s\", \"30m\" or \"1h30m\".", "%q is not a duration greater than zero", v.ValueString()))
		return 0
	}
	return d
}
