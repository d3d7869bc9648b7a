// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

// Package sandboxcore is the domain of sandboxio: what a sandbox is, what may be
// asked of one, and the rules by which a request is admitted or refused.
//
// It knows neither Terraform nor any backend. A backend implements [Backend] and
// describes what it can do as an [Offer]; [Admit] holds the rules, so each rule
// stands in one place and every backend obeys it. [Create] and [With] are the two
// ways to bring a sandbox to life, and both tear down what falls short.
package sandboxcore

// Version is the version of this program, which labels what it makes. The release
// build sets it.
var Version = "dev"
