// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/bits"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// Value objects compare with ==, and no copy can change another.
func TestValueObjectsAreFrozen(t *testing.T) {
	t.Parallel()
	for _, v := range []any{Resources{}, NetworkPolicy{}, RichOutput{}, FileInfo{}, ManagedSandbox{}, ExecResult{}, Template{}, TemplateInfo{}, Readiness{}, Evidence{}, TierOffer{}, Enforcement{}} {
		if typ := reflect.TypeOf(v); !typ.Comparable() {
			t.Errorf("%s isn't comparable", typ)
		} else if path := mutable(typ); path != "" {
			t.Errorf("%s%s can be changed through a copy", typ, path)
		}
	}
	// The search itself: it has to find what is deep inside.
	if path := mutable(reflect.TypeFor[struct{ A Opt[struct{ B *int }] }]()); path != ".A.value.B" {
		t.Errorf("%q", path)
	}
}

// mutable returns the path to what copies of a value of typ would share, or "".
func mutable(typ reflect.Type) string {
	switch {
	case typ == reflect.TypeFor[time.Time]():
		return "" // its only pointer is to a location, which is never written
	case strings.HasPrefix(typ.Name(), "Tuple["):
		return "" // holds an array in an interface: see TestCopiesAreOwn
	}
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Func, reflect.Chan, reflect.Interface, reflect.UnsafePointer:
		return " "
	case reflect.Struct:
		for f := range typ.Fields() {
			if path := mutable(f.Type); path != "" {
				return "." + f.Name + strings.TrimSpace(path)
			}
		}
	}
	return ""
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
			return ManagedSandbox{Labels: LabelsOf(map[string]string{"h": "1", "g": "2", "f": "3", "e": "4", "d": "5", "c": "6", "b": "7", "a": v}), CreatedAt: Timestamp(now)}
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
	ranked := map[string]int{}
	for _, tier := range IsolationTiers() {
		ranked[tier.String()] = tierRanks[tier]
	}
	// Spaced by ten, so that a tier can be inserted.
	if want := map[string]int{"unknown": 0, "container": 10, "gvisor": 20, "microvm": 30}; !maps.Equal(ranked, want) {
		t.Errorf("ranks %v, want %v", ranked, want)
	}
	declared := declaredTiers(t)
	for _, name := range declared {
		if _, ok := ranked[strings.ToLower(strings.TrimPrefix(name, "Tier"))]; !ok {
			t.Errorf("%s has no rank", name)
		}
	}
	if len(declared) != len(ranked) {
		t.Errorf("%q are declared, %v have a rank", declared, ranked)
	}
}

// declaredTiers are the names of the package's variables that begin with Tier.
func declaredTiers(t *testing.T) (names []string) {
	t.Helper()
	sources, err := filepath.Glob("*.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("%v, %v", sources, err)
	}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			vars, ok := decl.(*ast.GenDecl)
			if !ok || vars.Tok != token.VAR {
				continue
			}
			for _, spec := range vars.Specs {
				values, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for _, name := range values.Names {
					if strings.HasPrefix(name.Name, "Tier") {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

func TestTierNames(t *testing.T) {
	t.Parallel()
	for _, tier := range IsolationTiers() {
		if parsed, err := ParseIsolationTier(tier.String()); err != nil || parsed != tier {
			t.Errorf("%s: %v, %v", tier, parsed, err)
		}
	}
	for _, name := range []string{"vm", "", "Container"} {
		if _, err := ParseIsolationTier(name); !Is(err, KindConfiguration) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Neither arithmetic nor lexical order: a struct has no operators but ==.
func TestTiersCannotBeAdded(t *testing.T) {
	t.Parallel()
	if kind := reflect.TypeFor[IsolationTier]().Kind(); kind != reflect.Struct {
		t.Errorf("a tier is a %s, which can be added or compared by accident", kind)
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

// Removing or renaming one breaks callers.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	want := []string{
		"RUN_COMMAND", "RUN_CODE", "STATEFUL_CODE", "STREAMING", "FILESYSTEM", "UPLOAD_DOWNLOAD", "PTY", "PAUSE_RESUME", "SNAPSHOT_FORK",
		"GPU", "LSP", "GIT", "NETWORK_POLICY", "TUNNELS", "COST_REPORTING",
	}
	var names []string
	var all Capability
	for _, c := range AllCapabilities() {
		names = append(names, c.String())
		if all.Has(c) || bits.OnesCount32(uint32(c)) != 1 {
			t.Errorf("%s is no flag of its own", c)
		}
		all |= c
	}
	if !slices.Equal(names, want) || !slices.Equal(all.Names(), want) {
		t.Errorf("%q and %q, want %q", names, all.Names(), want)
	}
	if c := RunCommand | Git; !c.Has(Git) || c.Has(Git|LSP) || c.String() != "RUN_COMMAND|GIT" || Capability(0).String() != "" {
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
	loud := &doubleProcess{chunks: []Chunk{chunk(Stderr, "abcd"), chunk(Stdout, "o")}}
	if got, err := Collect(t.Context(), loud, 3); err != nil || got != (ExecResult{Stdout: "o", Stderr: "abc", StderrTruncated: true}) {
		t.Errorf("each stream has its own cap: %+v, %v", got, err)
	}
	cut := errors.New("cut")
	if _, err := Collect(t.Context(), &doubleProcess{chunks: loud.chunks, cut: cut}, 0); !errors.Is(err, cut) {
		t.Errorf("a stream that was cut: %v", err)
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
	// A wrapper on the way hides none of them.
	if all := Errors(fmt.Errorf("creating: %w", errors.Join(one, two))); len(all) != 2 || all[0] != one || all[1] != two {
		t.Errorf("wrapped: %v", all)
	}
	if all := Errors(fmt.Errorf("creating: %w", two)); len(all) != 1 || all[0] != two {
		t.Errorf("wrapped: %v", all)
	}
	foreign := fmt.Errorf("doing y: %w", cause)
	if all := Errors(foreign); len(all) != 1 || all[0].Kind != KindBackend || all[0].Error() != "BackendError: doing y: cause" || !errors.Is(all[0], cause) {
		t.Errorf("foreign: %v", all)
	}
	if e, ok := errors.AsType[*Error](fmt.Errorf("x: %w", two)); !ok || e != two {
		t.Errorf("%v", e)
	}
	if !Is(errors.Join(cause, two), KindConfiguration) || Is(two, KindBackend) {
		t.Error("an error is of its own kind, joined or not")
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

func TestSettings(t *testing.T) {
	t.Parallel()
	s := Settings{"s": "x", "b": true, "i": int64(3), "l": []string{"a"}}
	if s.String("s") != "x" || !s.Bool("b") || s.Int("i") != 3 || !slices.Equal(s.Strings("l"), []string{"a"}) {
		t.Errorf("%v", s)
	}
	for _, absent := range []Settings{nil, {"x": 1.5}} {
		if absent.String("x") != "" || absent.Bool("x") || absent.Int("x") != 0 || absent.Strings("x") != nil {
			t.Errorf("%v", absent)
		}
	}
}

func TestTimeToLiveIsOver(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, test := range map[string]struct {
		expires time.Time
		want    bool
	}{"never": {time.Time{}, false}, "later": {now.Add(1), false}, "now": {now, true}, "before": {now.Add(-1), true}} {
		if got := (Info{ExpiresAt: test.expires}).Expired(now); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
