// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

// Package embedded carries the guest helper's binaries, one for each architecture of
// an engine, whatever the client's own is. scripts/build-guest.sh makes them.
package embedded

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // the binaries
	"encoding/hex"
	"fmt"
	"io"
	"sync"
)

//go:embed guest-amd64.gz
var amd64 []byte

//go:embed guest-arm64.gz
var arm64 []byte

// Guest is the helper for one architecture.
type Guest struct {
	Binary []byte
	// Version is the first 12 hexadecimal digits of the binary's SHA-256.
	Version string
}

var guests = map[string]func() (Guest, error){
	"amd64": sync.OnceValues(func() (Guest, error) { return unpack(amd64) }),
	"arm64": sync.OnceValues(func() (Guest, error) { return unpack(arm64) }),
}

// uname -m says the first, Go the second.
var architectures = map[string]string{"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}

// Architecture returns Go's name of an architecture that an engine reports, or the
// name as it is.
func Architecture(name string) string {
	if a, ok := architectures[name]; ok {
		return a
	}
	return name
}

// For returns the guest for an architecture, by Go's name or that of uname.
func For(architecture string) (Guest, error) {
	get, ok := guests[Architecture(architecture)]
	if !ok {
		return Guest{}, fmt.Errorf("there is no guest helper for %q, only for amd64 and arm64", architecture)
	}
	return get()
}

func unpack(packed []byte) (Guest, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return Guest{}, err
	}
	binary, err := io.ReadAll(r)
	if err != nil {
		return Guest{}, err
	}
	sum := sha256.Sum256(binary)
	return Guest{Binary: binary, Version: hex.EncodeToString(sum[:])[:12]}, nil
}
