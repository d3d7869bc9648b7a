// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import "strings"

// FormatID returns the id that is unique over all backends: "docker/3f4a…".
func FormatID(backend, sandboxID string) string { return backend + "/" + sandboxID }

// ParseID splits an id of [FormatID].
func ParseID(id string) (backend, sandboxID string, err error) {
	backend, sandboxID, ok := strings.Cut(id, "/")
	if !ok || backend == "" || sandboxID == "" {
		return "", "", Configurationf("id", `Write "<backend>/<sandbox id or name>", such as "docker/3f4a5b6c7d8e".`, "%q is not the id of a sandbox", id)
	}
	return backend, sandboxID, nil
}
