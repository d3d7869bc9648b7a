// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// Value objects compare with ==, and no copy can change another.
func TestValueObjectsAreFrozen(t *testing.T) {
	t.Parallel()
	for _, v := range []any{Resources{}, NetworkPolicy{}, RichOutput{}, FileInfo{}, ManagedSandbox{}, ExecResult{}, Template{}, Readiness{}, Evidence{}, TierOffer{}, Enforcement{}} {
		typ := reflect.TypeOf(v)
		if !typ.Comparable() {
			t.Errorf("%s isn't comparable", typ)
		}
		for f := range typ.Fields() {
			switch f.Type.Kind() {
			case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Func, reflect.Chan:
				t.Errorf("%s.%s can be changed through a copy", typ, f.Name)
			}
		}
	}
}

func TestValueObjectsAreEqualByValue(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, value := range map[string]func(variant string) any{
		"Resources":     func(v string) any { return Resources{CPU: Some(1.5), GPU: Some(v)} },
		"NetworkPolicy": func(v string) any { return NetworkPolicy{Allow: TupleOf("a", v), IngressPorts: TupleOf(1, 2)} },
		"RichOutput":    func(v string) any { return RichOutput{"text/html", v} },
		"FileInfo":      func(v string) any { return FileInfo{Path: v, Size: 1} },
		"ManagedSandbox": func(v string) any {
			return ManagedSandbox{Labels: LabelsOf(map[string]string{"b": "1", "a": v}), CreatedAt: Timestamp(now)}
		},
		"ExecResult": func(v string) any { return ExecResult{Stdout: v, Results: Some(TupleOf(RichOutput{"a", "b"}))} },
	} {
		if value("x") != value(string([]byte("x"))) {
			t.Errorf("%s: equal values aren't ==", name)
		}
		if value("x") == value("y") {
			t.Errorf("%s: different values are ==", name)
		}
	}
	if Timestamp(now) != Timestamp(now.In(time.FixedZone("x", 3600)).Round(0)) || Timestamp(time.Time{}).IsSet() {
		t.Error("equal instants have to be ==, and the zero time is none")
	}
}

func TestCopiesAreOwn(t *testing.T) {
	t.Parallel()
	items := []string{"a", "b"}
	tuple := TupleOf(items...)
	items[0] = "changed"
	tuple.Slice()[1] = "changed"
	if !slices.Equal(tuple.Slice(), []string{"a", "b"}) || tuple.Len() != 2 {
		t.Errorf("%v", tuple.Slice())
	}
	m := map[string]string{"a": "1"}
	labels := LabelsOf(m)
	m["a"], labels.Map()["a"] = "changed", "changed"
	if v, ok := labels.Get("a"); v != "1" || !ok || labels.Len() != 1 {
		t.Errorf("%v", labels.Map())
	}
}

// The source is asked, so that a tier that is added and forgotten in the ranks is found.
func TestEveryTierHasARank(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "isolation.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	for _, decl := range file.Decls {
		vars, ok := decl.(*ast.GenDecl)
		if !ok || vars.Tok != token.VAR {
			continue
		}
		for _, spec := range vars.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Tier") {
				declared++
			}
		}
	}
	if declared < 4 || declared != len(IsolationTiers()) {
		t.Errorf("%d tiers are declared, %d have a rank", declared, len(IsolationTiers()))
	}
	for i, tier := range IsolationTiers() {
		if rank := tierRanks[tier]; rank != 10*i {
			t.Errorf("%s has rank %d, want %d: spaced by ten", tier, rank, 10*i)
		}
		if parsed, err := ParseIsolationTier(tier.String()); err != nil || parsed != tier {
			t.Errorf("%s: %v, %v", tier, parsed, err)
		}
	}
	if _, err := ParseIsolationTier("vm"); !Is(err, KindConfiguration) {
		t.Errorf("%v", err)
	}
	// Neither arithmetic nor lexical order: a struct has no operators but ==.
	if reflect.TypeFor[IsolationTier]().Kind() != reflect.Struct {
		t.Error("a tier that isn't a struct can be added or compared by accident")
	}
}

func TestTierOrder(t *testing.T) {
	t.Parallel()
	order := []IsolationTier{TierUnknown, TierContainer, TierGVisor, TierMicroVM}
	for i, a := range order {
		for j, b := range order {
			if a.Less(b) != (i < j) || a.AtMost(b) != (i <= j) || a.More(b) != (i > j) || a.AtLeast(b) != (i >= j) {
				t.Errorf("%s and %s are out of order", a, b)
			}
			if want := i > 0 && j > 0 && i >= j; a.Satisfies(b) != want {
				t.Errorf("%s satisfies %s: %v", a, b, !want)
			}
		}
	}
	var zero IsolationTier
	if zero != TierUnknown || zero.String() != "unknown" {
		t.Error("who claims nothing has to get unknown")
	}
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	if len(AllCapabilities()) != 15 {
		t.Errorf("%d capabilities", len(AllCapabilities()))
	}
	for _, c := range AllCapabilities() {
		if c.String() == "" {
			t.Errorf("%d has no name", c)
		}
	}
	if c := RunCommand | Git; !c.Has(Git) || c.Has(Git|LSP) || c.String() != "RUN_COMMAND|GIT" {
		t.Errorf("%s", c)
	}
}

func TestExecResultStatus(t *testing.T) {
	t.Parallel()
	if r := (ExecResult{}); !r.OK() || r.RaiseForStatus() != nil {
		t.Error("code 0 is ok")
	}
	r := ExecResult{ExitCode: 3, Stdout: "s3cr3t"}
	err := r.RaiseForStatus()
	execution, ok := errors.AsType[*ExecutionError](err)
	if r.OK() || !ok || execution.Result != r || !Is(err, KindExecution) || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("%v", err)
	}
}

func TestCollect(t *testing.T) {
	t.Parallel()
	chunk := func(s Stream, data string) Chunk { return Chunk{s, []byte(data)} }
	p := &doubleProcess{chunks: []Chunk{chunk(Stdout, "ab"), chunk(Stderr, "x"), chunk(Stdout, "cd")}, result: ExecResult{ExitCode: 2}}
	for limit, want := range map[int]ExecResult{
		0: {ExitCode: 2, Stdout: "abcd", Stderr: "x"},
		3: {ExitCode: 2, Stdout: "abc", Stderr: "x", StdoutTruncated: true},
		4: {ExitCode: 2, Stdout: "abcd", Stderr: "x"},
	} {
		if got, err := Collect(t.Context(), p, limit); err != nil || got != want {
			t.Errorf("cap %d: %+v, %v", limit, got, err)
		}
	}
}

func TestErrorsAreFlattenedAndTold(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	one := Errorf(KindBackend, "doing x: %w", cause)
	two := Configuration("resources.cpu", "too much", "Ask for less.")
	all := Errors(errors.Join(one, errors.Join(two, cause)))
	if len(all) != 3 || all[0] != one || all[1] != two || all[2].Kind != KindBackend {
		t.Errorf("%v", all)
	}
	if !errors.Is(one, cause) || one.Error() != "BackendError: doing x: cause" {
		t.Errorf("%v", one)
	}
	if two.Error() != "ConfigurationError at resources.cpu: too much (Ask for less.)" {
		t.Errorf("%v", two)
	}
	if Errors(nil) != nil || Is(nil, KindBackend) {
		t.Error("no error is no error")
	}
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	states := []State{StateCreating, StateRunning, StateKilled, StateFailed}
	legal := map[[2]State]bool{
		{StateCreating, StateRunning}: true, {StateCreating, StateKilled}: true, {StateCreating, StateFailed}: true,
		{StateRunning, StateKilled}: true, {StateRunning, StateFailed}: true,
	}
	for _, from := range states {
		for _, to := range states {
			l := Lifecycle{state: from}
			if err := l.To(to); (err == nil) != (from == to || legal[[2]State{from, to}]) {
				t.Errorf("%s to %s: %v", from, to, err)
			}
		}
	}
	if l := (&Lifecycle{}); l.State() != StateCreating {
		t.Errorf("it begins as %s", l.State())
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	if b, id, err := ParseID(FormatID("docker", "a/b")); b != "docker" || id != "a/b" || err != nil {
		t.Errorf("%s %s %v", b, id, err)
	}
	for _, bad := range []string{"", "x", "/x", "x/"} {
		if _, _, err := ParseID(bad); !Is(err, KindConfiguration) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
