// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/sandboxcore"
)

func TestExecRefusesAtValidate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change   object
		at, says string
	}{
		"neither":               {object{"command": nil}, "", "command,script"},
		"both":                  {object{"script": "true"}, "", "command,script"},
		"no program":            {object{"command": []any{""}}, "command", "no program"},
		"empty command":         {object{"command": []any{}}, "command", "at least 1"},
		"interpreter alone":     {object{"interpreter": []any{"sh"}}, "interpreter", "script"},
		"relative folder":       {object{"working_dir": "w"}, "working_dir", "absolute"},
		"timeout nonsense":      {object{"timeout": "soon"}, "timeout", "soon"},
		"timeout of zero":       {object{"timeout": "0s"}, "timeout", "greater than zero"},
		"no output":             {object{"max_output_bytes": 0}, "max_output_bytes", "between 1"},
		"env name":              {object{"env": object{"A=B": "secret"}}, "env", "A=B"},
		"id without a backend":  {object{"sandbox_id": "abc"}, "sandbox_id", "not the id"},
		"id without a sandbox":  {object{"sandbox_id": "stub/"}, "sandbox_id", "not the id"},
		"empty user":            {object{"user": ""}, "user", "at least 1"},
		"empty interpreter":     {object{"command": nil, "script": "x", "interpreter": []any{""}}, "script", "no program"},
		"timeout of no seconds": {object{"timeout": "-1s"}, "timeout", "greater than zero"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := newHarness(t, nil).validateExec(with(object{"sandbox_id": "stub/x", "command": []any{"true"}}, test.change))
			if len(found) != 1 || !strings.HasPrefix(found[0], test.at) || !strings.Contains(found[0], test.says) || strings.Contains(found[0], "secret") {
				t.Errorf("got %q, want one at %q that says %q", found, test.at, test.says)
			}
		})
	}
	for name, config := range map[string]object{
		"id":      {"sandbox_id": unknown, "command": []any{"true"}},
		"command": {"sandbox_id": "stub/x", "command": unknown},
		"part":    {"sandbox_id": "stub/x", "command": []any{unknown, "a"}},
		"script":  {"sandbox_id": "stub/x", "script": unknown, "timeout": unknown, "env": unknown},
	} {
		if found := newHarness(t, nil).validateExec(config); len(found) > 0 {
			t.Errorf("unknown %s: %q", name, found)
		}
	}
}

// execIn runs a command of this configuration in a sandbox whose Exec is run.
func execIn(t *testing.T, config object, run func(sandboxcore.Command) (sandboxcore.ExecResult, error)) (object, []string) {
	t.Helper()
	h := newHarness(t, nil)
	made, found := h.resource(sandboxType).apply(basic)
	if found != nil {
		t.Fatal(found)
	}
	h.backend.exec = run
	return h.readExec(with(config, object{"sandbox_id": made["id"]}))
}

func TestExecAsksFor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config object
		want   sandboxcore.Command
	}{
		"defaults": {
			object{"command": []any{"a", "b c"}},
			sandboxcore.Command{Argv: []string{"a", "b c"}, Env: map[string]string{}, Timeout: time.Minute, MaxOutputBytes: 1 << 20},
		},
		"script": {
			object{"script": "a | b"},
			sandboxcore.Command{Argv: []string{"sh", "-c", "a | b"}, Env: map[string]string{}, Timeout: time.Minute, MaxOutputBytes: 1 << 20},
		},
		"everything": {
			object{
				"script": "print(1)", "interpreter": []any{"python3", "-c"}, "env": object{"A": "1"}, "working_dir": "/w", "user": "u",
				"stdin": "in", "timeout": "5s", "max_output_bytes": 10,
			},
			sandboxcore.Command{
				Argv: []string{"python3", "-c", "print(1)"}, Env: map[string]string{"A": "1"}, WorkingDir: "/w", User: "u",
				Stdin: []byte("in"), Timeout: 5 * time.Second, MaxOutputBytes: 10,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got sandboxcore.Command
			_, found := execIn(t, test.config, func(cmd sandboxcore.Command) (sandboxcore.ExecResult, error) {
				got = cmd
				return sandboxcore.ExecResult{}, nil
			})
			if diff := cmp.Diff(test.want, got); diff != "" || found != nil {
				t.Errorf("%s %q", diff, found)
			}
		})
	}
}

func TestExecResult(t *testing.T) {
	t.Parallel()
	exact := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, test := range map[string]struct {
		result sandboxcore.ExecResult
		want   object
	}{
		"nothing":    {sandboxcore.ExecResult{}, object{"exit_code": 0.0, "ok": true, "stdout": "", "stderr": "", "stdout_base64": nil, "stderr_base64": nil}},
		"non-zero":   {sandboxcore.ExecResult{ExitCode: 126, Stdout: "o\n", Stderr: "e\n"}, object{"exit_code": 126.0, "ok": false, "stdout": "o\n", "stderr": "e\n"}},
		"not UTF-8":  {sandboxcore.ExecResult{Stdout: "a\xffb", Stderr: "ä"}, object{"stdout": "a\uFFFDb", "stdout_base64": exact("a\xffb"), "stderr": "ä", "stderr_base64": nil}},
		"NUL":        {sandboxcore.ExecResult{Stderr: "a\x00b"}, object{"stderr": "a\uFFFDb", "stderr_base64": exact("a\x00b"), "stdout_base64": nil}},
		"truncated":  {sandboxcore.ExecResult{Stdout: "x", StdoutTruncated: true}, object{"stdout_truncated": true, "stderr_truncated": false}},
		"its U+FFFD": {sandboxcore.ExecResult{Stdout: "\uFFFD"}, object{"stdout": "\uFFFD", "stdout_base64": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, found := execIn(t, object{"command": []any{"x"}}, func(sandboxcore.Command) (sandboxcore.ExecResult, error) { return test.result, nil })
			if found != nil {
				t.Fatal(found)
			}
			for attribute, want := range test.want {
				if diff := cmp.Diff(want, got[attribute]); diff != "" {
					t.Errorf("%s: %s", attribute, diff)
				}
			}
		})
	}
}

// What never ran, or didn't end by itself, is an error of its own and no result.
func TestExecErrors(t *testing.T) {
	t.Parallel()
	script := object{"script": "x", "env": object{"TOKEN": "hunter2"}, "stdin": "hunter2"}
	for name, test := range map[string]struct {
		config   object
		err      *sandboxcore.Error
		at, says string
	}{
		"can't start":         {script, &sandboxcore.Error{Kind: sandboxcore.KindCannotStart, Field: "command[0]", Reason: "sh is not found"}, "script", "CannotStart"},
		"command not found":   {object{"command": []any{"x"}}, &sandboxcore.Error{Kind: sandboxcore.KindCannotStart, Field: "command[0]", Reason: "x is not found"}, "command[0]", "CannotStart"},
		"working_dir":         {script, &sandboxcore.Error{Kind: sandboxcore.KindCannotStart, Field: "working_dir", Reason: "there is no /w"}, "", "CannotStart"},
		"timeout":             {script, &sandboxcore.Error{Kind: sandboxcore.KindTimeout, Field: "timeout", Reason: "it did not end within 1s"}, "timeout", "Timeout"},
		"not running":         {script, sandboxcore.Errorf(sandboxcore.KindNotRunning, "it is paused"), "", "NotRunning"},
		"backend unavailable": {script, sandboxcore.Errorf(sandboxcore.KindBackendUnavailable, "no answer"), "", "BackendUnavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, found := execIn(t, test.config, func(sandboxcore.Command) (sandboxcore.ExecResult, error) {
				return sandboxcore.ExecResult{}, test.err
			})
			if len(found) != 1 || got != nil || !strings.HasPrefix(found[0], test.at) || !strings.Contains(found[0], test.says) || strings.Contains(found[0], "hunter2") {
				t.Errorf("got %q, %v", found, got)
			}
		})
	}
	t.Run("fail_on_error", func(t *testing.T) {
		t.Parallel()
		exit := func(code int) func(sandboxcore.Command) (sandboxcore.ExecResult, error) {
			return func(sandboxcore.Command) (sandboxcore.ExecResult, error) {
				return sandboxcore.ExecResult{ExitCode: code, Stderr: strings.Repeat("x", 5000) + "why"}, nil
			}
		}
		config := object{"command": []any{"x"}, "fail_on_error": true}
		if _, found := execIn(t, config, exit(5)); len(found) != 1 || !strings.Contains(found[0], "code 5") || !strings.HasSuffix(found[0], "why") || len(found[0]) > 4500 {
			t.Errorf("got %q", found)
		}
		if _, found := execIn(t, config, exit(0)); found != nil {
			t.Errorf("got %q", found)
		}
	})
	for id, test := range map[string]struct{ at, says string }{
		"stub/none": {"", "NotFound"}, "other/x": {"", "no backend"},
	} {
		if _, found := newHarness(t, nil).readExec(object{"sandbox_id": id, "command": []any{"x"}}); len(found) != 1 || !strings.Contains(found[0], test.says) {
			t.Errorf("%s: %q", id, found)
		}
	}
	h := newHarness(t, object{"default_backend": "stub", "stub": object{"host": unknown}})
	if _, found := h.readExec(object{"sandbox_id": "stub/x", "command": []any{"x"}}); len(found) != 1 || !strings.Contains(found[0], "not known yet") || h.opened != 0 {
		t.Errorf("unknown provider configuration: %q, %d opened", found, h.opened)
	}
}
