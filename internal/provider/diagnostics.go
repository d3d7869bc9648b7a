// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

// pathChecker is a schema: it knows whether there is something at a path.
type pathChecker interface {
	TypeAtPath(ctx context.Context, p path.Path) (attr.Type, diag.Diagnostics)
}

// report adds err to diags: each of the core's errors at the attribute that it
// blames, where schema has it.
func report(ctx context.Context, diags *diag.Diagnostics, schema pathChecker, summary string, err error) {
	for _, e := range sandboxcore.Errors(err) {
		e = overdue(ctx, e)
		headline := summary + ": " + string(e.Kind)
		p, ok := fieldPath(e.Field)
		if ok && len(p.Steps()) > 1 || e.Field != "" && !ok {
			headline += " at " + e.Field
		}
		if ok {
			if _, missing := schema.TypeAtPath(ctx, p); !missing.HasError() {
				diags.AddAttributeError(shown(p), headline, explain(e))
				continue
			}
		}
		diags.AddError(headline, explain(e))
	}
}

// shown is how much of p Terraform finds a line for: an attribute of the resource, or an
// element of one. For an attribute inside an attribute it would show the resource's own
// line, so that stands at the outer one, and the summary has the rest.
func shown(p path.Path) path.Path {
	steps := p.Steps()
	if len(steps) == 1 {
		return p
	}
	if _, inner := steps[1].(path.PathStepAttributeName); inner || len(steps) > 2 {
		return path.Empty().AtName(steps[0].String())
	}
	return p
}

// overdue blames the deadline of ctx for what failed because of it.
func overdue(ctx context.Context, e *sandboxcore.Error) *sandboxcore.Error {
	deadline, ok := errors.AsType[*sandboxcore.Error](context.Cause(ctx))
	if !ok || e == deadline || !errors.Is(e, context.DeadlineExceeded) {
		return e
	}
	blamed := *deadline
	blamed.Reason += ": " + e.Reason
	return &blamed
}

// explain says what was asked and why it can't be, the cause, and what to do.
func explain(e *sandboxcore.Error) string {
	first, size := utf8.DecodeRuneInString(e.Reason)
	text := e.Reason
	if size > 0 {
		text = string(unicode.ToUpper(first)) + e.Reason[size:]
	}
	if e.Err != nil && e.Err.Error() != "" {
		text += ": " + e.Err.Error()
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	if e.Remedy != "" {
		text += "\n\n" + e.Remedy
	}
	return text
}

// warn adapts diags to the core's warnings.
func warn(diags *diag.Diagnostics) func(sandboxcore.Warning) {
	return func(w sandboxcore.Warning) { diags.AddWarning(w.Summary, w.Detail) }
}

// fieldStep is one step of a field's name: a name, an index, or a key in quotes.
var fieldStep = regexp.MustCompile(`^(?:\.?([a-z][a-z0-9_]*)|\[(\d+)\]|\["([^"]*)"\])`)

// fieldPath turns the core's name of a field, such as "network.allow[2]" or
// `labels["x"]`, into an attribute path.
func fieldPath(field string) (path.Path, bool) {
	p := path.Empty()
	for rest := field; rest != ""; {
		m := fieldStep.FindStringSubmatch(rest)
		switch {
		case m == nil:
			return p, false
		case m[1] != "":
			p = p.AtName(m[1])
		case m[2] != "":
			i, err := strconv.Atoi(m[2])
			if err != nil {
				return p, false
			}
			p = p.AtListIndex(i)
		default:
			p = p.AtMapKey(m[3])
		}
		rest = rest[len(m[0]):]
	}
	return p, field != ""
}
