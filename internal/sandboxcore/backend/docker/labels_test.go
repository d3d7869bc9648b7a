// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package docker

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

func TestAskedSurvivesTheLabel(t *testing.T) {
	spec := sandboxcore.Spec{
		Template: sandboxcore.Template{Image: "i"}, TTL: time.Hour, Env: map[string]string{"SECRET": "s3cr3t-value"},
		Readiness: sandboxcore.Readiness{Exec: sandboxcore.TupleOf("a", "b"), Interval: time.Second, Timeout: time.Minute},
	}
	labels, err := sandboxLabels(spec, time.Time{})
	noError(t, err)
	if strings.Contains(labels[labelSpec], "s3cr3t-value") {
		t.Error("a label holds a value of env")
	}
	var was asked
	noError(t, json.Unmarshal([]byte(labels[labelSpec]), &was))
	if was.readiness() != spec.Readiness || was.TTL != spec.TTL || was.Image != "i" {
		t.Errorf("%+v", was)
	}
}
