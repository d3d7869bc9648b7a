// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

// Package backend is the one registry of backends: adding one is a line here.
package backend

import (
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore/backend/docker"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore/backend/fake"
)

// All returns every backend, in the order in which documentation shows them.
func All() []sandboxcore.Factory {
	return []sandboxcore.Factory{
		docker.Factory(),
		fake.Factory(),
	}
}
