// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// ended is what `go test -json` says of a test that ran to its end.
func ended(name, outcome, output string) string {
	return fmt.Sprintf(`{"Action":"run","Package":"p","Test":%[1]q}
{"Action":"output","Package":"p","Test":%[1]q,"Output":"=== RUN   %[1]s\n"}
{"Action":"output","Package":"p","Test":%[1]q,"Output":%[3]q}
{"Action":"output","Package":"p","Test":%[1]q,"Output":"--- END: %[1]s (0.00s)\n"}
{"Action":%[2]q,"Package":"p","Test":%[1]q}
`, name, outcome, output)
}

func TestGate(t *testing.T) {
	t.Parallel()
	const (
		goodAcc     = "TestAccSandbox"
		passPackage = `{"Action":"pass","Package":"p","Elapsed":1.25}` + "\n"
		failPackage = `{"Action":"fail","Package":"p","Elapsed":1.25}` + "\n"
	)
	good := ended(goodAcc, "pass", "quiet\n")
	tests := map[string]struct {
		events string
		ok     bool
		want   []string
		not    []string
	}{
		"all passed": {
			events: good + ended("TestOne", "pass", "chatter\n") + passPackage,
			ok:     true,
			want:   []string{"ok    p (2 passed, 1.2s)\n", "1 acceptance tests passed", "2 passed, 0 failed, 0 skipped\n"},
			not:    []string{"chatter", "doesn't count"},
		},
		"a failure shows its output and no other's": {
			events: good + ended("TestOne", "fail", "one.go:1: got 2\n") + ended("TestTwo", "pass", "chatter\n") + failPackage,
			want:   []string{"one.go:1: got 2\n", "FAIL  p", "2 passed, 1 failed, 0 skipped\n"},
			not:    []string{"chatter"},
		},
		"an acceptance test was skipped, whatever it says": {
			events: good + ended("TestAccOther", "skip", "fine by the list\n") + passPackage,
			want:   []string{"TestAccOther was skipped", "1 passed, 0 failed, 1 skipped\n"},
		},
		"a part of an acceptance test was skipped": {
			events: good + ended("TestAccSandbox/part", "skip", "fine by the list\n") + passPackage,
			want:   []string{"TestAccSandbox/part was skipped"},
		},
		"no acceptance test ran": {
			events: ended("TestOne", "pass", "") + passPackage,
			want:   []string{"no acceptance test passed", "1 passed, 0 failed, 0 skipped\n"},
		},
		"nothing ran at all": {
			want: []string{"no acceptance test passed", "0 passed, 0 failed, 0 skipped\n"},
		},
		"a skip that is allowed": {
			events: good + ended("TestOne", "skip", "one_test.go:9: this is fine by the list\n") + passPackage,
			ok:     true,
			want:   []string{"skip  p TestOne: one_test.go:9: this is fine by the list (allowed)\n", "1 passed, 0 failed, 1 skipped\n"},
		},
		"a skip that isn't": {
			events: good + ended("TestOne", "skip", "no engine\n") + passPackage,
			want:   []string{"TestOne: no engine (not allowed)", "TestOne was skipped"},
		},
		"a package that doesn't build": {
			events: good + passPackage + `{"ImportPath":"q [q.test]","Action":"build-output","Output":"q.go:1: undefined: x\n"}
{"ImportPath":"q [q.test]","Action":"build-fail"}
{"Action":"output","Package":"q","Output":"FAIL\tq [build failed]\n"}
{"Action":"fail","Package":"q","FailedBuild":"q [q.test]"}
`,
			want: []string{"q.go:1: undefined: x\n", "FAIL  q", "1 passed, 1 failed, 0 skipped\n"},
		},
		"a package that ends in the middle of a test": {
			events: good + `{"Action":"run","Package":"p","Test":"TestHangs"}
{"Action":"output","Package":"p","Test":"TestHangs","Output":"panic: test timed out\n"}
` + failPackage,
			want: []string{"panic: test timed out\n", "FAIL  p", "1 passed, 1 failed, 0 skipped\n"},
		},
		"a package without tests has no line": {
			events: good + passPackage + `{"Action":"output","Package":"q","Output":"?   \tq\t[no test files]\n"}
{"Action":"skip","Package":"q"}
`,
			ok:  true,
			not: []string{"no test files"},
		},
		"what isn't an event is passed on": {
			events: "go: something went wrong\n" + good + passPackage,
			ok:     true,
			want:   []string{"go: something went wrong\n"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			r := newReport(&out)
			if err := r.read(strings.NewReader(tc.events)); err != nil {
				t.Fatal(err)
			}
			if ok := r.close([]string{"fine by the list"}, 0); ok != tc.ok {
				t.Errorf("good: %t, want %t", ok, tc.ok)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("missing %q", want)
				}
			}
			for _, not := range tc.not {
				if strings.Contains(out.String(), not) {
					t.Errorf("unwanted %q", not)
				}
			}
			if !strings.HasSuffix(out.String(), " skipped\n") {
				t.Error("the count isn't the last line")
			}
			if t.Failed() {
				t.Logf("the report:\n%s", out.String())
			}
		})
	}
}
