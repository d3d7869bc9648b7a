// The tools that check and document the provider: a module of its own, so that what
// they depend on stays out of the provider's.
module github.com/sandboxio/terraform-provider-sandboxio/tools

go 1.26.8

tool (
	github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	github.com/hashicorp/terraform-plugin-docs/cmd/tfplugindocs
	mvdan.cc/gofumpt
)

require (
	github.com/golangci/golangci-lint/v2 v2.15.0
	github.com/hashicorp/terraform-plugin-docs v0.25.0
	mvdan.cc/gofumpt v0.12.0
)
