// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

// Command terraform-provider-sandboxio serves the Terraform provider for isolated
// sandboxes.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore/backend"
)

func main() {
	debug := flag.Bool("debug", false, "serve for a debugger, and print what to put in TF_REATTACH_PROVIDERS")
	version := flag.Bool("version", false, "print the version")
	flag.Parse()
	if *version {
		fmt.Println(sandboxcore.Version)
		return
	}
	err := providerserver.Serve(context.Background(), provider.New(backend.All()), providerserver.ServeOpts{
		Address: provider.Address, Debug: *debug, ProtocolVersion: 6,
	})
	if err != nil {
		log.Fatal(err)
	}
}
