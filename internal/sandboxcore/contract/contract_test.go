// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package contract

import (
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// Rule 1 and 2 of the model: no capability without a test, declared or not.
func TestEveryCapabilityHasItsTests(t *testing.T) {
	for _, c := range sandboxcore.AllCapabilities() {
		if test, ok := capabilityTests[c]; !ok || test.declared == nil || test.undeclared == nil {
			t.Errorf("%s has no entry in capabilityTests", c)
		}
	}
	if len(capabilityTests) != len(sandboxcore.AllCapabilities()) {
		t.Errorf("%d entries for %d capabilities", len(capabilityTests), len(sandboxcore.AllCapabilities()))
	}
}
