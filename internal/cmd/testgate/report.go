// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// acceptance is how the names of acceptance tests begin.
const acceptance = "TestAcc"

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
	// Elapsed is in seconds.
	Elapsed float64
}

// test names one test or subtest. An empty Name is the package itself, or its build.
type test struct{ Package, Name string }

// report is what a run has said so far.
type report struct {
	out io.Writer
	// pending is the output of what hasn't ended yet.
	pending map[test]*strings.Builder
	// count is by outcome, of tests and subtests.
	passed, failed, skipped int
	// passedIn and failedIn count by package.
	passedIn, failedIn map[string]int
	accepted           int
	skips              []skip
}

type skip struct {
	test
	reason string
}

func newReport(out io.Writer) *report {
	return &report{
		out:      out,
		pending:  map[test]*strings.Builder{},
		passedIn: map[string]int{},
		failedIn: map[string]int{},
	}
}

// read takes in events until the end of in. What isn't an event is passed on as it is.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				_, _ = r.out.Write(line)
			} else {
				r.add(e)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("can't read the events: %w", err)
		}
	}
}

func (r *report) add(e event) {
	key := test{e.Package, e.Test}
	switch e.Action {
	case "output", "build-output":
		if e.Action == "build-output" {
			key = test{Package: e.ImportPath}
		}
		if r.pending[key] == nil {
			r.pending[key] = &strings.Builder{}
		}
		r.pending[key].WriteString(e.Output)
	case "build-fail":
		// The package's own "fail" follows and counts it.
		r.print(test{Package: e.ImportPath})
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e)
		} else {
			r.endTest(key, e.Action)
		}
	}
}

func (r *report) endTest(key test, outcome string) {
	switch outcome {
	case "pass":
		r.passed++
		r.passedIn[key.Package]++
		if strings.HasPrefix(key.Name, acceptance) && !strings.Contains(key.Name, "/") {
			r.accepted++
		}
	case "fail":
		r.failed++
		r.failedIn[key.Package]++
		r.print(key)
	case "skip":
		r.skipped++
		r.skips = append(r.skips, skip{key, r.reason(key)})
	}
	delete(r.pending, key)
}

// endPackage prints a package's line. A package without tests ends as "skip" and has none.
func (r *report) endPackage(e event) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(r.out, "ok    %s (%d passed, %.1fs)\n", e.Package, r.passedIn[e.Package], e.Elapsed)
	case "fail":
		if r.failedIn[e.Package] == 0 {
			// It didn't build, panicked, ran out of time, or TestMain failed.
			r.failed++
		}
		for _, key := range slices.SortedFunc(maps.Keys(r.pending), func(a, b test) int { return strings.Compare(a.Name, b.Name) }) {
			if key.Package == e.Package {
				r.print(key)
			}
		}
		fmt.Fprintf(r.out, "FAIL  %s (%.1fs)\n", e.Package, e.Elapsed)
	}
	maps.DeleteFunc(r.pending, func(key test, _ *strings.Builder) bool { return key.Package == e.Package })
}

// print writes out what key has said, and forgets it.
func (r *report) print(key test) {
	if out := r.pending[key]; out != nil {
		fmt.Fprint(r.out, out)
	}
	delete(r.pending, key)
}

// reason is what a skipped test said, without the lines that the testing package adds.
func (r *report) reason(key test) string {
	out := r.pending[key]
	if out == nil {
		return ""
	}
	var said []string
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}

// close prints the end of the report and says whether the run is good. Each text of
// allowed makes a skip fine whose reason contains it, save for acceptance tests.
func (r *report) close(allowed []string, elapsed time.Duration) bool {
	var refused []string
	if r.failed > 0 {
		refused = append(refused, fmt.Sprintf("%d failed", r.failed))
	}
	for _, s := range r.skips {
		verdict := "allowed"
		fine := func(text string) bool { return strings.Contains(s.reason, text) }
		switch {
		case strings.HasPrefix(s.Name, acceptance):
			verdict = "an acceptance test must run"
		case !slices.ContainsFunc(allowed, fine):
			verdict = "not allowed"
		}
		fmt.Fprintf(r.out, "skip  %s %s: %s (%s)\n", s.Package, s.Name, s.reason, verdict)
		if verdict != "allowed" {
			refused = append(refused, fmt.Sprintf("%s was skipped", s.Name))
		}
	}
	for _, text := range allowed {
		fmt.Fprintf(r.out, "skips are allowed that say %q\n", text)
	}
	if r.accepted == 0 {
		refused = append(refused, "no acceptance test passed")
	}
	for _, why := range refused {
		fmt.Fprintf(r.out, "this run doesn't count: %s\n", why)
	}
	fmt.Fprintf(r.out, "%d acceptance tests passed; all took %s\n", r.accepted, elapsed.Round(time.Second))
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	return len(refused) == 0
}
