// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

func (r *sandboxResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	names := backendNames(r.factories)
	noNulls := []validator.List{listvalidator.NoNullValues()}
	notEmpty := []validator.String{stringvalidator.LengthAtLeast(1)}
	attributes := map[string]schema.Attribute{
		"backend": schema.StringAttribute{
			MarkdownDescription: "Where the sandbox runs: " + oneOf(names) + ". Default: the provider's `default_backend`. A change replaces.",
			Optional:            true, Computed: true,
			Validators: []validator.String{stringvalidator.OneOf(names...)},
		},
		"name": schema.StringAttribute{
			MarkdownDescription: "A name for people: up to 63 letters, digits, `.`, `_` and `-`. On Docker the container's name is made of it and a random suffix, so names never clash. Default: none. A change replaces.",
			Optional:            true, Validators: notEmpty,
		},
		"image": schema.StringAttribute{
			MarkdownDescription: "Container image reference, such as `debian:bookworm-slim`. Exactly one of `image` and `template_id` is set. On Docker it is pulled if the engine doesn't have it, and no registry is contacted if it does; a tag that moved later is not followed. A change replaces.",
			Optional:            true, Validators: notEmpty,
		},
		"template_id": schema.StringAttribute{
			MarkdownDescription: "The backend's own id of a base environment. On Docker an image id (`sha256:…`), which is never pulled. Exactly one of `image` and `template_id` is set. A change replaces.",
			Optional:            true, Validators: notEmpty,
		},
		"resources": schema.SingleNestedAttribute{
			MarkdownDescription: "Caps of the sandbox. What is left out gets a modest default, shown in the plan, never \"unlimited\".",
			Optional:            true, Computed: true,
			Attributes: map[string]schema.Attribute{
				"cpu": schema.Float64Attribute{
					MarkdownDescription: "Cores, at least 0.01 on Docker and at most what the engine has. Default: `1`. Held by the cgroup on Docker. A change is in place on Docker.",
					Optional:            true, Computed: true,
				},
				"memory_mb": schema.Int64Attribute{
					MarkdownDescription: "MiB, swap included, at least 6 on Docker. Default: `1024`. Held by the cgroup on Docker. A change is in place on Docker.",
					Optional:            true, Computed: true,
				},
				"disk_mb": schema.Int64Attribute{
					MarkdownDescription: "MiB of the writable layer. Default: `10240` where the backend really enforces it; elsewhere null, with `enforcement.disk = \"none\"`, and asking for a value is refused. On Docker enforced on the `btrfs` storage driver. A change replaces.",
					Optional:            true, Computed: true,
				},
				"gpu": schema.StringAttribute{
					MarkdownDescription: "GPU type, such as `T4`. Default: none. Refused on Docker in this version. A change replaces.",
					Optional:            true, Computed: true,
				},
			},
		},
		"network": schema.SingleNestedAttribute{
			MarkdownDescription: "What the sandbox may reach, and what may reach it. Defaults are written out in the plan.",
			Optional:            true, Computed: true,
			Attributes: map[string]schema.Attribute{
				"egress": schema.StringAttribute{
					MarkdownDescription: "`deny`: nothing, not the host, DNS or metadata addresses either. `allow`: everything. `learn` is refused in this version. Default: `deny`. On Docker deny is no network interface, and allow a shared bridge without traffic between sandboxes. A change replaces on Docker.",
					Optional:            true, Computed: true, Validators: notEmpty,
				},
				"allow": schema.ListAttribute{
					MarkdownDescription: "Host names, wildcards (`*.example.org`) and CIDRs that may be reached. Default: empty. A non-empty list is refused on Docker, which can't enforce one. A change replaces.",
					Optional:            true, Computed: true, ElementType: types.StringType, Validators: noNulls,
				},
				"ingress_ports": schema.ListAttribute{
					MarkdownDescription: "TCP ports of the sandbox to make reachable. Default: empty. Refused on Docker in this version. A change replaces.",
					Optional:            true, Computed: true, ElementType: types.Int64Type, Validators: noNulls,
				},
			},
		},
		"require_isolation": schema.StringAttribute{
			MarkdownDescription: "Weakest isolation tier that will do: `container`, `gvisor` or `microvm`. It is never downgraded: where the backend has none that satisfies it, the plan is refused. Default: no requirement. A change is in place if the sandbox's tier stays the same, else it replaces.",
			Optional:            true,
		},
		"command": schema.ListAttribute{
			MarkdownDescription: "Whole argv of the main process, in place of the image's ENTRYPOINT and CMD. It has to keep running: its end is the sandbox's end. Default: none, and the sandbox idles without needing anything from its image. A change replaces.",
			Optional:            true, ElementType: types.StringType, Validators: noNulls,
		},
		"working_dir": schema.StringAttribute{
			MarkdownDescription: "Absolute path in which commands start. Default: the image's. A change replaces.",
			Optional:            true, Validators: notEmpty,
		},
		"user": schema.StringAttribute{
			MarkdownDescription: "User, by name or id, with an optional `:group`. Default: the image's. A change replaces.",
			Optional:            true, Validators: notEmpty,
		},
		"env": schema.MapAttribute{
			MarkdownDescription: "Environment variables, beside the image's own. They are kept in the state. Default: none. A change replaces.",
			Optional:            true, Sensitive: true, ElementType: types.StringType, Validators: []validator.Map{mapvalidator.NoNullValues()},
		},
		"labels": schema.MapAttribute{
			MarkdownDescription: "Labels, over the provider's `default_labels`. The prefix `" + sandboxcore.ReservedLabelPrefix + "` is reserved. Default: none. A change replaces on Docker, which can't relabel.",
			Optional:            true, ElementType: types.StringType, Validators: []validator.Map{mapvalidator.NoNullValues()},
		},
		"effective_labels": schema.MapAttribute{
			MarkdownDescription: "The provider's `default_labels` and `labels` together.",
			Computed:            true, ElementType: types.StringType,
		},
		"ttl": schema.StringAttribute{
			MarkdownDescription: "Time to live from creation, as a Go duration such as `90m`. The sandbox ends itself then, whether Terraform runs or not. `60m` and `1h` are the same. Default: no limit. A change replaces on Docker in this version.",
			Optional:            true,
		},
		"readiness": schema.SingleNestedAttribute{
			MarkdownDescription: "When the sandbox counts as ready. Default: as soon as it runs, and, with a `command`, still runs a moment later. A change is in place and takes effect at the next start.",
			Optional:            true,
			Attributes: map[string]schema.Attribute{
				"exec": schema.ListAttribute{
					MarkdownDescription: "Argv that exits 0 inside once the sandbox is ready.", Optional: true, ElementType: types.StringType, Validators: noNulls,
				},
				"tcp_port": schema.Int64Attribute{
					MarkdownDescription: "Port that accepts connections, seen from inside. Exactly one of `exec` and `tcp_port` is set.", Optional: true,
				},
				"interval": schema.StringAttribute{
					MarkdownDescription: "Pause between probes, as a Go duration. Default: `" + sandboxcore.DefaultReadinessInterval.String() + "`.", Optional: true,
				},
				"timeout": schema.StringAttribute{
					MarkdownDescription: "Bound on all probes together, as a Go duration. Default: `" + sandboxcore.DefaultReadinessTimeout.String() + "`. The apply then fails with what the last probe said.", Optional: true,
				},
			},
		},
		"timeouts": timeoutsAttribute(ctx, timeouts.Opts{
			Create: true, Read: true, Update: true, Delete: true,
			CreateDescription: "Bound on creation, pull and readiness included. Default: `10m`.",
			ReadDescription:   "Bound on a refresh. Default: `2m`.",
			UpdateDescription: "Bound on an update, a start and readiness included. Default: `10m`.",
			DeleteDescription: "Bound on removal. Default: `5m`.",
		}),
	}
	for _, f := range r.factories {
		if len(f.SandboxOptions) > 0 {
			attributes[f.Name] = sandboxOptions(f)
		}
	}
	maps.Copy(attributes, computedSandboxAttributes())
	resp.Schema = schema.Schema{
		MarkdownDescription: "An isolated sandbox. Every security-relevant value is concrete in the plan, and what the backend can't honour is refused there. " +
			"A sandbox that was stopped or paused outside is started again in place; one that is gone is planned anew.",
		Attributes: attributes,
	}
}

// timeoutsAttribute is the usual one, described.
func timeoutsAttribute(ctx context.Context, opts timeouts.Opts) schema.Attribute {
	attribute := timeouts.Attributes(ctx, opts)
	if nested, ok := attribute.(schema.SingleNestedAttribute); ok {
		nested.MarkdownDescription = "Bounds on operations, as Go durations such as `90s` or `10m`. A change is in place and touches nothing outside."
		return nested
	}
	return attribute
}

func computedSandboxAttributes() map[string]schema.Attribute {
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{MarkdownDescription: description, Computed: true}
	}
	return map[string]schema.Attribute{
		"id":         text("`<backend>/<sandbox id>`: what import and every `sandbox_id` argument take."),
		"sandbox_id": text("The backend's own id: on Docker the container's."),
		"state":      text("`running`, `stopped` or `paused`. Anything but `running` is planned as an in-place start."),
		"isolation":  text("Isolation tier that the sandbox has: `container`, `gvisor`, `microvm`, or `unknown` where nothing documented says so. It orders resistance to kernel escape only."),
		"image_id":   text("The backend's id of the image or template that the sandbox was made from. Known at plan if the backend has it already."),
		"created_at": text("Time of creation, RFC 3339 in UTC."),
		"expires_at": text("When `ttl` ends the sandbox, RFC 3339 in UTC; null without one."),
		"capabilities": schema.ListAttribute{
			MarkdownDescription: "What the sandbox can do, such as `RUN_COMMAND`.", Computed: true, ElementType: types.StringType,
		},
		"enforcement": schema.SingleNestedAttribute{
			MarkdownDescription: "What holds each promise, in the backend's terms; `none` where nothing does.",
			Computed:            true,
			Attributes: map[string]schema.Attribute{
				"cpu": text("What holds `resources.cpu`."), "memory": text("What holds `resources.memory_mb`."), "disk": text("What holds `resources.disk_mb`."),
				"pids": text("What holds the number of processes: on Docker 512."), "egress": text("What holds `network.egress`."),
			},
		},
	}
}
