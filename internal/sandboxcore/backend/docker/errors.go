// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// failed turns an error of the engine into one of the domain. what says what was tried.
func failed(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	what = fmt.Sprintf(what, args...)
	kind := sandboxcore.KindBackend
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		kind = sandboxcore.KindTimeout
	case client.IsErrConnectionFailed(err), errdefs.IsUnavailable(err):
		kind = sandboxcore.KindBackendUnavailable
	case errdefs.IsNotFound(err):
		kind = sandboxcore.KindNotFound
	case errdefs.IsInvalidArgument(err):
		kind = sandboxcore.KindConfiguration
	case errdefs.IsConflict(err):
		kind = sandboxcore.KindConflict
		if text := err.Error(); strings.Contains(text, "is paused") || strings.Contains(text, "is not running") {
			kind = sandboxcore.KindNotRunning
		}
	}
	return sandboxcore.Errorf(kind, "%s: %w", what, err)
}

func isNotFound(err error) bool { return errdefs.IsNotFound(err) }
