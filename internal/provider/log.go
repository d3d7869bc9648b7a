// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"log/slog"
	"slices"

	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// terraformLogger logs to Terraform. It works only with a context of the framework's.
var terraformLogger = slog.New(tflogHandler{})

type tflogHandler struct{ attrs []slog.Attr }

func (h tflogHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h tflogHandler) Handle(ctx context.Context, record slog.Record) error {
	fields := map[string]any{}
	add := func(a slog.Attr) bool { fields[a.Key] = a.Value.String(); return true }
	for _, a := range h.attrs {
		add(a)
	}
	record.Attrs(add)
	switch {
	case record.Level >= slog.LevelError:
		tflog.Error(ctx, record.Message, fields)
	case record.Level >= slog.LevelWarn:
		tflog.Warn(ctx, record.Message, fields)
	case record.Level >= slog.LevelInfo:
		tflog.Info(ctx, record.Message, fields)
	default:
		tflog.Debug(ctx, record.Message, fields)
	}
	return nil
}

func (h tflogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return tflogHandler{append(slices.Clip(h.attrs), attrs...)}
}

// WithGroup is not used by the core: its attributes are flat.
func (h tflogHandler) WithGroup(string) slog.Handler { return h }
