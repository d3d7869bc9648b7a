// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework-validators/datasourcevalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

var (
	_ datasource.DataSourceWithConfigure        = (*execDataSource)(nil)
	_ datasource.DataSourceWithValidateConfig   = (*execDataSource)(nil)
	_ datasource.DataSourceWithConfigValidators = (*execDataSource)(nil)
)

const (
	defaultExecTimeout    = "60s"
	defaultMaxOutputBytes = 1 << 20
)

// execDataSource is data.sandboxio_exec.
type execDataSource struct{ run *run }

type execModel struct {
	SandboxID       types.String `tfsdk:"sandbox_id"`
	Command         types.List   `tfsdk:"command"`
	Script          types.String `tfsdk:"script"`
	Interpreter     types.List   `tfsdk:"interpreter"`
	Env             types.Map    `tfsdk:"env"`
	WorkingDir      types.String `tfsdk:"working_dir"`
	User            types.String `tfsdk:"user"`
	Stdin           types.String `tfsdk:"stdin"`
	Timeout         types.String `tfsdk:"timeout"`
	FailOnError     types.Bool   `tfsdk:"fail_on_error"`
	MaxOutputBytes  types.Int64  `tfsdk:"max_output_bytes"`
	ExitCode        types.Int64  `tfsdk:"exit_code"`
	OK              types.Bool   `tfsdk:"ok"`
	Stdout          types.String `tfsdk:"stdout"`
	Stderr          types.String `tfsdk:"stderr"`
	StdoutBase64    types.String `tfsdk:"stdout_base64"`
	StderrBase64    types.String `tfsdk:"stderr_base64"`
	StdoutTruncated types.Bool   `tfsdk:"stdout_truncated"`
	StderrTruncated types.Bool   `tfsdk:"stderr_truncated"`
}

func (d *execDataSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = TypeName + "_exec"
}

func (d *execDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.run = configured(req.ProviderData, &resp.Diagnostics)
}

func (d *execDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Runs a command in a sandbox **each time Terraform reads it: in every `plan`, `apply` and `refresh`, and in `destroy`**, so use it for commands that only look. " +
			"It waits for the apply while the sandbox is new or has planned changes. A reference to the sandbox's `id` is all that orders it; `depends_on` would make every plan non-empty.\n\n" +
			"A non-zero exit code is data. A command that can't be started, times out, or meets a sandbox that doesn't run is an error of its own, never output.",
		Attributes: map[string]schema.Attribute{
			"sandbox_id": schema.StringAttribute{MarkdownDescription: "`id` of the sandbox.", Required: true},
			"command": schema.ListAttribute{
				MarkdownDescription: "Program and arguments; no shell is involved. Exactly one of `command` and `script` is set.",
				Optional:            true, ElementType: types.StringType, Validators: []validator.List{listvalidator.SizeAtLeast(1), listvalidator.NoNullValues()},
			},
			"script": schema.StringAttribute{MarkdownDescription: "Script for the `interpreter`.", Optional: true},
			"interpreter": schema.ListAttribute{
				MarkdownDescription: "Argv that gets `script` as its last argument. Default: `[\"sh\", \"-c\"]`.",
				Optional:            true, ElementType: types.StringType, Validators: []validator.List{
					listvalidator.SizeAtLeast(1), listvalidator.NoNullValues(), listvalidator.AlsoRequires(path.MatchRoot("script")),
				},
			},
			"env": schema.MapAttribute{
				MarkdownDescription: "Environment variables, over the sandbox's own.", Optional: true, Sensitive: true, ElementType: types.StringType,
				Validators: []validator.Map{mapvalidator.NoNullValues()},
			},
			"working_dir": schema.StringAttribute{
				MarkdownDescription: "Absolute path. Default: the sandbox's own.", Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"user": schema.StringAttribute{
				MarkdownDescription: "User, by name or id. Default: the sandbox's own.", Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"stdin":   schema.StringAttribute{MarkdownDescription: "What the command reads. Default: nothing.", Optional: true, Sensitive: true},
			"timeout": schema.StringAttribute{MarkdownDescription: "Bound on the run, as a Go duration; the whole process tree is killed at its end. Default: `" + defaultExecTimeout + "`.", Optional: true},
			"fail_on_error": schema.BoolAttribute{
				MarkdownDescription: "Make a non-zero exit code an error, with the end of stderr in it. Default: `false`.", Optional: true,
			},
			"max_output_bytes": schema.Int64Attribute{
				MarkdownDescription: "Bytes kept of each stream; what is beyond is dropped and told by `stdout_truncated` and `stderr_truncated`. Default: `1048576`.",
				Optional:            true, Validators: []validator.Int64{int64validator.Between(1, 64<<20)},
			},
			"exit_code":        schema.Int64Attribute{MarkdownDescription: "Exit code; 128 plus the signal's number for a command that a signal ended.", Computed: true},
			"ok":               schema.BoolAttribute{MarkdownDescription: "Whether the exit code is 0.", Computed: true},
			"stdout":           schema.StringAttribute{MarkdownDescription: "Standard output. Bytes that aren't UTF-8, and NUL, are replaced by U+FFFD.", Computed: true},
			"stderr":           schema.StringAttribute{MarkdownDescription: "Standard error, likewise.", Computed: true},
			"stdout_base64":    schema.StringAttribute{MarkdownDescription: "Exact bytes of standard output where `stdout` had to replace some, else null.", Computed: true},
			"stderr_base64":    schema.StringAttribute{MarkdownDescription: "Exact bytes of standard error where `stderr` had to replace some, else null.", Computed: true},
			"stdout_truncated": schema.BoolAttribute{MarkdownDescription: "Whether standard output was longer than `max_output_bytes`.", Computed: true},
			"stderr_truncated": schema.BoolAttribute{MarkdownDescription: "Whether standard error was longer than `max_output_bytes`.", Computed: true},
		},
	}
}

func (d *execDataSource) ConfigValidators(context.Context) []datasource.ConfigValidator {
	return []datasource.ConfigValidator{datasourcevalidator.ExactlyOneOf(path.MatchRoot("command"), path.MatchRoot("script"))}
}

func (d *execDataSource) ValidateConfig(ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	var config execModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	cmd, err := config.toCommand()
	if len(cmd.Argv) > 0 {
		err = errors.Join(err, cmd.Validate())
	}
	if known(config.SandboxID) {
		_, _, idErr := sandboxcore.ParseID(config.SandboxID.ValueString())
		err = errors.Join(err, idErr)
	}
	report(ctx, &resp.Diagnostics, req.Config.Schema, "Invalid command", config.blame(err))
}

// toCommand is the command as far as it's known.
func (m execModel) toCommand() (sandboxcore.Command, error) {
	var errs errorList
	cmd := sandboxcore.Command{
		WorkingDir: m.WorkingDir.ValueString(), User: m.User.ValueString(), MaxOutputBytes: defaultMaxOutputBytes,
	}
	timeout := m.Timeout
	if timeout.IsNull() {
		timeout = types.StringValue(defaultExecTimeout)
	}
	cmd.Timeout = errs.positiveDuration("timeout", timeout)
	cmd.Env, _ = stringMap(m.Env)
	if known(m.Stdin) {
		cmd.Stdin = []byte(m.Stdin.ValueString())
	}
	if known(m.MaxOutputBytes) {
		cmd.MaxOutputBytes = int(m.MaxOutputBytes.ValueInt64())
	}
	switch {
	case known(m.Script):
		interpreter, _ := stringList(m.Interpreter)
		if m.Interpreter.IsNull() {
			interpreter = []string{"sh", "-c"}
		}
		cmd.Argv = slices.Concat(interpreter, []string{m.Script.ValueString()})
	default:
		argv, all := stringList(m.Command)
		if all {
			cmd.Argv = argv
		}
	}
	return cmd, errs.err()
}

func (d *execDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	const summary = "Unable to run command"
	var model execModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	cmd, err := model.toCommand()
	// The command's own timeout begins when it starts: the sandbox has to be found first.
	ctx, cancel := bounded(ctx, "timeout", defaultReadTimeout+cmd.Timeout)
	defer cancel()
	var result sandboxcore.ExecResult
	if err == nil {
		result, err = d.exec(ctx, model.SandboxID.ValueString(), cmd)
	}
	if err != nil {
		report(ctx, &resp.Diagnostics, req.Config.Schema, summary, model.blame(err))
		return
	}
	if model.FailOnError.ValueBool() && !result.OK() {
		resp.Diagnostics.AddAttributeError(path.Root("fail_on_error"), fmt.Sprintf("Command exited with code %d", result.ExitCode),
			"fail_on_error is set.\n\n"+tail(result.Stderr))
		return
	}
	model.observe(result)
	resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
}

// blame points errors of the command at what the user wrote.
func (m execModel) blame(err error) error {
	var errs errorList
	for _, e := range sandboxcore.Errors(err) {
		switch {
		case e.Field == "id":
			e.Field = "sandbox_id"
		case strings.HasPrefix(e.Field, "command") && m.Command.IsNull():
			e.Field = "script"
		}
		errs.add(e)
	}
	return errs.err()
}

func (d *execDataSource) exec(ctx context.Context, id string, cmd sandboxcore.Command) (sandboxcore.ExecResult, error) {
	name, sandboxID, err := sandboxcore.ParseID(id)
	if err != nil {
		return sandboxcore.ExecResult{}, err
	}
	backend, err := d.run.backend(name)
	if err != nil {
		return sandboxcore.ExecResult{}, err
	}
	sandbox, err := backend.Get(ctx, sandboxID)
	if err != nil {
		return sandboxcore.ExecResult{}, err
	}
	return sandbox.Exec(ctx, cmd)
}

func (m *execModel) observe(r sandboxcore.ExecResult) {
	m.ExitCode, m.OK = types.Int64Value(int64(r.ExitCode)), types.BoolValue(r.OK())
	m.Stdout, m.StdoutBase64 = textAndBytes(r.Stdout)
	m.Stderr, m.StderrBase64 = textAndBytes(r.Stderr)
	m.StdoutTruncated, m.StderrTruncated = types.BoolValue(r.StdoutTruncated), types.BoolValue(r.StderrTruncated)
}

// textAndBytes returns output as a string that Terraform can hold, and its exact bytes
// where that isn't the same.
func textAndBytes(output string) (text, exact types.String) {
	if utf8.ValidString(output) && !strings.Contains(output, "\x00") {
		return types.StringValue(output), types.StringNull()
	}
	printable := strings.ReplaceAll(strings.ToValidUTF8(output, "\uFFFD"), "\x00", "\uFFFD")
	return types.StringValue(printable), types.StringValue(base64.StdEncoding.EncodeToString([]byte(output)))
}

// tail is the end of a text, for an error.
func tail(text string) string {
	const most = 4096
	if len(text) > most {
		text = "…" + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return strings.TrimSpace(text)
}
